"""The contents of a page: a table for each subject, with a fragment of a page and the expected contents in each row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.html import MAX_HEADINGS, extract
from crawlspace.content.links import LinkAttributes
from crawlspace.content.page import Page
from crawlspace.outcome import Link
from tests.growth import is_linear
from tests.quick import some

URL = "http://www.example.com/folder/page.html"

LINKS: tuple[tuple[str, list[str]], ...] = (
    ('<a href="x.html">x</a>', ["a x.html"]),
    ('<A HREF=x.html TITLE="a > b">x</A>', ["a x.html"]),
    ("<a title=' href=\"no\"' data-href=no href=yes>", ["a yes"]),
    ("<a href=one href=two>", ["a one"]),
    ('<a\n href = " \n/pa\tth\n/x "\n>', ["a /path/x"]),
    ('<a href="?a=1&amp;b=2">', ["a ?a=1&b=2"]),
    ('<a href="?a=1&copy=2&region=3&lt;&#x41;&#66">', ["a ?a=1&copy=2&region=3<AB"]),
    ("<a href=/x/>y</a>", ["a /x/"]),
    ("<a name=top>y</a><a href>z</a><a href=''>z</a><a href='#part'>z</a>", []),
    ("<a href='page.html#part'>z</a>", ["a page.html#part"]),
    ("<a href='JavaScript:go()'><a href='java\nscript:go()'><a href=mailto:me@example.com><a href='data:text/html,x'>", []),
    ("<a href=' &#106;avascript:go()'>", []),
    ("<a href=javascripts.html><a href=/data:x>", ["a javascripts.html", "a /data:x"]),
    ("<a href=ftp://example.com/x>", ["a ftp://example.com/x"]),
    ("<map><area href=a1><area nohref></map>", ["area a1"]),
    ("<frameset><frame src=f1><frame href=f2></frameset>", ["frame f1", "frame f2"]),
    ("<iframe src=f1><a href=no></iframe><a href=yes>", ["iframe f1", "a yes"]),
    ("<link rel=next href=n><link rel='prev nofollow' href=p>", ["link n", "link p nofollow"]),
    ("<link rel=Alternate href=a><link rel=canonical href=c>", ["link a", "link c"]),
    ("<link rel=stylesheet href=s><link rel='alternate stylesheet' href=s><link rel=icon href=i><link href=x>", []),
    ("<meta http-equiv=Refresh content='0; url=next.html?a&amp;b'>", ["meta next.html?a&b"]),
    ("<a rel='noopener NoFollow' href=x>", ["a x nofollow"]),
    ("<a rel=nofollow-me href=x>", ["a x"]),
    ("<a href=x rel=nofollow><a href=y><a href=x>", ["a x", "a y"]),
    ("<a href=x><a href=x rel=nofollow>", ["a x"]),
    ("<a href=x rel=nofollow><a href=x rel=nofollow>", ["a x nofollow"]),
    ("<template><a href=no><template><a href=no></template><a href=no></template><a href=yes>", ["a yes"]),
    ("<noscript><a href=yes></noscript>", ["a yes"]),
    # declarative shadow DOM
    ("<x-a><template shadowrootmode=open><a href=1></template><a href='2'></x-a>", ["a 1", "a 2"]),
    ("<template ShadowRootMode='CLOSED'><a href=\"1\"></template>", ["a 1"]),
    ("<template shadowrootmode><a href=no></template><template shadowrootmode=auto><a href=no></template>", []),
    ("<template shadowrootmode=open><template><a href=no></template><a href=1></template></template><a href=2>", ["a 1", "a 2"]),
    ("<template><template shadowrootmode=open><a href=no></template><a href=no></template><a href=1>", ["a 1"]),
    # SVG
    ("<svg><a xlink:href='1'><text>t</text></a><a xlink:href=no href=2></a><a href xlink:href=no></svg>", ["a 1", "a 2"]),
    ("<svg><a XLink:HREF=1 rel=nofollow></a></svg><a xlink:href=no>", ["a 1 nofollow"]),
    # alternates for programs
    *(
        (f"<link rel=alternate type='{kind}' href=no>", [])
        for kind in (
            "application/rss+xml",
            "application/atom+xml; charset=utf-8",
            "application/rdf+xml",
            "Application/JSON",
            "application/json+oembed",
            "text/xml+oembed",
            "application/feed+json",
            "application/activity+json",
            "application/ld+json",
            "text/xml",
            "text/calendar",
            "text/turtle",
            "image/svg+xml",
            "audio/mpeg",
        )
    ),
    *(
        (f"<link rel=alternate type='{kind}' href=yes>", ["link yes"])
        for kind in (
            "",
            "text/html",
            "text/html; charset=utf-8",
            "application/xhtml+xml",
            "application/vnd.wap.xhtml+xml",
            "text/plain",
            "application/pdf",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "no type",
        )
    ),
    (
        "<link rel='alternate next' type=application/rss+xml href=a><link rel=canonical type=text/xml href=c>",
        ["link a", "link c"],
    ),
    ("<a rel=alternate type=application/rss+xml href=a>", ["a a"]),
    ("<!-- <a href=no> --><!--><a href=1><!---><a href=2><!-- --!><a href=3>", ["a 1", "a 2", "a 3"]),
    ("<script>'<a href=no>'</script><style><a href=no></style><textarea><a href=no></textarea>", []),
    ("<script><!-- <script></script> <a href=no> --></script><a href=yes>", ["a yes"]),
    ("<script><!-- </script><a href=yes>", ["a yes"]),
    ("<svg><title/><style/><a href=yes></svg><title><a href=no></title>", ["a yes"]),
    ("<svg><g><p><script><a href=no></script>", []),
    ("<a href='#/b'><a href=\"#!c\"><a href='#/d&amp;e'><a href='/f#/g'>", ["a #/b", "a #!c", "a #/d&e", "a /f#/g"]),
    ("<a href='#'><a href='#!'><a href='#/'><a href='#top'><a href='#a/b'><template><a href='#/no'></template>", []),
    ("<a href=x<a href=y>", ["a x<a"]),
    ("<a href=x", []),
    ("<a href='x", []),
    ("1 < 2 <a href=x> 3 </ 4> <", ["a x"]),
    ("<?xml version='1.0'?><!DOCTYPE html><a href=x>", ["a x"]),
)


@pytest.mark.parametrize(("html", "expected"), LINKS)
def test_links(html: str, expected: list[str]) -> None:
    assert [shown(link) for link in page(html).links] == expected


TEXT = (
    ("th<b>re</b>e wo<!-- -->rds h<wbr>ere", "three words here"),
    ("a<script>no</script>b<style>no</style>c", "abc"),
    ("<p>one</p>two<div>three</div>", "one two three"),
    ("one<br>two<hr/>three<img src=x>four", "one two three four"),
    ("<table><tr><td>a<td>b<tr><th>c</table>", "a b c"),
    ("<ul><li>a<li>b</ul>", "a b"),
    ("<my-card>a</my-card><my-card>b</my-card>", "a b"),
    ("<select><option>a<option>b</select><button>c</button>d", "a b c d"),
    ("a &amp; b &lt;c&gt;&nbsp;d &copy e &#8364;", "a & b <c> d © e €"),
    ("&#" + "9" * 5000 + "; &#xD800;", "\ufffd \ufffd"),
    (" a \n\t b\r\n", "a b"),
    ("<title>no</title>a<noscript>no</noscript>b<template>no</template>c", "abc"),
    ("<textarea>&lt;a</textarea><xmp><b></xmp>", "<a <b>"),
    ("a<iframe>no</iframe>b", "a b"),
    ("<svg><title>no</title><text>t</text></svg>", "t"),
    ("one <b>two <i>three</b> four", "one two three four"),
    ("a<template shadowrootmode=open>b<template>no</template></template>c<template>no</template>d", "a b cd"),
    ("</p>a</br>b</script>c", "a bc"),
    ("a<plaintext><b>c", "a <b>c"),
    ("1 < 2, 3 <4 and 5<6", "1 < 2, 3 <4 and 5<6"),
    ("a\0b", "ab"),
    ("not html at all", "not html at all"),
    ("", ""),
)


@pytest.mark.parametrize(("html", "expected"), TEXT)
def test_text_breaks_words_where_a_browser_does(html: str, expected: str) -> None:
    assert page(html).text == expected


HEAD = (
    ("<title> A &amp;\n B </title><title>no</title>", "title", "A & B"),
    ("<svg><title>no</title></svg><p><title>yes", "title", "yes"),
    ("<title></title>", "title", ""),
    ("<title> &nbsp; </title><meta property=og:title content=no><h2>A <b>B</b></h2><h1>no</h1>", "title", "A B"),
    ("<h1> </h1><h1>A</h1>", "title", "A"),
    ("<meta property='OG:Title' content=' A &amp;\n B '><meta property=og:title content=no><h1><img></h1>", "title", "A & B"),
    ("<title>A</title><meta property=og:title content=no><h1>no</h1>", "title", "A"),
    ("<meta property=og:description content=o><meta name=Description content=' d &quot;e&quot; '>", "description", 'd "e"'),
    ("<meta property=og:description content=o>", "description", "o"),
    ("<html lang=EN_gb>", "language", "en-GB"),
    ("<html xml:lang=zh-hans-cn>", "language", "zh-Hans-CN"),
    ("<html lang='?'><meta http-equiv=content-language content=de>", "language", "de"),
    ("<meta http-equiv=content-language content='de, en'>", "language", ""),
    ("<h1>A<b>B</b></h1><h2>C<h3>D</h4><h4>no</h4>", "headings", ("AB", "C", "D")),
    ("<h1> </h1>", "headings", ()),
    ("<noscript><h1>no</h1></noscript><h1>A<noscript>no</noscript>B</h1>", "headings", ("AB",)),
    ("<svg><style>no<h1>no</style>A</h1>", "headings", ("A",)),
    ("<h2>x" * (MAX_HEADINGS + 9), "headings", ("x",) * MAX_HEADINGS),
    ("<link rel='x canonical' href=' c '><link rel=canonical href=no>", "canonical", "c"),
    ("<link rel=canonical>", "canonical", None),
    ("<meta http-equiv=refresh content='5;URL=\"/a b\" x'>", "meta_refresh", (5.0, "/a b")),
    ("<meta http-equiv=refresh content='0.5, /a'><meta http-equiv=refresh content='1;no'>", "meta_refresh", (0.5, "/a")),
    ("<meta http-equiv=refresh content='30'>", "meta_refresh", None),
    ("<meta http-equiv=refresh content='soon; url=x'>", "meta_refresh", None),
    ("<base href=/b/><base href=/no/>", "base", "http://www.example.com/b/"),
    ("<base target=x><base href=//other.example>", "base", "http://other.example/"),
    ("<base href='http://[::1'>", "base", URL),
    ("<base href=javascript:x>", "base", URL),
    ("", "base", URL),
)


@pytest.mark.parametrize(("html", "field", "expected"), HEAD)
def test_the_metadata_of_a_page(html: str, field: str, expected: object) -> None:
    assert getattr(page(html), field) == expected


ROBOTS = (
    ("", True, True),
    ("<meta name=robots content='NOINDEX, follow'>", False, True),
    ("<META NAME=ROBOTS CONTENT=none>", False, False),
    ("<meta name=robots content=noindex><meta name=robots content=nofollow>", False, False),
    ("<meta name=googlebot content=noindex>", True, True),
    ("<meta name=OurBot content=noindex>", False, True),
    ("<template><meta name=robots content=none></template>", True, True),
)


@pytest.mark.parametrize(("html", "index", "follow"), ROBOTS)
def test_robots_meta(html: str, index: bool, follow: bool) -> None:
    found = extract(html.encode(), url=URL, agent_names=("ourbot",)).robots
    assert (found.index, found.follow) == (index, follow)


ENCODED = (
    ("windows-1251", "<a href='/поиск?q=слово&amp;x=1#часть'>", "/поиск?q=%F1%EB%EE%E2%EE&x=1#часть"),
    ("windows-1252", "<a href='?q=&eacute;&#1078;'>", "?q=%E9%26%231078%3B"),
    ("shift_jis", "<frame src='/s?q=日本'>", "/s?q=%93%FA%96{"),
    ("koi8-r", "<meta http-equiv=refresh content='0; url=?q=ж'>", "?q=%D6"),
    ("gbk", "<link rel=next href='?q=中'>", "?q=%D6%D0"),
    ("windows-1251", "<img data-x='?q=ж'>", "?q=%E6"),
    ("utf-8", "<a href='?q=ж'>", "?q=ж"),
    ("utf-16le", "<a href='?q=ж'>", "?q=ж"),
    ("iso-2022-kr", "<a href='?q=z'>", "?q=z"),
)


@pytest.mark.parametrize(("label", "html", "href"), ENCODED)
def test_queries_of_links_are_in_the_encoding_of_the_page(label: str, html: str, href: str) -> None:
    codec = {"iso-2022-kr": "ascii", "utf-16le": "utf-16-le"}.get(label, label)
    found = extract(html.encode(codec), url=URL, charset=label, link_attributes=LinkAttributes([("img", "data-x")]))
    assert found.hrefs == (href,)


def test_other_addresses_of_a_page_are_in_its_encoding_too() -> None:
    html = (
        "<meta charset=windows-1251><base href='/b?q=ж'><link rel=canonical href='c?q=ж'>"
        "<meta http-equiv=refresh content='0; url=r?q=ж'>"
    )
    found = extract(html.encode("cp1251"), url=URL)
    assert (found.base, found.canonical, found.meta_refresh) == (
        "http://www.example.com/b?q=%E6", "c?q=%E6", (0.0, "r?q=%E6")
    )  # fmt: skip


def test_which_tags_count_can_be_chosen() -> None:
    body = b"<a href=a><area href=b><iframe src=c></iframe><link rel=canonical href=d><meta http-equiv=refresh content='0;url=e'>"
    found = extract(body, url=URL, link_tags=frozenset({"a"}))
    assert [shown(link) for link in found.links] == ["a a"]
    found = extract(body, url=URL, link_tags=frozenset({"area"}))
    assert [shown(link) for link in found.links] == ["area b"]
    assert found.canonical == "d"
    assert found.meta_refresh == (0.0, "e")


def test_nofollow_links_are_marked() -> None:
    found = page("<a href=a><a href=b rel=nofollow><a href=c>")
    assert (found.hrefs, found.followed) == (("a", "b", "c"), ["a", "c"])


def test_links_and_text_are_bounded_and_the_page_has_the_numbers_left_out() -> None:
    body = b"".join(b"<a href=/%d>word</a> " % number for number in range(100_000))
    found = extract(body, url=URL, max_links=10_000, max_text=50)
    assert (len(found.links), found.links_left_out, len(found.text), found.text_left_out > 0) == (10_000, 90_000, 50, True)
    found = extract(body, url=URL, max_links=100_000)
    assert (len(found.links), found.links_left_out, found.text_left_out) == (100_000, 0, 0)


NESTED = ("div", "b", "a", "table", "svg", "font color=red", "ul><li")


@pytest.mark.parametrize("tag", NESTED)
def test_nothing_is_lost_at_five_thousand_levels(tag: str) -> None:
    found = page(f"<{tag}>" * 5_000 + "<a href=deep>deep</a>")
    assert "a deep" in map(shown, found.links)
    assert found.text == "deep"


def test_xhtml_closes_elements_in_themselves_and_has_cdata() -> None:
    body = b"<html xml:lang='fr'><head><script src='x'/><title>T</title></head><body><![CDATA[1 < 2 &amp;]]><a href='x'/></body></html>"
    found = extract(body, url=URL, xhtml=True)
    assert (found.title, found.text, found.language, [shown(link) for link in found.links]) == ("T", "1 < 2 &amp;", "fr", ["a x"])


@pytest.mark.parametrize(
    "piece",
    some(
        [
            "<div>",
            "<p><b x>",
            "<a href='",
            "<",
            '"',
            "<!--",
            "<!-",
            "<!",
            "<?x>",
            "<b>",
            "<br/>",
            "<a href=x>",
            '<a class="',
            '<a title="x" ',
            "<h1>",
            "<script>",
            "<script></script>",
            "<script a=",
            "<style>",
            "<style></style ",
            "<svg>",
            "<svg/>",
            "<svg></svg>",
            "<svg><math></svg>",
            "<title></title>",
            "<textarea></textarea>",
            "<template>",
            "<noscript></noscript>",
            "<noscript><h1>",
            " ",
            "  a",
            "\u2003\n",
            "<![CDATA[",
            "</",
            "< ",
            "<a ",
            "<title>",
            "<script><!--<script>",
            "&",
            "&#1",
            "=",
            "'\"<a=",
        ],
        6,
    ),
)
def test_a_megabyte_of_one_piece_takes_no_more_than_its_length(piece: str) -> None:
    assert is_linear(lambda size: page(piece * (size // len(piece))), 250_000)


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_read(body: bytes, xhtml: bool) -> None:
    extract(body, url=URL, xhtml=xhtml)


MARKUP = st.sampled_from(
    "< > </ /> \" ' = & &# ; <!-- --> <script> </script> <template> <svg> <title> a \0 <base%href= <meta%http-equiv=refresh%content= 0;url= [ é"
    " <meta%charset=utf-16> <a%href= <h1> <html%lang= %".replace("%", "\t").split(" ")
)


@given(st.lists(MARKUP, max_size=40), st.booleans())
def test_any_markup_is_read(pieces: list[str], xhtml: bool) -> None:
    extract("".join(pieces).encode(), url=URL, xhtml=xhtml)


def page(html: str) -> Page:
    return extract(html.encode(), url=URL, charset="utf-8")


def shown(link: Link) -> str:
    return f"{link.tag} {link.href}" + (" nofollow" if link.nofollow else "")


SHELL = '<div id="root"></div><script src="/app.js"></script>'
ANALYTICS = "<script>track()</script>"
SENTENCE = "<p>The canteen is closed on Friday, 4 July.</p>"

PAGES: list[tuple[str, str, bool]] = [
    ("an empty element and a script", SHELL, True),
    ("with a title, a style and a canonical URL", f'<title>Shop</title><style>p{{}}</style><link rel=canonical href=/>{SHELL}', True),
    ("with a word while it loads", f"<p>Loading, please wait …</p>{SHELL}", True),
    ("it asks to enable scripts", f"<noscript>You need to enable JavaScript to run this app, please do so.</noscript>{SHELL}", True),
    ("with a link for those without scripts", f"<noscript><a href=/help>?</a></noscript>{SHELL}", True),
    ("with the frame of a tag manager", f"<noscript><iframe src=https://tags.example/></iframe></noscript>{SHELL}", True),
    ("a script in capitals, and a comment in it", "<div></div><SCRIPT><!-- go() --></SCRIPT>", True),
    ("a script that does not end", "<div></div><script>go()", True),
    ("a page that is no plain markup", f"<div>1 < 2</div>{SHELL}", True),
    ("an empty page", "", False),
    ("a short page without scripts", "<p>It works!</p>", False),
    ("a style is no script", "<style>p{}</style><p>It works!</p>", False),
    ("a short text and a script that counts visits", f"{SENTENCE}{ANALYTICS}", False),
    ("links to routes of its own program", f"<a href='#/a'>A</a><a href='#!b'>B</a><a href='#/c&amp;d'>C</a>{ANALYTICS}", True),
    ("a list of links and a script", f"<a href=a>A</a><a href=b>B</a>{ANALYTICS}", False),
    ("a form to log in", f"<form><input name=user></form>{ANALYTICS}", False),
    ("a frame set", "<script>go()</script><frameset><frame src=menu.html></frameset>", False),
    ("it leads elsewhere by itself", f'<meta http-equiv=refresh content="0; url=/new">{ANALYTICS}', False),
    ("a script in a comment", "<p>It works!</p><!-- <script></script> -->", False),
]  # fmt: skip


@pytest.mark.parametrize(("what", "html", "expected"), PAGES, ids=[row[0] for row in PAGES])
def test_which_pages_may_need_a_browser(what: str, html: str, expected: bool) -> None:
    page = extract(f"<html><body>{html}</body></html>".encode(), url="http://www.example.com/", charset="utf-8")
    assert page.may_need_browser is expected
