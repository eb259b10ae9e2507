"""What the headers of a page say."""

from __future__ import annotations

import pytest

from crawlspace.content.headers import canonical_link, read_headers
from tests.growth import is_linear

PAGE = "http://a.example/x/page"
LINKS = [
    # Link headers, the other page they name
    (['<http://a.example/c>; rel="canonical"'], "http://a.example/c"),
    (["</c>; rel=canonical"], "http://a.example/c"),
    (["<c>; REL=Canonical"], "http://a.example/x/c"),
    (["<http://b.example/>;title=\"a, b; rel=next\";rel='x'"], None),
    (['<c>; title="a, <d>; rel=canonical"; rel="next"'], None),
    (['</n>; rel=next, </c>; rel="up canonical"'], "http://a.example/c"),
    (["</n>; rel=next", "</c>; rel=canonical", "</d>; rel=canonical"], "http://a.example/c"),
    (["<page>; rel=canonical"], None),
    (["<http://[/>; rel=canonical"], None),
    (["</c>; rel=canonicals"], None),
    (["</c>"], None),
    (["nonsense"], None),
    (['</c>; rel="canonical'], None),
    (["<" * 100_000], None),
    (['<a>;"' + '\\"' * 50_000], None),
]


@pytest.mark.parametrize(("values", "expected"), LINKS)
def test_the_canonical_page_of_a_link_header(values: list[str], expected: str | None) -> None:
    assert canonical_link(values, url=PAGE) == expected


CONCERN = [
    # headers, whether they decide about the document or its links
    ({}, False),
    ({"ETag": ['"1"'], "Content-Type": ["text/html"]}, False),
    ({"X-Robots-Tag": ["noarchive"]}, False),
    ({"X-Robots-Tag": ["otherbot: noindex"]}, False),
    ({"X-Robots-Tag": ["crawlspace: noindex"]}, True),
    ({"X-Robots-Tag": ["nofollow"]}, True),
    ({"Link": ["</other>; rel=canonical"]}, True),
    ({"Link": ["<page>; rel=canonical"]}, False),
]


@pytest.mark.parametrize(("sent", "expected"), CONCERN)
def test_headers_that_concern_the_document(sent: dict[str, list[str]], expected: bool) -> None:
    headers = read_headers(lambda name: sent.get(name, []), url=PAGE, agent_names=("crawlspace",))
    assert headers.concern_the_document is expected


def test_robots_directives_count_only_where_they_are_obeyed() -> None:
    headers = read_headers(lambda name: ["noindex"] if name == "X-Robots-Tag" else [], url=PAGE, obey_robots=False)
    assert not headers.concern_the_document


VALIDATORS = [
    # an ETag or Last-Modified as sent, whether it is kept
    ('"abc"', True),
    ('W/"abc"', True),
    ("Tue, 15 Nov 1994 12:45:26 GMT", True),
    ('"m\u00fcller"', True),
    ('"' + "a" * 1_022 + '"', True),
    ('"' + "a" * 1_023 + '"', False),
    ('"a\x00b"', False),
    ('"a\x1b[2Jb"', False),
    ('"a\x7f"', False),
    ('"a\x9b2J"', False),
    ('"a\tb"', False),
]


@pytest.mark.parametrize("name", ["ETag", "Last-Modified"])
@pytest.mark.parametrize(("value", "kept"), VALIDATORS)
def test_validators_that_are_kept(name: str, value: str, *, kept: bool) -> None:
    headers = read_headers(lambda asked: [value] if asked == name else [], url=PAGE)
    assert {"ETag": headers.etag, "Last-Modified": headers.last_modified}[name] == (value if kept else None)


def test_a_link_header_of_brackets_takes_time_in_proportion_to_its_length() -> None:
    assert is_linear(lambda size: canonical_link(["<" * size], url="http://a.example/"), 4_000)
