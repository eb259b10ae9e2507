"""Redirected robots.txt: requests for the target are sent one at a time for each target site, with that site's delay.

Many hosts may redirect to one site. The frontier schedules sites that have pages to fetch; these requests are scheduled here, and reported
to the frontier, which counts the site's delay from them. Where several workers share the crawl, a target site that another worker owns is
claimed, and released afterwards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from heapq import heappop, heappush
from itertools import count
from random import random
from typing import Protocol

from crawlspace.crawl.run import FetchRobots

ANOTHERS_S = 0.3
"""Seconds between two checks whether a claimed site was acquired."""
PATIENCE_S = 30.0
"""Seconds, or up to twice as many, that a claimed site is waited for: two workers may each wait for a site of the other one, and the first
that gives up ends that. The robots.txt of the redirecting sites is fetched again after as long a wait."""
SUSPENDED_S = 5.0
"""Seconds between two checks while nothing at all may be fetched."""
_BEHIND_A_PAGE = 1.1
"""The next request to a target site follows after this multiple of its delay: thousands may wait for one site, and its own pages must be
fetched in between."""


class Turns(Protocol):
    def next_turn_in(self, site: str) -> float: ...
    def record_other_request(self, site: str) -> None: ...
    def is_blocked(self, site: str) -> bool: ...


class SuspensionSource(Protocol):
    def is_suspended(self) -> bool: ...


class RobotsTurns:
    """The waiting requests, by target site. `now` is in seconds on the monotonic clock."""

    def __init__(self, turns: Turns, site_delays: SuspensionSource, *, holds: Callable[[str], bool] | None = None) -> None:
        """`holds`: whether this worker owns a site, where several share the crawl."""
        self._holds = holds
        self._turns = turns
        self._site_delays = site_delays
        self._waiting: dict[str, deque[FetchRobots]] = {}
        self._next: list[tuple[float, int, str]] = []
        """When the next request to each target site is due, soonest first."""
        self._order = count()
        self._in_flight: dict[str, str] = {}
        """The requests in flight, in a shared crawl: by redirecting site the target site."""
        self._requested: set[str] = set()
        """Target sites to which a request was sent since they were acquired."""
        self._patient_until: dict[str, float] = {}
        """Until when claimed sites are waited for."""
        self._given_up: list[FetchRobots] = []

    def put(self, fetch: FetchRobots, now: float) -> None:
        """Queue the request for a redirected robots.txt."""
        self._end(fetch.site)
        site = fetch.target_site
        if site in self._waiting:
            self._waiting[site].append(fetch)
        else:
            self._waiting[site] = deque([fetch])
            self._schedule(self._free_in(site, now), site, now)

    def take(self, now: float) -> FetchRobots | None:
        """Return a request that may be sent now; the delay of its target site counts from now."""
        while self._next and self._next[0][0] <= now:
            site = heappop(self._next)[2]
            wait = self._free_in(site, now)
            if now > self._patient_until.get(site, now):
                del self._patient_until[site]
                self._given_up += self._waiting.pop(site)
                continue
            if wait > 0:  # a page of it was fetched meanwhile
                self._schedule(wait, site, now)
                continue
            fetch = self._waiting[site].popleft()
            self._turns.record_other_request(site)
            if self._holds is not None:
                self._in_flight[fetch.site] = site
                self._requested.add(site)
            if self._waiting[site]:
                self._schedule(self._turns.next_turn_in(site) * _BEHIND_A_PAGE, site, now)
            else:
                del self._waiting[site]
            return fetch
        return None

    def given_up(self) -> list[FetchRobots]:
        """Return, once, those whose target site was not acquired in time."""
        given_up, self._given_up = self._given_up, []
        return given_up

    def soonest_in(self, now: float) -> float | None:
        """Seconds until `take` may have something; None where nothing waits."""
        return max(0.0, self._next[0][0] - now) if self._next else None

    # --- what Prefetch asks: OtherRequests ----------------------------------------------------------------------
    def waiting(self) -> Collection[str]:
        for site in [site for site in self._in_flight if not self._turns.is_blocked(site)]:
            self._end(site)
        return {*(() if self._site_delays.is_suspended() else self._waiting), *self._in_flight.values()}

    def is_requesting(self, site: str) -> bool:
        return site in self._in_flight.values()

    def begin(self, site: str) -> None:
        self._requested.discard(site)

    def has_requested(self, site: str) -> bool:
        return site in self._requested

    def _end(self, site: str) -> None:
        """End the request for a redirecting site. It may have been sent later than it was taken: the delay of its target counts from now."""
        target = self._in_flight.pop(site, None)
        if target is not None and self._is_ours(target):
            self._turns.record_other_request(target)

    def _free_in(self, site: str, now: float) -> float:
        if self._site_delays.is_suspended():
            self._patient_until.pop(site, None)
            return SUSPENDED_S
        if not self._is_ours(site):
            self._patient_until.setdefault(site, now + PATIENCE_S * (1 + random()))  # noqa: S311 - no secret
            return ANOTHERS_S
        has_just_come = self._patient_until.pop(site, None) is not None
        return self._turns.next_turn_in(site) * (_BEHIND_A_PAGE if has_just_come else 1.0)

    def _is_ours(self, site: str) -> bool:
        return self._holds is None or self._holds(site) or self._turns.is_blocked(site)

    def _schedule(self, wait: float, site: str, now: float) -> None:
        heappush(self._next, (now + wait, next(self._order), site))
