"""The versions of orders: numbers that grow with the outbox, so that an index can refuse outdated orders.

The version of an order is its number in the outbox plus a base that the store keeps for each sink. The first base is the time in
milliseconds, times 2^20: so a new store continues above the versions of the one before it. If an index has a larger version nevertheless
(a wrong clock, a store restored from a copy), the base is raised above that. It never goes down. Former bases are kept, with the numbers
from which they were used: so the smallest version of an order that was sent long ago is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from crawlspace.clock import Clock
from crawlspace.document import IndexOrder
from crawlspace.index.marks import NoteStore

MOST = (1 << 63) - 1
"""The largest version that OpenSearch and Elasticsearch accept."""
_SHIFT = 20
_BASE = re.compile(r"(\d+):(\d+)")
_ROOM = 1 << 40
"""For later orders: no base is closer to MOST."""
_MOST_KEPT = 50
"""Bases. The oldest one stands for those before it, so current documents may count as outdated."""


class Versions:
    """The versions of the orders of one sink. Raises StoreError."""

    def __init__(self, store: NoteStore, sink: str, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._name = f"versions:{sink}"

    def of(self, orders: Sequence[IndexOrder]) -> tuple[IndexOrder, ...]:
        """Return the orders with their versions."""
        _, base = self._bases()[-1]
        return tuple(replace(order, version=base + order.sequence) for order in orders)

    def least(self, sequence: int) -> int:
        """Return the smallest version of an order with this number that may have been sent; nothing is written."""
        bases = self._known() or [(0, 0)]
        return sequence + next((base for first, base in reversed(bases) if first <= sequence), bases[0][1])

    def raise_above(self, version: int, *, sequence: int, last: int) -> None:
        """Give all orders from the number `sequence` on larger versions than `version`; `last` is the largest number that may have been sent."""
        bases = self._bases()
        needed = min(version - sequence + 1, MOST - _ROOM)
        if needed > bases[-1][1]:
            self._keep([*bases, (last + 1, needed)])

    def _bases(self) -> list[tuple[int, int]]:
        """Return the bases, each with the number of its first order; the last one is used."""
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
