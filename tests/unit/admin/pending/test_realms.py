"""Realms and times of imported URLs, as named values of a store."""

from __future__ import annotations

import random

import pytest

from crawlspace.admin.pending.realms import BLOCK, NAME, NO_ORIGIN, Origin, Origins
from crawlspace.errors import StoreDamaged
from tests.contract.memory.store import MemoryStore


def test_what_is_written_is_read() -> None:
    store = MemoryStore(sinks=())
    chosen = random.Random(7)
    kinds = [NO_ORIGIN, Origin("R"), Origin("S%20T", 5), Origin(None, 1_700_000_000)]
    wanted: dict[int, Origin] = {}
    for _ in range(40):
        first = chosen.randrange(3 * BLOCK)
        batch = dict.fromkeys(range(first, first + chosen.randrange(1, 300)), chosen.choice(kinds))
        Origins(store).write(batch)
        wanted |= batch
    origins = Origins(store)
    assert {id: origins.of(id) for id in range(5 * BLOCK)} == {id: wanted.get(id, NO_ORIGIN) for id in range(5 * BLOCK)}


def test_urls_of_one_realm_and_time_are_one_run() -> None:
    store = MemoryStore(sinks=())
    Origins(store).write(dict.fromkeys(range(BLOCK), Origin("Main", 1_700_000_000)))
    assert store.get_meta(f"{NAME}0") == f'[["Main"],[[0,{BLOCK},0,1700000000]]]'


def test_urls_that_are_not_imported_have_no_value() -> None:
    store = MemoryStore(sinks=())
    Origins(store).write({1: NO_ORIGIN, 2 * BLOCK: NO_ORIGIN})
    assert store.get_metas([f"{NAME}0", f"{NAME}2"]) == [None, None]


@pytest.mark.parametrize("value", ["x", "[]", '[["R"],[[0,1,1,0]]]', '[["R"],[[0,2000,0,0]]]', '[["R"],[[-1,1,0,0]]]'])
def test_a_damaged_value_is_named(value: str) -> None:
    store = MemoryStore(sinks=())
    store.set_meta(f"{NAME}0", value)
    with pytest.raises(StoreDamaged, match="imported:0"):
        Origins(store).of(0)
