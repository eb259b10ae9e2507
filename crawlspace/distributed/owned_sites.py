"""The sites that a worker holds, and what of each lies ready to be handed out."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator

from crawlspace.cache import Recent
from crawlspace.frontier.site_queue import lanes_of
from crawlspace.model import Source, UrlState

LOST = 50_000
"""Of so many sites it is remembered that they were lost."""


class Holdings:
    """By site, in the order in which they came."""

    def __init__(self) -> None:
        self._lanes: dict[str, dict[int, deque[UrlState]]] = {}
        self._lost: Recent[str, str] = Recent(LOST)
        self.ready = 0
        """How many URLs lie here."""

    def __contains__(self, site: object) -> bool:
        return site in self._lanes

    def __len__(self) -> int:
        return len(self._lanes)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._lanes))

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._lanes))

    def put(self, site: str, states: Iterable[UrlState]) -> list[int]:
        """Hold a site from now on, or more of it. Returns the lanes in which something lies ready."""
        self._lost.drop(site)
        lanes = self._lanes.setdefault(site, {})
        for state in states:
            lanes.setdefault(state.queue.lane, deque()).append(state)
            self.ready += 1
        return list(lanes)

    def hand_out(self, site: str, lane: int, limit: int) -> list[UrlState]:
        lanes = self._lanes[site]
        hand = lanes.get(lane, deque())
        got = [hand.popleft() for _ in range(min(limit, len(hand)))]
        self.ready -= len(got)
        if not hand:
            lanes.pop(lane, None)
        return got

    def has_any(self, site: str, source: Source | None = None) -> bool:
        """Whether something of the site lies ready; with `source`, something of that one."""
        lanes = self._lanes[site]
        return bool(lanes) if source is None else any(lane in lanes for lane in lanes_of(source))

    def lacking(self, sites: Iterable[str]) -> dict[str, list[Source]]:
        """Return by site the sources of which nothing is buffered here."""
        return {site: [source for source in Source if site not in self or not self.has_any(site, source)] for site in sites}

    def put_down(self, site: str) -> list[int]:
        """Have nothing of a site lie ready; return the ids of what did."""
        lanes = self._lanes[site]
        ids = [state.id for hand in lanes.values() for state in hand]
        lanes.clear()
        self.ready -= len(ids)
        return ids

    def drop(self, site: str) -> list[int]:
        """Hold a site no more; return the ids of what lay ready."""
        ids = self.put_down(site)
        del self._lanes[site]
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
