"""The tree of a page: what is nested in what, for markup that is not always right."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from crawlspace.content.exclusion_marks import EXCLUSION_MARKS
from crawlspace.content.html import extract
from crawlspace.content.main_content import text_of
from crawlspace.content.tree import MAX_ATTRIBUTES, MAX_DEPTH, page_tree
from tests.growth import is_linear
from tests.quick import some
from tests.unit.content.test_exclusion_marks import MARKED

TREES = (
    # html, the body's content as XML
    ("a<p>b", "a<p>b</p>"),
    ("<p>a<p>b<div>c", "<p>a</p><p>b</p><div>c</div>"),
    ("<p>a<b>b<p>c", "<p>a<b>b</b></p><p>c</p>"),
    ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>e"),
    ("<ul><li>a<div><li>b</ul>", "<ul><li>a<div/></li><li>b</li></ul>"),
    ("<dl><dt>a<dd>b<dt>c<dd><dl><dt>d</dl></dl>", "<dl><dt>a</dt><dd>b</dd><dt>c</dt><dd><dl><dt>d</dt></dl></dd></dl>"),
    ("<table><tr><td>a<td>b<tr><th>c</table>d", "<table><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></table>d"),
    (
        "<table><thead><tr><th>a<tbody><tr><td>b</table>",
        "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td></tr></tbody></table>",
    ),
    ("<table><td>a</table>", "<table><tr><td>a</td></tr></table>"),
    (
        "<table><tr><td><table><tr><td>a</table>b<td>c</table>",
        "<table><tr><td><table><tr><td>a</td></tr></table>b</td><td>c</td></tr></table>",
    ),
    ("<div><table><tr><td>a</div>b</table>c</div>", "<div><table><tr><td>a b</td></tr></table>c</div>"),
    ("<b>a<ul><li>b</b>c<li>d</ul>e", "<b>a<ul><li>bc</li><li>d</li></ul></b>e"),
    ("<b>a<i>b</b>c", "<b>a<i>b</i></b>c"),
    ("<a href=1>a<a href=2>b", '<a href="1">a</a><a href="2">b</a>'),
    ("<h1>a<h2>b</h1>c", "<h1>a</h1><h2>b</h2>c"),
    ("<select><option>a<option>b</select>", "<select><option>a</option><option>b</option></select>"),
    ("a<br>b</br>c<hr><img src=x>", 'a<br/>b<br/>c<hr/><img src="x"/>'),
    ("a</div>b</i>c", "a bc"),
    ("<div/>a", "<div>a</div>"),
    ("<svg><g/>a</svg>b", "<svg><g/>a</svg>b"),
    ("&lt;p> &amp; &#228;", "&lt;p&gt; &amp; ä"),
    ("<p ID=x CLASS='a &amp; b' @click=no>", '<p id="x" class="a &amp; b"/>'),
    ('<a"b>c', "<unknown>c</unknown>"),
    ("<o:p>a</o:p>b", "<o:p>a</o:p>b"),
    ("a<script>no</script>b<style>no</style>c<iframe>no</iframe>d<noscript><p>no</noscript>e<!-- no -->f", "abcd ef"),
    ("<template><p>no</p></template><template shadowrootmode=open>a</template>", '<div shadowrootmode="open">a</div>'),
    ("<textarea><b></textarea>", "<textarea>&lt;b&gt;</textarea>"),
    ("<p>a&#1;b\x0cc\0d", "<p>ab cd</p>"),
    ("</body></html>a", "a"),
    ("", ""),
)


@pytest.mark.parametrize(("html", "expected"), TREES)
def test_trees(html: str, expected: str) -> None:
    assert body_of(html) == expected


def test_the_head_has_the_title_and_what_else_belongs_there() -> None:
    root = page_tree(
        "<!DOCTYPE html><html lang=en><head><meta name=a><title> A &amp;\n B</title><link rel=x><body class=c>d<title>no</title>"
    )
    assert etree.tostring(root, encoding="unicode") == (
        '<html lang="en"><head><meta name="a"/><title>A &amp; B</title><link rel="x"/></head><body class="c">d</body></html>'
    )


def test_xhtml_closes_elements_in_themselves_and_has_cdata() -> None:
    root = page_tree(
        "<html><head><script src='x'/><title>T</title></head><body><p/><![CDATA[1 < 2 &amp;]]></body></html>", xhtml=True
    )
    assert etree.tostring(root.find("body"), encoding="unicode") == "<body><p/>1 &lt; 2 &amp;amp; </body>"


@pytest.mark.parametrize(("html", "text"), MARKED.values(), ids=MARKED)
def test_marked_text_is_missing(html: str, text: str) -> None:
    assert text_of([page_tree(html).find("body")]).split() == text.split()


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        (EXCLUSION_MARKS, "<p>a <b> </b></p>"),
        ((), "<p>a <b>b<img/></b></p>"),
    ],
)
def test_the_element_of_a_marked_text_is_there_without_images(marks: tuple[str, ...], expected: str) -> None:
    root = page_tree("<p>a <b data-pagefind-ignore>b<img></b></p>", exclusion_marks=marks)
    etree.strip_attributes(root, "data-pagefind-ignore")
    assert etree.tostring(root.find("body")[0], encoding="unicode") == expected


@pytest.mark.parametrize(
    "piece", ["<div>", "<b n=1>", "<ul><li>", "<table><tr><td>", "<blockquote><p>", "<svg>", "<unknown-one>"]
)
def test_elements_beyond_the_depth_are_replaced_by_their_text(piece: str) -> None:
    root = page_tree(f"{piece}x" * 10_000 + "<p>last</p><img alt=y>")
    assert text_of([root.find("body")]).replace(" ", "") == "x" * 10_000 + "last"
    assert max(sum(1 for _ in node.iterancestors()) for node in root.iter()) <= MAX_DEPTH + 1
    assert len(root.xpath("//img")) == 1


def test_end_tags_beyond_the_depth_end_what_they_belong_to() -> None:
    root = page_tree("<div>" * 1_000 + "a" + "</div>" * 1_000 + "<p>b</p>")
    assert [node.tag for node in root.find("body")] == ["div", "p"]


def test_an_element_has_the_first_of_very_many_attributes() -> None:
    (element,) = page_tree("<p " + " ".join(f"a{number}=x" for number in range(100_000)) + ">").find("body")
    assert list(element.attrib) == [f"a{number}" for number in range(MAX_ATTRIBUTES)]


@pytest.mark.parametrize(
    "piece",
    some(
        [
            "<div>",
            "<b n=1>",
            "<ul><li>",
            "<p><b n=1>",
            "</p>",
            "<table><td>",
            "<b><p></b>",
            "<a><div></a>",
            "<table><td><b></div>",
            "<svg><g/>",
            "<h1>x",
            "<dt><dd>",
            "<template>",
            "<noscript><p>",
            "x<!-- -->",
            "&amp;",
        ],
        5,
    ),
)
def test_a_megabyte_of_one_piece_takes_no_more_than_its_length(piece: str) -> None:
    assert is_linear(lambda size: page_tree(piece * (size // len(piece))), 100_000)


PIECES = st.sampled_from(
    "< > </ /> \" ' = & &# ; <!-- --> <p> </p> <b> </b> <a%href=x> </a> <div> </div> <ul> <li> </ul> <table> <tr> <td> </td> </table> <h1>"
    " </h1> <script> </script> <template> </template> <noscript> </noscript> <svg> </svg> <title> <br> </br> <img> <body> <head> </head>"
    " <html> <button> </button> a b \0 é [ <![CDATA[ ]]> % <template%shadowrootmode=open> <noindex> </noindex>"
    " <p%data-pagefind-ignore> <p/>".replace("%", "\t").split(" ")
)


@given(st.lists(PIECES, max_size=40), st.booleans())
def test_any_markup_has_a_tree_with_the_text_that_the_page_has(pieces: list[str], xhtml: bool) -> None:
    html = "".join(pieces)
    root = page_tree(html, xhtml=xhtml)
    assert [child.tag for child in root] == ["head", "body"]
    expected = extract(html.encode(), url="http://a.example/", charset="utf-8", xhtml=xhtml).text
    assert text_of([root.find("body")]).split() == expected.split()


@given(st.text(max_size=200), st.booleans())
def test_any_text_has_a_tree(html: str, xhtml: bool) -> None:
    page_tree(html, xhtml=xhtml)


def body_of(html: str) -> str:
    written = etree.tostring(page_tree(html).find("body"), encoding="unicode")
    return re.sub(r"\s+", " ", re.sub(r"^<body/?>|</body>$", "", written)).strip()
