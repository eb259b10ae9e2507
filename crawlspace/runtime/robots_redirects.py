"""Robots.txt files that others redirect to: the site they lie on is asked for them one at a time, at its own pace.

Many hosts may have their robots.txt in one place. The frontier gives turns to sites that have pages to ask for; these requests go out
beside its turns, so that they are kept apart here, and the frontier is told of each. Where several workers share the crawl, the site may
be another's: it comes here for that, and goes again.
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
"""So often it is looked whether a site that is another worker's has come."""
PATIENCE_S = 30.0
"""A site that has not come for so long, or up to twice as long, is not waited for: two workers may each wait for one of the other's, and
the first that lets go of its own ends that. Those whose robots.txt lie there are asked again after as long a wait."""
SUSPENDED_S = 5.0
"""So often it is looked whether a site may be asked again, while nothing may."""
_BEHIND_A_PAGE = 1.1
"""So much later than its next turn a site is asked for another robots.txt, as a multiple of the wait. Thousands may wait for one site,
and its own pages are to have turns in between."""


class Turns(Protocol):
    def next_turn_in(self, site: str) -> float: ...
    def asked_beside(self, site: str) -> None: ...
    def is_held(self, site: str) -> bool: ...


class DelaySource(Protocol):
    def is_suspended(self) -> bool: ...


class RobotsTurns:
    """Those that wait, by the site they lead to. `now` is in seconds on the monotonic clock."""

    def __init__(self, turns: Turns, site_delays: DelaySource, *, holds: Callable[[str], bool] | None = None) -> None:
        """`holds`: whether a site is this worker's to ask, where several share the crawl."""
        self._holds = holds
        self._turns = turns
        self._site_delays = site_delays
        self._waiting: dict[str, deque[FetchRobots]] = {}
        self._next: list[tuple[float, int, str]] = []
        """When each of these sites is to be asked, soonest first."""
        self._order = count()
        self._asking: dict[str, str] = {}
        """What is under way, in a shared crawl: by the site it is read for, the one that is asked."""
        self._asked: set[str] = set()
        """Sites that were asked since they came."""
        self._patient_until: dict[str, float] = {}
        """For sites that have not come yet."""
        self._given_up: list[FetchRobots] = []

    def put(self, fetch: FetchRobots, now: float) -> None:
        """Have a redirected robots.txt wait for its turn."""
        self._end(fetch.site)
        site = fetch.target_site
        if site in self._waiting:
            self._waiting[site].append(fetch)
        else:
            self._waiting[site] = deque([fetch])
            self._ask_in(self._free_in(site, now), site, now)

    def take(self, now: float) -> FetchRobots | None:
        """Return one that may go out now; its site counts as asked."""
        while self._next and self._next[0][0] <= now:
            site = heappop(self._next)[2]
            wait = self._free_in(site, now)
            if now > self._patient_until.get(site, now):
                del self._patient_until[site]
                self._given_up += self._waiting.pop(site)
                continue
            if wait > 0:  # a page of it has been asked for meanwhile
                self._ask_in(wait, site, now)
                continue
            fetch = self._waiting[site].popleft()
            self._turns.asked_beside(site)
            if self._holds is not None:
                self._asking[fetch.site] = site
                self._asked.add(site)
            if self._waiting[site]:
                self._ask_in(self._turns.next_turn_in(site) * _BEHIND_A_PAGE, site, now)
            else:
                del self._waiting[site]
            return fetch
        return None

    def given_up(self) -> list[FetchRobots]:
        """Return those whose site did not come here, once."""
        given_up, self._given_up = self._given_up, []
        return given_up

    def soonest_in(self, now: float) -> float | None:
        """Seconds until `take` may have something; None where nothing waits."""
        return max(0.0, self._next[0][0] - now) if self._next else None

    # --- what the others are told -----------------------------------------------------------------------------------
    def waiting(self) -> Collection[str]:
        for site in [site for site in self._asking if not self._turns.is_held(site)]:
            self._end(site)
        return {*(() if self._site_delays.is_suspended() else self._waiting), *self._asking.values()}

    def is_asking(self, site: str) -> bool:
        return site in self._asking.values()

    def begin(self, site: str) -> None:
        self._asked.discard(site)

    def has_asked(self, site: str) -> bool:
        return site in self._asked

    def _end(self, site: str) -> None:
        """What was under way for a site is over. The request may have gone out later than it was handed out: its delay counts from now."""
        asked = self._asking.pop(site, None)
        if asked is not None and self._is_ours(asked):
            self._turns.asked_beside(asked)

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
        return self._holds is None or self._holds(site) or self._turns.is_held(site)

    def _ask_in(self, wait: float, site: str, now: float) -> None:
        heappush(self._next, (now + wait, next(self._order), site))
