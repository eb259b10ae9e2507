"""The marker of a batch in Solr: no search finds it, and an index from an older copy is noticed by it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from crawlspace.clock import FakeClock
from crawlspace.index.marks import Agreement, BatchMark, agreement, forget_mark, stored_mark
from crawlspace.index.outbox import Drain
from crawlspace.state.memory.store import MemoryStore
from tests.contract.conftest import Known, full
from tests.fault_proxy import Fault, FaultProxy, answers
from tests.search_server import sink_of
from tests.solr_server import SolrServer, rebuildable_solr

BEHIND = "the index is older than the stored state of the pages"
REPAIR = "`scrapy audit demo --sink search --repair` sends what is missing there"
MARKER = "mark:demo"


class Scene:
    """A collection and its sink; each `start` is a process of its own."""

    def __init__(self, search: SolrServer, proxy: FaultProxy, folder: Path, opened: ExitStack) -> None:
        self.search, self.proxy, self.folder, self.opened = search, proxy, folder, opened
        self.store, self.clock = MemoryStore(sinks=("search",)), FakeClock()
        self.known = Known(self.store)
        self.start()

    def start(self, *, collection: str = "demo", **options: object) -> None:
        asked = self.search.options(**{"url": self.proxy.url, **options})
        self.sink = sink_of(self.folder, asked, collection=collection)
        self.opened.callback(self.sink.close)
        self.drain = Drain(self.store, self.sink, self.clock, batch=4)

    def another(self, collection: str) -> Scene:
        made = Scene(self.search, self.proxy, self.folder, self.opened)
        made.start(collection=collection)
        return made

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
        mark: BatchMark | None = self.sink.mark()
        return mark

    @property
    def agrees(self) -> bool:
        return agreement(self.store, "search", self.mark, now=0) is Agreement.SAME

    @property
    def there(self) -> str:
        return "".join(sorted(url[-1] for url in self.search.documents()))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        search = stack.enter_context(rebuildable_solr())
        proxy = stack.enter_context(closing(FaultProxy(search.url, path="commitWithin=")))
        yield Scene(search, proxy, tmp_path, stack)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Those about markers."""
    return [record.getMessage() for record in caplog.records if record.name.endswith(".mark_reports")]


def test_each_batch_is_marked(scene: Scene) -> None:
    assert scene.mark is None
    for number, names in enumerate(("abc", "d", "a"), 1):
        scene.crawl(names, text=str(number))
        assert scene.mark is not None
        assert (scene.mark, scene.mark.batch) == (stored_mark(scene.store, "search"), number)
    assert scene.proxy.bulks == 3, "it goes with the documents"


def test_nothing_that_is_searched_or_counted_has_it(scene: Scene) -> None:
    scene.crawl("ab")
    scene.search.documents()
    found = scene.search.ask(f"/{scene.search.index}/select", {"query": "*:*", "limit": 10, "params": {"defType": "lucene"}})
    assert {one["url"] for one in found["response"]["docs"]} == {full("a.example/a"), full("a.example/b")}
    assert (scene.sink.count(owner=None), scene.sink.count(owner="demo")) == (2, 2)
    assert [len(page) for page in scene.sink.entries(owner="demo")] == [2]
    assert MARKER in {one["id"] for one in scene.search.everything()}


def test_an_index_from_an_older_copy_is_reported_until_it_is_repaired(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    older = scene.search.everything()
    for name in "cd":
        scene.crawl(name)
    scene.start()
    scene.crawl("e")
    assert warnings(caplog) == []
    scene.search.put_back(older)
    scene.start()
    for name in "fg":
        scene.crawl(name)
    assert caplog.text.count(BEHIND) == caplog.text.count(REPAIR) == 1
    assert scene.there == "abfg", "the crawl goes on"
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
    older = scene.search.everything()
    scene.crawl("c")
    scene.search.put_back(older)
    scene.crawl("d")
    assert caplog.text.count(BEHIND) == 1


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


def test_a_collection_that_was_begun_anew_is_reported_once(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    scene.store = MemoryStore(sinks=("search",))
    scene.known = Known(scene.store)
    scene.clock.advance(1_000)
    for name in "cd":
        scene.start()
        scene.crawl(name)
    assert caplog.text.count("one of the two was created again") == caplog.text.count(REPAIR) == 1
    assert scene.agrees


def test_each_collection_has_its_own(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.crawl("ab")
    mark = scene.mark
    other = scene.another("other")
    for name in "cd":
        other.crawl(name)
    assert (scene.mark, warnings(caplog)) == (mark, [])


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
    assert "takes no document with the mark of a batch" in warning


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
