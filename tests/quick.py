"""What `make test` leaves to `make test-full`: most drawn examples, rows on further stores, most of those that crawl, tests marked `full`.

`pytest` by itself runs everything.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from zlib import crc32

import pytest

IS_QUICK = bool(os.environ.get("QUICK_TESTS"))
_FEWER = 10
_STORES = {"memory": 0, "redis": 1, "sqlite": 2, "file": 2}
"""Values of parameters that name a store; the one of the highest rank runs."""
_IS_REDIS = ("is_shared", "on_redis")
"""Parameters that are true for the store in Redis and false for the other one."""
_ON_REDIS = 3
"""One row in so many runs on Redis instead."""
_OF_CRAWLS = ("tests/components/", "tests/hostile/", "tests/integration/")
"""Folders in which nearly each test runs a command, or several."""
_ONE_OF_CRAWLS = 3
"""One of so many tests of a file there runs, the first one included."""


def examples(number: int) -> int:
    """Return how many examples a test draws that draws so many in full."""
    return min(number, max(number // _FEWER, _FEWER)) if IS_QUICK else number


def some(values: Iterable[object], number: int) -> list[object]:
    """Return parameters of which a quick run has the first few; a tuple is a row of several."""
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*row, marks=() if at < number else pytest.mark.full) for at, row in enumerate(rows)]


def left_to_full(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return what a quick run leaves out: tests marked `full`; all but one store of a row; of each file of those that crawl two of three tests,
    and all but one row of the others."""
    left_out: set[pytest.Item] = set()
    rows: dict[object, dict[str, pytest.Item]] = {}
    crawls: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for item in items:
        name = item.nodeid.partition("[")[0]
        row, store = _row_and_store_of(item)
        if item.get_closest_marker("full") is not None:
            left_out.add(item)
        elif name.startswith(_OF_CRAWLS):
            of_file = crawls[name.partition("::")[0]]
            number = of_file.setdefault(name, len(of_file))
            if number % _ONE_OF_CRAWLS or rows.setdefault(name, {}).setdefault(store, item) is not item:
                left_out.add(item)
        elif store:
            rows.setdefault(row, {})[store] = item
    for by_store in rows.values():
        first = max(by_store, key=lambda store: _STORES.get(store, -1))
        if "redis" in by_store and crc32(by_store[first].nodeid.encode()) % _ON_REDIS == 0:
            first = "redis"
        left_out.update(item for store, item in by_store.items() if store != first)
    return left_out


def _row_and_store_of(item: pytest.Item) -> tuple[object, str]:
    """Return what the test has in common with those on other stores, and its store; empty where none is named, or several are."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return None, ""
    parameters = item.callspec.params
    stores = {name: store for name, value in parameters.items() if (store := _store(name, value)) is not None}
    if len(stores) != 1:
        return None, ""
    others = tuple((name, id(value)) for name, value in parameters.items() if name not in stores)
    return (item.nodeid.partition("[")[0], others), next(iter(stores.values()))


def _store(parameter: str, value: object) -> str | None:
    if parameter in _IS_REDIS:
        return "redis" if value else "sqlite"
    return value if isinstance(value, str) and value in _STORES else None
