"""When the known URLs of sites are due again: the first of each lane of each site."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count

from crawlspace.frontier.site_queue import SiteQueue

_FEW = 1_000


class DueTimes:
    """The moments, soonest first, in seconds since 1970. What holds of a site stands in its `SiteTurns.due`.

    A moment that has been overtaken by a sooner one stays until there are as many of them as of others. However long a crawl goes on, there
    are at most twice as many as lanes of sites.
    """

    def __init__(self) -> None:
        self._moments: list[tuple[int, int, SiteQueue, int]] = []
        self._order = count()
        self._most = _FEW

    def add(self, turns: SiteQueue, queue_index: int, at: int) -> None:
        """A URL in the lane is due at that time; what is known to be due sooner stays the first."""
        before = turns.due.get(queue_index)
        if before is not None and before <= at:
            return
        turns.due[queue_index] = at
        heappush(self._moments, (at, next(self._order), turns, queue_index))
        if len(self._moments) > self._most:
            holding = {(moment[2], moment[3]): moment for moment in self._moments if _holds(moment)}
            self._moments = list(holding.values())
            heapify(self._moments)
            self._most = max(_FEW, 2 * len(holding))

    def take(self, wall: float) -> Iterator[tuple[SiteQueue, int]]:
        """Yield the lanes in which something has become due, and forget that it was to be."""
        while self._moments and self._moments[0][0] <= wall:
            moment = heappop(self._moments)
            if _holds(moment):
                _, _, turns, queue_index = moment
                del turns.due[queue_index]
                yield turns, queue_index

    @property
    def moments(self) -> int:
        """How many are kept, with those overtaken."""
        return len(self._moments)

    def first(self, queue_indexes: int) -> int | None:
        """Return when the next URL is due in one of these lanes, given as bits."""
        while self._moments and not (_holds(self._moments[0]) and queue_indexes >> self._moments[0][3] & 1):
            heappop(self._moments)
        return self._moments[0][0] if self._moments else None


def _holds(moment: tuple[int, int, SiteQueue, int]) -> bool:
    at, _, turns, queue_index = moment
    return turns.due.get(queue_index) == at
