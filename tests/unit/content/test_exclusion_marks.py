"""Marks that leave parts of a page out, as the products read them that they come from."""

from __future__ import annotations

import tracemalloc

import pytest

from crawlspace.content.exclusion_marks import EXCLUSION_MARKS
from crawlspace.content.html import extract
from crawlspace.document import values_of
from tests.quick import some

URL = "http://a.example/"

MARKED: dict[str, tuple[str, str]] = {
    # html, text
    "googleoff": ("a <!--googleoff: index--><p>b <!--googleon: index-->c", "a c"),
    "googleoff of all": ("a <!-- GoogleOff: All -->b<!-- googleon: all --> c", "a c"),
    "googleoff without an end": ("a <!--googleoff: index--> b", "a"),
    "googleoff across elements": ("<p>a <b>b<!--googleoff: index--> c</b></p>d<!--googleon: index--> e", "a b e"),
    "googleoff that is about anchors": ("a <!--googleoff: anchor-->b<!--googleon: anchor-->", "a b"),
    "googleon of all ends googleoff of one": ("a <!--googleoff: index-->b<!--googleon: all--> c", "a c"),
    "googleon of something else ends nothing": ("a <!--googleoff: index-->b<!--googleon: snippet--> c", "a"),
    "noindex": ("a <noindex>b <p>c</noindex> d", "a d"),
    "noindex in capitals": ("a <NOINDEX>b</NOINDEX> c", "a c"),
    "noindex as comments": ("a <!--noindex-->b<!--/noindex--> c", "a c"),
    "noindex that is not nested": ("<div>a <noindex>b</div>c</noindex>d", "a d"),
    "the noindex of a directive is none": ("<meta name=googlebot content=noindex>a", "a"),
    "data-elastic-exclude": ("a <div data-elastic-exclude>b <p>c</p></div> d", "a d"),
    "data-elastic-include within": (
        "a <div data-elastic-exclude>b <p data-elastic-include>c <i data-elastic-exclude>d</i></p>e</div>",
        "a c",
    ),
    "data-elastic-include alone": ("a <p data-elastic-include>b</p> c", "a b c"),
    "a whole page but a part": ("<body data-elastic-exclude>a<main data-elastic-include>b</main>c</body>", "b"),
    "data-pagefind-ignore": ("a <ul><li data-pagefind-ignore=all>b<li>c</ul>", "a c"),
    "data-pagefind-ignore with data-elastic-include": ("<p data-pagefind-ignore>a <b data-elastic-include>b</b>", ""),
    "data-pagefind-body": ("a <main data-pagefind-body>b <p>c</main> d <p data-pagefind-body>e", "b c e"),
    "data-pagefind-body and an excluded part": ("a <main data-pagefind-body>b <i data-pagefind-ignore>c</i>d</main>", "b d"),
    "a paragraph ends where a block begins": ("<p data-elastic-exclude>a<div>b</div>", "b"),
    "an element ends with the one around it": ("<div><span data-elastic-exclude>a</div>b", "b"),
    "cells": ("<table><tr><td data-elastic-exclude>a<td>b<tr><td>c</table>", "b c"),
    "a void element": ("<br data-elastic-exclude>a<img data-elastic-exclude alt=x>b", "a b"),
    "an end tag too many": ("<div data-elastic-exclude>a</p></b>b</div>c", "c"),
    "in an attribute's value": ("<p title='data-elastic-exclude'>a", "a"),
    "in a comment": ("<!-- <p data-elastic-exclude> --><p>a", "a"),
    "in a script": ("<script>'<p data-elastic-exclude>'</script><p>a", "a"),
}


@pytest.mark.parametrize(("html", "text"), MARKED.values(), ids=MARKED)
@pytest.mark.parametrize("xhtml", [False, True])
def test_what_is_marked_is_not_in_the_text(html: str, text: str, xhtml: bool) -> None:
    if xhtml and "script" in html:
        html = html.replace("<p data-elastic-exclude>", "")  # an element there
    found = extract(html.encode(), url=URL, xhtml=xhtml)
    assert found.text.split() == text.split()
    assert found.fields == {}


def test_links_and_the_title_are_taken_all_the_same_and_headings_are_not() -> None:
    head = "<html data-elastic-exclude><title>T</title><link rel=canonical href=/c><meta name=description content=D>"
    found = extract(f"{head}<h1 id=h>H</h1><a href=/l>link</a>".encode(), url=URL)
    assert (found.title, found.description, found.hrefs, found.headings, found.text) == ("T", "D", ("/c", "/l"), (), "")


NOT_QUOTED: dict[str, tuple[str, list[str] | None]] = {
    # html of "a b c d"; what no snippet may show
    "data-nosnippet": ("a <span data-nosnippet>b <i>c</i></span> d", ["b c"]),
    "two": ("a <div data-nosnippet>b</div> c <div data-nosnippet=''>d</div>", ["b", "d"]),
    "two in each other": ("a <p data-nosnippet>b <i data-nosnippet>c</i></p>d", ["b c"]),
    "googleoff": ("a <!--googleoff: snippet-->b c<!--googleon: snippet--> d", ["b c"]),
    "nothing": ("a b c d <p data-nosnippet> </p>", None),
}


@pytest.mark.parametrize(("html", "expected"), NOT_QUOTED.values(), ids=NOT_QUOTED)
def test_what_no_snippet_may_show_is_in_the_text_and_in_a_field(html: str, expected: list[str] | None) -> None:
    found = extract(html.encode(), url=URL)
    assert found.text == "a b c d"
    assert (values_of(found.fields["no_snippet"]) if "no_snippet" in found.fields else None) == expected


ALL = (
    "a <!--googleoff: all-->b<!--googleon: all--> <noindex>c</noindex> <!--noindex-->d<!--/noindex--> <p data-nosnippet>e</p>"
    "<p data-elastic-exclude>f <b data-elastic-include>g</b></p><p data-pagefind-ignore>h</p><p data-pagefind-body>i</p>"
)
ONLY: dict[tuple[str, ...], str] = {
    (): "a b c d e f g h i",
    ("googleoff",): "a c d e f g h i",
    ("noindex",): "a b e f g h i",
    ("data-nosnippet",): "a b c d e f g h i",
    ("data-elastic-exclude",): "a b c d e h i",
    ("data-elastic-exclude", "data-elastic-include"): "a b c d e g h i",
    ("data-pagefind-ignore",): "a b c d e f g i",
    ("data-pagefind-body",): "i",
    EXCLUSION_MARKS: "i",
}


@pytest.mark.parametrize(("marks", "text"), ONLY.items(), ids=map(" ".join, ONLY))
def test_the_marks_that_count_can_be_chosen(marks: tuple[str, ...], text: str) -> None:
    found = extract(ALL.encode(), url=URL, exclusion_marks=marks)
    assert found.text == text
    assert found.fields.keys() == ({"no_snippet"} if marks == ("data-nosnippet",) else set())


PIECES = (
    "<div data-nosnippet>x",
    "<p data-elastic-exclude>x",
    "<noindex>x",
    "<!--googleoff: all-->x",
    "<b data-pagefind-body>x</i>",
)


@pytest.mark.parametrize("piece", some(PIECES, 1))
def test_a_megabyte_of_marks_takes_no_more_than_its_length(piece: str) -> None:
    body = piece.encode() * (1_000_000 // len(piece))
    tracemalloc.start()
    found = extract(body, url=URL)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.text) <= len(body)
    assert peak < 100 * len(body)
