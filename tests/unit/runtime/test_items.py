"""A document as item pipelines see it: its further fields are read and set by name, as those of any item of Scrapy."""

from __future__ import annotations

import pytest
from itemadapter import ItemAdapter

from crawlspace.model import Document
from crawlspace.runtime.items import DocumentAdapter

URL = "http://a.example/"


def test_own_and_further_fields() -> None:
    document = Document(URL, "A page", fields={"kind": "manual"})
    adapter = ItemAdapter(document)
    assert isinstance(adapter.adapter, DocumentAdapter)
    assert (adapter["title"], adapter["kind"], adapter.get("price")) == ("A page", "manual", None)
    adapter["title"], adapter["price"], adapter["sizes"] = "Another", "7", [1, 2]
    del adapter["kind"]
    assert (document.title, document.fields) == ("Another", {"price": "7", "sizes": "[1, 2]"})


def test_the_form_in_exports_stays() -> None:
    exported = ItemAdapter(Document(URL, fields={"kind": "manual"})).asdict()
    assert (exported["url"], exported["fields"], "kind" in exported) == (URL, {"kind": "manual"}, False)


@pytest.mark.parametrize("name", ["price", "no such field"])
def test_a_field_that_it_has_not(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        ItemAdapter(Document(URL))[name]
