"""Links of a rendered page in another encoding, and attributes of the user's choice that have links."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content import markup
from crawlspace.content.html import LINK_TAGS, extract
from crawlspace.content.links import LinkAttributes, with_queries_in
from crawlspace.content.page import Page
from tests.growth import is_linear
from tests.quick import some
from tests.unit.content.test_html import MARKUP, URL, shown

DOMS = (
    ('<a href="/ж?q=ж&amp;x=1#ж">ж?</a>', "cp1251", '<a href="/ж?q=%E6&amp;x=1#ж">ж?</a>'),
    ('<iframe src="?é"></iframe><svg><a xlink:href="?é"></a></svg>', "cp1252", '<iframe src="?%E9"></iframe><svg><a xlink:href="?%E9"></a></svg>'),
    ('<a title="é?é" href="/é">', "cp1252", '<a title="é?é" href="/é">'),
    ('<a href="?é">', "utf-8", '<a href="?é">'),
    ('<a href="?a">', "cp1252", '<a href="?a">'),
)  # fmt: skip


@pytest.mark.parametrize(("html", "codec", "expected"), DOMS)
def test_queries_in_the_encoding_of_the_page(html: str, codec: str, expected: str) -> None:
    assert with_queries_in(html, codec) == expected


LINKS: tuple[tuple[str, str, list[str]], ...] = (
    # pairs, markup, links
    ("div@data-href", "<div data-href=x>", ["div x"]),
    ("div@data-href", "<p data-href=x><div href=y><div data-hrefs=z>", []),
    ("div@data-href", "<DIV\n CLASS='a' DATA-HREF = 'x' >", ["div x"]),
    ("div@data-href", "<div data-href=\"x\"/><div data-href=/y/><div data-href='z'>", ["div x", "div /y/", "div z"]),
    ("div@data-href", "<div data-href=one data-href=two>", ["div one"]),
    ("div@data-href", "<div title=' data-href=\"no\"'><div title='x>' data-href=yes>", ["div yes"]),
    ("div@data-href", "<div data-href=' \n/pa\tth\n/x '><div data-href='?a=1&amp;b=2&copy=3&#x41;'>", ["div /path/x", "div ?a=1&b=2&copy=3A"]),
    ("div@data-href", "<div data-href><div data-href=''><div data-href=#part><div data-href=JavaScript:x><div data-href=mailto:a@b>", []),
    ("div@data-href", "<div data-href='{\"url\": 1}'>", ['div {"url": 1}']),
    ("div@data-href", "</div data-href=no><!-- <div data-href=no> --><!div data-href=no>", []),
    ("div@data-href", "<script>'<div data-href=no>'</script><textarea><div data-href=no></textarea><title><div data-href=no></title>", []),
    ("div@data-href", "<template><div data-href=no></template><noscript><div data-href=yes></noscript>", ["div yes"]),
    ("div@data-href", "<div data-href=x", []),
    ("div@data-href", "<div data-href='x", []),
    ("div@data-href", "1 < 2 <div data-href=x>", ["div x"]),
    ("div@data-href", "<a href=1><div data-href=2><a href=3><a href=2>", ["a 1", "div 2", "a 3"]),
    ("div@data-href", "<div data-href=x rel=nofollow>", ["div x"]),
    ("a@data-url", "<a href=x data-url=y rel='noopener NoFollow'>", ["a y nofollow", "a x nofollow"]),
    ("a@data-url", "<a href=x data-url=y rel=nofollow><a href=y>", ["a y", "a x nofollow"]),
    ("a@data-url", "<a class=c href=x><a class=c href=y data-url=z><a class=c href=w>", ["a x", "a z", "a y", "a w"]),
    ("a@data-url", "<a href='?data-url=1'>", ["a ?data-url=1"]),
    ("form@action", "<form action=f rel=nofollow><form action=g>", ["form f nofollow", "form g"]),
    ("img@src", "<img src=i alt=x><IMG SRC=j /><image src=no>", ["img i", "img j"]),
    ("img@src img@data-src", "<img data-src=lazy src=blank>", ["img lazy", "img blank"]),
    ("my-card@to", "<my-card to=x>", ["my-card x"]),
    ("*@data-url", "<p data-url=1><my-card data-url=2><a href=3 data-url=4></p data-url=5>", ["p 1", "my-card 2", "a 4", "a 3"]),
    ("*@data-url", "<html data-url=1><head data-url=2><title data-url=3>no</title><body data-url=4>", ["html 1", "head 2", "title 3", "body 4"]),
    ("*@data-url", "<script data-url=1>'<p data-url=no>'</script><style data-url=2></style>", ["script 1", "style 2"]),
    ("*@data-url", "<template data-url=yes><p data-url=no></template><p data-url=1>", ["template yes", "p 1"]),
    ("*@data-url", "<svg data-url=1><g data-url=2 /></svg><br data-url=3>", ["svg 1", "g 2", "br 3"]),
    ("script@src", "<script src=s.js></script><a href=x><SCRIPT defer src='t.js'></SCRIPT>", ["script s.js", "a x", "script t.js"]),
    ("script@src", "<!-- <script src=no></script> --><noscript><script src=s></script></noscript>", ["script s"]),
    ("*@src", "<frame src=f href=g><iframe src=i><a href=no></iframe>", ["frame f", "frame g", "iframe i"]),
    ("iframe@data-src", "<iframe data-src=d src=s></iframe>", ["iframe d", "iframe s"]),
    ("link@href", "<link rel=stylesheet href=s><link rel=next href=n>", ["link s", "link n"]),
    ("a@xlink:href", "<svg><a xlink:href=x></a></svg>", ["a x"]),
    ("use@xlink:href", "<svg><use xlink:href=#icon /><use xlink:href='i.svg#icon'/></svg>", ["use i.svg#icon"]),
)  # fmt: skip


@pytest.mark.parametrize(("pairs", "html", "expected"), LINKS)
def test_links(pairs: str, html: str, expected: list[str]) -> None:
    assert [shown(link) for link in page(html, pairs).links] == expected


def test_they_are_relative_to_the_base() -> None:
    found = page("<base href=/b/ data-url=x><p data-url=y>", "p@data-url")
    assert (found.base, found.hrefs) == ("http://www.example.com/b/", ("y",))


def test_they_may_be_all_that_counts() -> None:
    body = b"<a href=no data-url=yes><area href=no><iframe src=no></iframe><link rel=canonical href=c>"
    found = extract(body, url=URL, link_tags=frozenset(), link_attributes=pairs_of("a@data-url"))
    assert (found.hrefs, found.canonical) == (("yes",), "c")


def test_the_limit_of_a_page_holds_for_them() -> None:
    body = "".join(f"<p data-url={number}><a href=a{number}>" for number in range(50)).encode()
    found = extract(body, url=URL, link_attributes=pairs_of("p@data-url"), max_links=60)
    assert (len(found.hrefs), found.links_left_out, found.hrefs[:3]) == (60, 40, ("0", "a0", "1"))


def test_xhtml() -> None:
    body = b"<html><head><script data-url='1'/></head><body><p data-url='2'/><![CDATA[<p data-url='no'>]]></body></html>"
    assert extract(body, url=URL, xhtml=True, link_attributes=pairs_of("*@data-url")).hrefs == ("1", "2")


PIECES = st.lists(
    MARKUP | st.sampled_from(["<a ", " rel=nofollow", " data-url=x", "<p data-url=y>", "<script data-url=z>", " href=b"]),
    max_size=40,
)


@given(PIECES, st.booleans())
def test_a_link_of_the_usual_kind_written_as_a_pair_is_the_same_link(pieces: list[str], xhtml: bool) -> None:
    body = "".join(pieces).encode()
    usual = extract(body, url=URL, xhtml=xhtml, link_tags=frozenset({"a"}))
    assert extract(body, url=URL, xhtml=xhtml, link_tags=frozenset(), link_attributes=pairs_of("a@href")) == usual
    assert extract(body, url=URL, xhtml=xhtml, link_tags=frozenset({"a"}), link_attributes=pairs_of("a@href")) == usual


@given(PIECES, st.sampled_from(["*@data-url", "p@data-url", "script@data-url"]))
def test_nothing_else_of_a_page_differs_for_them(pieces: list[str], pairs: str) -> None:
    html = "".join(pieces)
    usual, found = page(html, ""), page(html, pairs)
    for name in ("text", "title", "headings", "base", "robots", "canonical", "meta_refresh", "language"):
        assert getattr(found, name) == getattr(usual, name)
    assert set(usual.hrefs) <= set(found.hrefs)


@given(PIECES, st.sampled_from(["*@data-url", "p@data-url", "a@data-url"]))
def test_both_readings_of_markup_agree(pieces: list[str], pairs: str) -> None:
    html = "".join(pieces)
    quick = page(html, pairs)
    with pytest.MonkeyPatch.context() as change:
        change.setattr(markup, "MAX_PLAIN", -1)
        assert page(html, pairs) == quick


@pytest.mark.parametrize(
    "piece",
    some(
        [
            "<p data-url=x>",
            "<p data-url=",
            "<script data-url=x>",
            "data-url",
            "<a href=x>",
            "<p data-url='",
            "<template data-url=x>",
        ],
        2,
    ),
)
def test_a_megabyte_of_one_piece_takes_no_more_than_its_length(piece: str) -> None:
    assert is_linear(lambda size: page(f"<p data-url=y>{piece * (size // len(piece))}", "*@data-url a@data-url"), 250_000)


def pairs_of(text: str) -> LinkAttributes:
    return LinkAttributes((element, attribute) for element, _, attribute in (pair.partition("@") for pair in text.split()))


def page(html: str, pairs: str) -> Page:
    return extract(html.encode(), url=URL, charset="utf-8", link_tags=LINK_TAGS, link_attributes=pairs_of(pairs))
