"""Sites that wait for a moment on the monotonic clock, soonest first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

from crawlspace.frontier.site_queue import SiteQueue


class WaitingSites:
    """A site waits for one moment at a time, `wakes_at` of its turns; one that it no longer waits for is passed over."""

    def __init__(self) -> None:
        self._moments: list[tuple[float, int, SiteQueue]] = []
        self._order = count()

    def put(self, turns: SiteQueue, until: float) -> None:
        if until != turns.wakes_at:
            turns.wakes_at = until
            heappush(self._moments, (until, next(self._order), turns))

    def take(self, now: float) -> Iterator[SiteQueue]:
        """Yield those whose moment has come."""
        while self._moments and self._moments[0][0] <= now:
            at, _, turns = heappop(self._moments)
            if turns.wakes_at == at:
                turns.wakes_at = None
                yield turns

    @property
    def first(self) -> float | None:
        """The soonest moment, which may be one that nobody waits for any more."""
        return self._moments[0][0] if self._moments else None
