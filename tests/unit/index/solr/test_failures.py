"""What the sink for Solr does when a request or single documents fail: nothing is lost, and nothing held up by one document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawlspace.errors import IndexUnavailable
from crawlspace.index.solr.documents import item_of, parameters_of
from crawlspace.index.solr.sink import CONF
from crawlspace.urls import document_id
from tests.fault_proxy import Fault, FaultProxy, answers
from tests.quick import some
from tests.solr_server import BARE, INDEX, SolrServer
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
