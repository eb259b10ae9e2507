"""Robots.txt files that others redirect to: the site they lie on is asked for them one at a time, at its own pace.

Many hosts may have their robots.txt in one place. The frontier gives turns to sites that have pages to ask for; these requests go out
beside its turns, so that they are kept apart here, and the frontier is told of each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from crawlspace.frontier.politeness import Pace
from crawlspace.run import FetchRobots

ANOTHERS_S = 0.3
"""So often it is looked whether a site is this process' to ask, while it is another's."""
SUSPENDED_S = 5.0
"""So often it is looked whether a site may be asked again, while nothing may."""
_BEHIND_A_PAGE = 1.1
"""So much later than its next turn a site is asked for another robots.txt, as a multiple of the wait. Thousands may wait for one site,
and its own pages are to have turns in between."""


class Turns(Protocol):
    def next_turn_in(self, site: str) -> float: ...
    def asked_beside(self, site: str) -> None: ...


class Paces(Protocol):
    def of(self, site: str) -> Pace: ...


class RobotsTurns:
    """Those that wait, by the site they lead to. `now` is in seconds on the monotonic clock."""

    def __init__(self, turns: Turns, paces: Paces, *, holds: Callable[[str], bool] = lambda _: True) -> None:
        """`holds`: whether a site is this process' to ask; where it is not, it is asked for so that it will be."""
        self._holds = holds
        self._turns = turns
        self._paces = paces
        self._waiting: dict[str, deque[FetchRobots]] = {}
        self._next: list[tuple[float, int, str]] = []
        """When each of these sites is to be asked, soonest first."""
        self._order = count()

    def put(self, fetch: FetchRobots, now: float) -> None:
        """Have a redirected robots.txt wait for its turn."""
        site = fetch.target_site
        if site in self._waiting:
            self._waiting[site].append(fetch)
        else:
            self._waiting[site] = deque([fetch])
            self._ask_in(self._free_in(site), site, now)

    def take(self, now: float) -> FetchRobots | None:
        """Return one that may go out now; its site counts as asked."""
        while self._next and self._next[0][0] <= now:
            site = heappop(self._next)[2]
            wait = self._free_in(site)
            if wait > 0:  # a page of it has been asked for meanwhile
                self._ask_in(wait, site, now)
                continue
            fetch = self._waiting[site].popleft()
            self._turns.asked_beside(site)
            if self._waiting[site]:
                self._ask_in(self._turns.next_turn_in(site) * _BEHIND_A_PAGE, site, now)
            else:
                del self._waiting[site]
            return fetch
        return None

    def soonest_in(self, now: float) -> float | None:
        """Seconds until `take` may have something; None where nothing waits."""
        return max(0.0, self._next[0][0] - now) if self._next else None

    def _free_in(self, site: str) -> float:
        if not self._holds(site):
            return ANOTHERS_S
        return SUSPENDED_S if self._paces.of(site).suspended else self._turns.next_turn_in(site)

    def _ask_in(self, wait: float, site: str, now: float) -> None:
        heappush(self._next, (now + wait, next(self._order), site))
