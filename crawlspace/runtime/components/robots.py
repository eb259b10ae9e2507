"""Follows the redirects of a robots.txt. What it forbids is decided before a request is made."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from random import random
from time import monotonic
from typing import TYPE_CHECKING, Protocol, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from crawlspace.cache import Recent
from crawlspace.crawl.run import FetchRobots
from crawlspace.frontier.robots import MAX_REDIRECTS
from crawlspace.rules.space import CrawlSpace
from crawlspace.runtime.components.requests import ROBOTS, robots_request
from crawlspace.runtime.components.rule_middleware import may_redirect_robots_txt
from crawlspace.runtime.http.failures import meaning_of
from crawlspace.runtime.http.headers import location_of
from crawlspace.status import Status
from crawlspace.text import printable
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, join, parse

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

logger = logging.getLogger(__name__)


class RobotsTxt:
    """Up to five redirects of a robots.txt are followed: within its host, and to hosts that the crawl space may reach.

    More, or one to elsewhere, count as no limits (RFC 9309, 2.3.1.2). A 304 and a redirect that names no place on the web are no
    answer to the request: they stay as they are, and the site waits.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Request | Response:
        fetch = request.meta.get(ROBOTS)
        if fetch is None:
            return response
        if not 100 <= response.status < 600:  # to be taken for a server error (RFC 9110, 15), and never for a code of our own
            logger.info("%s came with the status %.20s, which HTTP has not: taken for 500", request.url, response.status)
            return response.replace(status=500)
        if not 300 <= response.status < 400 or response.status == 304:
            return response
        location = location_of(response.headers.get(b"Location"))
        target = self._target(location, request.url) if location else None
        if target is None or target.scheme not in DEFAULT_PORTS:
            return response
        if fetch.redirects >= MAX_REDIRECTS or not self._may_ask(target, fetch):
            return response.replace(status=404)
        following = replace(fetch, url=target.text, redirects=fetch.redirects + 1)
        return robots_request(following, callback=request.callback, errback=request.errback)

    def _target(self, location: str, base: str) -> Url | None:
        """Return the URL of a redirect, None if it is malformed. URL options concern pages: a robots.txt is where its server has it."""
        try:
            return parse(join(base, location))
        except MalformedUrl:
            return None

    def _may_ask(self, target: Url, fetch: FetchRobots) -> bool:
        return may_redirect_robots_txt(self._space, target, (parse(fetch.url).host, fetch.site.rpartition(":")[0]))

    @property
    def _space(self) -> CrawlSpace:
        space: CrawlSpace = self._crawler.spider.session.space  # type: ignore[union-attr]
        return space


# --- robots redirects ----------------------------------------------------------------------------------------------


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


class Slots(Protocol):
    def next_slot_in(self, site: str) -> float: ...
    def record_other_request(self, site: str) -> None: ...
    def is_blocked(self, site: str) -> bool: ...
    def is_paused(self, site: str) -> bool: ...


class SuspensionSource(Protocol):
    def is_suspended(self, site: str) -> bool: ...


class RobotsSlots:
    """The waiting requests, by target site. `now` is in seconds on the monotonic clock."""

    def __init__(self, slots: Slots, site_delays: SuspensionSource, *, holds: Callable[[str], bool] | None = None) -> None:
        """`holds`: whether this worker owns a site, where several share the crawl."""
        self._holds = holds
        self._slots = slots
        self._site_delays = site_delays
        self._waiting: dict[str, deque[FetchRobots]] = {}
        self._next: list[tuple[float, int, str]] = []
        """Due times of the next request to each target site, soonest first."""
        self._order = count()
        self._in_flight: dict[str, str] = {}
        """The requests in flight, in a shared crawl: by redirecting site the target site."""
        self._requested: set[str] = set()
        """Target sites to which a request was sent since they were acquired."""
        self._patient_until: dict[str, float] = {}
        """Until when claimed sites are waited for."""
        self._given_up: list[FetchRobots] = []
        self._paused: list[FetchRobots] = []

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
            if self._slots.is_paused(site):
                self._patient_until.pop(site, None)
                self._paused += self._waiting.pop(site)
                continue
            wait = self._free_in(site, now)
            if now > self._patient_until.get(site, now):
                del self._patient_until[site]
                self._given_up += self._waiting.pop(site)
                continue
            if wait > 0:  # a page of it was fetched meanwhile
                self._schedule(wait, site, now)
                continue
            fetch = self._waiting[site].popleft()
            self._slots.record_other_request(site)
            if self._holds is not None:
                self._in_flight[fetch.site] = site
                self._requested.add(site)
            if self._waiting[site]:
                self._schedule(self._slots.next_slot_in(site) * _BEHIND_A_PAGE, site, now)
            else:
                del self._waiting[site]
            return fetch
        return None

    def given_up(self) -> list[FetchRobots]:
        """Return, once, those whose target site was not acquired in time."""
        given_up, self._given_up = self._given_up, []
        return given_up

    def paused(self) -> list[FetchRobots]:
        """Return, once, those whose target site a person has paused."""
        paused, self._paused = self._paused, []
        return paused

    def soonest_in(self, now: float) -> float | None:
        """Return the seconds until `take` may return a request; None where none waits."""
        return max(0.0, self._next[0][0] - now) if self._next else None

    # --- for Prefetch: OtherRequests ----------------------------------------------------------------------------
    def waiting(self) -> Collection[str]:
        for site in [site for site in self._in_flight if not self._slots.is_blocked(site)]:
            self._end(site)
        wanted = (one for one in self._waiting if not (self._site_delays.is_suspended(one) or self._slots.is_paused(one)))
        return {*wanted, *self._in_flight.values()}

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
            self._slots.record_other_request(target)

    def _free_in(self, site: str, now: float) -> float:
        if self._site_delays.is_suspended(site):
            self._patient_until.pop(site, None)
            return SUSPENDED_S
        if not self._is_ours(site):
            self._patient_until.setdefault(site, now + PATIENCE_S * (1 + random()))  # noqa: S311 - no secret
            return ANOTHERS_S
        has_just_come = self._patient_until.pop(site, None) is not None
        return self._slots.next_slot_in(site) * (_BEHIND_A_PAGE if has_just_come else 1.0)

    def _is_ours(self, site: str) -> bool:
        return self._holds is None or self._holds(site) or self._slots.is_blocked(site)

    def _schedule(self, wait: float, site: str, now: float) -> None:
        heappush(self._next, (now + wait, next(self._order), site))


# --- robots --------------------------------------------------------------------------------------------------------


AGAIN_S = 60.0
"""Seconds after which a robots.txt that could not be read is requested again."""
REMEMBERED = 1_000


class RobotsUnavailable(IgnoreRequest):
    """A request is not sent, because the robots.txt of its site cannot be read."""

    def __init__(self) -> None:
        super().__init__("robots.txt of its site cannot be read at present")


class OtherRobots:
    """Reads each robots.txt once, however many requests wait for it."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        self._session = session
        self._crawler = crawler
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._failed_at: Recent[str, float] = Recent(REMEMBERED)

    async def read(self, url: Url) -> None:
        """Fetch the robots.txt of a URL. Raises RobotsUnavailable where that fails."""
        fetch = FetchRobots.at(url.text, site=url.site)
        place = fetch.url
        if not self._has_failed(place):
            task = self._reading.get(place)
            if task is None:
                task = self._reading[place] = asyncio.ensure_future(self._fetch(fetch))
                task.add_done_callback(lambda _: self._reading.pop(place))
            await asyncio.shield(task)
        if self._has_failed(place):
            raise RobotsUnavailable

    def _has_failed(self, place: str) -> bool:
        failed_at = self._failed_at.get(place)
        return failed_at is not None and monotonic() - failed_at < AGAIN_S

    async def _fetch(self, fetch: FetchRobots) -> None:
        robots = self._session.robots
        assert self._crawler.engine is not None
        self._session.engine.note_request(fetch.site)
        try:
            response = await self._crawler.engine.download_async(robots_request(fetch, callback=NO_CALLBACK, errback=None))
        except Exception as error:  # noqa: BLE001 - whatever a download raises
            meaning = meaning_of(error, url=fetch.url, resolver=self._session.resolver())
            if meaning.status in (Status.NO_SUCH_HOST, Status.EXCLUDED):
                robots.allow_briefly(fetch.site, fetch.scheme)  # the request itself fails for that
                return
            why = printable(str(error))
        else:
            if robots.save(fetch.site, fetch.scheme, status=response.status, body=robots_body(response)):
                return
            why = f"status {response.status}"
        self._failed_at.put(fetch.url, monotonic())
        logger.warning("%s cannot be read (%s): requests to its site for files or data are left out for now", fetch.url, why)


def robots_body(response: Response) -> str:
    """Return the text of an answer to a request for robots.txt; empty where that is an error."""
    return response.body.decode("utf-8-sig", "replace") if 200 <= response.status < 300 else ""
