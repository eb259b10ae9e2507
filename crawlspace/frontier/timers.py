"""Sites that wait for a time on the monotonic clock, soonest first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

from crawlspace.frontier.site_queue import SiteQueue


class WaitingSites:
    """Each site waits for one time, its `wakes_at`; heap entries with another time are skipped."""

    def __init__(self) -> None:
        self._moments: list[tuple[float, int, SiteQueue]] = []
        self._order = count()

    def put(self, site_queue: SiteQueue, until: float) -> None:
        if until != site_queue.wakes_at:
            site_queue.wakes_at = until
            heappush(self._moments, (until, next(self._order), site_queue))

    def take(self, now: float) -> Iterator[SiteQueue]:
        """Yield the sites whose time has come."""
        while self._moments and self._moments[0][0] <= now:
            at, _, site_queue = heappop(self._moments)
            if site_queue.wakes_at == at:
                site_queue.wakes_at = None
                yield site_queue

    @property
    def first(self) -> float | None:
        """The soonest time; no site may be waiting for it any more."""
        return self._moments[0][0] if self._moments else None
