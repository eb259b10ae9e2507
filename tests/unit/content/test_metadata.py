"""The standard fields of a page, by JSON-LD, OpenGraph and meta elements."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Mapping

import pytest

from crawlspace.content.dates import written_time
from crawlspace.content.html import extract
from crawlspace.content.metadata import MAX_JSON_LD, MAX_VALUES
from crawlspace.content.page import Page
from crawlspace.document import STANDARD_FIELDS, values_of
from crawlspace.state.inherited_metadata import compared_fields

URL = "http://a.example/news/"
ARTICLE = {
    "@context": "https://schema.org",
    "@type": "NewsArticle",
    "author": {"@type": "Person", "name": "Ann Lee"},
    "datePublished": "2024-05-01T12:00:00+02:00",
    "dateModified": "2024-05-02",
    "keywords": ["wells", "pumps"],
    "image": ["/one.png", "/two.png"],
    "publisher": {"@type": "Organization", "name": "The Gazette"},
}
OF_THE_ARTICLE = {
    "author": "Ann Lee",
    "published": "2024-05-01T10:00:00Z",
    "modified": "2024-05-02",
    "keywords": ["wells", "pumps"],
    "site_name": "The Gazette",
    "image": "http://a.example/one.png",
    "type": "NewsArticle",
}


def page(head: str, *, xhtml: bool = False) -> Page:
    return extract(f"<html><head>{head}</head><body><p>Text</p></body></html>".encode(), url=URL, xhtml=xhtml)


def fields_of(head: str, *, xhtml: bool = False) -> dict[str, object]:
    found = page(head, xhtml=xhtml)
    fields: dict[str, object] = {name: values_of(value) for name, value in found.fields.items()}
    return fields | ({"modified": found.modified} if found.modified else {})


def ld(value: object) -> str:
    return f'<script type="application/ld+json">{value if isinstance(value, str) else json.dumps(value)}</script>'


def meta(contents: Mapping[str, str]) -> str:
    return "".join(f'<meta name="{name}" content="{text}">' for name, text in contents.items())


JSON_LD: dict[str, tuple[object, Mapping[str, object]]] = {
    "an article": (ARTICLE, OF_THE_ARTICLE),
    "a list": ([{"@type": "BreadcrumbList", "name": "no"}, ARTICLE], OF_THE_ARTICLE),
    "a graph": ({"@graph": [{"@type": "Organization", "name": "no", "image": "/no.png"}, ARTICLE]}, OF_THE_ARTICLE),
    "the entity of a page": ({"@type": "WebPage", "mainEntity": ARTICLE}, OF_THE_ARTICLE),
    "a page says less than its article": ([{"@type": "WebPage", "author": "Site", "dateModified": "1999"}, ARTICLE], OF_THE_ARTICLE),
    "what only the page says": (
        [{"@type": "WebPage", "dateModified": "1999-01-02"}, {"@type": "Article", "author": "Ann"}],
        {"author": "Ann", "modified": "1999-01-02", "type": "Article"},
    ),
    "references": (
        {"@graph": [{"@type": "Article", "author": [{"@id": "#a"}, {"@id": "#b"}], "isPartOf": {"@id": "#s"}},
                    {"@type": "Person", "@id": "#a", "name": "Ann"}, {"@type": "Person", "@id": "#b", "name": "Bo"},
                    {"@type": "WebSite", "@id": "#s", "name": "The Site"}]},
        {"author": ["Ann", "Bo"], "site_name": "The Site", "type": "Article"},
    ),
    "keywords in one text": ({"@type": "Article", "keywords": "a, b,a ;c"}, {"keywords": ["a", "b", "c"], "type": "Article"}),
    "terms": ({"@type": "Article", "keywords": [{"@type": "DefinedTerm", "name": "a"}]}, {"keywords": ["a"], "type": "Article"}),
    "an image with an address": (
        {"@type": "Article", "image": {"@type": "ImageObject", "url": "http://cdn.example/i.png"}},
        {"image": "http://cdn.example/i.png", "type": "Article"},
    ),
    "an image of another kind": ({"@type": "Article", "image": "data:image/png;base64,AAAA"}, {"type": "Article"}),
    "a type with its address": ({"@type": "http://schema.org/Recipe"}, {"type": "Recipe"}),
    "a date that is none": ({"@type": "Article", "datePublished": "soon", "dateModified": 7}, {"type": "Article"}),
    "a line end in a text": ('{"@type": "Article", "author": "Ann\nLee"}', {"author": "Ann Lee", "type": "Article"}),
    "CDATA": ('//<![CDATA[\n{"@type": "Article"}\n//]]>', {"type": "Article"}),
    "only the site": ({"@type": "WebSite", "name": "The Site", "author": "no"}, {"site_name": "The Site"}),
    "a company": ({"@type": "LocalBusiness", "name": "no", "image": "/no.png"}, {}),
    "broken": ('{"@type": "Article", ', {}),
    "empty": ("", {}),
    "a text": ('"Article"', {}),
    "nested too deeply": ("[" * 100_000, {}),
    "a number of many digits": ('{"@type": "Article", "author": ' + "7" * 10_000 + "}", {}),
    "too large": (ARTICLE | {"articleBody": "x" * MAX_JSON_LD}, {}),
    "a graph in a circle": (
        {"@graph": [{"@type": "Article", "@id": "#a", "author": {"@id": "#a"}, "mainEntity": {"@id": "#a"}}]},
        {"type": "Article"},
    ),
    "values of other kinds": ({"@type": ["Article", 7], "author": [None, 7, {}, []], "image": {"url": ["x"]}, "keywords": {}},
                              {"type": "Article"}),
}  # fmt: skip


@pytest.mark.parametrize("what", JSON_LD)
def test_json_ld(what: str) -> None:
    written, expected = JSON_LD[what]
    assert fields_of(ld(written)) == expected


METAS: dict[str, tuple[str, Mapping[str, object]]] = {
    "OpenGraph": (
        ('<meta property="og:type" content="article"><meta property="og:site_name" content=" The  Site ">'
        '<meta property="og:image" content="/i.png"><meta property="article:author" content="Ann">'
        '<meta property="article:published_time" content="2024-05-01T12:00:00Z"><meta property="article:tag" content="a">'
        '<meta property="article:tag" content="b"><meta property="article:modified_time" content="2024-06-01">'),
        {"type": "article", "site_name": "The Site", "image": "http://a.example/i.png", "author": "Ann", "keywords": ["a", "b"],
         "published": "2024-05-01T12:00:00Z", "modified": "2024-06-01"},
    ),
    "OpenGraph by name": (meta({"og:site_name": "The Site"}), {"site_name": "The Site"}),
    "meta": (meta({"author": "Ann &amp; Bo", "keywords": "a,b", "date": "2024-05-01"}),
             {"author": "Ann & Bo", "keywords": ["a", "b"], "published": "2024-05-01"}),
    "Dublin Core": (meta({"DC.creator": "Ann", "DCTERMS.issued": "2024", "dc.type": "Text", "DCTERMS.modified": "2024-06-01", "DC.subject": "a; b"}),
                    {"author": "Ann", "published": "2024", "type": "Text", "modified": "2024-06-01", "keywords": ["a", "b"]}),
    "of journals": (meta({"citation_author": "Ann", "citation_publication_date": "2024/5/1"}) + meta({"citation_author": "Bo"}),
                    {"author": ["Ann", "Bo"], "published": "2024-05-01"}),
    "by itemprop": ('<meta itemprop="datePublished" content="2024-05-01">', {"published": "2024-05-01"}),
    "other names": (meta({"authors": "Ann and Bo", "DC.created": "22.09.2015", "lastmod": "2024-05-01"}),
                    {"author": "Ann and Bo", "published": "2015-09-22", "modified": "2024-05-01"}),
    "of SiSU and others": (meta({"dc.author": "Ann", "publishdate": "2024-05-01"}), {"author": "Ann", "published": "2024-05-01"}),
    "an author's profile is no name": (
        '<meta property="article:author" content="https://social.example/ann"><meta name="author" content="Ann">', {"author": "Ann"}
    ),
    "JSON-LD before OpenGraph before meta": (
        meta({"author": "Meta", "keywords": "k", "date": "2001-01-01"}) + '<meta property="article:author" content="Graph">'
        '<meta property="article:published_time" content="2002-02-02">' + ld({"@type": "Article", "author": "Ld"}),
        {"author": "Ld", "published": "2002-02-02", "keywords": ["k"], "type": "Article"},
    ),
    "what is no date is left to the next": (
        '<meta property="article:published_time" content="today"><meta name="date" content="2024-05-01">', {"published": "2024-05-01"}
    ),
    "empty": (meta({"author": " ", "keywords": " , ", "date": ""}), {}),
    "in a template": (f'<template>{meta({"author": "Ann"})}</template>', {}),
    "JSON-LD in a comment": (f"<!-- {ld(ARTICLE)} -->", {}),
    "a script of another type": ('<script type="application/json">{"@type": "Article"}</script> ld+json', {}),
    "written otherwise": ('<SCRIPT id=x Type=" application/ld+json ">{"@type": "Article"}</SCRIPT>', {"type": "Article"}),
    "among scripts that compare": (f"<script>if (a<b) c('<p>')</script>{ld(ARTICLE)}", OF_THE_ARTICLE),
}  # fmt: skip


@pytest.mark.parametrize("what", METAS)
def test_meta_elements(what: str) -> None:
    head, expected = METAS[what]
    assert fields_of(head) == expected


def test_in_xhtml_too() -> None:
    assert fields_of(f'<meta name="author" content="Ann"/>{ld(ARTICLE)}', xhtml=True) == OF_THE_ARTICLE


def test_values_are_bounded() -> None:
    many = "".join(f'<meta property="article:tag" content="{number}">' for number in range(100_000))
    found = fields_of(meta({"author": "x" * 100_000, "keywords": ",".join(map(str, range(10_000)))}) + many)
    author, keywords = found["author"], found["keywords"]
    assert isinstance(author, str)
    assert isinstance(keywords, list)
    assert (len(author), len(keywords)) == (1_000, MAX_VALUES)


@pytest.mark.parametrize("name", ["author", "keywords", "date", "twitter:image", "application-name", "dc.type"])
@pytest.mark.parametrize("part", ["a", "ab,", " ", "2024-", "https://", "/../", "("])
def test_a_long_text_takes_little_memory(name: str, part: str) -> None:
    head = f'<meta name="{name}" content="{part * (2_000_000 // len(part))}">'
    tracemalloc.start()
    try:
        fields_of(head)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


def test_a_page_without_any_has_no_fields() -> None:
    assert page("<title>T</title>").fields == {}


COMPARED = [
    # fields of a document, what its URL inherits, what a store keeps to compare
    ({}, None, {}),
    ({"color": "red"}, None, {"color": "red"}),
    ({"author": "Ann", "color": "red"}, None, {"color": "red"}),
    ({"author": "Ann", "type": "x"}, '{"author": "Bo"}', {}),
    ({"author": "Ann", "type": "x"}, '{"author": "Ann"}', {"author": "Ann"}),
]


@pytest.mark.parametrize(("fields", "inherited", "kept"), COMPARED)
def test_standard_fields_are_not_kept_to_compare_them(
    fields: dict[str, str], inherited: str | None, kept: dict[str, str]
) -> None:
    assert compared_fields(fields, inherited) == kept


def test_all_have_a_name_of_their_own() -> None:
    values = {"author": "Ann", "datePublished": "2024", "keywords": "k", "image": "/i.png", "isPartOf": {"name": "Site"}}
    others = "<link rel=alternate hreflang=de href=/de/><h1 id=top>Top</h1><p data-nosnippet>x"
    assert page(ld({"@type": "Article", **values}) + others).fields.keys() == STANDARD_FIELDS


META_FIELDS = [
    # fields of the user's own, meta elements, what is taken
    ({"audience": ["audience"]}, {"Audience": "staff"}, {"audience": "staff"}),
    ({"audience": ["target", "audience"]}, {"audience": "staff", "target": "all"}, {"audience": "all"}),
    ({"audience": ["audience"]}, {"other": "staff"}, {}),
    ({"audience": ["audience"]}, {"audience": " "}, {}),
    ({"summary": ["description"]}, {"description": "Short"}, {"summary": "Short"}),
    ({"author": ["byline"]}, {"author": "Site", "byline": "Ann"}, {"author": "Ann"}),
    ({"author": ["byline"]}, {"author": "Site"}, {"author": "Site"}),
    ({"published": ["released"]}, {"released": "in May"}, {}),
    ({"published": ["released"]}, {"released": "2024/5/1"}, {"published": "2024-05-01"}),
]


@pytest.mark.parametrize(("own", "metas", "expected"), META_FIELDS, ids=[f"{row[0]}-{row[1]}" for row in META_FIELDS])
def test_fields_of_the_users_own(own: Mapping[str, list[str]], metas: Mapping[str, str], expected: Mapping[str, str]) -> None:
    assert extract(meta(metas).encode(), url=URL, meta_fields=own).fields == expected


def test_several_values_of_a_field_of_the_users_own() -> None:
    html = '<meta property="topic" content="a"><meta name=topic content="b"><meta itemprop=topic content="a">'
    assert values_of(extract(html.encode(), url=URL, meta_fields={"topic": ["topic"]}).fields["topic"]) == ["a", "b"]


ALTERNATES: dict[str, tuple[str, list[str] | None]] = {
    "languages": ("hreflang=de href=/de?a=1&amp;b", ["de http://a.example/de?a=1&b"]),
    "a region": ("hreflang=EN_gb href=x", ["en-GB http://a.example/news/x"]),
    "for all others": ("hreflang=X-Default href=/", ["x-default http://a.example/"]),
    "no language": ("hreflang=!! href=/", None),
    "no URL": ("hreflang=de href=javascript:x", None),
    "of another type": ("hreflang=de type=application/rss+xml href=/", None),
}


@pytest.mark.parametrize(("attributes", "expected"), ALTERNATES.values(), ids=ALTERNATES)
def test_a_page_in_other_languages(attributes: str, expected: list[str] | None) -> None:
    assert fields_of(f"<link rel=alternate {attributes}>").get("alternates") == expected


ANCHORS: dict[str, tuple[str, str, str]] = {
    # a heading; its text, its anchor
    "its id": ("<h1 id=a><a name=b>H</a></h1>", "H", "a"),
    "a name in it": ("<h1><a name=b></a>H</h1>", "H", "b"),
    "an id in it": ("<h1><span id='b&amp;c'>H</span></h1>", "H", "b&c"),
    "a section that begins with it": ("<section id=s><div> <h1>H</h1></div></section>", "H", "s"),
    "a section that does not": ("<section id=s>Text<h1>H</h1></section>", "H", ""),
    "one before that has ended": ("<div id=d></div><h1>H</h1>", "H", ""),
    "an empty one": ("<a name=old></a><h1>H</h1>", "H", "old"),
    "a permalink": ('<h1>H<a class="headerlink" href="#h%C3%A9">¶</a></h1>', "H", "h\u00e9"),
    "a permalink with a reference": ("<h1><a href='#h'>&#182;</a>H</h1>", "H", "h"),
    "a link elsewhere": ("<h1><a href='/x'>§</a>H</h1>", "§H", ""),
    "a heading that is a link": ("<h1><a href='#h'>H</a></h1>", "H", "h"),
}


@pytest.mark.parametrize(("html", "heading", "anchor"), ANCHORS.values(), ids=ANCHORS)
def test_the_anchor_of_a_heading(html: str, heading: str, anchor: str) -> None:
    found = page(f"{html}<h2 id=next>Next</h2>")
    assert found.headings == (heading, "Next")
    assert values_of(found.fields["anchors"]) == [anchor, "next"]


def test_headings_without_anchors_have_no_field() -> None:
    assert page("<h1>H</h1>").fields == {}


TIMES = [
    ("2024-05-01", "2024-05-01"),
    ("2024-05", "2024-05"),
    ("2024", "2024"),
    ("20240501", "2024-05-01"),
    ("20240501T120000Z", "2024-05-01T12:00:00Z"),
    ("20240501T0600+0900", "2024-04-30T21:00:00Z"),
    ("20240501T999999Z", ""),
    ("1.5.2024", "2024-05-01"),
    ("22.09.2015", "2015-09-22"),
    ("22.13.2015", ""),
    ("1.2.3.2024", ""),
    ("202411", ""),
    ("2024123", ""),
    ("2024/5/1", "2024-05-01"),
    ("2024.05.01", "2024-05-01"),
    ("2024-05-01T12:00:00+02:00", "2024-05-01T10:00:00Z"),
    ("2024-05-01 12:00", "2024-05-01T12:00:00Z"),
    ("Wed, 01 May 2024 12:00:00 GMT", "2024-05-01T12:00:00Z"),
    ("Wed, 1 May 2024 12:00:00 +0200", "2024-05-01T10:00:00Z"),
    ("May 1, 2024", "2024-05-01"),
    ("1 May 2024", "2024-05-01"),
    ("Sept. 3rd, 2024", "2024-09-03"),
    ("Saturday, December 27, 2014, 12:06 PM", "2014-12-27T12:06:00Z"),
    ("Sat 27th Dec 2014 at 12:06:30 a.m.", "2014-12-27T00:06:30Z"),
    ("JUNE 9 2024\n 17:05", "2024-06-09T17:05:00Z"),
    ("February 30, 2024", ""),
    ("Mayor 1, 2024", ""),
    ("1 May", ""),
    ("since May 1, 2024", ""),
    ("20241399", ""),
    ("yesterday", ""),
    ("", ""),
]


@pytest.mark.parametrize(("written", "time"), TIMES)
def test_times_as_pages_write_them(written: str, time: str) -> None:
    assert written_time(written) == time
