"""Random histories in large numbers: a simulated web, the real engine, store and index, kills, and an independent oracle.

    python -m tests.long.histories --count 2000 --steps 24 --first 0
    python -m tests.long.histories --count 200 --sink opensearch               # with a search server that fails as a second sink
    PYTHONHASHSEED=0 python -m tests.long.histories --seed 1234 --steps 24     # one, with all its steps

A history and what is compared are described in tests/histories. A difference prints the seed, the steps and what is MISSING or EXTRA.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.measure import Row, finish, say
from crawlspace.config.sinks import EMBEDDED
from crawlspace.state.redis.store import RedisStore
from tests.histories.collection import HistoryReport
from tests.histories.drawn import DRAWN, Drawn
from tests.histories.history import run_history
from tests.memory import folder_in_memory
from tests.servers import client_of_pool, emptied

_SHOWN = (
    "crawl killed",
    "duplicates",
    "elsewhere, indexed",
    "files without text",
    "held host",
    "held many",
    "held rules",
    "sites that want a cookie",
    "sites that want a cookie they don't get",
    "pages that have moved",
    "pages that lead who is logged in to the log-in",
)
_MET = (
    "loosened check",
    "documents that were lost, sent again",
    "orphans deleted",
    "archive compacted",
    "index rebuilt from the archive",
    "documents moved from the archive",
    "requests spared for a sitemap",
    "pages due for a sitemap",
    "documents extracted again",
    "backups restored",
    "documents with parts",
    "directives that apply by then, or don't",
    "documents on the search server",
    "documents that it cannot be sent",
    "pushes for the search server dropped",
)


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Live through random histories and compare with an oracle.")
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--steps", type=int, default=24, help="changes and crawls in each, beside those that settle it")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, help="this one history alone, with all its steps")
    parser.add_argument("--store", choices=("sqlite", "redis", "team"), default="sqlite", help="team: several workers over Redis")
    parser.add_argument(
        "--draw", type=Drawn.named, default=DRAWN, help="names apart by commas, all or none; see tests/histories/drawn.py"
    )
    parser.add_argument("--sink", choices=("opensearch",), help="also a search server that fails, beside the embedded index")
    parser.add_argument("--restore", action="store_true", help="also backups, restored after all was lost")
    parser.add_argument("--near", action="store_true", help="near duplicates in all of them, instead of in one of five")
    options = parser.parse_args(arguments)
    run_one = partial(
        _run_one,
        steps=options.steps,
        store=options.store,
        drawn=replace(options.draw, backups=options.restore or options.draw.backups),
        search=options.sink is not None,
        near=options.near,
    )
    if options.seed is not None:
        report = run_one(options.seed)
        say(str(report))
        return _rows([report], 0.0, options.steps)
    began = time.monotonic()
    reports: list[HistoryReport] = []
    for report in _all(range(options.first, options.first + options.count), run_one, options.processes):
        reports.append(report)
        if report.differences:
            say(str(report))
        if len(reports) % 100 == 0:
            wrong = sum(1 for one in reports if one.differences)
            say(f"seeds {options.first} to {report.seed}: {wrong} with a difference, {time.monotonic() - began:.0f} s")
    return _rows(reports, time.monotonic() - began, options.steps)


def _all(seeds: range, run_one: Callable[[int], HistoryReport], processes: int) -> Iterator[HistoryReport]:
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(run_one, seeds, chunksize=5)


def _run_one(seed: int, *, steps: int, store: str, drawn: Drawn, search: bool, near: bool) -> HistoryReport:
    logging.disable(logging.WARNING)
    on_server = None if store == "sqlite" else _on_server
    if on_server is not None:
        emptied().close()
    with tempfile.TemporaryDirectory(prefix="history-", dir=folder_in_memory()) as folder:
        return run_history(
            seed,
            Path(folder),
            steps=steps,
            on_server=on_server,
            team=store == "team",
            drawn=drawn,
            search=search,
            near=near,
        )


def _on_server(name: str) -> RedisStore:
    return RedisStore(client_of_pool(), name, sinks=(EMBEDDED,))


def _rows(reports: list[HistoryReport], wall_s: float, steps: int) -> list[Row]:
    wrong = [report.seed for report in reports if report.differences]
    met: Counter[str] = Counter()
    for report in reports:
        met.update(report.met)
    benchmark = "histories"
    rows = [
        Row(benchmark, f"histories of {steps} steps", f"{len(reports):,}"),
        Row(benchmark, "with a difference", f"{len(wrong)} {wrong[:10] if wrong else ''}".strip(), "0", not wrong),
        Row(benchmark, "settled states compared with the oracle", f"{sum(report.checks for report in reports):,}"),
        Row(benchmark, "crawls, of them killed", f"{sum(t.crawls for t in reports):,}, {sum(t.kills for t in reports):,}"),
        Row(benchmark, "pages fetched", f"{sum(report.fetches for report in reports):,}"),
    ]
    rows += [Row(benchmark, f"settled states with {name}", f"{met[name]:,}") for name in _SHOWN[1:]]
    rows += [Row(benchmark, name, f"{met[name]:,}") for name in _MET]
    if wall_s:
        rows.append(Row(benchmark, "seconds", f"{wall_s:.0f}"))
    return rows


if __name__ == "__main__":
    sys.exit(finish(main))
