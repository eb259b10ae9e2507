"""Documents as item pipelines and exporters see them."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from itemadapter import ItemAdapter
from scrapy.exporters import JsonLinesItemExporter

from crawlspace.content.page import Page
from crawlspace.content.parts import digest_of
from crawlspace.document import Document, Part
from crawlspace.index.orders import sent_parts
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.runtime.components.exports import JsonLinesExporter
from crawlspace.runtime.components.items import DocumentAdapter, Fetched, document_of, split

URL = "http://a.example/"


def test_own_and_further_fields() -> None:
    document = Document(URL, "A page", fields={"kind": "manual"})
    adapter = ItemAdapter(document)
    assert isinstance(adapter.adapter, DocumentAdapter)
    assert (adapter["title"], adapter["kind"], adapter.get("price")) == ("A page", "manual", None)
    adapter["title"], adapter["price"], adapter["sizes"] = "Another", "7", [1, 2]
    del adapter["kind"]
    assert (document.title, document.fields) == ("Another", {"price": "7", "sizes": "[1, 2]"})
    adapter["colors"] = ["red", "blue"]
    assert adapter["colors"] == ["red", "blue"]


def test_the_form_in_exports_stays() -> None:
    exported = ItemAdapter(Document(URL, fields={"kind": "manual"})).asdict()
    assert (exported["url"], exported["fields"], "kind" in exported) == (URL, {"kind": "manual"}, False)


@pytest.mark.parametrize("name", ["price", "no such field"])
def test_a_field_that_it_has_not(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        ItemAdapter(Document(URL))[name]


@pytest.mark.parametrize(
    ("item", "declared", "language"),
    [
        ({}, "", "de"),
        ({}, "en-GB", "en-GB"),
        ({"language": "fr"}, "", "fr"),
        ({"text": "Employees send their requests to the office four weeks before."}, "", "en"),
        ({"text": "7"}, "", ""),
        (Document(URL, language="nl"), "en", "nl"),
    ],
)
def test_the_language_is_that_of_the_item_or_of_the_page_or_of_the_text(item: object, declared: str, language: str) -> None:
    page = Page(URL, language=declared, text="Die Anträge auf Urlaub gehen vier Wochen vorher an das Sekretariat.")
    fetched = Fetched(Outcome(1, URL, OutcomeKind.DOCUMENT, 200), item, page)
    assert document_of(fetched).language == language


DOCUMENTS: list[Any] = [
    Document("http://www.example.com/"),
    Document("http://www.example.com/ü", "Grüße", "", "de", 'Ein "Text"\n\t\x00 ☃ 😀', ["Eins", "Zwei"], "text/html"),
    Document("http://www.example.com/a", fields={"price": "3 €"}, duplicates=["http://www.example.com/b"]),
    {"url": "http://www.example.com/", "price": 3},
]


@pytest.mark.parametrize("item", DOCUMENTS)
@pytest.mark.parametrize(
    "options", [{}, {"encoding": "utf-8"}, {"encoding": "utf-8", "indent": 2}, {"encoding": "utf-8", "fields_to_export": ["url"]}]
)
def test_it_holds_what_scrapys_holds(item: Any, options: dict[str, Any]) -> None:
    ours, scrapys = BytesIO(), BytesIO()
    JsonLinesExporter(ours, **options).export_item(item)
    JsonLinesItemExporter(scrapys, **options).export_item(item)
    assert list(json.loads(ours.getvalue()).items()) == list(json.loads(scrapys.getvalue()).items())
    assert ours.getvalue().endswith(b"}\n")
    assert ours.getvalue().isascii() or "encoding" in options


def test_half_a_surrogate_pair_does_not_cost_an_item() -> None:
    file = BytesIO()
    JsonLinesExporter(file, encoding="utf-8").export_item({"half": "a\ud800b"})
    assert json.loads(file.getvalue()) == {"half": "a?b"}


@pytest.mark.parametrize("indent", [None, 2])
def test_several_values_are_exported_as_a_list(indent: int | None) -> None:
    file = BytesIO()
    JsonLinesExporter(file, encoding="utf-8", indent=indent).export_item(
        Document(URL, fields={"keywords": '["a", "b"]', "x": "[1"})
    )
    assert json.loads(file.getvalue())["fields"] == {"keywords": ["a", "b"], "x": "[1"}


WHOLE = Part("k~2", "T", ["H", "T"], "text", "Über uns", {"price": "3", "tags": '["a", "b"]'})
# what a spider yields for a part -> the part
PARTS: list[tuple[Any, Part]] = [
    ({"key": "k", "text": "t"}, Part("k", text="t")),
    ({"key": ["k"], "title": ["T"], "text": ["a", "b"]}, Part("k", "T", ["T"], "a b")),
    ({"key": None, "text": "t", "anchor": "x"}, Part("x", text="t", anchor="x")),
    ({"key": "", "text": "t"}, Part(digest_of("t"), text="t")),
    ({"key": 7, "url": "http://a.example/#%C3%9Cber%20uns", "price": 3}, Part("7", anchor="Über uns", fields={"price": "3"})),
    (Part("k", headings=None, fields=None), Part("k")),  # type: ignore[arg-type]
    (WHOLE, WHOLE),
    (sent_parts(Document(URL, parts=[WHOLE]))[0], WHOLE),
]


@pytest.mark.parametrize(("yielded", "part"), PARTS)
def test_an_item_with_a_key_is_a_part(yielded: Any, part: Part) -> None:
    assert split([{"title": "own"}, yielded], URL) == ({"title": "own"}, [part])
    document = Document(URL)
    ItemAdapter(document)["parts"] = [yielded]
    assert document.parts == [part]


# what document() yields -> its own item, and the number of parts
YIELDED: list[tuple[Any, Any, int]] = [
    ({"key": "k"}, {"key": "k"}, 0),
    ([], None, 0),
    ([{"key": "k"}], Document(URL), 1),
    ([{"a": 1}, {"b": 1}], [{"a": 1}, {"b": 1}], 0),
    ([Document(URL, "T"), {"key": 1}, {"key": 2}], Document(URL, "T"), 2),
    ("text", "text", 0),
    ([7], 7, 0),
]


@pytest.mark.parametrize(("yielded", "own", "parts"), YIELDED)
def test_several_items_are_a_page_and_its_parts(yielded: Any, own: Any, parts: int) -> None:
    found, given = split(yielded, URL)
    assert (found, len(given)) == (own, parts)


def test_markdown_and_parts_are_fields_only_where_a_document_has_them() -> None:
    assert not {"markdown", "parts"} & set(ItemAdapter(Document(URL)).field_names())
    document = Document(URL, markdown="# a\n", parts=[WHOLE])
    adapter = ItemAdapter(document)
    assert {"markdown", "parts"} <= set(adapter.field_names())
    assert adapter.asdict()["parts"] == sent_parts(document)


@pytest.mark.parametrize("value", [["bolt", "nut"], "two", [{"name": "bolt"}]])
def test_a_field_of_that_name_that_has_no_parts_is_kept(value: Any) -> None:
    outcome = Outcome(1, URL, OutcomeKind.DOCUMENT, 200)
    document = document_of(Fetched(outcome, {"title": "A", "parts": value}))
    assert (document.parts, document.fields["parts"]) == ([], value if isinstance(value, str) else json.dumps(value))
