"""The files that a core is made of agree with what the sink sends."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.opensearch.mapping import ANALYZERS
from crawlspace.index.search_server.documents import OTHER
from crawlspace.index.solr.documents import CHAIN, FIELDS, copied, copied_to, pushed
from crawlspace.index.solr.sink import CONF

LANGUAGES = {*ANALYZERS, OTHER}
TEXTS = ("title", "headings", "description", "text")


def test_the_schema_has_the_fields_and_languages() -> None:
    names = {one.attrib["name"] for one in ET.parse(CONF / "schema.xml").getroot() if "Field" in one.tag or one.tag == "field"}
    assert names >= FIELDS
    assert {name.removeprefix("*_txt_") for name in names if name.startswith("*")} == LANGUAGES
    assert {name.removeprefix("headings_txt_") for name in names if name.startswith("headings")} == LANGUAGES


def test_all_is_stored_but_what_a_copy_makes_again() -> None:
    """Else a document could not be copied to another index."""
    fields = [one for one in ET.parse(CONF / "schema.xml").getroot() if one.tag in ("field", "dynamicField")]
    assert {one.attrib["name"] for one in fields if one.get("stored") == "false"} == {"_version_", "address"}
    document = Document(
        "http://a.example/b?c=d", "Title", language="de", text="Text", headings=["Heading"], fields={"color": "red"}
    )
    order = IndexOrder(1, Op.PUSH, document.url, document, 7)
    sent = pushed(order, document, owner="demo", now=0, languages={"de"})
    stored = {name: value for name, value in sent.items() if name != "address"}
    assert copied({**stored, "_version_": 5, "of_the_server": 1}, without={"of_the_server"}) == sent


def test_fields_that_solr_fills_itself_are_not_copied() -> None:
    assert copied_to({"fields": {"all": {"copySources": ["title"]}, "title": {"copySources": []}, "url": {}}}) == {"all"}


@pytest.mark.parametrize("name", TEXTS)
def test_a_search_asks_all_languages(name: str) -> None:
    handler = config().find("requestHandler[@name='/select']/lst[@name='defaults']")
    assert handler is not None
    fields = handler.findtext(f"str[@name='f.{name}.qf']", "").split()
    assert sorted(fields) == sorted(f"{name}_txt_{language}" for language in LANGUAGES)


def test_a_search_leaves_out_what_is_deleted() -> None:
    assert config().findtext("requestHandler[@name='/select']/lst[@name='appends']/str[@name='fq']") == "-deleted:true"


def test_the_update_chain_judges_each_document_by_its_version() -> None:
    steps = config().findall(f"updateRequestProcessorChain[@name='{CHAIN}']/processor")
    assert [step.attrib["class"].removeprefix("solr.").removesuffix("ProcessorFactory") for step in steps] == [
        "TolerantUpdate",
        "DocBasedVersionConstraints",
        "RunUpdate",
    ]


def config() -> ET.Element:
    return ET.parse(CONF / "solrconfig.xml").getroot()
