"""The sites that a worker owns, with prefetched URLs of each: the frontier of a worker leases from here.

No method waits for the server: changes are sent to it on a background thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol, TypeVar

from crawlspace.cache import Recent
from crawlspace.frontier.site_queue import indexes_of
from crawlspace.model import Queue, Source, UrlState
from crawlspace.state.redis.workers import Worker
from crawlspace.state.site_pauses import Pauses
from crawlspace.state.views import Site

T = TypeVar("T")

MAX_LOST_SITES = 50_000
"""Maximal sites remembered as lost."""


class Background(Protocol):
    """Runs calls of the server one after the other on a thread of its own."""

    def do(self, job: Callable[[], T], done: Callable[[T], None] | None = None) -> None:
        """Run a job after all others; `done` is called with its result on the crawl's thread."""


class OwnedSites:
    """The owned sites in the order in which they were acquired, and their buffered URLs by queue."""

    def __init__(self, worker: Worker, background: Background) -> None:
        self._worker = worker
        self._background = background
        self._buffers: dict[str, dict[int, deque[UrlState]]] = {}
        self._lost: Recent[str, str] = Recent(MAX_LOST_SITES)
        self.pauses: Pauses | None = None
        """The hosts that a person has paused, as of the last heartbeat; None before the first."""
        self.buffered = 0
        """URLs in all buffers."""
        self.wanted: dict[str, int] = {}
        """Sites that need more URLs, and how many of each source."""
        self.leaving: dict[str, float] = {}
        """Sites that will be released to other workers, and when that was decided; none of their URLs is leased to the frontier."""

    def __contains__(self, site: object) -> bool:
        return site in self._buffers

    def __len__(self) -> int:
        return len(self._buffers)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._buffers))

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._buffers))

    # --- what the frontier calls ----------------------------------------------------------------------------------

    def sites(self) -> Iterator[Site]:
        """Yield nothing: sites are acquired while the crawl runs."""
        return iter(())

    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]:
        """Take up to `limit` buffered URLs of a queue; when its source runs out, more are wanted."""
        if queue is None or site not in self._buffers or site in self.leaving:
            return []
        taken = self._take(site, queue.queue_index, limit)
        if not self.has_buffered(site, queue.source):
            self.wanted[site] = max(limit, self.wanted.get(site, 0))
        return taken

    def release(self, ids: Iterable[int]) -> None:
        if unfetched := list(ids):
            self._background.do(lambda: self._worker.release(unfetched))

    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
        """Return nothing: the server ends the leases of expired workers."""
        return {}

    def due(self, site: str) -> list[tuple[Queue, int]]:
        """Return nothing: the server leases due URLs."""
        return []

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        self._background.do(lambda: self._worker.wait_site(site, until, wait_s=wait_s))

    def site_pauses(self) -> Pauses:
        """Return those of the last heartbeat, or before the first one those of the server."""
        if self.pauses is None:
            self.pauses = self._worker.site_pauses()
        return self.pauses

    def give_up(self, site: str) -> None:
        self._background.do(lambda: self._worker.give_up(site))

    def resume(self, site: str) -> None:
        self._background.do(lambda: self._worker.resume(site))

    # --- what is acquired and released ----------------------------------------------------------------------------

    def holds(self, site: str) -> bool:
        """Return whether this worker may send a request to the site other than for a leased URL."""
        return site in self._buffers and site not in self.leaving

    def put(self, site: str, states: Iterable[UrlState]) -> list[Queue]:
        """Add an owned site, or more buffered URLs of one. Return the queues that have any."""
        self._lost.drop(site)
        buffers = self._buffers.setdefault(site, {})
        for state in states:
            buffers.setdefault(state.queue.queue_index, deque()).append(state)
            self.buffered += 1
        return list(map(Queue.of_index, buffers))

    def has_buffered(self, site: str, source: Source | None = None) -> bool:
        """Return whether URLs of the site are buffered, optionally of one source."""
        buffers = self._buffers[site]
        return bool(buffers) if source is None else any(queue_index in buffers for queue_index in indexes_of(source))

    def missing_sources(self, sites: Iterable[str]) -> dict[str, list[Source]]:
        """Return by site the sources without buffered URLs."""
        return {site: [one for one in Source if site not in self or not self.has_buffered(site, one)] for site in sites}

    def leave(self, site: str, now: float) -> None:
        """Mark a site to be released as soon as no request to it is in flight, and release its buffered URLs."""
        self.leaving[site] = now
        self.wanted.pop(site, None)
        self.release(self._clear(site))

    def stay(self, site: str, wanted: int) -> None:
        """Keep a site that was marked to be released."""
        del self.leaving[site]
        self.wanted[site] = wanted

    def drop(self, site: str) -> list[int]:
        """Remove a site; return the ids of its buffered URLs."""
        ids = self._clear(site)
        del self._buffers[site]
        self.wanted.pop(site, None)
        self.leaving.pop(site, None)
        return ids

    def lose_all(self) -> None:
        """Remove all sites: the server gave them to other workers."""
        for site in self:
            self.drop(site)
            self._lost.put(site, site)
        self.wanted.clear()
        self.leaving.clear()

    def has_lost(self, site: str) -> bool:
        """Return whether the site was given to other workers and not acquired again."""
        return self._lost.get(site) is not None

    def _take(self, site: str, queue_index: int, limit: int) -> list[UrlState]:
        buffers = self._buffers[site]
        waiting = buffers.get(queue_index, deque())
        taken = [waiting.popleft() for _ in range(min(limit, len(waiting)))]
        self.buffered -= len(taken)
        if not waiting:
            buffers.pop(queue_index, None)
        return taken

    def _clear(self, site: str) -> list[int]:
        buffers = self._buffers[site]
        ids = [state.id for waiting in buffers.values() for state in waiting]
        buffers.clear()
        self.buffered -= len(ids)
        return ids
