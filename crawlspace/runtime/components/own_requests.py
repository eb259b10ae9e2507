"""Requests of a spider's own, with a callback, a method or a body: sent as they are, within the delay of their site, and not stored.

A request belongs to the page whose parsing yielded it, or to none, as those of `start()` do. A page is recorded when its last request has
ended. Meanwhile it keeps its place among the requests in flight to its site, and its requests to that site use that place one after the
other. So neither the site gets more requests at a time than it may, nor do pages pile up that wait.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.http import Response
from scrapy.settings.default_settings import RETRY_HTTP_CODES

from crawlspace.crawl.sites import SiteDelays
from crawlspace.frontier.frontier import Frontier
from crawlspace.model import UrlState
from crawlspace.runtime.components.items import Fetched
from crawlspace.runtime.components.requests import AGAIN, OWN, SLOT, STATE
from crawlspace.runtime.components.robots import SUSPENDED_S, Slots, SuspensionSource
from crawlspace.runtime.http.retry_after import retry_after_of
from crawlspace.text import printable
from crawlspace.urls import MalformedUrl, parse

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

MOST_OF_A_PAGE = 100
"""Requests of one page, those included that their callbacks yield."""
BLOCKED_S = 0.3
"""Seconds between two checks of a site that may not be requested now."""


@dataclass(slots=True, eq=False)
class OpenPage:
    """A page whose parsing, or whose requests, have not ended."""

    state: UrlState
    fetched: Fetched
    response: Response
    may_follow: bool
    open: int = 1
    """Its parsing and its requests that have not ended."""
    requests: int = 0
    """All that were yielded so far."""
    seen: set[bytes] = field(default_factory=set)
    """Their fingerprints."""
    item: Any = None
    is_own_item: bool = False
    """The item is one that the spider's code yielded, and not what `document()` returned."""
    fault: str = ""
    """Failure of the spider's code."""
    failed_request: str = ""
    """A request that failed, and how."""
    is_sending: bool = False
    """A request to its own site is in flight."""
    is_closed: bool = False
    complete: Callable[[OpenPage], None] = field(kw_only=True)
    """Makes the outcome of the page, when nothing of it is open."""
    at_end_of_lease: Any = None
    """The timer of its lease."""

    def ended(self) -> Fetched | None:
        """Note that its parsing, or a request, has ended; return the record of its fetch if that was the last."""
        self.open -= 1
        if self.open or self.is_closed:
            return None
        self.complete(self)
        return self.fetched


@dataclass(slots=True, eq=False)
class Own:
    """One request of a spider's own. `page` is None where it belongs to none."""

    page: OpenPage | None
    callback: Callable[..., Any] | None
    errback: Callable[..., Any] | None
    takes_along: bool = False
    """It was given something for its callback, as a part of the page's item."""
    site: str | None = None
    """The site that it is in flight to."""


class OwnRequests:
    """The requests that wait for the delay of their site."""

    def __init__(self, frontier: Frontier, site_delays: SiteDelays, *, sent_ago_s: Callable[[str], float]) -> None:
        """`sent_ago_s` returns when the last request to a site was written, in seconds before now."""
        self._frontier = frontier
        self._site_delays = site_delays
        self._sent_ago_s = sent_ago_s
        self._waiting: dict[tuple[str, int], list[tuple[int, int, Request]]] = {}
        """By site and page, the request with the highest priority first."""
        self._order = count()
        self._in_flight: Counter[str] = Counter()
        """Those that don't count as the request in flight of their page."""
        self.without_page = 0
        """Those that belong to no page and have not ended."""

    def put(self, request: Request) -> None:
        """Queue a request: a new one, or one that is sent again or was redirected."""
        own: Own = request.meta[OWN]
        self._end(own)
        try:
            site = parse(request.url).site
        except MalformedUrl:
            site = ""  # it is refused when it is sent
        heappush(self._waiting.setdefault((site, id(own.page)), []), (-request.priority, next(self._order), request))

    def take(self) -> Request | None:
        """Return a request that may be sent now; the delay of its site counts from now."""
        if not self._waiting:
            return None
        for key in list(self._waiting):
            self._drop_closed(key)
        ready = [key for key in self._waiting if self._may_send(key)]
        if not ready:
            return None
        key = min(ready, key=lambda one: self._waiting[one][0])
        request = heappop(self._waiting[key])[2]
        if not self._waiting[key]:
            del self._waiting[key]
        self._begin(request.meta[OWN], key[0])
        return request

    def soonest_in(self) -> float | None:
        """Return the seconds until `take` may return a request; None if that depends on requests in flight."""
        if not self._waiting:
            return None
        return min((self._next_in(site) for site, _ in self._waiting), default=None)

    def ended(self, own: Own) -> None:
        """Note that a request has ended, with or without a response."""
        self._end(own)
        if own.page is None:
            self.without_page -= 1

    @property
    def are_waiting(self) -> bool:
        return bool(self._waiting)

    def _next_in(self, site: str) -> float:
        return SUSPENDED_S if self._site_delays.is_suspended(site) else self._frontier.next_slot_in(site) or BLOCKED_S

    def _may_send(self, key: tuple[str, int]) -> bool:
        site, page = key[0], self._waiting[key][0][2].meta[OWN].page
        if self._site_delays.is_suspended(site):
            return False
        if not site:
            return True
        if self._frontier.next_slot_in(site) > 0 or self._frontier.is_blocked(site):
            return False
        if page is not None and page.state.site == site:
            return not page.is_sending
        in_flight = self._in_flight[site]
        return not in_flight or in_flight < self._site_delays.of(site).concurrency

    def _begin(self, own: Own, site: str) -> None:
        own.site = site
        if not site:
            return
        self._frontier.record_other_request(site)
        if own.page is not None and own.page.state.site == site:
            own.page.is_sending = True
        else:
            self._in_flight[site] += 1

    def _end(self, own: Own) -> None:
        site, own.site = own.site, None
        if not site:
            return
        self._frontier.record_other_request(site, sent_ago_s=self._sent_ago_s(site))
        if own.page is not None and own.page.state.site == site:
            own.page.is_sending = False
        else:
            self._in_flight[site] -= 1
            if not self._in_flight[site]:
                del self._in_flight[site]

    def _drop_closed(self, key: tuple[str, int]) -> None:
        """Forget the requests of a page that was recorded because its lease ended."""
        page = self._waiting[key][0][2].meta[OWN].page
        if page is not None and page.is_closed:
            del self._waiting[key]


# --- answers -------------------------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)


class OwnAnswers:
    """Returns the request that follows an answer or a failure, if one does."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        settings = crawler.settings
        self._session = session
        self._redirects = RedirectMiddleware(settings) if settings.getbool("REDIRECT_ENABLED") else None
        self._retries = RetryMiddleware(settings) if settings.getbool("RETRY_ENABLED") else None
        if self._retries is not None and settings["RETRY_HTTP_CODES"] is None:  # which stands for the errors of pages
            self._retries.retry_http_codes = set(RETRY_HTTP_CODES)
        for one in (self._redirects, self._retries):
            if one is not None:
                one.crawler = crawler
        self._warns_of_cookies = not settings.getbool("COOKIES_ENABLED")

    def after_response(self, request: Request, response: Response) -> Response | Request:
        """Return the answer, or the request that follows it. Raises IgnoreRequest after too many redirects."""
        if self._warns_of_cookies and request.method == "POST" and b"Set-Cookie" in response.headers:
            self._warns_of_cookies = False  # once
            logger.warning(
                "the answer to a form sets a cookie, as that of a log-in does, and it is not kept, because COOKIES_ENABLED is False: %s",
                printable(request.url),
            )
        wait_s = retry_after_of(response, now=self._session.clock.now()) if response.status in (429, 503) else None
        if wait_s:
            longest_s = self._session.engine.policy.retry_after_max_s
            self._session.engine.wait_for_site(parse(request.url).site, min(wait_s, longest_s))
        following: Response | Request = response
        if self._redirects is not None:
            following = self._redirects.process_response(request, response)
        if isinstance(following, Response) and self._retries is not None:
            following = self._retries.process_response(request, following)
        return following

    def after_exception(self, request: Request, exception: Exception) -> Request | None:
        """Return the request once more, if it is to be tried again."""
        if self._retries is None:
            return None
        following = self._retries.process_exception(request, exception)
        assert not isinstance(following, Response)
        return following


# --- repeated requests ---------------------------------------------------------------------------------------------


MOST = 10
"""Requests in a row for one page. Scrapy has no limit of its own, and a middleware may always return another."""


class RepeatedRequests:
    """The waiting requests. `now` is in seconds on the monotonic clock."""

    def __init__(self, slots: Slots, site_delays: SuspensionSource) -> None:
        self._slots = slots
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
            self._slots.record_other_request(request.meta[STATE].site)
            return request
        return None

    def soonest_in(self, now: float) -> float | None:
        """Return the seconds until `take` may return a request; None where none waits."""
        return max(0.0, self._waiting[0][0] - now) if self._waiting else None

    def _schedule(self, request: Request, now: float) -> None:
        heappush(self._waiting, (now + self._wait_s(request), next(self._order), request))

    def _wait_s(self, request: Request) -> float:
        site = request.meta[STATE].site
        return SUSPENDED_S if self._site_delays.is_suspended(site) else self._slots.next_slot_in(site)
