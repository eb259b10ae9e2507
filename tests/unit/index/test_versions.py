"""The versions of orders: above all that an index has, and known again for an order that was sent long ago."""

from __future__ import annotations

import pytest

from crawlspace.clock import FakeClock
from crawlspace.document import IndexOrder, Op
from crawlspace.index.versions import MOST, Versions
from tests.contract.memory.store import MemoryStore


@pytest.fixture
def versions() -> Versions:
    return Versions(MemoryStore(sinks=("search",)), "search", FakeClock())


def version_of(versions: Versions, sequence: int) -> int:
    return versions.of([IndexOrder(sequence, Op.DELETE, "http://a.example/")])[0].version


def test_they_grow_with_the_orders(versions: Versions) -> None:
    first = version_of(versions, 7)
    assert (version_of(versions, 8), versions.least(7), versions.least(8)) == (first + 1, first, first + 1)


def test_after_they_were_raised_an_order_of_before_has_its_own(versions: Versions) -> None:
    before = version_of(versions, 7)
    versions.raise_above(before + 500, sequence=8, last=10)
    assert version_of(versions, 8) == before + 501
    assert [versions.least(sequence) for sequence in (7, 10)] == [before, before + 3], "they may have been sent before"
    assert versions.least(11) == version_of(versions, 11) == before + 504
    versions.raise_above(before + 400, sequence=8, last=10)
    assert version_of(versions, 8) == before + 501, "they never go down"


def test_there_is_always_room_above(versions: Versions) -> None:
    versions.raise_above(MOST, sequence=8, last=8)
    assert version_of(versions, 1_000_000) < MOST


def test_it_is_known_without_writing() -> None:
    store = MemoryStore(sinks=("search",))
    assert (Versions(store, "search", FakeClock()).least(7), store.get_meta("versions:search")) == (7, None)


def test_what_is_kept_of_former_ones_is_bounded(versions: Versions) -> None:
    first = version_of(versions, 0)
    for number in range(1, 200):
        versions.raise_above(first + number * 1_000, sequence=number, last=number)
    assert versions.least(0) > first
    assert versions.least(500) == version_of(versions, 500)
