"""The quick reading of ordinary pages finds what the slow reading of any page does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content import markup
from crawlspace.content.html import extract
from crawlspace.content.markup import collapsed, plain_tags
from crawlspace.content.page import Page

URL = "http://www.example.com/folder/page.html"

PAGE = """<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">
<html lang="en-GB"><head><meta charset="utf-8"><title>Caf\u00e9 &amp; bar</title>
<meta name="description" content="a &quot;b&quot;"><META NAME="robots" CONTENT="noindex"><link rel="canonical" href="/c"/>
<style media=print>p > a { color: red }</style><script>if (a < b && c > d) { "<p>" }</script></head>
<body class="page"><!-- a > b <a href="no"> --><noscript><p>no</p><a href=noscript></noscript>
<ul class='nav'><li><a class="nav" href="/one" title="1 > 0">One</a><LI><A HREF="/two">T<b>w</b>o</A><li><a href="#three">Three</a></ul>
<svg role="img"><title>Icon</title><path d="M0 0"/></svg><h1 id="h">He<i>ad</i></h1>
<p>word &copy; word<br>word <a href="?a=1&amp;b=2" rel="nofollow">link</a> <a href="https://x.example/">link</a>
<a\ttitle="t"  href='y'>y</a><textarea>&lt;text</textarea><template><a href="no">no</a></template><h2>Last
<iframe src="frame"></iframe></body></html>"""

ORDINARY = (
    PAGE,
    "",
    "text",
    "<p>a > b</p>",
    "<P CLASS=x>a</P>",
    "<a href = x>",
    "<svg><title>t</title></svg>",
    "<script>a < b</script><svg></svg>",
    "<!-- <p --><p>",
    "<p><!--",
)


@pytest.mark.parametrize("html", ORDINARY)
def test_ordinary_pages_are_read_quickly(html: str) -> None:
    assert plain_tags(html) is not None


OUT_OF_THE_ORDINARY = (
    "1 < 2",
    "<script>",
    "<p",
    "<p title='",
    "<p title=a<b>",
    "<p title='<!-- -->'>",
    "<p title='<script></script>'>",
    "<title><b></title>",
    "<title><!-- --></title>",
    "<title>",
    "<textarea><script></script></textarea>",
    "<script><!-- <script></script> --></script>",
    "<svg><script></script></svg>",
    "<svg></math><svg><svg></svg><style></style>",
    "<svg><title/></svg>",
    "<plaintext></plaintext>",
    "</ p>",
)


@pytest.mark.parametrize("html", OUT_OF_THE_ORDINARY)
def test_others_are_left_to_the_tokenizer(html: str) -> None:
    assert plain_tags(html) is None
    assert_read_alike(html)


PIECES = [
    *"< > </ /> \" ' = & &# ; <!-- --> --!> <!> <! <? a b é \n \u2003".split(" "),
    *"<script> </script> <script/> <script <style> </style> <STYLE> <template> </template> <noscript> </noscript>".split(),
    *"<svg> <svg/> </svg> <math> </math> <title> <title/> </title> <textarea> </textarea> <iframe> </iframe> <xmp> </xmp>".split(),
    *"<plaintext> </plaintext> <h1> </h1> <H2> <p> </p> <b> </b> <br/> <my-tag> </a> <?x> <![CDATA[ ]]>".split(),
    *(
        "<a href=x>",
        '<a href="y">',
        "<A HREF='z'>",
        '<a class="c>" href="/v">',
        '<a href="w" rel="nofollow">',
        "<a href=",
        ' href="u"',
    ),
    *("<base href=/b/>", "<meta name=robots content=none>", "<link rel=next href=n>", "<html lang=de>", "<script a='>'>", " "),
]
WHOLE_TAGS = [piece for piece in PIECES if piece[0] not in "<\"'" or (piece[-1] == ">" and "[" not in piece)]


@given(st.lists(st.sampled_from(PIECES), max_size=20) | st.lists(st.sampled_from(WHOLE_TAGS), max_size=20))
def test_both_readings_agree_on_any_markup(pieces: list[str]) -> None:
    assert_read_alike("".join(pieces))


@given(st.lists(st.tuples(st.integers(0, len(PAGE)), st.sampled_from([0, 0, 1, 5]), st.sampled_from(["", *PIECES])), max_size=3))
def test_both_readings_agree_on_a_page_with_mistakes(changes: list[tuple[int, int, str]]) -> None:
    html = PAGE
    for at, length, piece in changes:
        html = html[:at] + piece + html[at + length :]
    assert_read_alike(html)


ATTRIBUTES = st.sampled_from(
    """ href="x"| href="#x"| href="http:x"| href="mailto:x"| href="&#35;"| href="a&amp;b"| href=" y "| href=""| href| HREF='z'| href="é"
| href="HTTPS://x"| href="https:"| class="c"|class="c"| data-href="no"| rel="nofollow"| rel="x"| REL=nofollow| title="\n>"| a="|"| |\n|/
|=| title=" href=""".split("|")
)


@given(st.lists(st.lists(ATTRIBUTES, max_size=4), max_size=4))
def test_usual_links_are_read_as_others_are(tags: list[list[str]]) -> None:
    anchors = "".join(f"<a{''.join(tag)}>" for tag in tags)
    areas = page(anchors.replace("<a", "<area"))
    hrefs, nofollow = ([href.replace("<area", "<a") for href in some] for some in (areas.hrefs, areas.nofollow))
    assert (list(page(anchors).hrefs), sorted(page(anchors).nofollow)) == (hrefs, sorted(nofollow))


@given(st.text(st.sampled_from([*"ab \n\t\r\x0b\x1c\x85\xa0\u2003\u2028\u3000\u200bé"])))
def test_text_is_collapsed_as_by_words(text: str) -> None:
    assert collapsed(text) == " ".join(text.split())


def assert_read_alike(html: str) -> None:
    quick = page(html)
    with pytest.MonkeyPatch.context() as change:
        change.setattr(markup, "MAX_PLAIN", -1)
        slow = page(html)
    assert quick == slow


def page(html: str) -> Page:
    return extract(html.encode(), url=URL, charset="utf-8")


@pytest.mark.parametrize(
    "written,text",
    [
        (f"&#{'0' * 5_000};a", "\ufffda"),
        (f"&#{'0' * 5_000}65;a", "Aa"),
        (f"&#{'0' * 5_000}65", "A"),
        (f"&#{'9' * 5_000};a", "\ufffda"),
        (f"&#x{'0' * 5_000}41;a", "Aa"),
        ("&#00000000;&#000000065;", "\ufffdA"),
    ],
)
def test_numbers_of_characters_have_any_number_of_digits(written: str, text: str) -> None:
    assert markup.resolved_text(written) == text
    assert markup.resolved_attribute(written) == text
