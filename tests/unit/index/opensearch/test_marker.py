"""The marker of a batch: it says no more than what the index has, and an index from an older copy is noticed by it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from crawlspace.clock import FakeClock
from crawlspace.index.marks import Agreement, BatchMark, agreement, forget_mark, stored_mark
from crawlspace.index.opensearch.mapping import MARK, index_body
from crawlspace.index.outbox import Drain
from crawlspace.state.memory.store import MemoryStore
from tests.contract.conftest import Known, full
from tests.fault_proxy import Fault, FaultProxy, answers, error
from tests.search_server import INDEX, SearchServer, search_server, sink_of

REAL_INDEX = f"{INDEX}-000001"
BEHIND = "the index is older than the stored state of the pages"
REPAIR = "`scrapy audit demo --sink search --repair` sends what is missing there"


class Scene:
    """A collection and its sink; each `start` is a process of its own."""

    def __init__(self, search: SearchServer, proxy: FaultProxy, folder: Path, opened: ExitStack) -> None:
        self.search, self.proxy, self.folder, self.opened = search, proxy, folder, opened
        self.store, self.clock = MemoryStore(sinks=("search",)), FakeClock()
        self.known = Known(self.store)
        self.options: dict[str, object] = {}
        self.start()

    def start(self, *, collection: str = "demo") -> Any:
        options = {**self.search.options(**self.options), "url": self.proxy.url}
        self.sink = sink_of(self.folder, options, collection=collection)
        self.opened.callback(self.sink.close)
        self.drain = Drain(self.store, self.sink, self.clock, batch=4)
        return self.sink

    def crawl(self, names: str, *, text: str = "") -> None:
        """Send pages, a batch for all of them, or more if the server wants that."""
        urls = [f"a.example/{name}" for name in names]
        self.known.discover(*urls)
        self.known.record(*(self.known.page(url, f"{url} {text}", text=f"text {text or url}") for url in urls))
        for _ in range(10):
            self.clock.advance(100)
            self.drain.step()
        assert self.drain.backlog() == 0

    @property
    def mark(self) -> BatchMark | None:
        with closing(sink_of(self.folder, self.search.options())) as sink:
            mark: BatchMark | None = sink.mark()
        return mark

    @property
    def agrees(self) -> bool:
        return agreement(self.store, "search", self.mark, now=0) is Agreement.SAME

    def copy(self) -> list[dict[str, Any]]:
        """All that the index has."""
        self.search.ask("POST", f"/{INDEX}/_refresh")
        hits: list[dict[str, Any]] = self.search.ask("POST", f"/{INDEX}/_search", {"size": 100, "version": True})["hits"]["hits"]
        return hits

    def restore(self, copy: list[dict[str, Any]], *, field: object = MARK) -> None:
        """As from a snapshot: delete the index and make it anew, with what it had once; `field` is its place for the marker."""
        mappings = self.search.ask("GET", f"/{REAL_INDEX}/_mapping")[REAL_INDEX]["mappings"]
        if field is not MARK:
            del mappings["properties"]["batch_mark"], mappings["_meta"]
        if field is not None:
            mappings["properties"]["batch_mark"] = field
        settings = index_body(flat_type="object", shards=1, replicas=0)["settings"]
        self.search.ask("DELETE", f"/{REAL_INDEX}")
        body = {"settings": settings, "mappings": mappings, "aliases": {INDEX: {"is_write_index": True}}}
        assert "error" not in self.search.ask("PUT", f"/{REAL_INDEX}", body)
        for hit in copy:
            path = f"/{REAL_INDEX}/_doc/{hit['_id']}?version={hit['_version']}&version_type=external"
            assert "error" not in self.search.ask("PUT", path, hit["_source"])


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Those about markers."""
    return [record.getMessage() for record in caplog.records if record.name.endswith(".marker")]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        search = stack.enter_context(search_server())
        proxy = stack.enter_context(closing(FaultProxy(search.url)))
        yield Scene(search, proxy, tmp_path, stack)


def test_each_batch_is_marked(scene: Scene) -> None:
    assert scene.mark is None
    for number, names in enumerate(("abc", "d", "a"), 1):
        scene.crawl(names, text=str(number))
        assert scene.mark == stored_mark(scene.store, "search")
        assert scene.mark is not None
        assert scene.mark.batch == number
    assert scene.proxy.bulks == 3, "it goes with the documents"
    assert len(scene.search.documents()) == 4


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
    assert len(scene.copy()) == 3


def test_an_index_from_an_older_copy_is_reported_until_it_is_repaired(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    older = scene.copy()
    scene.crawl("c")
    scene.crawl("d")
    scene.start()
    scene.crawl("e")
    assert warnings(caplog) == []
    scene.restore(older)
    scene.start()
    scene.crawl("f")
    scene.crawl("g")
    assert caplog.text.count(BEHIND) == caplog.text.count(REPAIR) == 1
    assert {url[-1] for url in scene.search.documents()} == set("abfg"), "the crawl goes on"
    assert scene.mark == BatchMark(scene.mark.generation, 1, 2) if scene.mark else False, "it says no more than what is there"
    scene.start()
    scene.crawl("h")
    assert caplog.text.count(BEHIND) == 2
    forget_mark(scene.store, "search")  # as `scrapy audit --repair` does
    scene.crawl("i")
    scene.start()
    scene.crawl("j")
    assert caplog.text.count(BEHIND) == 2
    assert scene.agrees


def test_it_is_noticed_by_a_process_that_runs(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    older = scene.copy()
    scene.crawl("c")
    scene.restore(older)
    scene.crawl("d")
    assert caplog.text.count(BEHIND) == 1


def test_a_copy_without_a_marker_is_an_older_one_too(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    scene.restore([])
    scene.start()
    scene.crawl("c")
    assert caplog.text.count(BEHIND) == 1
    assert scene.mark is None


def test_a_collection_that_was_begun_anew_is_reported_once(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    scene.store = MemoryStore(sinks=("search",))
    scene.known = Known(scene.store)
    scene.clock.advance(1_000)
    scene.start()
    scene.crawl("c")
    assert "one of the two was created again" in caplog.text
    scene.start()
    scene.crawl("d")
    assert caplog.text.count("one of the two was created again") == caplog.text.count(REPAIR) == 1
    assert scene.agrees


def test_what_comes_late_changes_nothing(scene: Scene) -> None:
    scene.crawl("a")
    late = scene.copy()
    (marker,) = (hit for hit in late if "batch_mark" in hit["_source"])
    scene.crawl("b")
    path = f"/{INDEX}/_doc/{marker['_id']}?version={marker['_version']}&version_type=external"
    assert scene.search.ask("PUT", path, marker["_source"])["status"] == 409
    assert scene.agrees


def test_processes_that_send_in_turn_agree(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    first = scene.drain
    scene.start()
    second = scene.drain
    for number in range(6):
        scene.drain = (first, second)[number % 2]
        scene.crawl("ab", text=str(number))
    assert warnings(caplog) == []
    assert scene.agrees


def test_each_collection_has_its_own(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    mark = scene.mark
    other = Scene(scene.search, scene.proxy, scene.folder, scene.opened)
    other.start(collection="other")
    other.crawl("c")
    other.crawl("d")
    assert (scene.mark, warnings(caplog)) == (mark, [])


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
    ("fault", "times"), [(name, times) for name in FAULTS for times in (1, 3) if times == 1 or "alone" not in name]
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
        with urlopen(request, timeout=60) as reply:
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
    copy = [hit for hit in scene.copy() if "url" in hit["_source"]]
    scene.restore(copy, field=None)
    scene.start()
    scene.crawl("c")
    assert (warnings(caplog), scene.agrees) == ([], True)
    assert len(scene.search.documents()) == 3
    other = Scene(scene.search, scene.proxy, scene.folder, scene.opened)
    other.store.set_meta("sent:search", BatchMark("another", 7).written())
    other.start(collection="other")
    other.crawl("d")
    assert warnings(caplog) == [], "a second collection that has sent something before"
    scene.crawl("e")
    assert (warnings(caplog), scene.agrees) == ([], True)


def test_where_there_is_no_place_for_it_documents_are_sent_without(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    scene.restore([], field={"type": "keyword"})
    for name in "cd":
        scene.start()
        scene.crawl(name)
        scene.crawl(name, text="new")
    assert len(scene.search.documents()) == 2
    assert caplog.text.count("takes no document with the mark of a batch") == 2, "once a process"
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
