"""The versions of orders: numbers that grow with the outbox, so that an index can refuse what is out of date.

The version of an order is its number in the outbox plus a base that the store keeps for each sink. The first base is the time in
milliseconds, times 2^20: so a store that was begun anew continues above the versions of the one before it. Where an index has a
larger one all the same (a clock that was wrong, a store from a copy), the base is raised above that. It never goes down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.model import IndexOrder

MOST = (1 << 63) - 1
"""The largest version that OpenSearch and Elasticsearch take."""
_SHIFT = 20
_ROOM = 1 << 40
"""For orders that follow: no version is ever put closer to MOST."""


class BaseStore(Protocol):
    """Keeps the base."""

    def get_meta(self, name: str) -> str | None: ...
    def set_meta(self, name: str, value: str) -> None: ...


class Versions:
    """The versions of the orders of one sink. Raises StoreError."""

    def __init__(self, store: BaseStore, sink: str, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._name = f"versions:{sink}"

    def of(self, orders: Sequence[IndexOrder]) -> tuple[IndexOrder, ...]:
        """Return the orders with their versions."""
        base = self._base()
        return tuple(replace(order, version=base + order.sequence) for order in orders)

    def raise_above(self, version: int, *, sequence: int) -> None:
        """Have all orders from that number on get larger versions than that."""
        needed = version - sequence + 1
        if needed > self._base():
            self._store.set_meta(self._name, str(min(needed, MOST - _ROOM)))

    def _base(self) -> int:
        written = self._store.get_meta(self._name) or ""
        if written.isdigit():
            return int(written)
        base = int(self._clock.now() * 1000) << _SHIFT
        self._store.set_meta(self._name, str(base))
        return base
