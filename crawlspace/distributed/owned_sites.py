"""The sites that a worker holds, and what of each lies ready to be handed out."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator

from crawlspace.cache import Recent
from crawlspace.frontier.site_queue import indexes_of
from crawlspace.model import Source, UrlState

LOST = 50_000
"""Of so many sites it is remembered that they were lost."""


class OwnedSites:
    """By site, in the order in which they came."""

    def __init__(self) -> None:
        self._queue_indexes: dict[str, dict[int, deque[UrlState]]] = {}
        self._lost: Recent[str, str] = Recent(LOST)
        self.ready = 0
        """How many URLs lie here."""

    def __contains__(self, site: object) -> bool:
        return site in self._queue_indexes

    def __len__(self) -> int:
        return len(self._queue_indexes)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._queue_indexes))

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._queue_indexes))

    def put(self, site: str, states: Iterable[UrlState]) -> list[int]:
        """Hold a site from now on, or more of it. Returns the lanes in which something lies ready."""
        self._lost.drop(site)
        queue_indexes = self._queue_indexes.setdefault(site, {})
        for state in states:
            queue_indexes.setdefault(state.queue.queue_index, deque()).append(state)
            self.ready += 1
        return list(queue_indexes)

    def hand_out(self, site: str, queue_index: int, limit: int) -> list[UrlState]:
        queue_indexes = self._queue_indexes[site]
        hand = queue_indexes.get(queue_index, deque())
        got = [hand.popleft() for _ in range(min(limit, len(hand)))]
        self.ready -= len(got)
        if not hand:
            queue_indexes.pop(queue_index, None)
        return got

    def has_any(self, site: str, source: Source | None = None) -> bool:
        """Whether something of the site lies ready; with `source`, something of that one."""
        queue_indexes = self._queue_indexes[site]
        return bool(queue_indexes) if source is None else any(queue_index in queue_indexes for queue_index in indexes_of(source))

    def lacking(self, sites: Iterable[str]) -> dict[str, list[Source]]:
        """Return by site the sources of which nothing is buffered here."""
        return {site: [source for source in Source if site not in self or not self.has_any(site, source)] for site in sites}

    def put_down(self, site: str) -> list[int]:
        """Have nothing of a site lie ready; return the ids of what did."""
        queue_indexes = self._queue_indexes[site]
        ids = [state.id for hand in queue_indexes.values() for state in hand]
        queue_indexes.clear()
        self.ready -= len(ids)
        return ids

    def drop(self, site: str) -> list[int]:
        """Hold a site no more; return the ids of what lay ready."""
        ids = self.put_down(site)
        del self._queue_indexes[site]
        return ids

    def lose_all(self) -> None:
        """Hold nothing any more: all of it was given to others."""
        for site in self:
            self.drop(site)
            self._lost.put(site, site)

    def has_lost(self, site: str) -> bool:
        """Whether the site was given to others, and was not held again since."""
        return self._lost.get(site) is not None


class Needs:
    """Requests to sites of which no URL was handed out: there are none. Who has any says so by methods of its own."""

    def waiting(self) -> Collection[str]:
        """Return the sites that are to be asked, or are being asked."""
        return ()

    def is_asking(self, site: str) -> bool:
        """Whether such a request is under way at the site."""
        return False

    def begin(self, site: str) -> None:
        """The site has come."""

    def has_asked(self, site: str) -> bool:
        """Whether the site was asked since it came."""
        return False
