"""A refresh of an unchanged site, compared with the first crawl of it; served by nginx, which answers 304.

python -m benchmarks.refresh --pages 20000 --rounds 3
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median

from benchmarks.baseline_crawlspider import CONCURRENCY
from benchmarks.collection import BenchCollection
from benchmarks.measure import BenchmarkFailed, Cost, Row, finish, in_turn, median_ratio, tail
from benchmarks.serve import folder_server
from benchmarks.site import START_PATH, StaticSite, generate
from crawlspace.state.hastening import hasten_all
from crawlspace.state.sqlite.store import SqliteStore

_TARGET = 1.3


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare a refresh round of unchanged pages with the first crawl.")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-refresh-") as temp, contextlib.ExitStack() as stack:
        site = generate(Path(temp, "site"), pages=options.pages)
        log = Path(temp, "access.log")
        origin = stack.enter_context(folder_server(site.folder, access_log=log))
        collection = BenchCollection(Path(temp, "collection"))
        costs = in_turn(
            {"first": lambda: _first(collection, origin, site), "refresh": lambda: _refresh(collection, site, log)},
            options.rounds,
        )
    benchmark = "refresh"
    ratio = median_ratio([cost.wall_s for cost in costs["first"]], [cost.wall_s for cost in costs["refresh"]])
    rows = [Row(benchmark, "pages, all unchanged", f"{site.pages}")]
    for name, taken in costs.items():
        rate = median(cost.pages_per_s(site.pages) for cost in taken)
        cpu = median(cost.cpu_s for cost in taken)
        rows.append(Row(benchmark, f"{name} crawl: pages/s, CPU", f"{rate:.0f}/s, {cpu:.1f} s"))
    rows.append(Row(benchmark, "refresh against first crawl, pages/s", f"{ratio:.2f} times", f">= {_TARGET:g}", ratio >= _TARGET))
    return rows


def _first(collection: BenchCollection, origin: str, site: StaticSite) -> Cost:
    shutil.rmtree(collection.folder, ignore_errors=True)
    collection.write(
        start_urls=[origin + START_PATH],
        rules=f"allow domain {origin.removeprefix('http://')}\nforbid domain *\n",
        settings={"CONCURRENT_REQUESTS": CONCURRENCY, "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY},
    )
    cost = collection.crawl()
    _check(collection, site)
    return cost


def _refresh(collection: BenchCollection, site: StaticSite, log: Path) -> Cost:
    with contextlib.closing(SqliteStore(collection.store_file)) as store:
        hasten_all(store, 0)
    log.write_bytes(b"")
    cost = collection.crawl()
    _check(collection, site)
    answers = Counter(
        line.split('" ', 1)[1][:3] for line in log.read_text(encoding="utf-8").splitlines() if "/robots.txt" not in line
    )
    if answers != {"304": site.pages}:
        raise BenchmarkFailed(f"the refresh was not answered with {site.pages} times 304 but with {dict(answers)}")
    return cost


def _check(collection: BenchCollection, site: StaticSite) -> None:
    done, indexed = sum(state.status == 200 for state in collection.states()), len(collection.index_urls())
    if (done, indexed) != (site.pages, site.documents):
        raise BenchmarkFailed(
            f"{done} pages of {site.pages} are done, {indexed} of {site.documents} indexed:\n{tail(collection.log)}"
        )


if __name__ == "__main__":
    sys.exit(finish(main))
