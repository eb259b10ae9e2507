"""Send waiting orders to the index on a background thread, while the caller gives more."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from threading import Event

from crawlspace.admin.delivery import SendLock, SentElsewhere
from crawlspace.errors import IndexUnavailable, StoreLocked
from crawlspace.index.marks import MOST_IN_BATCH
from crawlspace.index.outbox import Delivery, Drain

MOST_AT_ONCE = MOST_IN_BATCH
"""Orders. The embedded index takes a fifth less time for each than in batches of two hundred."""
PAUSE_S = 0.1
"""Interval of checks while a crawl sends."""
MOST_TRIES = 8
"""Maximal successive batches that a busy index does not accept."""


class Sending:
    """Sends a batch at a time, unless a crawl does. The store is used by the caller's thread only. Close it."""

    def __init__(self, drain: Drain, alone: SendLock) -> None:
        self._drain = drain
        self._alone = alone
        self._thread = ThreadPoolExecutor(1, "sending")
        self._batch: _BatchInFlight | None = None
        self._tries = 0

    def close(self) -> None:
        """Wait for the batch in flight, without acknowledging it: the next sender sends it again."""
        self._thread.shutdown()
        if self._batch is not None:
            self._batch.held.close()

    def until(self, most: int) -> None:
        """Wait until at most `most` orders wait, and begin the next batch.

        With 0, return as soon as a crawl sends them. Waits if the index accepts smaller batches, or later versions. Raises IndexUnavailable if it
        does not accept them.
        """
        self._settle(wait=False)
        while self._drain.backlog() > most:
            try:
                if self._batch is None and not self._begin():
                    if not most:
                        return
                    Event().wait(PAUSE_S)
            except SentElsewhere as error:
                raise IndexUnavailable(f"orders wait for the sink {self._drain.sink}{error}") from error
            self._settle(wait=True)
            if (wait_s := self._drain.waiting_s) is not None:
                Event().wait(wait_s)
        if self._batch is None:
            with suppress(SentElsewhere):
                self._begin()

    def settle(self) -> None:
        """Wait for the batch in flight, and acknowledge it, so that others may send while the caller is busy."""
        self._settle(wait=True)

    def _begin(self) -> bool:
        """Begin to send the next batch; return False if a crawl sends. Raises NotFromHere."""
        held = ExitStack()
        try:
            held.enter_context(self._alone())
        except SentElsewhere:
            raise
        except StoreLocked:
            return False
        with held:
            orders = self._drain.take()
            if orders:
                self._batch = _BatchInFlight(self._thread.submit(self._drain.deliver, orders), held.pop_all())
        return True

    def _settle(self, *, wait: bool) -> None:
        """Acknowledge the batch in flight, if it is complete."""
        batch = self._batch
        if batch is None or not (wait or batch.delivery.done()):
            return
        self._batch = None
        with batch.held:
            delivery = batch.delivery.result()
            self._drain.settle(delivery)
        has_moved = bool(delivery.done or delivery.refused)
        self._tries = 0 if has_moved else self._tries + 1
        if delivery.unavailable and not has_moved:
            may_pass = delivery.is_slow or delivery.above[0] > 0
            if not may_pass or self._tries >= MOST_TRIES:
                raise IndexUnavailable(delivery.unavailable)


@dataclass(frozen=True, slots=True)
class _BatchInFlight:
    """A batch in flight, with the lock that excludes other senders."""

    delivery: Future[Delivery]
    held: ExitStack
