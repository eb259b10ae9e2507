"""The sites that a worker owns, with the URLs of each that it has leased ahead of need: the frontier of a worker leases from here.

No method waits for the server: what it has to learn is sent to it on a background thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol, TypeVar

from crawlspace.cache import Recent
from crawlspace.frontier.site_queue import indexes_of
from crawlspace.model import Queue, Source, UrlState
from crawlspace.state.redis.workers import Worker
from crawlspace.state.views import Site

T = TypeVar("T")

MAX_LOST_SITES = 50_000
"""Sites that are remembered as lost."""


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
        self.buffered = 0
        """URLs in all buffers."""
        self.wanted: dict[str, int] = {}
        """Sites of which more URLs are to be leased, and how many of each source."""
        self.leaving: dict[str, float] = {}
        """Sites that are to be released to other workers, and when that was decided; none of their URLs is leased to the frontier."""

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
        """Take up to `limit` buffered URLs of a queue; when its source has none left, more of the site are wanted."""
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
        """Return nothing: the server leases what has become due."""
        return []

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        self._background.do(lambda: self._worker.wait_site(site, until, wait_s=wait_s))

    def give_up(self, site: str) -> None:
        self._background.do(lambda: self._worker.give_up(site))

    def resume(self, site: str) -> None:
        self._background.do(lambda: self._worker.resume(site))

    # --- what is acquired and released ----------------------------------------------------------------------------

    def holds(self, site: str) -> bool:
        """Whether this worker may send a request to the site that is not for a leased URL."""
        return site in self._buffers and site not in self.leaving

    def put(self, site: str, states: Iterable[UrlState]) -> list[Queue]:
        """Own a site from now on, with more buffered URLs. Return the queues that have any."""
        self._lost.drop(site)
        buffers = self._buffers.setdefault(site, {})
        for state in states:
            buffers.setdefault(state.queue.queue_index, deque()).append(state)
            self.buffered += 1
        return list(map(Queue.of_index, buffers))

    def has_buffered(self, site: str, source: Source | None = None) -> bool:
        """Whether URLs of the site are buffered, of that source if one is given."""
        buffers = self._buffers[site]
        return bool(buffers) if source is None else any(queue_index in buffers for queue_index in indexes_of(source))

    def missing_sources(self, sites: Iterable[str]) -> dict[str, list[Source]]:
        """Return by site the sources of which no URL is buffered."""
        return {site: [one for one in Source if site not in self or not self.has_buffered(site, one)] for site in sites}

    def leave(self, site: str, now: float) -> None:
        """Have a site be released as soon as no request to it is in flight; give its buffered URLs back."""
        self.leaving[site] = now
        self.wanted.pop(site, None)
        self.release(self._clear(site))

    def stay(self, site: str, wanted: int) -> None:
        """Keep a site that was to be released."""
        del self.leaving[site]
        self.wanted[site] = wanted

    def drop(self, site: str) -> list[int]:
        """Own a site no more; return the ids of its buffered URLs."""
        ids = self._clear(site)
        del self._buffers[site]
        self.wanted.pop(site, None)
        self.leaving.pop(site, None)
        return ids

    def lose_all(self) -> None:
        """Own nothing any more: the server gave all sites to other workers."""
        for site in self:
            self.drop(site)
            self._lost.put(site, site)
        self.wanted.clear()
        self.leaving.clear()

    def has_lost(self, site: str) -> bool:
        """Whether the site was given to other workers and was not acquired again since."""
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
