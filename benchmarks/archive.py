"""What the archive costs a crawl, and how fast documents are sent again or made anew from it; served by nginx.

python -m benchmarks.archive --pages 20000 --rounds 3
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.baseline_crawlspider import CONCURRENCY
from benchmarks.collection import NAME, BenchCollection
from benchmarks.measure import SCRAPY, BenchmarkFailed, Cost, Row, finish, in_turn, median_ratio, run, tail
from benchmarks.serve import folder_server
from benchmarks.site import START_PATH, StaticSite, generate

_TARGETS = {"with archive": 0.95, "reindex": 5.0, "extract": 3.0}


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare crawls with and without an archive, and reindexing from it.")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-archive-") as temp, contextlib.ExitStack() as stack:
        site = generate(Path(temp, "site"), pages=options.pages)
        origin = stack.enter_context(folder_server(site.folder))
        collection = BenchCollection(Path(temp, "collection"))
        programs = {
            "without": lambda: _crawl(collection, origin, site, archive=False),
            "with archive": lambda: _crawl(collection, origin, site, archive=True),
            "reindex": lambda: _reindex(collection, site),
            "extract": lambda: _reindex(collection, site, "--extract"),
        }
        costs = in_turn(programs, options.rounds)
        size = sum(path.stat().st_size for path in (collection.store_file.parent / "archive").iterdir())
    benchmark = "archive"
    rows = [Row(benchmark, "pages", f"{site.pages}"), Row(benchmark, "bytes archived a page", f"{size / site.pages:.0f}")]
    for name, taken in costs.items():
        rate = median(cost.pages_per_s(site.pages) for cost in taken)
        rows.append(Row(benchmark, f"{name}: pages/s, CPU", f"{rate:.0f}/s, {median(cost.cpu_s for cost in taken):.1f} s"))
    for name, target in _TARGETS.items():
        base = "without" if name == "with archive" else "with archive"
        ratio = median_ratio([cost.wall_s for cost in costs[base]], [cost.wall_s for cost in costs[name]])
        rows.append(Row(benchmark, f"{name} against a crawl {base}", f"{ratio:.2f} times", f">= {target:g}", ratio >= target))
    return rows


def _crawl(collection: BenchCollection, origin: str, site: StaticSite, *, archive: bool) -> Cost:
    shutil.rmtree(collection.folder, ignore_errors=True)
    collection.write(
        start_urls=[origin + START_PATH],
        rules=f"allow domain {origin.removeprefix('http://')}\nforbid domain *\n",
        settings={
            "CONCURRENT_REQUESTS": CONCURRENCY,
            "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
            "CRAWLSPACE_ARCHIVE": archive,
        },
    )
    cost = collection.crawl()
    archived = sum(state.archived is not None for state in collection.states())
    _check(collection, site, holds=archived == (site.pages if archive else 0))
    return cost


def _reindex(collection: BenchCollection, site: StaticSite, *options: str) -> Cost:
    """Send all documents again into an index that was lost."""
    collection.index_file.unlink()
    cost = run([*SCRAPY, "reindex", NAME, *options], environment=collection.environment, log=collection.log, limit_s=1800)
    _check(collection, site, holds=cost.status == 0)
    return cost


def _check(collection: BenchCollection, site: StaticSite, *, holds: bool) -> None:
    if not holds or len(collection.index_urls()) != site.documents:
        raise BenchmarkFailed(f"not all {site.documents} documents are there:\n{tail(collection.log)}")


if __name__ == "__main__":
    sys.exit(finish(main))
