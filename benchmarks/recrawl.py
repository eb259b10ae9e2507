"""Compare with a first crawl what comes after it: a refresh of unchanged pages, and documents sent again or extracted again from the archive.

    python -m benchmarks.recrawl --pages 20000 --rounds 3

The cost of keeping the archive is measured too. nginx serves the site, and answers the refresh with 304.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median

from benchmarks.collection import NAME, BenchCollection
from benchmarks.measure import SCRAPY, BenchmarkFailed, Cost, Row, finish, in_turn, median_ratio, run, tail
from benchmarks.whole_crawl import Ground, site_served
from crawlspace.state.sqlite.store import SqliteStore
from tests.due_times import make_all_due_by

_NAME = "recrawl"
_WITHOUT, _FIRST, _REFRESH, _REINDEX, _EXTRACT = "crawl without archive", "first crawl", "refresh", "reindex", "reindex --extract"
_TARGETS = ((_FIRST, _WITHOUT, 0.95), (_REFRESH, _FIRST, 1.3), (_REINDEX, _FIRST, 5.0), (_EXTRACT, _FIRST, 3.0))
"""What is measured, what it is compared with, and the lowest ratio of pages a second."""
_STATUS = re.compile(r'"GET /(?!robots\.txt)\S* [^"]*" (\d+) ')


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare refreshes and reindexing with a first crawl.")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-recrawl-") as temp, site_served(Path(temp), options.pages) as ground:
        collection = BenchCollection(Path(temp, "collection"))
        programs = {
            _WITHOUT: lambda: _crawl(collection, ground, archive=False),
            _FIRST: lambda: _crawl(collection, ground, archive=True),
            _REFRESH: lambda: _refresh(collection, ground),
            _REINDEX: lambda: _reindex(collection, ground),
            _EXTRACT: lambda: _reindex(collection, ground, "--extract"),
        }
        costs = in_turn(programs, options.rounds)
        size = sum(path.stat().st_size for path in (collection.store_file.parent / "archive").iterdir())
    pages = ground.site.pages
    rows = [Row(_NAME, "pages", f"{pages:,}"), Row(_NAME, "bytes archived a page", f"{size / pages:.0f}")]
    for name, taken in costs.items():
        rate = median(cost.pages_per_s(pages) for cost in taken)
        rows.append(Row(_NAME, f"{name}: pages/s, CPU", f"{rate:.0f}/s, {median(cost.cpu_s for cost in taken):.1f} s"))
    for name, base, target in _TARGETS:
        ratio = median_ratio([cost.wall_s for cost in costs[base]], [cost.wall_s for cost in costs[name]])
        rows.append(Row(_NAME, f"{name} against {base}", f"{ratio:.2f} times", f">= {target:g}", ratio >= target))
    return rows


def _crawl(collection: BenchCollection, ground: Ground, *, archive: bool) -> Cost:
    shutil.rmtree(collection.folder, ignore_errors=True)
    configuration = ground.configuration
    configuration["settings"] = {**configuration["settings"], "CRAWLSPACE_ARCHIVE": archive}
    collection.write(**configuration)
    cost = collection.crawl()
    states = collection.states()
    ground.check_ours(states, collection.index_urls(), collection.log)
    archived = sum(state.archived is not None for state in states)
    if archived != (ground.site.pages if archive else 0):
        raise BenchmarkFailed(f"the archive has {archived} pages of {ground.site.pages}:\n{tail(collection.log)}")
    return cost


def _refresh(collection: BenchCollection, ground: Ground) -> Cost:
    with contextlib.closing(SqliteStore(collection.store_file)) as store:
        make_all_due_by(store, 0)
    if ground.log.exists():
        ground.log.write_bytes(b"")
    cost = collection.crawl()
    ground.check_ours(collection.states(), collection.index_urls(), collection.log)
    if ground.log.exists():
        answers = Counter(_STATUS.findall(ground.log.read_text(encoding="utf-8")))
        if answers != {"304": ground.site.pages}:
            raise BenchmarkFailed(f"the refresh was not answered with {ground.site.pages} times 304 but with {dict(answers)}")
    return cost


def _reindex(collection: BenchCollection, ground: Ground, *options: str) -> Cost:
    """Send all documents again, into a new index."""
    collection.index_file.unlink()
    cost = run([*SCRAPY, "reindex", NAME, *options], environment=collection.environment, log=collection.log)
    if cost.status or len(collection.index_urls()) != ground.site.documents:
        raise BenchmarkFailed(f"not all {ground.site.documents} documents are in the index:\n{tail(collection.log)}")
    return cost


if __name__ == "__main__":
    sys.exit(finish(main))
