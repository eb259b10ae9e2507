"""Documents as Solr accepts them, and the schema in `conf`."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.opensearch.mapping import ANALYZERS
from crawlspace.index.search_server.documents import OTHER
from crawlspace.index.solr.documents import CHAIN, FIELDS, copied, copied_to, languages_of, missing_of, pushed
from crawlspace.index.solr.sink import CONF

URL = "http://www.example.com/handbook/leave?year=2026"


def sent(**fields: object) -> dict[str, object]:
    document = Document(URL, **fields)  # type: ignore[arg-type]
    return pushed(
        IndexOrder(7, Op.PUSH, URL, document, version=7), document, owner="demo", now=1_750_000_000, languages={"de", "en"}
    )


def test_the_fields_of_a_url() -> None:
    found = sent()
    assert len(str(found.pop("id"))) == 32
    assert found == {
        "version": 7,
        "url": URL,
        "address": "www.example.com /handbook/leave year=2026",
        "scheme": "http",
        "host": "www.example.com",
        "folder": "www.example.com/handbook",
        "collection": "demo",
        "pushed_at": "2025-06-15T15:06:40Z",
    }


MODIFIED = [
    ("2026-02-01", "2026-02-01T00:00:00Z"),
    ("2026-02-01T10:00:00Z", "2026-02-01T10:00:00Z"),
    ("2026-02-01T10:00:00.123+02:00", "2026-02-01T08:00:00Z"),
    ("2026-02-01T10:00", "2026-02-01T10:00:00Z"),
    ("Sun, 01 Feb 2026 10:00:00 GMT", "2026-02-01T00:00:00Z"),
    ("0001-01-01T00:00:00+02:00", None),
    ("2026-02-31T00:00:00Z", None),
    ("Today", None),
    ("", None),
]


@pytest.mark.parametrize(("written", "expected"), MODIFIED)
def test_a_date_is_a_moment_or_left_out(written: str, expected: str | None) -> None:
    assert sent(modified=written).get("modified") == expected


@pytest.mark.parametrize(("language", "code"), [("de", "de"), ("de-AT", "de"), ("EN", "en"), ("tlh", "other"), ("", "other")])
def test_texts_are_in_the_fields_of_their_language(language: str, code: str) -> None:
    found = sent(title="a", headings=["b", "c"], description="d", text="e", language=language)
    texts = {name: value for name, value in found.items() if "_txt_" in name}
    assert texts == {
        f"title_txt_{code}": "a",
        f"headings_txt_{code}": ["b", "c"],
        f"description_txt_{code}": "d",
        f"text_txt_{code}": "e",
    }
    assert found.get("language", "") == language


def test_fields_of_the_users_own_are_values_of_one_field_and_no_value_is_too_long_for_lucene() -> None:
    found = sent(fields={"color": "red", "a=b": "c", "n" * 9_000: "🙂", "x": "🙂" * 9_000}, language="🙂" * 9_000)
    values = found["fields"]
    assert isinstance(values, list)
    assert values[:2] == ["color=red", "a=b=c"]
    assert max(len(value.encode()) for value in [*values, found["language"]]) <= 32_766


def test_what_a_schema_lacks_is_named() -> None:
    schema = {
        "fields": dict.fromkeys([*FIELDS, "headings_txt_de"]),
        "dynamicFields": dict.fromkeys(["*_txt_other", "*_txt_de", "*_txt_en"]),
    }
    assert missing_of(schema) == []
    assert languages_of(schema) == {"de", "other"}, "headings in English have no field"
    assert missing_of({"fields": dict.fromkeys(FIELDS - {"url"})}) == ["url", "*_txt_other"]
    assert missing_of({}) == [*sorted(FIELDS), "*_txt_other"]


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
