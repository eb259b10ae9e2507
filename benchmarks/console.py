"""The JSON interface of the console under load, beside a crawl: `python -m benchmarks.console [--pages 10000] [--known 100000] [--clients 50]`.

A crawl of a site into a store that knows many other URLs, in turn with and without a console that clients ask all the time. Each client sends a
request, and the next one a second after its answer: 50 clients are some 50 requests a second, of five kinds. What counts is the speed of the
crawl beside that of the other one, how long answers take, and that none is an error.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import quote

import aiohttp
from msgspec import structs

from benchmarks.collection import NAME, BenchCollection
from benchmarks.measure import SCRAPY, BenchmarkFailed, Cost, Row, finish, in_turn, median_ratio, say, start, stop, tail
from benchmarks.serve import free_port
from benchmarks.whole_crawl import Ground, site_served
from crawlspace.console.users import Role, Users
from crawlspace.model import NewUrl, Source, State, UrlState
from crawlspace.state.changes import Change
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import url_key

_NAME = "console"
_LEAST, _SLOWEST_S = 0.95, 0.2
_PAUSE_S = 1.0
_AT_ONCE = 1_000
_KNOWN = "https://known.example.com/"


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure the JSON interface of the console beside a crawl.")
    parser.add_argument("--pages", type=int, default=10_000, help="of the site that is crawled")
    parser.add_argument("--known", type=int, default=100_000, help="other URLs in the store")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    load = _Load(options.clients)
    with tempfile.TemporaryDirectory(prefix="bench-console-") as temp, site_served(Path(temp), options.pages) as ground:
        prepared = Path(temp, "prepared.db")
        with closing(SqliteStore(prepared, sinks=())) as store:
            _fill(store, options.known)
        costs = in_turn(
            {
                "alone": lambda: ground.checked("alone", lambda: _crawl(ground, prepared)),
                "asked": lambda: ground.checked("asked", lambda: _asked(ground, prepared, load)),
            },
            options.rounds,
        )
    return [*load.rows(), *_rows(costs, options)]


def _rows(costs: dict[str, list[Cost]], options: argparse.Namespace) -> list[Row]:
    speed = median_ratio([cost.wall_s for cost in costs["alone"]], [cost.wall_s for cost in costs["asked"]])
    what = f"crawl of {options.pages:,} pages, {options.known:,} known URLs, {options.clients} clients"
    return [Row(_NAME, f"{what}, speed", f"{speed:.3f}", f">= {_LEAST}", speed >= _LEAST)]


def _collection(ground: Ground, prepared: Path) -> BenchCollection:
    folder = ground.folder / "crawl"
    shutil.rmtree(folder, ignore_errors=True)
    files = BenchCollection(folder)
    of_site = ground.configuration
    rules = f"allow domain known.example.com\n{of_site['rules']}"
    files.write(start_urls=of_site["start_urls"], rules=rules, settings=of_site["settings"])
    files.store_file.parent.mkdir(parents=True)
    shutil.copy(prepared, files.store_file)
    return files


def _crawl(ground: Ground, prepared: Path) -> Cost:
    return _collection(ground, prepared).crawl()


def _asked(ground: Ground, prepared: Path, load: _Load) -> Cost:
    files = _collection(ground, prepared)
    token = Users(files.folder / "data" / "console-users").add_token("bench", Role.VIEWER)
    log, port = files.folder / "console.log", free_port()
    with log.open("wb") as output:
        console = start(
            [*SCRAPY, "console", "--bind", f"127.0.0.1:{port}"], environment=files.environment, output=output.fileno()
        )
    try:
        _await(log)
        ended = threading.Event()
        asking = threading.Thread(
            target=lambda: asyncio.run(load.ask(f"http://127.0.0.1:{port}", token, ground.start_url, ended))
        )
        asking.start()
        try:
            return files.crawl()
        finally:
            ended.set()
            asking.join()
            if console.poll() is not None:
                raise BenchmarkFailed(f"the console has ended:\n{tail(log)}")
            load.note_memory(console.pid)
    finally:
        stop(console)


def _await(log: Path) -> None:
    for _ in range(600):
        if "http://" in log.read_text(encoding="utf-8"):
            return
        time.sleep(0.1)
    raise BenchmarkFailed(f"the console did not begin:\n{tail(log)}")


@dataclass
class _Load:
    """Clients, and how long their answers took by kind of request."""

    clients: int
    took_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    too_early: int = 0
    """Searches and documents that were asked for before the crawl had any."""
    seconds: float = 0
    peak_mb: float = 0

    async def ask(self, base: str, token: str, url: str, ended: threading.Event) -> None:
        began = time.perf_counter()
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(base, headers=headers, connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*(self._client(session, number, url, ended) for number in range(self.clients)))
        self.seconds += time.perf_counter() - began

    async def _client(self, session: aiohttp.ClientSession, number: int, url: str, ended: threading.Event) -> None:
        chance = random.Random(number)
        await asyncio.sleep(chance.random() * _PAUSE_S)
        answered: set[str] = set()
        of_one = f"/api/v1/collections/{NAME}"
        while not ended.is_set():
            known = quote(f"{_KNOWN}{chance.randrange(1000)}", safe="")
            requests = {
                "status": f"{of_one}/status",
                "urls": f"{of_one}/urls?limit=100&after={known}",
                "explain": f"{of_one}/explain?url={known}",
                "search": f"{of_one}/search?q=page",
                "document": f"{of_one}/documents?url={quote(url, safe='')}",
            }
            kind, path = chance.choice(list(requests.items()))
            began = time.perf_counter()
            try:
                async with session.get(path) as response:
                    body = await response.read()
                    if response.status == 200:
                        answered.add(kind)
                    # before the first documents are there, and not after one was answered
                    not_yet = kind in ("search", "document") and kind not in answered and response.status in (404, 503)
                    if not_yet:
                        self.too_early += 1
                    elif response.status != 200:
                        self.errors[f"{kind} {response.status} {body[:200]!r}"] += 1
            except aiohttp.ClientError as error:
                self.errors[f"{kind} {error!r}"] += 1
            self.took_s[kind].append(time.perf_counter() - began)
            await asyncio.sleep(_PAUSE_S)

    def note_memory(self, process: int) -> None:
        status = Path(f"/proc/{process}/status")
        if status.exists():
            lines = dict(line.split(":", 1) for line in status.read_text(encoding="ascii").splitlines())
            self.peak_mb = max(self.peak_mb, int(lines["VmHWM"].split()[0]) / 1024)

    def rows(self) -> list[Row]:
        everything = [one for kind in self.took_s.values() for one in kind]
        for error, number in self.errors.most_common(5):
            say(f"{number} x {error}")
        p95 = quantiles(everything, n=20)[-1]
        failed = self.errors.total()
        return [
            Row(_NAME, "requests a second", f"{len(everything) / self.seconds:.0f}"),
            *(
                Row(
                    _NAME,
                    f"ms of an answer, {kind}: median, 95th percentile",
                    f"{1e3 * median(all_):.0f}, {1e3 * quantiles(all_, n=20)[-1]:.0f}",
                )
                for kind, all_ in sorted(self.took_s.items())
            ),
            Row(_NAME, "ms of an answer, 95th percentile", f"{1e3 * p95:.0f}", f"< {1e3 * _SLOWEST_S:.0f}", p95 < _SLOWEST_S),
            Row(_NAME, f"errors of {len(everything):,} requests", f"{failed}", "0", not failed),
            Row(_NAME, "searches and documents before there were any", f"{self.too_early}"),
            Row(_NAME, "peak memory of the console, MB", f"{self.peak_mb:.0f}"),
        ]


def _fill(store: SqliteStore, size: int) -> None:
    """Enter URLs that have been fetched, and are not due for long."""
    now = int(time.time())
    for first in range(0, size, _AT_ONCE):
        texts = [f"{_KNOWN}{number}" for number in range(first, min(first + _AT_ONCE, size))]
        store.discover(
            [NewUrl(url_key(text), text, "known.example.com:443", Source.INDEX_FOLLOW, 0, 3, 0, len(text)) for text in texts],
            now=now,
        )
        store.record([_gone(state, now) for state in store.get_by_ids(range(first + 1, first + len(texts) + 1))], now=now)


def _gone(state: UrlState, now: int) -> Change:
    times = {"fetched_at": now, "next_fetch": now + 10_000_000, "interval_s": 10_000_000}
    return Change(structs.replace(state, state=State.GONE, status=404, errors=1, rules=1, **times))


if __name__ == "__main__":
    sys.exit(finish(main))
