"""The times at which known URLs become due: the first of each queue of each site."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count

from crawlspace.frontier.site_queue import SiteQueue

_FEW = 1_000


class DueTimes:
    """The times in seconds since 1970, soonest first. `SiteQueue.due` has the valid time of each queue.

    A time replaced by a sooner one stays in the heap until half of the entries are such: the heap has at most twice as many
    entries as there are queues, however long a crawl runs.
    """

    def __init__(self) -> None:
        self._moments: list[tuple[int, int, SiteQueue, int]] = []
        self._order = count()
        self._most = _FEW

    def add(self, site_queue: SiteQueue, queue_index: int, at: int) -> None:
        """Record that a URL in the queue is due at that time; a sooner time already recorded remains."""
        before = site_queue.due.get(queue_index)
        if before is not None and before <= at:
            return
        site_queue.due[queue_index] = at
        heappush(self._moments, (at, next(self._order), site_queue, queue_index))
        if len(self._moments) > self._most:
            holding = {(moment[2], moment[3]): moment for moment in self._moments if _holds(moment)}
            self._moments = list(holding.values())
            heapify(self._moments)
            self._most = max(_FEW, 2 * len(holding))

    def take(self, wall: float) -> Iterator[tuple[SiteQueue, int]]:
        """Yield the queues with a URL that has become due, and remove them."""
        while self._moments and self._moments[0][0] <= wall:
            moment = heappop(self._moments)
            if _holds(moment):
                _, _, site_queue, queue_index = moment
                del site_queue.due[queue_index]
                yield site_queue, queue_index

    @property
    def moments(self) -> int:
        """The number of entries, replaced ones included."""
        return len(self._moments)

    def first(self, queue_indexes: int) -> int | None:
        """Return when the next URL is due in one of these queues, given as bits."""
        while self._moments and not (_holds(self._moments[0]) and queue_indexes >> self._moments[0][3] & 1):
            heappop(self._moments)
        return self._moments[0][0] if self._moments else None

    def first_site(self, queue_indexes: int) -> str | None:
        """Return the site of that URL."""
        return None if self.first(queue_indexes) is None else self._moments[0][2].site


def _holds(moment: tuple[int, int, SiteQueue, int]) -> bool:
    at, _, site_queue, queue_index = moment
    return site_queue.due.get(queue_index) == at
