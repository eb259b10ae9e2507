"""Check that memory and stored bytes of a long crawl don't grow with a sink that is down, over SQLite and over Redis.

    python -m tests.long.sink_down --pages 105000 --first 15000

The same site is crawled with a search server that refuses connections as a second sink, and without it. Both are looked at twice: when
the first pages were fetched, and at the end. What waits is bounded by CRAWLSPACE_MAX_BACKLOG, at which the pushes for the server are
dropped. Between the two moments lies a multiple of that bound, so that about as many wait at both: memory and bytes may grow by no more
than without the sink.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import redis

from benchmarks.collection import NAME, BenchCollection, SharedCollection, redis_server
from benchmarks.measure import SCRAPY, BenchmarkFailed, Row, finish, say, start, stop, tail
from benchmarks.serve import PageServer, Reply, free_port
from benchmarks.site import START_PATH, children_of, path_of
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore

_NAME = "sink down"
_SINK = "search"
_STORES = ("SQLite", "Redis")
_GROWTH_MB = 20
_BYTES = 1.05
_LIMIT_S = 3_600
_WORDS = "All work and no play makes Jack a dull boy. " * 40


@dataclass(frozen=True, slots=True)
class _Look:
    """A crawl at one moment."""

    pages: int
    rss_mb: float
    store_bytes: int

    def __str__(self) -> str:
        return f"{self.rss_mb:.0f} MB, {self.store_bytes / 1e6:.1f} MB stored"


@dataclass(frozen=True, slots=True)
class _Crawl:
    first: _Look
    last: _Look
    waiting: int

    @property
    def grown_mb(self) -> float:
        return self.last.rss_mb - self.first.rss_mb

    @property
    def bytes_a_page(self) -> float:
        """Of those between the two moments."""
        return (self.last.store_bytes - self.first.store_bytes) / (self.last.pages - self.first.pages)


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare long crawls with a sink that is down and without it.")
    parser.add_argument("--pages", type=int, default=105_000)
    parser.add_argument("--first", type=int, default=15_000)
    parser.add_argument("--backlog", type=int, default=10_000, help="CRAWLSPACE_MAX_BACKLOG; divides --pages less --first")
    parser.add_argument("--stores", nargs="+", choices=_STORES, default=_STORES)
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for store in options.stores:
        with contextlib.ExitStack() as stack:
            port = stack.enter_context(redis_server()) if store == "Redis" else None
            crawls = {}
            for what, sinks in (("without it", {}), ("down", {_SINK: _down()})):
                crawls[what] = _crawl(options, sinks, port)
                say(f"{store}, {what}: {crawls[what].first}; {crawls[what].last}; {crawls[what].waiting:,} orders wait")
        rows += _rows(store, crawls["without it"], crawls["down"], options)
    return rows


def _rows(store: str, without: _Crawl, down: _Crawl, options: argparse.Namespace) -> Iterator[Row]:
    first, pages, most = options.first, options.pages, options.backlog
    yield Row(_NAME, f"{store}: RSS and bytes stored at {first:,} pages, down", str(down.first))
    yield Row(_NAME, f"{store}: at {pages:,} pages, down", str(down.last))
    yield Row(_NAME, f"{store}: at {pages:,} pages, without the sink", str(without.last))
    more = down.grown_mb - without.grown_mb
    yield Row(
        _NAME,
        f"{store}: RSS grown in between, more than without the sink",
        f"{down.grown_mb:.0f} MB, {more:.0f} MB",
        f"< {_GROWTH_MB} MB more",
        more < _GROWTH_MB,
    )
    ratio = down.bytes_a_page / without.bytes_a_page
    value = f"{down.bytes_a_page:.0f}, {without.bytes_a_page:.0f} without: {ratio:.2f} times"
    yield Row(_NAME, f"{store}: bytes a page in between", value, f"<= {_BYTES:g}", ratio <= _BYTES)
    yield Row(_NAME, f"{store}: orders that wait", f"{down.waiting:,}", f"<= {most:,}", down.waiting <= most)


def _down() -> Mapping[str, object]:
    return {"type": "opensearch", "url": f"http://127.0.0.1:{free_port()}", "index": "bench"}


def _crawl(options: argparse.Namespace, sinks: Mapping[str, Mapping[str, object]], port: int | None) -> _Crawl:
    first, pages = options.first, options.pages
    with tempfile.TemporaryDirectory(prefix="bench-sink-down-") as temp:
        files = BenchCollection(Path(temp))
        is_first, is_last = threading.Event(), threading.Event()
        with PageServer(_answers(pages, {first: is_first, pages: is_last})) as server:
            origin = server.origins[0]
            (files if port is None else SharedCollection(files, port)).write(
                start_urls=[origin + START_PATH],
                rules=f"allow domain {origin.removeprefix('http://')}\nforbid domain *\n",
                settings={
                    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
                    "CRAWLSPACE_MAX_BACKLOG": options.backlog,
                    "CRAWLSPACE_SINKS": {"log": {"type": "file"}, **{name: dict(one) for name, one in sinks.items()}},
                },
            )
            with files.log.open("wb") as output:
                process = start([*SCRAPY, "crawl", NAME], environment=files.environment, output=output.fileno())
            try:
                looks: list[_Look] = []
                for number, moment in ((first, is_first), (pages, is_last)):
                    _wait(moment, process, files)
                    looks.append(_look(number, process.pid, files, port))
                if process.wait(_LIMIT_S):
                    raise BenchmarkFailed(f"the crawl ended with exit status {process.returncode}:\n{tail(files.log)}")
            finally:
                stop(process)
        first_look, last_look = looks
        return _Crawl(first_look, last_look, _waiting(files, port))


def _wait(moment: threading.Event, process: subprocess.Popen[bytes], files: BenchCollection) -> None:
    while not moment.wait(1):
        if process.poll() is not None:
            raise BenchmarkFailed(f"the crawl ended early with exit status {process.returncode}:\n{tail(files.log)}")


def _answers(pages: int, moments: Mapping[int, threading.Event]) -> Callable[[str, str], Reply]:
    """Answer with a site of a tree of pages, each with a text of its own; set an event when so many have been served."""
    numbers = {path_of(number): number for number in range(pages)}
    served: set[int] = set()

    def answer(_: str, path: str) -> Reply:
        number = numbers.get(path)
        if number is None:
            return 404, b"text/html", b"<title>404</title>"
        served.add(number)
        if len(served) in moments:
            moments[len(served)].set()
        anchors = "".join(f'<a href="{path_of(link)}">{link}</a> ' for link in (*children_of(number, pages), 0))
        text = f"<!doctype html><title>Page {number}</title><p>This is page {number}. {_WORDS}</p>{anchors}"
        return 200, b"text/html; charset=utf-8", text.encode()

    return answer


def _look(pages: int, pid: int, files: BenchCollection, port: int | None) -> _Look:
    resident = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    if port is not None:
        return _Look(pages, resident, int(redis.Redis(port=port).info("memory")["used_memory"]))
    with contextlib.closing(sqlite3.connect(f"file:{files.store_file}?mode=ro", uri=True)) as db:
        number, free, size = (
            db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    return _Look(pages, resident, (number - free) * size)  # the file keeps the pages of dropped texts, for the next ones


def _waiting(files: BenchCollection, port: int | None) -> int:
    store: SqliteStore | RedisStore
    if port is None:
        store = SqliteStore(files.store_file, read_only=True)
    else:
        store = RedisStore(redis.Redis(port=port), NAME, sinks=(_SINK,))
    with contextlib.closing(store):
        return store.backlog(_SINK)


if __name__ == "__main__":
    sys.exit(finish(main))
