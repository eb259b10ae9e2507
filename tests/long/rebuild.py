"""Whether a search notices that an index is rebuilt: `python -m tests.long.rebuild`.

20,000 documents are in an OpenSearch, which is started (a JDK and Maven) unless CRAWLSPACE_TEST_OPENSEARCH_URL or --server names one. A
process goes on as a crawl does: it changes documents, deletes some and adds some, and sends that. Every 100 ms a search counts the
documents that stay and those that change, and asks for all of which some are deleted; first for a while, then while `scrapy reindex
--rebuild` makes a new index and switches to it. No search may miss a document that is there before and after. A deletion shows when the
index is refreshed, once a second; how long that takes on this machine at most is measured before.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median

from benchmarks.collection import NAME, BenchCollection
from benchmarks.measure import SCRAPY, BenchmarkFailed, Row, finish, run, say, start, tail
from benchmarks.sink_server import ask, server_of
from benchmarks.store import NOW
from crawlspace.clock import SystemClock
from crawlspace.document import Document
from crawlspace.index.outbox import Drain
from crawlspace.model import NewUrl, Source, State, UrlState
from crawlspace.state.changes import Change
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import document_id, url_key
from tests.draining import drain_all
from tests.long.audit import SINK, sink_of

INDEX = "bench"
_BENCHMARK = "rebuild"
_GOING = 2_000
"""Documents of which some are deleted; as many others change."""
_PERIOD_S, _REFRESH_S, _BEFORE_S = 0.1, 1.0, 20.0
_AT_ONCE = 20


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Search while an index is rebuilt.")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--server", metavar="URL", default=os.environ.get("CRAWLSPACE_TEST_OPENSEARCH_URL"))
    parser.add_argument("--crawl", nargs=2, metavar=("FOLDER", "URL"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.crawl:
        crawl(Path(options.crawl[0]), options.crawl[1])
        return []
    with tempfile.TemporaryDirectory(prefix="bench-rebuild-") as temp, server_of(options.server, is_real=True) as server:
        ask(server, "DELETE", f"/{INDEX}*")
        files = BenchCollection(Path(temp))
        sinks = {SINK: {"type": "opensearch", "url": server, "index": INDEX, "replicas": 0}}
        files.write(start_urls=["http://stable.example/0"], rules="allow all\n", settings={"CRAWLSPACE_SINKS": sinks})
        files.store_file.parent.mkdir(parents=True)
        _fill(files, server, options.documents)
        searches = _Searches(server)
        with _crawling(files, server), searches.going_on():
            threading.Event().wait(_BEFORE_S)
            searches.is_before = False
            cost = run([*SCRAPY, "reindex", NAME, "--rebuild"], environment=files.environment, log=files.log)
        if cost.status:
            raise BenchmarkFailed(f"the rebuild ended with exit status {cost.status}:\n{tail(files.log)}")
        say(tail(files.log, 1))
        return _rows(searches, _deletions(files), options.documents, cost.wall_s)


def _rows(searches: _Searches, deleted: dict[str, float], documents: int, wall_s: float) -> list[Row]:
    stable = documents - 2 * _GOING
    before = [one for one in searches.made if one.is_before]
    during = [one for one in searches.made if not one.is_before]
    missed = sum((one.stable, one.changing) != (stable, _GOING) for one in during)
    usual, longest = (max((one.latest(deleted) for one in some), default=0.0) for some in (before, during))
    allowed = max(_REFRESH_S, usual)
    of = f"{documents:,} documents"
    return [
        Row(_BENCHMARK, f"{of}, searched meanwhile", f"{wall_s:.0f} s, {len(during)} searches, {len(deleted)} deleted in all"),
        Row(
            _BENCHMARK,
            "searches that missed a document",
            f"{missed} ({sum((one.stable, one.changing) != (stable, _GOING) for one in before)} before)",
            "0",
            missed == 0,
        ),
        Row(
            _BENCHMARK,
            "a deleted document was shown for up to",
            f"{longest:.1f} s ({usual:.1f} s before)",
            f"{allowed + _PERIOD_S:.1f} s",
            longest <= allowed + _PERIOD_S,
        ),
        Row(
            _BENCHMARK,
            "median of a search",
            f"{median(one.took_s for one in during) * 1000:.0f} ms ({median(one.took_s for one in before) * 1000:.0f} ms before)",
        ),
    ]


@dataclass(frozen=True, slots=True)
class _Search:
    at: float
    took_s: float
    is_before: bool
    stable: int
    changing: int
    shown: frozenset[str]
    """Ids of documents of which some are deleted."""

    def latest(self, deleted: dict[str, float]) -> float:
        """Return for how many seconds a document was deleted that it shows; 0 without one."""
        return max((self.at - deleted[id] for id in self.shown if id in deleted), default=0.0)


@dataclass(slots=True)
class _Searches:
    server: str
    made: list[_Search] = field(default_factory=list)
    is_before: bool = True

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Search until the end of the block. Raises BenchmarkFailed if a search failed."""
        ended, faults = threading.Event(), list[Exception]()

        def search() -> None:
            while not ended.wait(_PERIOD_S):
                try:
                    self.made.append(self._search())
                except Exception as error:  # noqa: BLE001 - it is raised where the searches end
                    faults.append(error)

        thread = threading.Thread(target=search)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        if faults:
            raise BenchmarkFailed(f"{len(faults)} searches failed: {faults[0]!r}")

    def _search(self) -> _Search:
        at, is_before, began = time.time(), self.is_before, time.perf_counter()
        body = {
            "size": 5_000,
            "_source": False,
            "query": {"term": {"host": "going.example"}},
        }
        answer = ask(self.server, "POST", f"/{INDEX}/_search", body)
        shown = frozenset(hit["_id"] for hit in answer["hits"]["hits"])
        counts = [
            ask(self.server, "POST", f"/{INDEX}/_count", {"query": {"term": {"host": host}}})["count"]
            for host in ("stable.example", "changing.example")
        ]
        return _Search(at, time.perf_counter() - began, is_before, counts[0], counts[1], shown)


@contextmanager
def _crawling(files: BenchCollection, server: str) -> Iterator[None]:
    with (files.folder / "crawl.out").open("wb") as output:
        process = start(
            [sys.executable, "-m", "tests.long.rebuild", "--crawl", str(files.folder), server], output=output.fileno()
        )
        try:
            yield
        finally:
            (files.folder / "stop").touch()
            status = process.wait(timeout=300)
    if status:
        raise BenchmarkFailed(f"the crawl ended with exit status {status}:\n{tail(files.folder / 'crawl.out')}")


def _deletions(files: BenchCollection) -> dict[str, float]:
    """Return when documents were deleted, by id."""
    return {id: at for line in (files.folder / "crawl.out").read_text().splitlines() for id, at in [json.loads(line)]}


def _fill(files: BenchCollection, server: str, documents: int) -> None:
    urls = [f"http://going.example/{number}" for number in range(_GOING)]
    urls += [f"http://changing.example/{number}" for number in range(_GOING)]
    urls += [f"http://stable.example/{number}" for number in range(documents - 2 * _GOING)]
    with closing(SqliteStore.open_for_crawl(files.store_file, sinks=(SINK,))) as store:
        names = iter(urls)
        while some := list(islice(names, 1_000)):
            _push(store, some)
        _send_all(store, files.folder, server)
    ask(server, "POST", f"/{INDEX}/_refresh")
    say(f"{documents:,} documents are there")


def _send_all(store: SqliteStore, folder: Path, server: str) -> None:
    with closing(sink_of(folder, server)) as sink:
        drain_all(Drain(store, sink, SystemClock()))
    if store.backlog(SINK):
        raise BenchmarkFailed(f"{store.backlog(SINK)} orders were not sent")


def _push(store: SqliteStore, urls: Sequence[str], text: str = "") -> None:
    new = [NewUrl(url_key(url), url, f"{url.split('/')[2]}:80", Source.INDEX_FOLLOW, 0, 0, 0, 1) for url in urls]
    store.discover(new, now=NOW)
    changes = []
    for state in (store.get(url) for url in urls):
        assert state is not None
        changes.append(_pushed(state, text or state.url))
    store.record(changes, now=NOW)


def _pushed(state: UrlState, text: str) -> Change:
    state.state, state.status, state.fetched_at, state.next_fetch = State.DONE, 200, NOW, NOW + 86_400
    state.checksum = document_id(f"{state.url} {text}").encode()[:16]
    return Change(state, Document(state.url, "A page", text=f"{text} " * 20))


def crawl(folder: Path, server: str) -> None:
    """Change the collection and send that, until a file `stop` is there; print what was deleted, and when the server had acknowledged it."""
    files = BenchCollection(folder)
    number = 0
    with closing(SqliteStore.open_for_crawl(files.store_file, sinks=(SINK,))) as store, closing(sink_of(folder, server)) as sink:
        drain = Drain(store, sink, SystemClock())
        while not (folder / "stop").exists():
            number += 1
            _push(
                store,
                [f"http://changing.example/{(number * _AT_ONCE + one) % _GOING}" for one in range(_AT_ONCE)],
                f"version {number}",
            )
            gone = f"http://going.example/{number % _GOING}"
            state = store.get(gone)
            if state is not None and state.indexed:
                state.checksum, state.state, state.status = None, State.GONE, 404
                store.record([Change(state)], now=NOW)
            while store.backlog(SINK):
                drain.step()
                if drain.waiting_s:
                    raise BenchmarkFailed("the server has not taken what it was sent")
            if state is not None:
                say(json.dumps([document_id(gone), time.time()]))
            threading.Event().wait(0.05)


if __name__ == "__main__":
    sys.exit(finish(main))
