"""The console's pages with a million URLs on 2,000 hosts: `python -m benchmarks.explorer [--urls 1000000] [--store redis]`.

A store is filled by its own methods, then `scrapy console` serves it: how long each page takes (the median of 20), how long the pass over all
URLs takes of which their counts come, and how much memory the console has at its end. With --folder the filled store is kept, and used again.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from hashlib import blake2b
from pathlib import Path
from statistics import median

from msgspec import structs

from benchmarks.collection import NAME, BenchCollection, SharedCollection, redis_server
from benchmarks.measure import SCRAPY, BenchmarkFailed, Row, finish, say, start, stop, tail
from benchmarks.serve import free_port
from crawlspace.clock import SystemClock
from crawlspace.console.snapshot.file import SnapshotFile
from crawlspace.document import Document
from crawlspace.model import Held, NewUrl, Source, State, UrlState
from crawlspace.state.changes import Change
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from crawlspace.urls import url_key

HOSTS = 2_000
_AT_ONCE = 1_000
_ROUNDS = 20
_LONGEST_S = 3_600
_HELD_FROM = 0.98
_PAGE_S, _MEMORY_MB, _PASS_US = 1.0, 200, 60
_PATHS = (
    "/",
    "/deletions",
    "/deletions?host=www1.example.com",
    "/runs",
    "/sinks",
    "/sites",
    "/sites?page=20",
    "/rules",
    "/explorer",
    "/explorer?sort=errors&page=20",
    "/explorer?find=99",
    "/explorer?prefix=https://www1.example.com/",
    "/explorer?prefix=https://www1.example.com/news/wiki/2010/",
    "/explorer/urls",
    "/explorer/urls?page=9000",
    "/explorer/urls?state=errors",
    "/explorer/urls?state=done&status=404",
    "/explorer/urls?state=waiting&sort=found&page=1000",
    "/explorer/urls?host=www1.example.com&status=4xx",
    "/explorer/urls?prefix=https://www1.example.com/ne&sort=-found",
    "/explorer/urls?is=overdue&page=500",
    "/explorer/urls?is=orphaned",
    "/url?url=https://www1.example.com/nowhere",
    "/url?url={a_url}",
)
_OF_ALL = ("", "metrics", "metrics?host=www1.example.com,www7.example.com")
_WORDS = ("about", "archive", "blog", "docs", "help", "news", "press", "products", "research", "staff", "support", "wiki")


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure the console's pages about URLs.")
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--store", choices=("sqlite", "redis"), default="sqlite")
    parser.add_argument("--folder", type=Path, help="keep the store there (sqlite)")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files = BenchCollection(folder)
        settings = {"CRAWLSPACE_ARCHIVE": False}
        if options.store == "redis":
            shared = SharedCollection(files, stack.enter_context(redis_server()))
            shared.write(start_urls=[_url(0)], rules="", settings=settings)
            with closing(shared.store()) as store:
                _fill(store, options.urls)
        else:
            files.write(start_urls=[_url(0)], rules="", settings=settings)
            if not files.store_file.exists():
                files.store_file.parent.mkdir(parents=True, exist_ok=True)
                with closing(SqliteStore(files.store_file, sinks=())) as store:
                    _fill(store, options.urls)
        return list(_measured(files, f"{options.urls:,} URLs, {options.store}", options.urls))


def _measured(files: BenchCollection, of: str, size: int) -> Iterator[Row]:
    """Serve the console, and measure its pages once the first one shows numbers."""
    log = files.folder / "console.log"
    with log.open("wb") as output:
        process = start(
            [*SCRAPY, "console", "--bind", f"127.0.0.1:{free_port()}"], environment=files.environment, output=output.fileno()
        )
    try:
        home = f"{_address(log)}c/{NAME}"
        began = time.perf_counter()
        while "being counted" in (shown := _get(f"{home}/explorer")):
            if time.perf_counter() - began > _LONGEST_S:
                raise BenchmarkFailed(f"no snapshot after {_LONGEST_S} s")
            time.sleep(1)
        if "cannot be counted" in shown:
            raise BenchmarkFailed(f"the snapshot failed:\n{tail(log)}")
        yield Row("explorer", f"seconds until the first snapshot is there, {of}", f"{time.perf_counter() - began:.0f}")
        with closing(SnapshotFile(files.store_file.with_name("console.db"))) as snapshot:
            a_url = 1e6 * snapshot.about.seconds / size
        yield Row("explorer", f"µs a URL for a snapshot, {of}", f"{a_url:.0f}", f"< {_PASS_US}", a_url < _PASS_US)
        pages = {path: home + path.format(a_url=_url(1)) for path in _PATHS} | {
            f"of all, /{path}": _address(log) + path for path in _OF_ALL
        }
        for path, address in pages.items():
            seconds = median(_seconds(address) for _ in range(_ROUNDS))
            yield Row("explorer", f"ms, {path}, {of}", f"{1000 * seconds:.0f}", "< 1,000", seconds < _PAGE_S)
        found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(encoding="ascii"))
        peak_mb = int(found[1]) / 1024 if found else 0
        yield Row("explorer", f"MB of the console at most, {of}", f"{peak_mb:.0f}", f"< {_MEMORY_MB}", peak_mb < _MEMORY_MB)
    finally:
        stop(process)


def _address(log: Path) -> str:
    for _ in range(600):
        found = re.search(r"http://127\.0\.0\.1:\d+/", log.read_text(encoding="utf-8"))
        if found:
            return found[0]
        time.sleep(0.1)
    raise BenchmarkFailed(f"the console did not begin:\n{tail(log)}")


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:
        return str(response.read().decode())


def _seconds(url: str) -> float:
    began = time.perf_counter()
    _get(url)
    return time.perf_counter() - began


def _url(number: int) -> str:
    """Most hosts are small, and the first ones have a tenth of all URLs each."""
    chance = random.Random(number)
    host = number % 4 if number % 5 < 2 else number % HOSTS
    first, second = chance.choice(_WORDS), chance.choice(_WORDS)
    path = f"/{first}/{second}/{chance.randrange(2000, 2026)}/a-page-with-a-usual-name-{number}"
    return f"https://www{host}.example.com{path}{'/' if number % 7 == 0 else '.html'}"


def _fill(store: Store, size: int) -> None:
    now = int(SystemClock().now())
    store.use_sinks(())
    began = time.perf_counter()
    for first in range(0, size, _AT_ONCE):
        texts = [_url(number) for number in range(first, min(first + _AT_ONCE, size))]
        new = [
            NewUrl(url_key(text), text, f"{text.split('/')[2]}:443", Source.INDEX_FOLLOW, 0, 3, 0, len(text)) for text in texts
        ]
        store.discover(new, now=now)
        states = store.get_by_ids(list(range(first + 1, first + len(new) + 1)))
        store.record([change for state in states if (change := _crawled(state, now)) is not None], now=now)
        if first % 100_000 == 0 and first:
            say(f"{first:,} URLs, {first / (time.perf_counter() - began):,.0f}/s")


def _crawled(state: UrlState, now: int) -> Change | None:
    """Return the change of a crawled URL: most are documents, some of them held, some errors, redirects and excluded ones; a fifth waits."""
    chance = random.Random(state.id)
    kind = chance.random()
    if kind < 0.2:
        return None
    fetched = now - chance.randrange(10 * 86_400)
    times = {"fetched_at": fetched, "next_fetch": fetched + 7 * 86_400, "interval_s": 7 * 86_400, "rules": 1}
    links = [url_key(_url(chance.randrange(1_000_000))) for _ in range(3)]
    if kind < 0.3:
        return Change(structs.replace(state, state=State.GONE, status=404, errors=1, **times))
    if kind < 0.33:
        return Change(
            structs.replace(state, state=State.FAILED, status=503, errors=2, detail="a sentence of the server", **times)
        )
    if kind < 0.4:
        return Change(structs.replace(state, state=State.REDIRECTED, status=301, **times), links=links[:1])
    if kind < 0.45:
        return Change(structs.replace(state, state=State.EXCLUDED, status=740, **{**times, "next_fetch": None}))
    checksum = blake2b(state.url.encode(), digest_size=16).digest()
    held = Held.RULES if kind > _HELD_FROM else None
    document = Document(state.url, "A page with a usual name", "What it is about", "en", "Some words.", [], "text/html")
    return Change(structs.replace(state, state=State.DONE, status=200, checksum=checksum, held=held, **times), document, links)


if __name__ == "__main__":
    sys.exit(finish(main))
