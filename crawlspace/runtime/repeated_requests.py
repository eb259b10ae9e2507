"""Requests that a downloader middleware has put in place of the response to a page, to fetch it again, as with other headers.

The page stays leased meanwhile, and the request is sent once the delay of its site is over.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from crawlspace.runtime.requests import AGAIN, SLOT, STATE
from crawlspace.runtime.robots_redirects import SUSPENDED_S, SuspensionSource, Turns

if TYPE_CHECKING:
    from scrapy import Request

MOST = 10
"""Requests in a row for one page. Scrapy has no limit of its own, and a middleware may always ask for another."""


class RepeatedRequests:
    """The waiting requests. `now` is in seconds on the monotonic clock."""

    def __init__(self, turns: Turns, site_delays: SuspensionSource) -> None:
        self._turns = turns
        self._site_delays = site_delays
        self._waiting: list[tuple[float, int, Request]] = []
        """With the time when each may be sent, soonest first."""
        self._order = count()

    def put(self, request: Request, now: float) -> bool:
        """Queue a request for the page whose state is in its meta. Returns False where there have been too many."""
        times = request.meta.get(AGAIN, 0) + 1
        if times > MOST:
            return False
        request.meta.update({AGAIN: times, "download_slot": SLOT})
        self._schedule(request, now)
        return True

    def take(self, now: float) -> Request | None:
        """Return a request that may be sent now; the delay of its site counts from now."""
        while self._waiting and self._waiting[0][0] <= now:
            request = heappop(self._waiting)[2]
            if self._wait_s(request) > 0:  # another request to its site was sent meanwhile
                self._schedule(request, now)
                continue
            self._turns.record_other_request(request.meta[STATE].site)
            return request
        return None

    def soonest_in(self, now: float) -> float | None:
        """Seconds until `take` may have something; None where nothing waits."""
        return max(0.0, self._waiting[0][0] - now) if self._waiting else None

    def _schedule(self, request: Request, now: float) -> None:
        heappush(self._waiting, (now + self._wait_s(request), next(self._order), request))

    def _wait_s(self, request: Request) -> float:
        return SUSPENDED_S if self._site_delays.is_suspended() else self._turns.next_turn_in(request.meta[STATE].site)
