"""Measure what is computed from the links of a million pages with 30 links each: link depths, and the pages that lead to a URL.

    python -m benchmarks.links --only depths

The pages are a tree of which each page has ten children, and lead to 20 more at random. `depths`: a thousand pages lose the link that gave
them their depth, and the depths of all pages must then be those of a walk along all links. `referrers`: the pages that lead to one URL, and
to a thousand, must be as many as a count over all links finds. Filling the store is not counted; each step is a process of its own, so
its time includes the start of Python.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

import redis
from msgspec import structs

from benchmarks.collection import redis_server
from benchmarks.measure import BenchmarkFailed, Cost, Row, finish, run, say, tail
from crawlspace.admin.links import links_in, referrers
from crawlspace.crawl.depths.settlement import find, write
from crawlspace.model import NewUrl, Source, State
from crawlspace.state.changes import Change
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from crawlspace.urls import url_key

_NAME = "links"
_NOW = 1_750_000_000
_CHILDREN, _OTHERS = 10, 20
_AT_ONCE = 2_000
_LOST = 1_000
_DEPTHS_S, _DEPTHS_MB = 20, 200
_BROKEN, _REFERRERS_S = 1_000, 5
"""How many URLs the pages that lead to them are found of at once, and the target in a file."""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure what is computed from the links of many pages.")
    parser.add_argument("--only", choices=("depths", "referrers"), help="without: both")
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--stores", nargs="+", choices=("sqlite", "redis"), default=("sqlite", "redis"))
    parser.add_argument("--settle", metavar="STORE", help=argparse.SUPPRESS)
    parser.add_argument("--find", nargs=2, metavar=("STORE", "URLS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.settle is not None:
        settle(options.settle)
        return []
    if options.find is not None:
        place, urls = options.find
        print(json.dumps(find_referrers(place, _wanted(options.pages, int(urls)))))
        return []
    rows: list[Row] = []
    for kind in options.stores:
        with _store_of(kind) as place:
            store = opened(place)
            fill(store, options.pages)
            store.close()
            if options.only != "depths":
                rows += _referrers(kind, place, options.pages)
            if options.only != "referrers":  # the last one, because it changes links
                rows += _depths(kind, place, options.pages)
    return rows


@contextlib.contextmanager
def _store_of(kind: str) -> Iterator[str]:
    """Yield where an empty store is: the name of a file, or the port of a server."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="bench-links-") as folder:
            yield str(Path(folder) / "state.db")
        return
    with redis_server() as port:
        yield str(port)


def opened(place: str) -> Store:
    """Open the store in a file, or on a server at a port."""
    if place.isdigit():
        return RedisStore(redis.Redis(port=int(place)), "depths", sinks=())
    return SqliteStore(Path(place), sinks=())


def settle(place: str) -> None:
    """Find the depths again of pages that have lost a link, and print how many were checked and orphaned."""
    store = opened(place)
    found = find(store, starts={url_of(0).key}, run=1)
    write(store, found, now=_NOW)
    store.close()
    print(found.checked, found.orphaned)


def _depths(kind: str, place: str, pages: int) -> Iterator[Row]:
    store = opened(place)
    lost = _lose(store, pages)
    marked = len(store.depth_marks())
    store.close()
    cost, printed = _in_a_process(["--settle", place])
    checked = int(printed.split()[0])
    store = opened(place)
    wrong = _wrong(store, pages, lost)
    store.close()
    of = f"{kind}, {pages:,} pages, {marked:,} marked"
    yield Row(_NAME, f"depths computed again, {of}", f"{checked:,}, {wrong:,} wrong", "0 wrong", wrong == 0)
    yield Row(_NAME, f"seconds, {of}", f"{cost.wall_s:.1f} (CPU {cost.cpu_s:.1f})", f"< {_DEPTHS_S}", cost.wall_s < _DEPTHS_S)
    yield Row(_NAME, f"peak, {of}", f"{cost.peak_mb:.0f} MB", f"< {_DEPTHS_MB} MB", cost.peak_mb < _DEPTHS_MB)


def _referrers(kind: str, place: str, pages: int) -> Iterator[Row]:
    true: Counter[int] = Counter()
    for number in range(pages):
        true.update(set(links_of(number, pages)))
    for urls in (1, _BROKEN):
        numbers = _wanted(pages, urls)
        cost, printed = _in_a_process(["--pages", str(pages), "--find", place, str(urls)])
        found = json.loads(printed)
        wrong = sum(one != true[number] for one, number in zip(found, numbers, strict=True))
        of = f"{kind}, {pages:,} pages, links to {urls:,}"
        yield Row(_NAME, f"referrers found, {of}", f"{sum(found):,}, {wrong:,} URLs wrong", "0 wrong", wrong == 0)
        target = (f"< {_REFERRERS_S}", cost.wall_s < _REFERRERS_S) if kind == "sqlite" else ()
        yield Row(_NAME, f"seconds, {of}", f"{cost.wall_s:.1f} (CPU {cost.cpu_s:.1f})", *target)
        yield Row(_NAME, f"peak, {of}", f"{cost.peak_mb:.0f} MB")


def _in_a_process(options: Sequence[str]) -> tuple[Cost, str]:
    """Run a step in a process of its own; return its cost and what it has printed."""
    with tempfile.TemporaryDirectory(prefix="bench-links-") as folder:
        log = Path(folder) / "log"
        cost = run([sys.executable, "-m", "benchmarks.links", *options], log=log)
        if cost.status:
            raise BenchmarkFailed(f"{options[0]} failed:\n{tail(log)}")
        return cost, log.read_text()


def find_referrers(place: str, numbers: Sequence[int]) -> list[int]:
    """Return how many pages lead to each of some pages."""
    store = opened(place)
    if len(numbers) == 1:
        found = [len(links_in(key_of(numbers[0]), store))]
    else:
        by_key = referrers([key_of(number) for number in numbers], store, most=10)
        found = [by_key[key_of(number)].total if key_of(number) in by_key else 0 for number in numbers]
    store.close()
    return found


def _wanted(pages: int, urls: int) -> Sequence[int]:
    """Return pages all over the collection: the first is the start page's first child."""
    return [1, *Random(4711).sample(range(2, pages), urls - 1)]


def fill(store: Store, pages: int) -> None:
    depths = array("b", [0])
    for number in range(1, pages):
        depths.append(depths[_parent(number)] + 1)
    for first in range(0, pages, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, pages))
        store.discover([url_of(number, depths[number]) for number in numbers], now=_NOW)
        if first % 100_000 == 0:
            say(f"{first:,} pages known")
    for first in range(0, pages, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, pages))
        states = [state for state in map(store.get_by_id, range(numbers[0] + 1, numbers[-1] + 2)) if state is not None]
        changes = [
            Change(
                structs.replace(state, state=State.DONE, status=200, fetched_at=_NOW, next_fetch=_NOW + 9),
                links=[key_of(to) for to in links_of(number, pages)],
            )
            for number, state in zip(numbers, states, strict=True)
        ]
        store.record(changes, now=_NOW)
        if first % 100_000 == 0:
            say(f"{first:,} pages recorded")


def _lose(store: Store, pages: int) -> set[tuple[int, int]]:
    """Have pages all over the collection lose the link that gave them their depth; return (page, child)."""
    random = Random(4711)
    lost = {(_parent(child), child) for child in random.sample(range(pages // 100, pages), _LOST)}
    for page in sorted({page for page, _ in lost}):
        state = store.get_by_id(page + 1)
        assert state is not None
        store.record([Change(state, links=[key_of(to) for to in links_of(page, pages) if (page, to) not in lost])], now=_NOW)
    return lost


def _wrong(store: Store, pages: int, lost: set[tuple[int, int]]) -> int:
    """Return the number of pages whose depth is not that of a walk along all links."""
    true = array("i", [-1]) * pages
    true[0] = 0
    level = [0]
    while level:
        following = []
        for page in level:
            for to in links_of(page, pages):
                if true[to] < 0 and (page, to) not in lost:
                    true[to] = true[page] + 1
                    following.append(to)
        level = following
    wrong, last = 0, 0
    while some := store.scan_depths(last, 5_000):
        wrong += sum((-1 if one.orphaned is not None else one.depth) != true[one.id - 1] for one in some)
        last = some[-1].id
    return wrong


def _parent(number: int) -> int:
    return (number - 1) // _CHILDREN


def links_of(number: int, pages: int) -> list[int]:
    """Return the pages that a page leads to: its children, and if these are at the last level, others of that level: no way is shortened."""
    children = range(number * _CHILDREN + 1, min(number * _CHILDREN + _CHILDREN + 1, pages))
    random = Random(number)
    last = _last_level(pages)
    leads_on = number * _CHILDREN + 1 >= last
    return [*children, *(random.randrange(last, pages) if leads_on else number for _ in range(_OTHERS))]


@cache
def _last_level(pages: int) -> int:
    """Return the number of the first page at the largest depth."""
    first = 0
    while first * _CHILDREN + 1 < pages:
        first = first * _CHILDREN + 1
    return first


def url_of(number: int, depth: int = 0) -> NewUrl:
    text = f"https://host{number % 50}.example.com/section/{number % 97}/a-page-{number}.html"
    page = 0 if number == 0 else _parent(number) + 1
    host = f"host{number % 50}.example.com:443"
    return NewUrl(url_key(text), text, host, Source.INDEX_FOLLOW, 0, depth, 0, 40, depth_from=page)


def key_of(number: int) -> int:
    return url_of(number).key


if __name__ == "__main__":
    sys.exit(finish(main))
