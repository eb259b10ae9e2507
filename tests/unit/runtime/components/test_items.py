"""Documents as item pipelines and exporters see them."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from itemadapter import ItemAdapter
from scrapy.exporters import JsonLinesItemExporter

from crawlspace.content.page import Page
from crawlspace.document import Document
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.runtime.components.exports import JsonLinesExporter
from crawlspace.runtime.components.items import DocumentAdapter, Fetched, document_of

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
    expected = json.loads(scrapys.getvalue())
    if isinstance(item, Document) and "fields_to_export" not in options:
        del expected["markdown"], expected["parts"]  # ours leaves them out where there are none
    assert list(json.loads(ours.getvalue()).items()) == list(expected.items())
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
