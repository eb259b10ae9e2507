"""Whether several workers are as polite, and as fast, as one: the 200 sites of `politeness`, compared with scrapy-redis.

    python -m benchmarks.shared_politeness --sites 200 --seconds 30 --workers 1 2 4

The server's log has the requests of all workers. With scrapy-redis each worker has its own delays and takes URLs from one queue.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import redis

from benchmarks.baselines import START_KEY
from benchmarks.collection import BenchCollection, SharedCollection, redis_server
from benchmarks.measure import BenchmarkFailed, Cost, ProcessorWaits, Row, finish, run, say, tail
from benchmarks.politeness import TOLERANCE_S, endless_page, gap_row, hosts, rate_row, shortest_gaps, steady_rate
from benchmarks.serve import PageServer, Request

_NAME = "shared polite"
_START_S = 12.0
"""Time excluded from the rate: four programs that start on two cores and share out the sites take so long."""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure a polite crawl of many sites by several workers.")
    parser.add_argument("--sites", type=int, default=200)
    parser.add_argument("--delay", type=float, default=1.0, help="seconds between requests to a site")
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="how many, for each crawl")
    parser.add_argument("--without-scrapy-redis", action="store_true")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-shared-") as temp, redis_server() as port:
        for workers in options.workers:
            rows += _ours(Path(temp, "ours"), port, workers, options)
            if not options.without_scrapy_redis:
                rows += _scrapy_redis(Path(temp, "theirs"), port, workers, options)
    return rows


def _ours(folder: Path, port: int, workers: int, options: argparse.Namespace) -> list[Row]:
    shutil.rmtree(folder, ignore_errors=True)
    collection = SharedCollection(BenchCollection(folder), port)
    names = [f"worker-{number}" for number in range(1, workers + 1)]
    with PageServer(endless_page, hosts(9, options.sites)) as server:
        collection.write(
            start_urls=[f"{origin}/0.html" for origin in server.origins],
            rules=f"allow domain 127.9.*:{server.port}\nforbid domain *\n",
            settings={
                "DOWNLOAD_DELAY": options.delay,
                "CONCURRENT_REQUESTS": options.sites,
                "CLOSESPIDER_TIMEOUT": options.seconds,
            },
        )
        with ProcessorWaits() as waits:
            costs = collection.crawl(names, limit_s=options.seconds * 4 + 60)
        pages = _pages(server, collection.log(names[0]))
    dead = collection.evictions()
    if dead:
        say(f"running workers were evicted {dead} times")
    what = _what(workers, options)
    shares = ", ".join(str(collection.pages_of(name)) for name in names)
    return [
        rate_row(_NAME, f"pages/s, {what}", pages, options.sites / options.delay, start_s=_START_S),
        gap_row(_NAME, pages, options.delay),
        Row(_NAME, "pages of each worker", shares),
        _costs_row(costs, waits),
    ]


def _scrapy_redis(folder: Path, port: int, workers: int, options: argparse.Namespace) -> list[Row]:
    folder.mkdir(exist_ok=True)
    client = redis.Redis(port=port)
    client.flushall()
    log = folder / "worker-0.log"
    with PageServer(endless_page, hosts(10, options.sites)) as server:
        client.lpush(START_KEY, *(f"{origin}/0.html" for origin in server.origins))
        command = [sys.executable, "-m", "benchmarks.baselines", "scrapy-redis", f"redis://127.0.0.1:{port}/0"]
        command += [str(options.delay), str(options.sites), str(options.seconds)]
        one = partial(
            run, command, limit_s=options.seconds + _START_S
        )  # it ends when its queues of single sites have, which takes long
        with ProcessorWaits() as waits, ThreadPoolExecutor(workers) as threads:
            costs = list(threads.map(lambda number: one(log=folder / f"worker-{number}.log"), range(workers)))
        pages = _pages(server, log)
    pages = [page for page in pages if page.at < pages[0].at + options.seconds]
    gaps, possible = shortest_gaps(pages), options.sites / options.delay
    rate = steady_rate(pages, start_s=_START_S)
    early = sum(gap < options.delay - TOLERANCE_S for gap in gaps.values())
    what = f"scrapy-redis, {_what(workers, options)}"
    return [
        Row(_NAME, f"pages/s, {what}", f"{rate:.1f} of {possible:g} ({rate / possible:.1%})"),
        Row(
            _NAME,
            "shortest time between two requests to one site, sites asked too soon",
            f"{min(gaps.values(), default=float('inf')):.3f} s, {early} of {options.sites}",
        ),
        _costs_row(costs, waits),
    ]


def _pages(server: PageServer, log: Path) -> list[Request]:
    pages = [request for request in server.requests if request.path != "/robots.txt"]
    if not pages:
        raise BenchmarkFailed(f"no page was fetched:\n{tail(log)}")
    return pages


def _what(workers: int, options: argparse.Namespace) -> str:
    return f"{workers} worker{'s' if workers > 1 else ''}, {options.sites} sites, {options.delay:g} s delay"


def _costs_row(costs: Sequence[Cost], waits: ProcessorWaits) -> Row:
    cpu, peak, wall_s = sum(cost.cpu_s for cost in costs), max(cost.peak_mb for cost in costs), max(cost.wall_s for cost in costs)
    value = f"{cpu:.1f} s, {peak:.0f} MB, {waits} of {wall_s:.0f} s"
    return Row(_NAME, "CPU of all, peak memory of one, waiting for a processor", value)


if __name__ == "__main__":
    sys.exit(finish(main))
