"""What `make test` leaves to `make test-full`: most drawn examples, most rows on further stores, and tests marked `full`.

`pytest` by itself runs everything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from zlib import crc32

import pytest

IS_QUICK = bool(os.environ.get("QUICK_TESTS"))
_FEWER = 10
_STORES = {"memory": 0, "redis": 1, "sqlite": 2, "file": 2}
"""Values of parameters that name a store; the one of the highest rank runs."""
_ON_REDIS = 3
"""One row in so many runs on Redis instead."""


def examples(number: int) -> int:
    """Return how many examples a test draws that draws so many in full."""
    return min(number, max(number // _FEWER, _FEWER)) if IS_QUICK else number


def some(values: Iterable[object], number: int) -> list[object]:
    """Return parameters of which a quick run has the first few."""
    return [value if at < number else pytest.param(value, marks=pytest.mark.full) for at, value in enumerate(values)]


def left_to_full(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return what a quick run leaves out: tests marked `full`, and of a row that runs on several stores all but one."""
    left_out = set()
    rows: dict[str, dict[str, pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("full") is not None:
            left_out.add(item)
        elif (store := _store_of(item)) is not None:
            rows.setdefault(item.nodeid.replace(store, "*", 1), {})[store] = item
    for row, by_store in rows.items():
        first = (
            "redis" if crc32(row.encode()) % _ON_REDIS == 0 and "redis" in by_store else max(by_store, key=_STORES.__getitem__)
        )
        left_out.update(item for store, item in by_store.items() if store != first)
    return left_out


def _store_of(item: pytest.Item) -> str | None:
    """Return the store that one parameter of the test names; None where none does, or several do."""
    parameters = getattr(item, "callspec", None)
    stores = [value for value in parameters.params.values() if value in tuple(_STORES)] if parameters is not None else []
    return stores[0] if len(stores) == 1 else None
