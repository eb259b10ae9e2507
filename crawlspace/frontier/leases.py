"""The URLs that this process has leased from the store: at hand, under way or not yet recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from crawlspace.clock import Clock
from crawlspace.frontier.site_queue import SiteQueue
from crawlspace.model import Queue, UrlState
from crawlspace.state.store import LeaseStore

MOST_AT_HAND = 8_000
"""Leased URLs that wait here, of all sites together; beyond that no more are leased than are asked for at once."""


class Leases:
    """Keeps each site's hand filled from the store, within what all of them may hold."""

    def __init__(self, store: LeaseStore, *, clock: Clock, lease_s: int) -> None:
        self._store = store
        self._clock = clock
        self.lease_s = lease_s
        self._buffered = 0
        self._held: set[int] = set()
        self._next_reclaim = clock.monotonic() + lease_s / 4

    def fill(self, turns: SiteQueue, queue_index: int, *, working: int) -> bool:
        """Lease URLs of a lane for the hand of its site, one of so many that are `working`. Returns whether there may be more."""
        now = round(self._clock.now())
        limit = max(1, min(turns.batch, MOST_AT_HAND // working)) if self._buffered < MOST_AT_HAND else 1
        got = self._store.lease(turns.site, limit, now=now, until=now + self.lease_s, queue=Queue.of_index(queue_index))
        if got:
            turns.buffered[queue_index] = deque(got)
            self._held.update(state.id for state in got)
            self._buffered += len(got)
        return len(got) == limit

    def take(self, turns: SiteQueue, queue_index: int) -> UrlState:
        """Take the next URL of a lane from the hand."""
        hand = turns.buffered[queue_index]
        state = hand.popleft()
        if not hand:
            del turns.buffered[queue_index]
        self._buffered -= 1
        return state

    def put_back(self, turns: SiteQueue, state: UrlState) -> None:
        """Put a URL back into the hand, as the next of its lane."""
        turns.buffered.setdefault(state.queue.queue_index, deque()).appendleft(state)
        self._buffered += 1

    def give_back(self, turns: SiteQueue) -> None:
        """Give what is at hand back to the store."""
        for queue_index, hand in turns.buffered.items():
            ids = [state.id for state in hand]
            self._store.release(ids)
            self._held.difference_update(ids)
            self._buffered -= len(hand)
            turns.more |= 1 << queue_index
        turns.buffered.clear()

    def recorded(self, ids: Iterable[int]) -> None:
        """The store has what came of these URLs: their leases are over."""
        self._held.difference_update(ids)

    def reclaim(self) -> bool:
        """From time to time, end the leases of those who have let them run out. Returns whether there were any."""
        now = self._clock.monotonic()
        if now < self._next_reclaim:
            return False
        self._next_reclaim = now + self.lease_s / 4
        return bool(self._store.reclaim(now=round(self._clock.now()), keep=self._held))
