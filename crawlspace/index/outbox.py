"""Send the outbox to an index: in order, in batches, acknowledged only when the index has committed them.

One step is three calls, because two of them run on the store's thread and one may take long:
`take` (store), `deliver` (index), `settle` (store). After a kill between any two, the orders are sent again.
There are no threads and no sleep here: the caller decides where and when a step runs.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.document import IndexOrder
from crawlspace.errors import CrawlspaceError, IndexUnavailable
from crawlspace.index.login_exclusion import LoginExclusion
from crawlspace.index.marks import MOST_IN_BATCH, BatchMark, MarkKeeper, NoteStore, next_mark, note_mark, stored_mark
from crawlspace.index.notes import StandstillNote, note_server
from crawlspace.index.orders import ContentReferences
from crawlspace.index.sink import Refusal, Sent, Sink, place_of
from crawlspace.index.versions import Versions

logger = logging.getLogger(__name__)

BATCH, SERVER_BATCH = 200, MOST_IN_BATCH
"""Orders of a batch; more for a server, which gets several requests at a time."""
FIRST_WAIT_S = 1.0
MAX_WAIT_S = 60.0
MAX_FAULTS = 10
"""Maximal orders of one batch that are parked after unexpected errors. More than that is a failure of the sink."""

LATER_VERSIONS = "it has later versions of the documents, which are sent again with larger ones"


class OrderSource(NoteStore, Protocol):
    """The outbox of a store."""

    def orders(self, sink: str, limit: int, *, now: int, most_bytes: int = ...) -> list[IndexOrder]:
        """Return the next orders of a sink, in the order of sending; fewer where their documents have many bytes."""

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        """Remove orders that are done."""

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        """Park an order, with the reason."""

    def backlog(self, sink: str) -> int:
        """Return the number of orders not done yet, without parked ones."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of a batch. Orders in neither list were not tried, or the index was unavailable: they stay in the outbox."""

    done: tuple[IndexOrder, ...] = ()
    refused: tuple[Refusal, ...] = ()
    unavailable: str = ""
    """Why the index was unavailable, or has not accepted all; empty if it has."""
    mark: BatchMark | None = None
    """Mark of the batch, if the index has committed at least a part of it."""
    is_slow: bool = False
    """The index answers, and accepts no more at a time."""
    above: tuple[int, int, int] = (0, 0, 0)
    """A version in the index that the orders of the batch must exceed, and the smallest and the largest number of its orders."""


@dataclass(frozen=True, slots=True)
class Drained:
    """The result of a step or a whole drain; `waiting_s` is the time until the next try, None if none is needed."""

    sent: int = 0
    parked: int = 0
    waiting_s: float | None = None


class Drain:
    """Sends a sink's orders. An unavailable index is tried again after growing waits, and the crawl continues."""

    def __init__(
        self,
        store: OrderSource,
        sink: Sink,
        clock: Clock,
        *,
        batch: int | None = None,
        first_wait_s: float = FIRST_WAIT_S,
        max_wait_s: float = MAX_WAIT_S,
        references: ContentReferences | None = None,
        exclusion: LoginExclusion | None = None,
    ) -> None:
        """Without `references`, all documents are sent whole; without `exclusion`, all are sent."""
        self._store = store
        self._sink = sink
        self._clock = clock
        self._most = self._batch = batch or (BATCH if place_of(sink) else SERVER_BATCH)
        self._versions = Versions(store, sink.name, clock)
        self._standstill = StandstillNote(store, sink.name)
        self._references = references
        self._exclusion = exclusion
        self._first_wait_s = first_wait_s
        self._max_wait_s = max_wait_s
        self._wait_s = 0.0
        self._wait_until = 0.0
        self._why = ""
        self._mark: BatchMark | None = None
        """The mark of the current batch."""

    @property
    def sink(self) -> str:
        """The name of the sink."""
        return self._sink.name

    @property
    def place(self) -> str:
        """Host name and path of a sink with a file; empty for a server."""
        return place_of(self._sink)

    @property
    def waiting_s(self) -> float | None:
        """Seconds until the index is tried again; None if it may be tried now."""
        left = self._wait_until - self._clock.monotonic()
        return left if self._wait_s and left > 0 else None

    @property
    def is_unavailable(self) -> bool:
        """Whether the sink did not answer the last time."""
        return self._wait_s > 0

    def leave_to_others(self) -> None:
        """Forget that the sink did not answer, because another process sends to it now."""
        self._wait_s = self._wait_until = 0.0
        self._standstill.forget()

    @property
    def why_unavailable(self) -> str:
        """Why nothing could be sent the last time; empty if something was."""
        return self._why

    def backlog(self) -> int:
        """Return the number of orders that wait for this sink."""
        return self._store.backlog(self._sink.name)

    def mark_to_check(self) -> BatchMark | None:
        """Return the mark of the next batch, with which `check_mark` checks the index; None if nothing was sent before, or the sink has
        no marks. Uses the store only."""
        if not isinstance(self._sink, MarkKeeper):
            return None
        last = stored_mark(self._store, self._sink.name)
        return None if last is None or not last.batch else BatchMark(last.generation, last.batch + 1, last.sequence)

    def check_mark(self, mark: BatchMark) -> None:
        """Log a warning if the index does not have the last batches. Uses the sink only."""
        assert isinstance(self._sink, MarkKeeper)
        with suppress(IndexUnavailable):  # reported when there is something to send
            self._sink.check_mark(mark)

    def take(self) -> tuple[IndexOrder, ...]:
        """Return the next batch; empty if there is none or the sink must wait. Uses the store only."""
        if self.waiting_s is not None:
            return ()
        batch = self._versions.of(self._store.orders(self._sink.name, self._batch, now=int(self._clock.now())))
        self._mark = next_mark(self._store, self._sink.name, batch) if batch else None
        return batch if self._references is None else self._references.of(batch)

    def deliver(self, batch: Sequence[IndexOrder]) -> Delivery:
        """Send a batch. Uses the sink only, so it can run on another thread.

        A batch on which the sink fails unexpectedly is halved until the failing order is alone; that one is refused. Our own
        errors other than IndexUnavailable (a damaged index) are raised, because no order causes them.
        """
        assert self._mark is not None, "a batch is taken before it is delivered"
        mark = None
        done: list[IndexOrder] = []
        refused: list[Refusal] = []
        faults = 0
        parts = [tuple(batch)] if batch else []
        while parts:
            part = parts.pop()
            try:
                sent = self._send(part)
                mark = self._mark if len(sent.later) < len(part) else mark
            except IndexUnavailable as error:
                return Delivery(tuple(done), tuple(refused), str(error), mark)
            except CrawlspaceError:
                raise
            except Exception as error:  # noqa: BLE001 - an error of a sink must not stop the following orders
                if len(part) > 1:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]  # the first half is next: the order is kept
                    continue
                faults += 1
                refused.append(Refusal(part[0], f"the index failed on it: {error!r}"))
                if faults >= MAX_FAULTS:
                    fails = f"the index fails on one order after another: {error!r}"
                    return Delivery(tuple(done), tuple(refused), fails, mark)
                continue
            refused += sent.refused
            named = {refusal.order.sequence for refusal in sent.refused}.union(order.sequence for order in sent.later)
            done += [order for order in part if order.sequence not in named] if named else part
            if sent.later or sent.above:
                sequences = [order.sequence for order in batch]
                above = sent.above, min(sequences), max(sequences)
                why = sent.why_later or ("" if done else LATER_VERSIONS)
                return Delivery(tuple(done), tuple(refused), why, mark, is_slow=sent.is_slow, above=above)
        return Delivery(tuple(done), tuple(refused), mark=mark)

    def _send(self, orders: Sequence[IndexOrder]) -> Sent:
        """Send orders without excluded documents; the result has the orders as they are in the outbox."""
        if self._exclusion is None:
            return self._sink.send(orders, self._mark)
        sent = self._sink.send([self._exclusion.of(order) for order in orders], self._mark)
        taken = {order.sequence: order for order in orders}
        refused = [Refusal(taken[one.order.sequence], one.reason) for one in sent.refused]
        return replace(sent, refused=refused, later=[taken[order.sequence] for order in sent.later])

    def settle(self, delivery: Delivery) -> Drained:
        """Acknowledge committed orders, park refused ones, and wait longer if the index was unavailable. Uses the store only."""
        note_server(self._store, self._sink)
        if delivery.mark is not None:
            note_mark(self._store, self._sink.name, delivery.mark)
        if delivery.done:
            self._store.acknowledge(self._sink.name, delivery.done)
        for refusal in delivery.refused:
            logger.warning(
                "the sink %s refuses %s, which will be missing there: %s", self._sink.name, refusal.order.url, refusal.reason
            )
            self._store.park(self._sink.name, refusal.order, refusal.reason)
        self._why = delivery.unavailable
        above, first, last = delivery.above
        if above:
            self._versions.raise_above(above, sequence=first, last=last)
        if delivery.is_slow:
            self._batch = max(1, self._batch // 2)
        elif not delivery.unavailable and (delivery.done or delivery.refused):
            self._batch = min(self._most, self._batch * 2)
        has_taken = bool(delivery.done or delivery.refused)
        if delivery.unavailable or has_taken:
            self._standstill.note("" if has_taken else delivery.unavailable, now=int(self._clock.now()))
        if delivery.unavailable:
            self._wait_s = min(self._wait_s * 2 or self._first_wait_s, self._max_wait_s)
            self._wait_until = self._clock.monotonic() + self._wait_s
            logger.warning(
                "the sink %s is unavailable, the crawl continues and the index falls behind; next try in %g s: %s",
                self._sink.name,
                self._wait_s,
                delivery.unavailable,
            )
        elif has_taken:
            self._wait_s = 0.0
        return Drained(len(delivery.done), len(delivery.refused), self.waiting_s)

    def step(self) -> Drained:
        """Send one batch; an empty result without a wait means that the outbox is empty."""
        batch = self.take()
        return self.settle(self.deliver(batch)) if batch else Drained(waiting_s=self.waiting_s)
