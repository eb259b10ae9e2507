"""What it costs to find link depths anew, among a million pages with 30 links: `python -m benchmarks.link_depths`.

The pages are a tree of which each page has ten children, and lead to 20 more at random. A thousand pages lose the link that gave them their
depth. Filling the store is not counted; settling runs in a process of its own, so its time includes the start of Python. At the end
the depths of all pages must be those of a walk along all links.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from array import array
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import redis
from msgspec import structs

from benchmarks.measure import BenchmarkFailed, Row, finish, run, say, tail
from benchmarks.shared_crawl import redis_server
from crawlspace.crawl.depths.settlement import find, write
from crawlspace.model import NewUrl, Source, State
from crawlspace.state.changes import Change
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from crawlspace.urls import url_key

_NOW = 1_750_000_000
_CHILDREN, _OTHERS = 10, 20
_AT_ONCE = 2_000
_LOST = 1_000
_SECONDS, _MB = 20, 200


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure how link depths are found anew.")
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--stores", nargs="+", choices=("sqlite", "redis"), default=("sqlite", "redis"))
    parser.add_argument("--settle", metavar="STORE", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.settle is not None:
        settle(options.settle)
        return []
    rows: list[Row] = []
    for kind in options.stores:
        if kind == "sqlite":
            with tempfile.TemporaryDirectory(prefix="bench-depths-") as folder:
                rows += _measured(kind, str(Path(folder) / "state.db"), options.pages)
        else:
            with redis_server() as port:
                rows += _measured(kind, str(port), options.pages)
    return rows


def opened(place: str) -> Store:
    """Open the store in a file, or on a server at a port."""
    if place.isdigit():
        return RedisStore(redis.Redis(port=int(place)), "depths", sinks=())
    return SqliteStore(Path(place), sinks=())


def settle(place: str) -> None:
    store = opened(place)
    found = find(store, starts={url_of(0).key}, run=1)
    write(store, found, now=_NOW)
    store.close()
    print(found.checked, found.orphaned)


def _measured(kind: str, place: str, pages: int) -> Iterator[Row]:
    store = opened(place)
    fill(store, pages)
    lost = _lose(store, pages)
    marked = len(store.depth_marks())
    store.close()
    with tempfile.TemporaryDirectory(prefix="bench-depths-") as folder:
        log = Path(folder) / "log"
        cost = run([sys.executable, "-m", "benchmarks.link_depths", "--settle", place], log=log)
        if cost.status:
            raise BenchmarkFailed(f"settling failed:\n{tail(log)}")
        checked = int(log.read_text().split()[0])
    store = opened(place)
    wrong = _wrong(store, pages, lost)
    store.close()
    of = f"{kind}, {pages:,} pages, {marked:,} marked"
    yield Row("link_depths", f"depths found anew, {of}", f"{checked:,}, {wrong:,} wrong", "0 wrong", wrong == 0)
    yield Row(
        "link_depths", f"seconds, {of}", f"{cost.wall_s:.1f} (CPU {cost.cpu_s:.1f})", f"< {_SECONDS}", cost.wall_s < _SECONDS
    )
    yield Row("link_depths", f"peak, {of}", f"{cost.peak_mb:.0f} MB", f"< {_MB} MB", cost.peak_mb < _MB)


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
