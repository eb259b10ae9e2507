"""The versions of orders: numbers that grow with the outbox, so that an index can refuse what is out of date.

The version of an order is its number in the outbox plus a base that the store keeps for each sink. The first base is the time in
milliseconds, times 2^20: so a store that was begun anew continues above the versions of the one before it. Where an index has a
larger one all the same (a clock that was wrong, a store from a copy), the base is raised above that. It never goes down. Former bases are
kept, with the numbers up to which they were used: so it is known which version an order that was sent long ago has at least.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.document import IndexOrder

MOST = (1 << 63) - 1
"""The largest version that OpenSearch and Elasticsearch take."""
_SHIFT = 20
_BASE = re.compile(r"(\d+):(\d+)")
_ROOM = 1 << 40
"""For orders that follow: no version is ever put closer to MOST."""
_MOST_KEPT = 50
"""Bases; of older ones the last is taken for them, which may find documents outdated that are not."""


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
        _, base = self._bases()[-1]
        return tuple(replace(order, version=base + order.sequence) for order in orders)

    def least(self, sequence: int) -> int:
        """Return the smallest version that an order with this number may have been sent with; nothing is written."""
        bases = self._known() or [(0, 0)]
        return sequence + next((base for first, base in reversed(bases) if first <= sequence), bases[0][1])

    def raise_above(self, version: int, *, sequence: int, last: int) -> None:
        """Have all orders from the number `sequence` on get larger versions than that; `last` is the largest that may have been sent."""
        bases = self._bases()
        needed = min(version - sequence + 1, MOST - _ROOM)
        if needed > bases[-1][1]:
            self._keep([*bases, (last + 1, needed)])

    def _bases(self) -> list[tuple[int, int]]:
        """Return the bases, each with the smallest number of an order that it is for; the last one is used."""
        bases = self._known()
        if not bases:
            bases = [(0, int(self._clock.now() * 1000) << _SHIFT)]
            self._keep(bases)
        return bases

    def _known(self) -> list[tuple[int, int]]:
        written = self._store.get_meta(self._name) or ""
        return [(int(one[1]), int(one[2])) for one in _BASE.finditer(written)]

    def _keep(self, bases: Sequence[tuple[int, int]]) -> None:
        self._store.set_meta(self._name, " ".join(f"{first}:{base}" for first, base in bases[-_MOST_KEPT:]))
