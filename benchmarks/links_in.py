"""What it costs to find the pages that lead to a URL, among a million pages with 30 links: `python -m benchmarks.links_in`.

The pages are those of `link_depths`. Filling the store is not counted; the search is a process of its own, so its time includes the start
of Python. The numbers found must be those of a count over all links.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from benchmarks.link_depths import fill, key_of, links_of, opened
from benchmarks.measure import BenchmarkFailed, Row, finish, run, tail
from benchmarks.shared_crawl import redis_server
from crawlspace.admin.links import links_in, referrers

_SECONDS = 5
_BROKEN = 1_000


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure how the pages that lead to a URL are found.")
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--stores", nargs="+", choices=("sqlite", "redis"), default=("sqlite", "redis"))
    parser.add_argument("--find", nargs=2, metavar=("STORE", "URLS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.find is not None:
        place, urls = options.find
        print(json.dumps(find(place, wanted(options.pages, int(urls)))))
        return []
    rows: list[Row] = []
    for kind in options.stores:
        if kind == "sqlite":
            with tempfile.TemporaryDirectory(prefix="bench-links-") as folder:
                rows += _measured(kind, str(Path(folder) / "state.db"), options.pages)
        else:
            with redis_server() as port:
                rows += _measured(kind, str(port), options.pages)
    return rows


def wanted(pages: int, urls: int) -> Sequence[int]:
    """Return pages all over the collection: the first is the start page's first child."""
    return [1, *Random(4711).sample(range(2, pages), urls - 1)]


def find(place: str, numbers: Sequence[int]) -> list[int]:
    """Return how many pages lead to each of some pages."""
    store = opened(place)
    if len(numbers) == 1:
        found = [len(links_in(key_of(numbers[0]), store))]
    else:
        by_key = referrers([key_of(number) for number in numbers], store, most=10)
        found = [by_key[key_of(number)].total if key_of(number) in by_key else 0 for number in numbers]
    store.close()
    return found


def _measured(kind: str, place: str, pages: int) -> Iterator[Row]:
    store = opened(place)
    fill(store, pages)
    store.close()
    true: Counter[int] = Counter()
    for number in range(pages):
        true.update(set(links_of(number, pages)))
    for urls in (1, _BROKEN):
        numbers = wanted(pages, urls)
        with tempfile.TemporaryDirectory(prefix="bench-links-") as folder:
            log = Path(folder) / "log"
            command = ["-m", "benchmarks.links_in", "--pages", str(pages), "--find", place, str(urls)]
            cost = run([sys.executable, *command], log=log)
            if cost.status:
                raise BenchmarkFailed(f"the search failed:\n{tail(log)}")
            found = json.loads(log.read_text())
        wrong = sum(one != true[number] for one, number in zip(found, numbers, strict=True))
        of = f"{kind}, {pages:,} pages, links to {urls:,}"
        yield Row("links_in", f"pages found, {of}", f"{sum(found):,}, {wrong:,} URLs wrong", "0 wrong", wrong == 0)
        seconds = f"{cost.wall_s:.1f} (CPU {cost.cpu_s:.1f})"
        if kind == "sqlite":
            yield Row("links_in", f"seconds, {of}", seconds, f"< {_SECONDS}", cost.wall_s < _SECONDS)
        else:
            yield Row("links_in", f"seconds, {of}", seconds)
        yield Row("links_in", f"peak, {of}", f"{cost.peak_mb:.0f} MB")


if __name__ == "__main__":
    sys.exit(finish(main))
