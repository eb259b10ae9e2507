"""The marker in OpenSearch: its place in the mapping, and requests that fail. What holds for any server: `test_markers.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from crawlspace.index.marks import Agreement, BatchMark, stored_mark
from crawlspace.index.opensearch.mapping import MARK
from tests.contract.conftest import full
from tests.fault_proxy import Fault, answers, error
from tests.notifications import LONGEST_WAIT_S
from tests.quick import some
from tests.search_server import INDEX
from tests.unit.index.marked import BEHIND, marked, warnings
from tests.unit.index.marked import MarkedScene as Scene

REAL_INDEX = f"{INDEX}-000001"


def other_place(field: object) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Mappings that have another place for the marker than ours; None: none."""

    def changed(mappings: dict[str, Any]) -> dict[str, Any]:
        del mappings["properties"]["batch_mark"], mappings["_meta"]
        return mappings | {"properties": mappings["properties"] | ({"batch_mark": field} if field else {})}

    return changed


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with marked("opensearch", tmp_path) as made:
        yield made


def test_queries_do_not_find_it(scene: Scene) -> None:
    scene.crawl("ab")
    query = {"query": {"multi_match": {"query": "text demo mark", "fields": ["title.*", "headings.*", "text.*", "address"]}}}
    scene.search.ask("POST", f"/{INDEX}/_refresh")
    found = scene.search.ask("POST", f"/{INDEX}/_search", query)["hits"]["hits"]
    assert {hit["_source"]["url"] for hit in found} == {full("a.example/a"), full("a.example/b")}
    everything = {"query": {"bool": {"filter": {"exists": {"field": "url"}}}}, "aggs": {"of": {"terms": {"field": "collection"}}}}
    answer = scene.search.ask("POST", f"/{INDEX}/_search", everything)
    assert len(answer["hits"]["hits"]) == 2
    assert answer["aggregations"]["of"]["buckets"] == [{"key": "demo", "doc_count": 2}]
    assert len(scene.search.everything()) == 3


def test_a_copy_without_a_marker_is_an_older_one_too(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    scene.search.put_back([])
    scene.start()
    scene.crawl("c")
    assert caplog.text.count(BEHIND) == 1
    assert scene.mark is None


def test_what_comes_late_changes_nothing(scene: Scene) -> None:
    scene.crawl("a")
    late = scene.search.everything()
    (marker,) = (hit for hit in late if "batch_mark" in hit["_source"])
    scene.crawl("b")
    path = f"/{INDEX}/_doc/{marker['_id']}?version={marker['_version']}&version_type=external"
    assert scene.search.ask("PUT", path, marker["_source"])["status"] == 409
    assert scene.agrees


# What happens to a bulk request, which has a, b and the marker.
FAULTS = {
    "all too many": answers(429, error("es_rejected_execution_exception")),
    "an answer is lost": Fault(lose=True),
    "the connection is cut": Fault(cut=True),
    "the marker is too much": Fault(change=lambda body: failed(body, -1, "es_rejected_execution_exception", 429)),
    "a document is too much": Fault(change=lambda body: failed(body, 0, "es_rejected_execution_exception", 429)),
    "a document is refused": Fault(change=lambda body: failed(body, 0, "mapper_parsing_exception", 400)),
    "fewer answers": Fault(change=lambda body: fewer(body)),
    "a pipeline fails, and not when alone": Fault(change=lambda body: failed(body, -1, "fail_processor_exception", 500)),
}


def fewer(body: dict[str, Any]) -> object:
    return {**body, "items": body["items"][:1]}


def failed(body: dict[str, Any], number: int, kind: str, status: int) -> object:
    (name, item), *_ = body["items"][number].items()
    body["items"][number] = {name: {"_id": item["_id"], "status": status, **error(kind)}}
    return {**body, "errors": True}


@pytest.mark.parametrize(
    ("fault", "times"), some([(name, times) for name in FAULTS for times in (1, 3) if times == 1 or "alone" not in name], 4)
)
def test_after_faults_it_is_that_of_the_last_batch(
    scene: Scene, fault: str, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    scene.crawl("ab")
    scene.proxy.faults = [FAULTS[fault]] * times
    scene.crawl("ab", text="new")
    assert scene.agrees
    scene.start()
    scene.crawl("ab", text="newer")
    assert scene.agrees
    assert not [record for record in caplog.records if "older" in record.message]


@pytest.mark.parametrize("times", [1, 3])
def test_a_batch_whose_marker_is_not_taken_is_sent_again(scene: Scene, times: int) -> None:
    """The documents of each are there by then."""

    def without_marker(body: bytes) -> tuple[int, object]:
        lines = body.splitlines(keepends=True)
        assert b"batch_mark" in lines[-1]
        request = Request(f"{scene.search.url}/{INDEX}/_bulk", b"".join(lines[:-2]), {"Content-Type": "application/x-ndjson"})
        with urlopen(request, timeout=LONGEST_WAIT_S) as reply:
            answer = json.loads(reply.read())
        answer["items"].append({"index": {"_id": "mark:demo", "status": 429, **error("es_rejected_execution_exception")}})
        return 200, answer

    scene.crawl("ab")
    scene.proxy.faults = [Fault(without_marker)] * times
    scene.crawl("ab", text="new")
    assert scene.agrees
    assert {document["text"]["other"] for document in scene.search.documents().values()} == {"text new"}


def test_where_documents_need_several_requests_it_comes_after_them(scene: Scene) -> None:
    scene.options = {"batch_bytes": 10_000}
    scene.start()
    scene.crawl("abcd", text="long " * 1_000)
    assert (scene.proxy.bulks, scene.agrees) == (5, True)
    scene.proxy.faults = [answers(429, error("es_rejected_execution_exception"))] * 4
    scene.crawl("abcd", text="large " * 1_000)
    assert scene.agrees


def test_an_index_of_before_gets_the_field(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    copy = [hit for hit in scene.search.everything() if "url" in hit["_source"]]
    scene.search.put_back(copy, mappings=other_place(None))
    scene.start()
    scene.crawl("c")
    assert (warnings(caplog), scene.agrees) == ([], True)
    assert len(scene.search.documents()) == 3
    other = scene.another("other")
    other.store.set_meta("sent:search", BatchMark("another", 7).written())
    other.start()
    other.crawl("d")
    assert warnings(caplog) == [], "a second collection that has sent something before"
    scene.crawl("e")
    assert (warnings(caplog), scene.agrees) == ([], True)


def test_where_there_is_no_place_for_it_documents_are_sent_without(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    scene.search.put_back([], mappings=other_place({"type": "keyword"}))
    for name in "cd":
        scene.start()
        scene.crawl(name)
        scene.crawl(name, text="new")
    assert len(scene.search.documents()) == 2
    assert caplog.text.count("accepts no document with the mark of a batch") == 2, "once a process"
    assert BEHIND not in caplog.text
    assert scene.mark is None


@pytest.mark.parametrize("has_field", [True, False])
def test_a_mapping_of_the_users_own_is_left_as_it_is(scene: Scene, caplog: pytest.LogCaptureFixture, *, has_field: bool) -> None:
    properties = {"title": {"type": "text"}, "text": {"type": "text"}, "url": {"type": "keyword"}}
    template = scene.folder / "own.json"
    template.write_text(json.dumps({"mappings": {"properties": properties | ({"batch_mark": MARK} if has_field else {})}}))
    scene.options = {"template": str(template)}
    for name in "ab":
        scene.start()
        scene.crawl(name)
    assert warnings(caplog) == []
    assert (scene.mark == stored_mark(scene.store, "search")) is has_field
    assert len(scene.search.documents()) == 2
    assert scene.sink.lacks_mark() is False
    scene.search.ask("DELETE", f"/{REAL_INDEX}")
    assert scene.sink.lacks_mark() is True


# next batch of the store, mark of the index -> how they stand
RELATIONS: list[tuple[int, tuple[str, int] | None, Agreement]] = [
    (1, None, Agreement.SAME),
    (2, None, Agreement.INDEX_BEHIND),
    (8, ("a", 7), Agreement.SAME),
    (8, ("a", 8), Agreement.SAME),
    (8, ("a", 6), Agreement.INDEX_BEHIND),
    (8, ("a", 9), Agreement.STORE_BEHIND),
    (8, ("b", 7), Agreement.OTHERS),
    (1, ("b", 7), Agreement.OTHERS),
    (1, ("a", 7), Agreement.SAME),
]


@pytest.mark.parametrize(("batch", "found", "expected"), RELATIONS)
def test_how_the_next_batch_stands_to_a_mark(batch: int, found: tuple[str, int] | None, expected: Agreement) -> None:
    assert BatchMark("a", batch).relation_to(None if found is None else BatchMark(*found)) is expected
