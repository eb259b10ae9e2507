"""The sink for Solr: failures of requests and of single documents, the form of documents, and reading the index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from crawlspace.document import Document, IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.opensearch.mapping import ANALYZERS
from crawlspace.index.search_server.documents import OTHER
from crawlspace.index.sink import Entry, Inventory, Sent
from crawlspace.index.solr.documents import (
    CHAIN,
    FIELDS,
    copied,
    copied_to,
    item_of,
    languages_of,
    missing_of,
    parameters_of,
    pushed,
)
from crawlspace.index.solr.sink import CONF
from crawlspace.urls import document_id
from tests.fault_proxy import Fault, FaultProxy, answers
from tests.quick import some
from tests.search_server import sink_of
from tests.solr_server import BARE, INDEX, SolrServer, solr_server
from tests.unit.index.faulty import FaultyScene, check_answers, check_random_faults, delete, faulty, push

Scene = FaultyScene[SolrServer]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with faulty("solr", tmp_path) as made:
        yield made


def error(message: str, status: int = 400) -> dict[str, object]:
    return {"responseHeader": {"status": status}, "error": {"msg": message, "code": status}}


def failed(message: str, *, id: str = "", most: int = 1) -> Fault:
    """The server answers for the first documents, or by another id, that they failed."""

    def change(body: dict[str, Any]) -> object:
        for name in "abc"[:most]:
            one = id or document_id(f"http://a.example/{name}")
            body["responseHeader"]["errors"].append({"type": "ADD", "id": one, "message": message})
        return body

    return Fault(change=change)


ACKNOWLEDGED = answers(200, {"responseHeader": {"status": 0, "errors": [], "maxErrors": -1}})
"""Nothing is passed on to the server."""
DISK = "No space left on device"
DATE = "ERROR: [doc=1] Error adding field 'modified'='x' msg=Invalid Date String:'x'"
NO_FIELD = "ERROR: [doc=1] unknown field 'host'"
# What happens to the request with a, b and c; then what is done, refused, and sent later; and whether smaller batches may help.
FAULTS: list[tuple[str, list[Fault], str, str, str, bool]] = [
    ("nothing", [], "abc", "", "", False),
    ("too many requests", [answers(429, error("too many requests", 429))], "", "", "abc", True),
    ("not ready", [answers(503, "nothing but text")], "", "", "abc", True),
    ("wrong password", [answers(401, "<html>")], "", "", "abc", False),
    ("no right to write", [answers(403, error("Unauthorized request", 403))], "", "", "abc", False),
    ("read-only", [answers(403, error("Collection intranet is read-only.", 403))], "", "", "abc", False),
    ("no such core any more", [answers(404, "<html>")], "", "", "abc", False),
    ("a fault of the server", [answers(500, error(DISK, 500))], "", "", "abc", False),
    ("a gateway's page", [answers(502, "<html>")], "", "", "abc", False),
    ("another page", [answers(200, {"hello": "world"})], "", "", "abc", False),
    ("no update chain any more", [answers(400, error("unknown UpdateRequestProcessorChain: crawlspace"))], "", "", "abc", False),
    ("a field of ours is gone", [failed(NO_FIELD), answers(400, error(NO_FIELD))], "bc", "", "a", False),
    ("acknowledged, and not there", [ACKNOWLEDGED], "", "", "abc", False),
    ("a document that fails, and not when alone", [failed("of some reason")], "abc", "", "", False),
    ("a document that is refused", [failed(DATE), answers(400, error(DATE))], "bc", "a", "", False),
    ("refused without an id", [failed(DATE, id="(unknown)"), answers(400, error(DATE))], "bc", "a", "", False),
    ("disk too full", [failed(DISK), answers(500, error(DISK, 500))], "bc", "", "a", False),
    ("disk too full for all", [failed(DISK, most=3), answers(500, error(DISK, 500))], "", "", "abc", False),
    ("a busy shard", [failed("busy"), answers(429, error("busy", 429))], "bc", "", "a", True),
    ("something that nobody has heard of", [failed("?"), answers(418, "")], "bc", "", "a", False),
]


@pytest.mark.parametrize(("name", "faults", "done", "refused", "later", "is_slow"), FAULTS, ids=[row[0] for row in FAULTS])
def test_each_document_is_judged_by_its_own_answer(
    scene: Scene, name: str, faults: list[Fault], done: str, refused: str, later: str, *, is_slow: bool
) -> None:
    scene.proxy.faults = list(faults)
    check_answers(scene, done, refused, later, is_slow=is_slow)


def test_a_page_of_something_else_is_shown(scene: Scene) -> None:
    scene.proxy.faults = [answers(200, {"hello": "world"})]
    assert scene.sink.send([push("a", 1), push("b", 2)]).why_later == 'its answer is not one of Solr: {"hello": "world"}'


def test_the_status_of_an_error_is_asked_for_where_a_document_is_alone() -> None:
    one = item_of(push("a", 1), {})
    assert parameters_of([one], commit_within_s=1.5) == {
        "update.chain": "crawlspace",
        "commitWithin": "1500",
        "wt": "json",
        "maxErrors": "0",
    }
    assert "maxErrors" not in parameters_of([one, one], commit_within_s=1)


def test_what_solr_itself_refuses_is_parked_and_the_rest_is_done(scene: Scene) -> None:
    sent = scene.sink.send([push("a", 1), push("b", (1 << 63) + 5), push("c" * 40_000, 3), push("d", 4)])
    (number, long) = sent.refused
    assert (number.order.url[-1], "Invalid Number" in number.reason) == ("b", True)
    assert (long.order.url[-1], "immense term" in long.reason) == ("c", True)
    assert set(scene.texts) == set("ad")


def test_a_deletion_leaves_its_version_and_nothing_else(scene: Scene) -> None:
    scene.sink.send([push("a", 1), delete("b", 2)])
    scene.sink.send([delete("a", 7)])
    assert scene.texts == {}
    for name, version in (("a", 7), ("b", 2)):
        left = scene.search.stored(f"http://a.example/{name}")
        assert left is not None
        assert (left["version"], left["deleted"]) == (version, True)
        assert left.keys() - {"_version_"} == {"id", "version", "deleted", "pushed_at"}
    assert scene.sink.send([delete("a", 9)]).later == []
    assert (scene.search.stored("http://a.example/a") or {})["version"] == 9
    assert scene.sink.send([push("a", 8)]).above == 9, "what is late changes nothing"


def test_a_core_that_is_gone_and_comes_back(scene: Scene) -> None:
    scene.sink.send([push("a", 1)])
    scene.search.unload()
    try:
        for _ in range(2):
            with pytest.raises(IndexUnavailable, match=f"there is no core or collection {INDEX} at .*docs/sinks.md"):
                scene.sink.send([push("b", 2)])
    finally:
        scene.search.load()
    assert scene.sink.send([push("b", 2)]).later == []
    assert set(scene.texts) == set("ab")


def test_a_core_without_our_fields_is_not_written_to(scene: Scene) -> None:
    with pytest.raises(
        IndexUnavailable, match=r"the schema of bare at .* lacks address, collection, .*: copy schema\.xml"
    ) as raised:
        scene.another(index=BARE).send([push("a", 1)])
    assert str(CONF) in str(raised.value)


def test_a_core_without_our_update_chain_is_not_written_to(scene: Scene) -> None:
    with closing(FaultProxy(scene.search.url, path="/update")) as proxy:
        proxy.rest = answers(400, error("unknown UpdateRequestProcessorChain: crawlspace"))
        with closing(FaultyScene(scene.search, proxy, scene.folder, str).sink) as sink:
            with pytest.raises(
                IndexUnavailable, match=r"lacks the update chain crawlspace: copy schema\.xml and solrconfig\.xml"
            ):
                sink.send([push("a", 1)])
    unknown = scene.search.ask(f"/{BARE}/update", [], **{"update.chain": "crawlspace"})
    assert unknown["error"]["msg"] == "unknown UpdateRequestProcessorChain: crawlspace", "what the sink takes for it"


SERVERS = [
    (200, {"hello": "world"}, "is no Solr: .*; the URL of a Solr ends with /solr"),
    (404, "not found", "is no Solr"),
    (401, "<html>", "refuses access .*: check user and password"),
    (403, "<html>", "permissions config-read, read and update"),
    (503, "later", "is not ready"),
    (200, {"lucene": {"solr-spec-version": "8.11.4"}}, "is Solr 8.11.4; 9.0 is the oldest"),
]


@pytest.mark.parametrize(("status", "body", "sentence"), SERVERS)
def test_another_server_is_named(scene: Scene, status: int, body: object, sentence: str) -> None:
    with closing(FaultProxy(scene.search.url, path="/admin/info/system")) as proxy:
        proxy.rest = answers(status, body)
        with closing(FaultyScene(scene.search, proxy, scene.folder, str).sink) as sink:
            with pytest.raises(IndexUnavailable, match=sentence):
                sink.send([push("a", 1)])


@pytest.mark.parametrize("seed", some(range(20), 5))
def test_after_any_faults_the_index_is_as_the_store(scene: Scene, seed: int) -> None:
    kinds = [Fault(cut=True), Fault(lose=True), ACKNOWLEDGED, answers(429, error("busy", 429)), answers(200, "")]
    kinds += [answers(503, ""), answers(500, ""), answers(403, error("read-only", 403)), answers(404, "<html>")]
    check_random_faults(scene, kinds, seed)


# --- documents as Solr accepts them, and the schema in `conf` -------------------------------------------------------


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


# --- reading the index ----------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[SolrServer]:
    with solr_server() as made:
        yield made


def url(name: object) -> str:
    return f"http://a.example/{name}"


def test_what_there_is_at_this_moment(server: SolrServer, tmp_path: Path) -> None:
    late = server.options(commit_within=3600)
    with closing(sink_of(tmp_path, late)) as sink, closing(sink_of(tmp_path, late, collection="other")) as other:
        sink.send([push("a", 1), push("b", 2), push("c", 3)])
        other.send([push("d", 4), push("b", 5)])
        sink.send([delete("c", 6), delete("x", 7)])
        asked = [url(name) for name in "abcdx"]
        expected = {"a": (1, "demo"), "b": (5, "other"), "d": (4, "other")}
        assert sink.look_up(asked) == {url(name): Entry(url(name), *rest) for name, rest in expected.items()}
        assert sink.look_up([]) == {}
        assert isinstance(sink, Inventory)
        assert list(sink.entries(owner="demo")) == [[Entry(url("a"), 1, "demo")]]
        of_other = {entry.url[-1]: entry.version for page in sink.entries(owner="other") for entry in page}
        assert of_other == {"b": 5, "d": 4}
        assert list(sink.entries(owner="nobody")) == []


def test_more_than_a_page(server: SolrServer, tmp_path: Path) -> None:
    with closing(sink_of(tmp_path, server.options())) as sink:
        orders = [push(f"{number}", number) for number in range(1, 2_351)]
        assert not sink.send(orders).later
        pages = list(sink.entries(owner="demo"))
        assert [len(page) for page in pages] == [1_000, 1_000, 350]
        assert {entry.url: entry.version for page in pages for entry in page} == {order.url: order.version for order in orders}
        assert len(sink.look_up([order.url for order in orders])) == len(orders)


def without_documents(body: dict[str, Any]) -> object:
    """Solr misses what it commits at that moment."""
    return {**body, "response": {"numFound": 0, "docs": []}}


def test_what_is_missed_at_first_is_looked_up_again(server: SolrServer, tmp_path: Path) -> None:
    with closing(FaultProxy(server.url, path="/get")) as proxy:
        with closing(sink_of(tmp_path, server.options() | {"url": proxy.url})) as sink:
            missed = Fault(change=without_documents)
            proxy.faults = [missed]
            assert sink.send([push("a", 1)]) == Sent([], [])
            proxy.faults = [missed]
            assert list(sink.look_up([url("a")])) == [url("a")]
            sink.send([push("a", 9)])
            proxy.rest = missed
            late = sink.send([delete("a", 5)])
            assert [order.url for order in late.later] == [url("a")], "there is a later version, whatever the server tells"
            proxy.rest = None
            assert sink.send([delete("a", 5)]).above == 9


def in_part(body: dict[str, Any]) -> object:
    return {**body, "responseHeader": {"status": 0, "partialResults": True}}


def of_somebody(_: dict[str, Any]) -> object:
    return {"hello": "world"}


@pytest.mark.parametrize("path", ["/select", "/get"])
@pytest.mark.parametrize("change", [in_part, of_somebody])
def test_an_answer_in_part_is_not_taken_for_all(server: SolrServer, tmp_path: Path, path: str, change: Any) -> None:
    with closing(FaultProxy(server.url, path=path)) as proxy:
        with closing(sink_of(tmp_path, server.options() | {"url": proxy.url})) as sink:
            sink.send([push("a", 1)])
            proxy.rest = Fault(change=change)
            with pytest.raises(IndexUnavailable, match="does not answer in full"):
                list(sink.entries(owner="demo")) if path == "/select" else sink.look_up([url("a")])
