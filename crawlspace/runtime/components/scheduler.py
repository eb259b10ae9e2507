"""Scrapy's scheduler: returns requests for the URLs that the frontier leases, and passes requests of spiders to the engine.

Nothing is queued here. The frontier keeps every delay, so the downloader's slot has none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.misc import load_object

from crawlspace.crawl.redirects import replaced_request
from crawlspace.crawl.run import FetchPage, FetchRobots
from crawlspace.crawl.timed.steps import STEP_EVERY_S
from crawlspace.errors import ConfigError, StoreError
from crawlspace.model import Candidate, Source, UrlState
from crawlspace.project import version_difference
from crawlspace.rules.xml.parser import what_is_not_read
from crawlspace.runtime.components.archived_responses import ArchiveWork
from crawlspace.runtime.components.files import FileReading
from crawlspace.runtime.components.loader import project_folder, spider_code
from crawlspace.runtime.components.own_parsing import OwnParsing, is_own
from crawlspace.runtime.components.own_requests import MOST, RepeatedRequests
from crawlspace.runtime.components.requests import OWN, ROBOTS, STATE, page_request, robots_request
from crawlspace.runtime.components.responses import lost
from crawlspace.runtime.components.robots import PATIENCE_S, RobotsSlots
from crawlspace.runtime.components.scrapy_effects import sentences, without_effect
from crawlspace.runtime.components.scrapy_internals import is_busy, wake
from crawlspace.runtime.session.session import Session
from crawlspace.text import printable, quoted

logger = logging.getLogger(__name__)

LONGEST_SLEEP_S = 5.0
BATCH = 128
"""Outcomes in one transaction."""
INDEX_PAUSE_S = 0.5
AT_A_TURN = 16
"""Requests returned in one iteration of the event loop. Hundreds would all be written at its end, late and at the same moment: sites with
the same delay would then stay in step, and each round would lose the time that it takes to make so many requests."""
LATER_S = 0.1
"""When the next URL is ready sooner than this, outcomes are not recorded ahead of time."""


class _Callbacks(NamedTuple):
    parse: Callable[..., Any]
    failed: Callable[..., Any]
    robots_read: Callable[..., Any]
    robots_failed: Callable[..., Any]


class FrontierScheduler(BaseScheduler):
    """The scheduler of a collection. Spiders that are not a collection's get Scrapy's own."""

    def __init__(self, crawler: Crawler, session: Session) -> None:
        self._crawler = crawler
        self._session = session
        self._engine = session.engine
        holds = None if session.owned_sites is None else session.owned_sites.holds
        self._redirected = RobotsSlots(session.frontier, session.site_delays, holds=holds)
        """They go out first, so that pages that are always ready don't hold them up."""
        self._repeated = RepeatedRequests(session.frontier, session.site_delays)
        self._in_this_turn = 0
        self._early_at = 0.0
        """Time when outcomes were last recorded ahead of time."""
        self._alarm: CallLaterResult | None = None
        self._warned_of_replacement = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BaseScheduler:  # type: ignore[override]
        session = getattr(crawler.spider, "session", None)
        if session is None:
            return Scheduler.from_crawler(crawler)
        return cls(crawler, session)

    def open(self, spider: Any) -> None:
        self._own: OwnParsing = spider.own
        # One bound method each, not one for every request: Scrapy remembers what it knows of a callback by the object.
        self._files = FileReading(self._session, self._crawler)
        parse = self._files.read_first(spider.page_parser())
        self._callbacks = _Callbacks(parse, spider.failed, spider.robots_read, spider.robots_failed)
        self._session.guard_connections(lambda: wake(self._crawler))
        self._session.share(self._crawler, self._redirected)
        self._archive_work = ArchiveWork(self._session, spider.linking, self._crawler)

    def close(self, reason: str) -> None:
        self._cancel_alarm()
        self._own.close()
        self._files.close()
        self._archive_work.close()
        self._session.finish_reason = reason
        self._session.close()

    def has_pending_requests(self) -> bool:
        session = self._session
        over = self._engine.is_done() and (session.shared is None or session.shared.is_over)
        return session.error is None and not (over and not self._own.requests.without_page)

    def next_request(self) -> Request | None:
        """Return the next request that may go out now. When there is none, Scrapy is woken as soon as there may be."""
        shared = self._session.shared
        is_full = self._in_this_turn >= AT_A_TURN or self._files.is_behind
        if self._session.error is not None or is_full or (shared is not None and not shared.may_fetch()):
            return None
        now = monotonic()
        first = self._redirected_robots(now) or self._repeated.take(now) or self._own.requests.take()
        if first is not None:
            return self._counted(first)
        if self._own.holds_pages_back:
            self._set_alarm(self._waiting_in(now))
            return None
        if self._engine.uncommitted >= BATCH:  # URLs that needed no request are outcomes, too
            self._session.commit(self._crawler)
        try:
            fetch = self._engine.next_fetch()
        except StoreError as error:
            self._session.fail(error, self._crawler)
            return None
        if shared is not None:
            shared.refill()
        if isinstance(fetch, FetchPage):
            parse, failed = self._callbacks.parse, self._callbacks.failed
            request = page_request(fetch.state, callback=parse, errback=failed, conditional=fetch.conditional)
            if (most := self._session.collection.sites.at(fetch.state.site).max_bytes) is not None:
                request.meta["download_maxsize"] = most
            return self._counted(request)
        if isinstance(fetch, FetchRobots):
            return self._counted(self._robots_request(fetch))
        if self._session.deliveries.blocks_crawl:
            self._session.commit(self._crawler)
            self._set_alarm(INDEX_PAUSE_S)
            return None
        self._record_lost()
        self._set_alarm(self._next_in(now))
        return None

    def _next_in(self, now: float) -> float | None:
        """Return the seconds until there may be a request; None if that depends on those in flight."""
        wait = self._engine.wake_in()
        if wait is None or wait > LATER_S:  # the next URL, if any, is among the links that wait for their transaction
            pause = self._early_at + LATER_S - now if self._engine.has_work else 0.0
            if pause > 0:  # as when all its sites have their largest number of requests in flight
                wait = pause if wait is None else min(wait, pause)
            else:
                self._early_at = now
                self._session.commit(self._crawler)
                wait = self._engine.wake_in()
        steps = STEP_EVERY_S if self._engine.has_steps else None
        return min((one for one in (wait, self._waiting_in(now), steps) if one is not None), default=None)

    def _waiting_in(self, now: float) -> float | None:
        """Return the seconds until a request other than the frontier's may be sent; None if none waits."""
        waits = (self._redirected.soonest_in(now), self._repeated.soonest_in(now), self._own.requests.soonest_in())
        return min((one for one in waits if one is not None), default=None)

    def enqueue_request(self, request: Request) -> bool:
        """Process a request that a spider or middleware yields: one for a page is a candidate, one of the spider's own is sent.

        Returns whether it was admitted.
        """
        robots = request.meta.get(ROBOTS)
        if robots is not None:  # redirected, by the middleware; the redirecting site stays blocked, so that the crawl is not done
            self._redirected.put(robots, monotonic())
            return True
        if STATE in request.meta:
            return self._replaced(request)
        if OWN in request.meta:
            self._own.requests.put(request)
            return True
        if is_own(request):
            self._own.adopt(request)
            return True
        self._own.warn_of_what_is_lost(request)
        depth = request.meta.get(
            "depth", 0
        )  # set for what parsing a page yields; what a spider's start() yields comes from a person
        candidate = Candidate(request.url, Source.INDEX_FOLLOW if depth else Source.USER, depth=depth)
        try:
            return not self._engine.admit([candidate])
        except StoreError as error:
            self._session.fail(error, self._crawler)
            return False

    def _redirected_robots(self, now: float) -> Request | None:
        """Return the request for a redirected robots.txt that may be sent now, and give up those whose target site was not acquired."""
        redirected = self._redirected.take(now)
        for given_up in self._redirected.given_up():
            self._engine.robots_not_sent(given_up, wait_s=PATIENCE_S)
        for fetch in self._redirected.paused():
            self._wait_for_resumption(fetch)
        return None if redirected is None else self._robots_request(redirected)

    def _wait_for_resumption(self, fetch: FetchRobots) -> None:
        """Fetch nothing of a site whose robots.txt is at one that a person has paused: the rules for it are not known."""
        logger.warning(
            "nothing of %s is fetched for now: its robots.txt is at %s, which is paused", fetch.site, fetch.target_site
        )
        if self._session.collection.continuous:
            self._engine.robots_not_sent(fetch, wait_s=self._engine.policy.retry_after_max_s)
        else:
            self._session.frontier.unblock(fetch.site, answered=True)
            self._session.frontier.give_up(fetch.site)

    def _replaced(self, request: Request) -> bool:
        """Process a request that a downloader middleware has put in place of a leased one, or of the response to it.

        One for the same URL is sent. One for another URL ends the page as a redirect does.
        """
        state: UrlState = request.meta[STATE]
        if not self._engine.is_awaited(state.id):
            return False
        if request.url == state.url:
            request.callback, request.errback = self._callbacks.parse, self._callbacks.failed
            if self._repeated.put(request, monotonic()):
                return True
            self._engine.fetched(lost(state, f"a middleware has requested it more than {MOST} times in a row"))
            return True
        if not self._warned_of_replacement:
            self._warned_of_replacement = True
            logger.warning(
                "%s: a middleware has put a request for %s in its place; that counts as a redirect (3020), and the rules apply to its target",
                state.url,
                printable(request.url),
            )
        self._engine.fetched(replaced_request(state, request.url))
        return True

    def _record_lost(self) -> None:
        """Record the pages that a component has lost: they are awaited, and Scrapy has neither a request nor a response of them."""
        waits = self._own.requests.are_waiting or self._repeated.soonest_in(0.0) is not None
        if not waits and not is_busy(self._crawler):
            for state in self._engine.awaited():
                self._engine.fetched(lost(state, "a middleware has lost its request or response"))

    def _robots_request(self, fetch: FetchRobots) -> Request:
        return robots_request(fetch, callback=self._callbacks.robots_read, errback=self._callbacks.robots_failed)

    def _counted(self, request: Request) -> Request:
        if not self._in_this_turn:
            call_later(0, self._next_turn)
        self._in_this_turn += 1
        return request

    def _next_turn(self) -> None:
        was_full = self._in_this_turn >= AT_A_TURN
        self._in_this_turn = 0
        if was_full:
            wake(self._crawler)

    def _set_alarm(self, wait: float | None) -> None:
        self._cancel_alarm()
        if wait is not None:
            self._alarm = call_later(min(wait, LONGEST_SLEEP_S), self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        wake(self._crawler)

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


def open_session(spider: type[Spider], settings: BaseSettings) -> Session:
    """Return the open session of the collection with the name of a spider, to be crawled through this scheduler.

    Raises CrawlspaceError as `Session.open` does, and for another scheduler, which would apply no rules and record nothing.
    """
    written: Any = settings["SCHEDULER"]
    # Not by issubclass: to Scrapy, whatever has the methods of a scheduler is a subclass of each.
    if FrontierScheduler not in getattr(load_object(written), "__mro__", ()):
        raise ConfigError(
            f"SCHEDULER is {quoted(written)}, which applies no rules and records no states: remove that setting;"
            " for a crawl by several machines CRAWLSPACE_STORE_URL is enough"
        )
    session = Session.open(spider.name, settings, spider=spider_code(spider))
    actions = session.collection.action_rules
    not_read = "" if actions is None else what_is_not_read(actions.rules)
    difference = version_difference(project_folder())
    session.warnings = [
        *([difference] if difference else []),
        *sentences(without_effect(spider, settings, spider.name)),
        *([f"rules.xml: {not_read}"] if not_read else []),
    ]
    return session
