"""Whether memory grows with the number of pending URLs: a crawl with a million of them beside one with ten thousand.

    python -m tests.long.memory --many 1000000 --few 10000

The URLs are put into the collection's store beforehand; then each crawl fetches the same number of pages and stops.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.collection import BenchCollection
from benchmarks.measure import BenchmarkFailed, Cost, Row, finish, run, say, tail
from benchmarks.politeness import endless_page
from benchmarks.serve import PageServer

_ALLOWED_MB = 100
_SITES = 50
_BATCH = 10_000


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare the memory of crawls with many and few pending URLs.")
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=10_000)
    parser.add_argument("--fetches", type=int, default=2_000)
    parser.add_argument("--fill", nargs=3, metavar=("STORE", "URLS", "PORT"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.fill:
        store, urls, port = options.fill
        fill(Path(store), urls=int(urls), port=int(port))
        return []
    hosts = [_host(number) for number in range(_SITES)]
    with PageServer(endless_page, hosts) as server:
        few = _crawl(options.few, options.fetches, server)
        many = _crawl(options.many, options.fetches, server)
    growth = many.peak_mb - few.peak_mb
    name = "memory"
    return [
        Row(
            name,
            f"peak, {options.few:,} pending URLs, {options.fetches:,} fetches",
            f"{few.peak_mb:.0f} MB in {few.wall_s:.0f} s",
        ),
        Row(
            name,
            f"peak, {options.many:,} pending URLs, {options.fetches:,} fetches",
            f"{many.peak_mb:.0f} MB in {many.wall_s:.0f} s",
        ),
        Row(name, "growth", f"{growth:.0f} MB", f"< {_ALLOWED_MB} MB", growth < _ALLOWED_MB),
    ]


def fill(store_file: Path, *, urls: int, port: int) -> None:
    """Insert pending URLs into a new store, spread over the sites."""
    from crawlspace.clock import SystemClock
    from crawlspace.model import NewUrl, Source
    from crawlspace.state.sqlite.store import SqliteStore
    from crawlspace.urls import url_key

    def row(number: int) -> NewUrl:
        host, path = _host(number % _SITES), f"/{number}.html"
        url = f"http://{host}:{port}{path}"
        return NewUrl(
            key=url_key(url),
            url=url,
            site=f"{host}:{port}",
            source=Source.INDEX_FOLLOW,
            shift=0,
            depth=1,
            redirects=0,
            rank=len(path),
        )

    store_file.parent.mkdir(parents=True, exist_ok=True)
    store = SqliteStore(store_file)
    now = int(SystemClock().now())
    for first in range(0, urls, _BATCH):
        store.discover([row(number) for number in range(first, min(first + _BATCH, urls))], now=now)
    store.close()


def _crawl(pending: int, fetches: int, server: PageServer) -> Cost:
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as temp:
        collection = BenchCollection(Path(temp))
        collection.write(
            start_urls=[f"{server.origins[0]}/0.html"],
            rules=f"allow domain 127.2.*:{server.port}\nforbid domain *\n",
            settings={"CLOSESPIDER_PAGECOUNT": fetches, "CONCURRENT_REQUESTS": 32},
        )
        # In a process of its own: a child's peak counts from the fork, so this one has to stay small.
        filled = run(
            [sys.executable, "-m", "tests.long.memory", "--fill", str(collection.store_file), str(pending), str(server.port)],
            log=collection.log,
        )
        if filled.status:
            raise BenchmarkFailed(f"the store could not be filled:\n{tail(collection.log)}")
        say(f"{pending:,} URLs put into the store in {filled.wall_s:.0f} s")
        before = len(server.requests)
        cost = collection.crawl()
        fetched = len(server.requests) - before
        if fetched < fetches:
            raise BenchmarkFailed(f"the crawl stopped after {fetched} of {fetches} fetches:\n{tail(collection.log)}")
        return cost


def _host(number: int) -> str:
    return f"127.2.0.{number + 1}"


if __name__ == "__main__":
    sys.exit(finish(main))
