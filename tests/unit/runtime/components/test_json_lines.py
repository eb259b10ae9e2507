"""A document as a line of JSON: what Scrapy's own exporter writes, in the same order, only sooner."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from scrapy.exporters import JsonLinesItemExporter

from crawlspace.document import Document
from crawlspace.runtime.components.exports import JsonLinesExporter

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
