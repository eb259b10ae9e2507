"""The way from the outbox to an index: in order, in batches, and acknowledged only when the index has them for good.

One step is three calls, because two of them belong to the thread that owns the store and one may take long:
`take` (store), `deliver` (index), `settle` (store). Killed between any two, the orders are simply sent again.
No thread and no sleep in here: the caller decides where and when a step runs.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.errors import CrawlspaceError, IndexUnavailable
from crawlspace.index.marks import Mark, next_mark, note_mark
from crawlspace.index.sink import Refusal, Sink
from crawlspace.model import IndexOrder

logger = logging.getLogger(__name__)

FIRST_WAIT_S = 1.0
MAX_WAIT_S = 60.0
MAX_FAULTS = 10
"""How many orders of one batch are put aside because the sink failed on them unexpectedly. More than that is the sink's fault, not theirs."""


class OrderSource(Protocol):
    """The outbox, as a store keeps it."""

    def orders(self, sink: str, limit: int, *, now: int) -> list[IndexOrder]:
        """The next orders of a sink, in the order they are to be sent."""

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        """These orders are done."""

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        """Put an order aside for good, with the reason."""

    def backlog(self, sink: str) -> int:
        """Orders not yet done, parked ones not counted."""

    def get_meta(self, name: str) -> str | None: ...

    def set_meta(self, name: str, value: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a batch. Orders in neither list were not tried, or the index did not answer: they stay."""

    done: tuple[IndexOrder, ...] = ()
    refused: tuple[Refusal, ...] = ()
    unavailable: str = ""
    """Why the index did not answer, if it did not."""
    mark: Mark | None = None
    """Of the batch, where the index has taken a part of it at least."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What a step or a whole drain did; `waiting_s` is how long the index is to be left alone, None when it isn't."""

    sent: int = 0
    parked: int = 0
    waiting_s: float | None = None


class Drain:
    """Sends a sink's orders. One per sink; an index that is down costs a growing wait, and the crawl goes on meanwhile."""

    def __init__(
        self,
        store: OrderSource,
        sink: Sink,
        clock: Clock,
        *,
        batch: int = 200,
        first_wait_s: float = FIRST_WAIT_S,
        max_wait_s: float = MAX_WAIT_S,
    ) -> None:
        self._store = store
        self._sink = sink
        self._clock = clock
        self._batch = batch
        self._first_wait_s = first_wait_s
        self._max_wait_s = max_wait_s
        self._wait_s = 0.0
        self._wait_until = 0.0
        self._mark: Mark | None = None
        """Of the batch that was taken last."""

    @property
    def sink(self) -> str:
        """The name of the sink."""
        return self._sink.name

    @property
    def waiting_s(self) -> float | None:
        """Seconds until the index is asked again; None when it may be asked now."""
        left = self._wait_until - self._clock.monotonic()
        return left if self._wait_s and left > 0 else None

    def backlog(self) -> int:
        """Orders that wait for this sink."""
        return self._store.backlog(self._sink.name)

    def take(self) -> tuple[IndexOrder, ...]:
        """Return the next batch; empty when there is none or the index is to be left alone. Touches the store only."""
        if self.waiting_s is not None:
            return ()
        batch = tuple(self._store.orders(self._sink.name, self._batch, now=int(self._clock.now())))
        self._mark = next_mark(self._store, self._sink.name, batch) if batch else None
        return batch

    def deliver(self, batch: Sequence[IndexOrder]) -> Delivery:
        """Send a batch. Touches the sink only, so it can run in another thread.

        A batch on which the sink fails unexpectedly is halved until the order at fault is alone; that one is refused. Errors
        of ours that are not IndexUnavailable (a damaged index) are raised: no order is at fault.
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
                refusals = self._sink.send(part, self._mark)
                mark = self._mark
            except IndexUnavailable as error:
                return Delivery(tuple(done), tuple(refused), str(error), mark)
            except CrawlspaceError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever a sink raises must not stop the orders behind it
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
            refused += refusals
            named = {refusal.order.sequence for refusal in refusals}
            done += [order for order in part if order.sequence not in named] if named else part
        return Delivery(tuple(done), tuple(refused), mark=mark)

    def settle(self, delivery: Delivery) -> Drained:
        """Acknowledge what is durable, park what is refused, and wait longer if the index did not answer. Touches the store only."""
        if delivery.mark is not None:
            note_mark(self._store, self._sink.name, delivery.mark)
        if delivery.done:
            self._store.acknowledge(self._sink.name, delivery.done)
        for refusal in delivery.refused:
            logger.warning("%s refuses %s, which will be missing there: %s", self._sink.name, refusal.order.url, refusal.reason)
            self._store.park(self._sink.name, refusal.order, refusal.reason)
        if delivery.unavailable:
            self._wait_s = min(self._wait_s * 2 or self._first_wait_s, self._max_wait_s)
            self._wait_until = self._clock.monotonic() + self._wait_s
            logger.warning(
                "%s takes no orders, the crawl goes on and the index falls behind; next try in %g s: %s",
                self._sink.name,
                self._wait_s,
                delivery.unavailable,
            )
        elif delivery.done or delivery.refused:
            self._wait_s = 0.0
        return Drained(len(delivery.done), len(delivery.refused), self.waiting_s)

    def step(self) -> Drained:
        """Send one batch; an empty result without a wait means the outbox is empty."""
        batch = self.take()
        return self.settle(self.deliver(batch)) if batch else Drained(waiting_s=self.waiting_s)

    def drain_all(self, deadline: float | None = None) -> Drained:
        """Send until the outbox is empty, the index must be left alone, or the deadline (of `clock.monotonic`) has passed.

        After an index that did not answer, `waiting_s` says when to call again; nothing sleeps here.
        """
        sent = parked = 0
        while True:
            drained = self.step()
            sent += drained.sent
            parked += drained.parked
            idle = not drained.sent and not drained.parked
            late = deadline is not None and self._clock.monotonic() >= deadline
            if idle or late or drained.waiting_s is not None:
                return Drained(sent, parked, drained.waiting_s)
