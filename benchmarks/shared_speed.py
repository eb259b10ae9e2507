"""The cost of keeping a collection in Redis, and the gain from a second worker.

    python -m benchmarks.shared_speed --pages 5000 --sites 24 --pages-a-site 400 --rounds 3

One worker over Redis is compared with the same crawl over SQLite, on the site of `whole_crawl`. Then one and two workers crawl sites that
answer after 50 ms: there one worker, with 16 concurrent requests, waits for the sites, and two are at most twice as fast. They are
compared by the time from the first page requested to the last one; starting and ending a program take a few seconds.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.collection import BenchCollection, SharedCollection, Sites, redis_server, start_urls
from benchmarks.measure import BenchmarkFailed, Cost, Row, finish, median_ratio, say, tail
from benchmarks.politeness import hosts
from benchmarks.serve import PageServer
from benchmarks.whole_crawl import Ground, our_crawl, site_served

_NAME = "shared speed"
_ALONE_TARGET, _TWO_TARGET, _TRIPS_TARGET = 0.8, 1.8, 0.2
_CONCURRENCY = 16
_WORDS = 200


@dataclass(frozen=True, slots=True)
class _Crawl:
    """One crawl: `asked_s` from the first page to the last, `shares` the pages of each worker."""

    pages: int
    wall_s: float
    asked_s: float
    costs: list[Cost]
    shares: list[int]
    round_trips: int = 0
    server_s: float = 0.0

    def __str__(self) -> str:
        cpu = " + ".join(f"{cost.cpu_s:.1f}" for cost in self.costs)
        shares = " + ".join(map(str, self.shares))
        return f"{self.wall_s:.1f} s, CPU {cpu} s, {shares} pages, Redis {self.round_trips} answers, CPU {self.server_s:.1f} s"


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare crawls over Redis with SQLite, and two workers with one.")
    parser.add_argument("--pages", type=int, default=5_000, help="of the site that is crawled over SQLite too; 0 leaves it out")
    parser.add_argument("--sites", type=int, default=24, help="that answer late; 0 leaves them out")
    parser.add_argument("--pages-a-site", type=int, default=400)
    parser.add_argument("--late-ms", type=float, default=50.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-shared-") as temp, redis_server() as port:
        if options.pages:
            with site_served(Path(temp, "whole"), options.pages) as ground:
                rows += _beside_sqlite(ground, port, options.rounds)
        if options.sites:
            rows += _two_beside_one(Path(temp, "late"), port, options)
    return rows


def _beside_sqlite(ground: Ground, port: int, rounds: int) -> list[Row]:
    pages = ground.site.pages
    crawls = _in_turn({"SQLite": partial(_over_sqlite, ground), "Redis": partial(_over_redis, ground, port)}, rounds)
    sqlite, redis = crawls["SQLite"], crawls["Redis"]
    ratio = median_ratio([one.wall_s for one in sqlite], [one.wall_s for one in redis])
    cpu = median_ratio([one.costs[0].cpu_s for one in sqlite], [one.costs[0].cpu_s for one in redis])
    return [
        Row(_NAME, "pages of one site (8 KB, 30 links each)", f"{pages}"),
        *(_costs_row(f"over {name}", taken) for name, taken in crawls.items()),
        Row(
            _NAME,
            "over Redis against SQLite, pages/s",
            f"{ratio:.2f} times (CPU {cpu:.2f} times)",
            f">= {_ALONE_TARGET:g}",
            ratio >= _ALONE_TARGET,
        ),
        _trips_row("one worker", redis),
    ]


def _two_beside_one(folder: Path, port: int, options: argparse.Namespace) -> list[Row]:
    crawl = partial(_of_late_sites, folder, port, options)
    crawls = _in_turn({"one worker": partial(crawl, 1), "two workers": partial(crawl, 2)}, options.rounds)
    one, two = crawls["one worker"], crawls["two workers"]
    ratio = median_ratio([crawl.asked_s for crawl in one], [crawl.asked_s for crawl in two])
    whole = median_ratio([crawl.wall_s for crawl in one], [crawl.wall_s for crawl in two])
    smaller = median(min(crawl.shares) / sum(crawl.shares) for crawl in two)
    pages = one[0].pages
    return [
        Row(_NAME, f"pages of {options.sites} sites that answer after {options.late_ms:g} ms", f"{pages}"),
        *(_costs_row(name, taken) for name, taken in crawls.items()),
        Row(
            _NAME,
            "two workers against one, pages/s from the first page to the last",
            f"{ratio:.2f} times (with start and end {whole:.2f} times)",
            f">= {_TWO_TARGET:g}",
            ratio >= _TWO_TARGET,
        ),
        Row(_NAME, "part of the pages that the less busy of two workers fetched", f"{smaller:.0%}"),
        _trips_row("one worker, late sites", one),
        _trips_row("two workers, late sites", two),
    ]


def _in_turn(programs: dict[str, Callable[[], _Crawl]], rounds: int) -> dict[str, list[_Crawl]]:
    crawls: dict[str, list[_Crawl]] = {name: [] for name in programs}
    for number in range(rounds):
        for name, program in programs.items():
            crawls[name].append(program())
            say(f"round {number + 1} {name}: {crawls[name][-1]}")
    return crawls


def _over_sqlite(ground: Ground) -> _Crawl:
    cost = ground.checked("SQLite", lambda: our_crawl(ground))
    _once(ground)
    return _Crawl(ground.site.pages, cost.wall_s, cost.wall_s, [cost], [ground.site.pages])


def _over_redis(ground: Ground, port: int) -> _Crawl:
    folder = ground.folder / "redis"
    shutil.rmtree(folder, ignore_errors=True)
    collection = SharedCollection(BenchCollection(folder), port)
    collection.write(**ground.configuration)
    before_s = collection.server_s()
    cost = ground.checked("Redis", lambda: collection.crawl(["worker"])[0])
    trips, server_s = collection.round_trips(), collection.server_s() - before_s
    ground.check_ours(collection.states(), collection.files.index_urls(), collection.log("worker"))
    _once(ground)
    return _Crawl(ground.site.pages, cost.wall_s, cost.wall_s, [cost], [collection.pages_of("worker")], trips, server_s)


def _of_late_sites(folder: Path, port: int, options: argparse.Namespace, workers: int) -> _Crawl:
    """Crawl all sites, and check that each page was fetched once and is in the index."""
    shutil.rmtree(folder, ignore_errors=True)
    sites = Sites(options.pages_a_site, words=_WORDS)
    collection = SharedCollection(BenchCollection(folder), port)
    names = [f"worker-{number}" for number in range(1, workers + 1)]
    with PageServer(sites.answer, hosts(8, options.sites), delay_s=options.late_ms / 1000) as server:
        collection.write(
            start_urls=start_urls(server.origins),
            rules=f"allow domain 127.8.*:{server.port}\nforbid domain *\n",
            settings={"CONCURRENT_REQUESTS": _CONCURRENCY, "CONCURRENT_REQUESTS_PER_DOMAIN": _CONCURRENCY},
        )
        before_s = collection.server_s()
        costs = collection.crawl(names)
        trips, server_s = collection.round_trips(), collection.server_s() - before_s
        asked = [request.at for request in server.requests if request.path != "/robots.txt"]
    pages, indexed = options.sites * options.pages_a_site, collection.files.index_urls()
    if (len(sites.served), sites.again.total(), len(indexed), len(set(indexed))) != (pages, 0, pages, pages):
        raise BenchmarkFailed(
            f"{workers} workers fetched {len(sites.served)} pages of {pages}, {sites.again.total()} of them again, and indexed"
            f" {len(indexed)}:\n" + "\n".join(tail(collection.log(name)) for name in names)
        )
    wall_s = max(cost.wall_s for cost in costs)
    return _Crawl(pages, wall_s, asked[-1] - asked[0], costs, list(map(collection.pages_of, names)), trips, server_s)


def _once(ground: Ground) -> None:
    again = [path for path, times in (ground.sent() or {}).items() if times > 1]
    if again:
        raise BenchmarkFailed(f"{len(again)} pages were sent more than once: {', '.join(again[:5])}")


def _costs_row(name: str, crawls: Sequence[_Crawl]) -> Row:
    rate = median(crawl.pages / crawl.asked_s for crawl in crawls)
    cpu = median(sum(cost.cpu_s for cost in crawl.costs) for crawl in crawls)
    server = median(crawl.server_s for crawl in crawls)
    peak = median(max(cost.peak_mb for cost in crawl.costs) for crawl in crawls)
    redis = f", {server:.1f} s" if server else ""
    return Row(
        _NAME,
        f"{name}: pages/s, CPU, peak memory{', CPU of Redis' if server else ''}",
        f"{rate:.0f}/s, {cpu:.1f} s, {peak:.0f} MB{redis}",
    )


def _trips_row(name: str, crawls: Sequence[_Crawl]) -> Row:
    trips = median(crawl.round_trips / crawl.pages for crawl in crawls)
    return Row(_NAME, f"round trips a page, {name}", f"{trips:.3f}", f"<= {_TRIPS_TARGET:g}", trips <= _TRIPS_TARGET)


if __name__ == "__main__":
    sys.exit(finish(main))
