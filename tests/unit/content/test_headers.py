"""The headers of a page: their metadata, robots directives, and dates in ISO 8601."""

from __future__ import annotations

import pytest

from crawlspace.content.dates import http_time
from crawlspace.content.headers import canonical_link, read_headers
from crawlspace.content.robots_directives import RobotsDirectives, parse_robots, parse_robots_headers
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


# --- robots directives of pages and headers -------------------------------------------------------------------------


META = (
    ("", True, True),
    ("index, follow", True, True),
    ("all", True, True),
    ("NoIndex", False, True),
    ("nofollow;noarchive", True, False),
    ("none", False, False),
    ("index,noindex", False, True),
    ("noindex nofollow", False, False),
    ("max-snippet:0, unavailable_after: 2001-01-01", True, True),
    ("noindexing", True, True),
)


@pytest.mark.parametrize(("content", "index", "follow"), META)
def test_meta(content: str, index: bool, follow: bool) -> None:
    assert parse_robots(content) == RobotsDirectives(index, follow)


HEADERS: tuple[tuple[list[str], bool, bool], ...] = (
    ([], True, True),
    (["noindex"], False, True),
    (["noindex", "nofollow"], False, False),
    (["googlebot: noindex"], True, True),
    (["OurBot: noindex"], False, True),
    (["*: none"], False, False),
    (["otherbot: noindex, nofollow"], True, True),
    (["otherbot: noindex, ourbot: nofollow"], True, False),
    (["ourbot: nofollow, otherbot: noindex"], True, False),
    (["googlebot: noindex", "nofollow"], True, False),
    (["unavailable_after: Wed, 25 Jun 2003 15:00:00 PST, noindex"], False, True),
    (["ourbot: unavailable_after: 25 Jun 2003 15:00:00 PST, nofollow"], True, False),
    (["max-image-preview: none"], True, True),
    ([": noindex"], True, True),
)


@pytest.mark.parametrize(("values", "index", "follow"), HEADERS)
def test_headers(values: list[str], index: bool, follow: bool) -> None:
    assert parse_robots_headers(values, ("OurBot",)) == RobotsDirectives(index, follow)


# --- dates: those of RFC 9110, and others that servers send ---------------------------------------------------------


DATES = [
    ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"),
    ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"),
    ("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z"),
    ("Mon, 02 Jun 2025 10:00:00 +0200", "2025-06-02T08:00:00Z"),
    ("Thu, 29 Feb 2024 00:00:00 GMT", "2024-02-29T00:00:00Z"),
    ("Sun, 31 Feb 1994 08:49:37 GMT", ""),
    ("Sun, 06 Nov 1994 25:49:37 GMT", ""),
    (f"Sun, 06 Nov 1994 08:{9 * 10**20}:37 GMT", ""),
    (f"Sun, {9 * 10**20} Nov 1994 08:49:37 GMT", ""),
    (f"Sun, 06 Nov 1994 08:49:37 +{9 * 10**20}", ""),
    ("yesterday", ""),
    ("0", ""),
    ("-1", ""),
    ("", ""),
]


@pytest.mark.parametrize(("text", "expected"), DATES)
def test_http_dates(text: str, expected: str) -> None:
    assert http_time(text) == expected
