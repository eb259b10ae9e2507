"""The URLs that this process has leased from the store: buffered, in flight, or not recorded yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from crawlspace.clock import Clock
from crawlspace.frontier.site_queue import SiteQueue
from crawlspace.model import Queue, UrlState
from crawlspace.state.store import LeaseStore

MAX_BUFFERED = 8_000
"""Maximal leased URLs in the buffers of all sites together; beyond that, URLs are leased one at a time."""


class Leases:
    """Keeps the buffer of each site filled from the store, within a common limit."""

    def __init__(self, store: LeaseStore, *, clock: Clock, lease_s: int) -> None:
        self._store = store
        self._clock = clock
        self.lease_s = lease_s
        self._buffered = 0
        self._held: set[int] = set()
        self._next_reclaim = clock.monotonic() + lease_s / 4

    def fill(self, site_queue: SiteQueue, queue_index: int, *, working: int) -> bool:
        """Lease URLs of a queue for the buffer of its site; `working` sites share the limit. Returns whether more may follow."""
        now = round(self._clock.now())
        limit = max(1, min(site_queue.batch, MAX_BUFFERED // working)) if self._buffered < MAX_BUFFERED else 1
        got = self._store.lease(site_queue.site, limit, now=now, until=now + self.lease_s, queue=Queue.of_index(queue_index))
        if got:
            site_queue.buffered[queue_index] = deque(got)
            self._held.update(state.id for state in got)
            self._buffered += len(got)
        return len(got) == limit

    def take(self, site_queue: SiteQueue, queue_index: int) -> UrlState:
        """Remove and return the next URL of a queue from the buffer."""
        buffer = site_queue.buffered[queue_index]
        state = buffer.popleft()
        if not buffer:
            del site_queue.buffered[queue_index]
        self._buffered -= 1
        return state

    def put_back(self, site_queue: SiteQueue, state: UrlState) -> None:
        """Put a URL back into the buffer, as the next of its queue."""
        site_queue.buffered.setdefault(state.queue.queue_index, deque()).appendleft(state)
        self._buffered += 1

    def give_back(self, site_queue: SiteQueue) -> None:
        """Release the buffered URLs to the store."""
        for queue_index, buffer in site_queue.buffered.items():
            ids = [state.id for state in buffer]
            self._store.release(ids)
            self._held.difference_update(ids)
            self._buffered -= len(buffer)
            site_queue.more |= 1 << queue_index
        site_queue.buffered.clear()

    def recorded(self, ids: Iterable[int]) -> None:
        """End the leases of URLs whose outcome is stored."""
        self._held.difference_update(ids)

    def reclaim(self) -> bool:
        """End expired leases, at intervals of a quarter of the lease time. Returns whether there were any."""
        now = self._clock.monotonic()
        if now < self._next_reclaim:
            return False
        self._next_reclaim = now + self.lease_s / 4
        return bool(self._store.reclaim(now=round(self._clock.now()), keep=self._held))
