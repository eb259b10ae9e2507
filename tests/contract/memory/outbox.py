"""The outbox of the memory store: at most one order for a URL and sink, in the order in which they are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from crawlspace.document import Document, IndexOrder, Op, packed_text
from crawlspace.state.duplicates import Settlement
from crawlspace.state.order_times import given_by, noted


class PushedDocuments(Protocol):
    """The documents of the store, by the id of their URL."""

    def document(self, id: int) -> Document | None: ...
    def archived(self, id: int) -> int | None: ...


@dataclass(slots=True)
class _Waiting:
    """An order in the outbox of one sink; `reason` is set when it is parked."""

    sequence: int
    op: Op
    id: int
    url: str
    reason: str | None = None
    kept: Document | None = None
    """The document as it was when it left the collection and not the index."""


class MemoryOutbox:
    def __init__(self, sinks: Sequence[str]) -> None:
        self._sinks: dict[str, dict[str, _Waiting]] = {sink: {} for sink in sinks}
        self._given = tuple(sinks)
        """Those that get orders."""
        self._last_sequence = 0
        self.now = 0
        """The time of the present transaction."""
        self._times: str | None = None

    def use(self, sinks: Sequence[str]) -> None:
        self._given = tuple(sinks)
        for sink in sinks:
            self._sinks.setdefault(sink, {})

    def withdraw(self, sink: str, *, deletes: bool) -> list[int]:
        """Remove the orders of a sink; return the ids they concern."""
        waiting = self._of(sink)
        removed = [order for order in waiting.values() if deletes or order.op is Op.PUSH]
        for order in removed:
            del waiting[order.url]
        return [order.id for order in removed]

    def give(self, settlement: Settlement, urls: Mapping[int, str], *, sink: str | None = None) -> dict[int, int]:
        """Put orders in the place of older ones of the same URLs; return the numbers of the pushes, by id."""
        pushed = {}
        if settlement.delete or settlement.push:
            self._times = noted(self._times, self._last_sequence + 1, self.now) or self._times
        for op, ids in ((Op.DELETE, settlement.delete), (Op.PUSH, settlement.push)):
            for id in ids:
                self._last_sequence += 1
                for waiting in map(self._of, self._given if sink is None else (sink,)):
                    waiting[urls[id]] = _Waiting(self._last_sequence, op, id, urls[id])
                if op is Op.PUSH:
                    pushed[id] = self._last_sequence
        return pushed

    def delete(self, sink: str, ids: Mapping[str, int]) -> None:
        """Have documents be deleted from one sink, by URL; the ids are those of the URLs, 0 where they are not stored."""
        for url, id in ids.items():
            self._last_sequence += 1
            self._of(sink)[url] = _Waiting(self._last_sequence, Op.DELETE, id, url)

    def ordered(self, sink: str, urls: Sequence[str]) -> dict[str, bool]:
        waiting = self._of(sink)
        return {url: waiting[url].reason is not None for url in urls if url in waiting}

    def keep(self, url: str, document: Document, *, sink: str | None = None) -> None:
        """Have the waiting pushes of a URL be sent with this document, whatever happens to the URL."""
        for waiting in self._sinks.values() if sink is None else (self._of(sink),):
            order = waiting.get(url)
            if order is not None and order.op is Op.PUSH:
                order.kept = order.kept or document

    def next(self, sink: str, limit: int, stored: PushedDocuments, most_bytes: int) -> list[IndexOrder]:
        waiting = [order for order in self._of(sink).values() if order.reason is None]
        waiting.sort(key=lambda order: (order.op is Op.PUSH, order.sequence))
        orders: list[IndexOrder] = []
        for order in waiting[:limit]:
            is_push = order.op is Op.PUSH
            document = order.kept or stored.document(order.id) if is_push else None
            archived = stored.archived(order.id) if is_push else None
            orders.append(IndexOrder(order.sequence, order.op, order.url, document, archived=archived))
            most_bytes -= 0 if document is None else len(packed_text(document))
            if most_bytes <= 0:
                break
        return orders

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> list[int]:
        """Take orders out; return the ids they concern."""
        waiting = self._of(sink)
        return [waiting.pop(order.url).id for order in orders if self._has(waiting, order)]

    def has(self, url: str) -> bool:
        return any(url in waiting for waiting in self._sinks.values())

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        waiting = self._of(sink)
        if self._has(waiting, order):
            waiting[order.url].reason = reason

    def parked(self, sink: str) -> list[tuple[Op, str, str]]:
        orders = sorted(self._of(sink).values(), key=lambda order: order.sequence)
        return [(order.op, order.url, order.reason) for order in orders if order.reason is not None]

    def unpark(self, sink: str) -> int:
        parked = [order for order in self._of(sink).values() if order.reason is not None]
        for order in parked:
            order.reason = None
        return len(parked)

    def backlog(self, sink: str, *, parked: bool = False) -> int:
        return sum(1 for order in self._of(sink).values() if (order.reason is not None) is parked)

    def waiting_since(self, sink: str) -> int | None:
        oldest = min((order.sequence for order in self._of(sink).values() if order.reason is None), default=None)
        return None if oldest is None else given_by(self._times, oldest)

    def counts(self) -> tuple[int, int]:
        """How many orders wait, and how many are parked, of all sinks."""
        orders = [order for waiting in self._sinks.values() for order in waiting.values()]
        parked = sum(1 for order in orders if order.reason is not None)
        return len(orders) - parked, parked

    def _of(self, sink: str) -> dict[str, _Waiting]:
        return self._sinks.get(sink, {})

    @staticmethod
    def _has(waiting: Mapping[str, _Waiting], order: IndexOrder) -> bool:
        """Whether it is still the one that waits, and not a newer one of its URL."""
        return order.url in waiting and waiting[order.url].sequence == order.sequence
