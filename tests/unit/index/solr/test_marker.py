"""The marker of a batch in Solr: no search finds it, and an index from an older copy is noticed by it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlspace.index.marks import BatchMark, forget_mark
from tests.contract.conftest import full
from tests.fault_proxy import Fault, answers
from tests.unit.index.marked import BEHIND, marked, warnings
from tests.unit.index.marked import MarkedScene as Scene

MARKER = "mark:demo"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with marked("solr", tmp_path) as made:
        yield made


def test_nothing_that_is_searched_or_counted_has_it(scene: Scene) -> None:
    scene.crawl("ab")
    scene.search.documents()
    found = scene.search.ask(f"/{scene.search.index}/select", {"query": "*:*", "limit": 10, "params": {"defType": "lucene"}})
    assert {one["url"] for one in found["response"]["docs"]} == {full("a.example/a"), full("a.example/b")}
    assert (scene.sink.count(owner=None), scene.sink.count(owner="demo")) == (2, 2)
    assert [len(page) for page in scene.sink.entries(owner="demo")] == [2]
    assert MARKER in {one["id"] for one in scene.search.everything()}


def test_an_emptied_index_is_reported_until_it_is_repaired(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    scene.another("other").crawl("x")
    scene.search.put_back([one for one in scene.search.everything() if one.get("collection") == "other"])
    assert scene.sink.lacks_mark() is True
    for name in "cd":
        scene.start()
        scene.crawl(name)
        assert scene.sink.lacks_mark() is False
    assert caplog.text.count(BEHIND) == 2, "documents that came later are there by then"
    assert scene.mark == BatchMark(scene.mark.generation, 0) if scene.mark else False
    forget_mark(scene.store, "search")
    scene.crawl("e")
    assert (caplog.text.count(BEHIND), scene.agrees) == (2, True)


def test_an_index_of_before_gets_one(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    for name in "ab":
        scene.crawl(name)
    scene.search.put_back([one for one in scene.search.everything() if one["id"] != MARKER])
    assert (scene.mark, scene.sink.lacks_mark()) == (None, False)
    scene.start()
    scene.crawl("c")
    assert (warnings(caplog), scene.agrees) == ([], True)


def test_one_that_cannot_be_read_is_none(scene: Scene) -> None:
    scene.crawl("a")
    marker = {"id": MARKER, "version": 1, "deleted": True, "fields": ["batch=many"]}
    scene.search.put_back([one for one in scene.search.everything() if one["id"] != MARKER] + [marker])
    assert scene.mark is None
    scene.crawl("b")
    assert scene.agrees


def failed(id: str, message: str) -> Fault:
    """The server answers for a document that it failed."""

    def change(body: dict[str, Any]) -> object:
        body["responseHeader"]["errors"].append({"type": "ADD", "id": id, "message": message})
        return body

    return Fault(change=change)


# What happens to the requests with a, b and the marker.
FAULTS = {
    "not ready": answers(503, "nothing but text"),
    "an answer is lost": Fault(lose=True),
    "the connection is cut": Fault(cut=True),
    "the marker fails, and not when alone": failed(MARKER, "No space left on device"),
    "nothing is written": answers(200, {"responseHeader": {"status": 0, "errors": []}}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_after_faults_it_is_that_of_the_last_batch(scene: Scene, fault: str, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    scene.proxy.faults = [FAULTS[fault]]
    scene.crawl("ab", text="new")
    assert scene.agrees
    scene.start()
    scene.crawl("ab", text="newer")
    assert (scene.agrees, warnings(caplog)) == (True, [])


@pytest.mark.parametrize("times", [1, 3])
def test_a_batch_whose_marker_is_not_there_is_sent_again(scene: Scene, times: int) -> None:
    """Its documents are."""

    def without_marker(body: bytes) -> tuple[int, object]:
        documents = [one for one in json.loads(body) if one["id"] != MARKER]
        return 200, scene.search.ask(f"/{scene.search.index}/update", documents, **{"update.chain": "crawlspace"})

    scene.crawl("ab")
    scene.proxy.faults = [Fault(without_marker)] * times
    scene.crawl("ab", text="new")
    assert (scene.proxy.faults, scene.agrees) == ([], True)


def test_one_with_a_larger_version_than_that_of_its_documents_is_replaced(scene: Scene) -> None:
    scene.crawl("a")
    everything = scene.search.everything()
    scene.search.put_back([one | ({"version": 1 << 62} if one["id"] == MARKER else {}) for one in everything])
    scene.crawl("b")
    assert scene.agrees


def test_an_index_that_takes_none_has_the_documents_all_the_same(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    def refused(body: bytes) -> tuple[int, object] | None:
        why = {"responseHeader": {"status": 400}, "error": {"msg": "unknown field 'x'", "code": 400}}
        return (400, why) if MARKER.encode() in body else None

    scene.proxy.rest = Fault(refused)
    for name in "abc":
        scene.crawl(name)
    assert (scene.there, scene.mark) == ("abc", None)
    (warning,) = warnings(caplog)
    assert "accepts no document with the mark of a batch" in warning


def test_a_new_index_has_those_of_all_collections(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    other = scene.another("other")
    other.crawl("x")
    scene.crawl("ab")
    scene.sink.begin_next()
    scene.crawl("c")
    copy = scene.sink.next_copy()
    copy.carry_over([full(f"a.example/{name}") for name in "abx"])
    assert (copy.count(owner="demo"), copy.count(owner=None)) == (3, 4)
    scene.sink.switch()
    assert (scene.there, scene.agrees, other.agrees) == ("abcx", True, True)
    scene.crawl("d")
    other.crawl("y")
    assert (warnings(caplog), scene.agrees, other.agrees) == ([], True, True)
