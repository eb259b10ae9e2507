"""Runs the `parse()` and callbacks of a spider class: what they yield belongs to the page that they were called for.

The page's document is the first item that they yield, else what `super().parse(response)` yielded for it. Requests for pages are links of
the page; requests of the spider's own are sent, and their callbacks run, before the page is recorded.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.spidermiddlewares.httperror import HttpError, HttpErrorMiddleware
from scrapy.statscollectors import StatsCollector
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from crawlspace.model import UrlState
from crawlspace.runtime.components.items import Fetched, failed, is_document
from crawlspace.runtime.components.one_outcome import OneOutcome, Tracebacks, has_spider_middlewares, showing_items
from crawlspace.runtime.components.own_requests import MOST_OF_A_PAGE, OpenPage, Own, OwnRequests
from crawlspace.runtime.components.requests import LATER, OWN, PREPARED, SLOT, STATE, detached
from crawlspace.runtime.components.responses import Responses
from crawlspace.runtime.components.robots import RobotsUnavailable
from crawlspace.runtime.components.scrapy_internals import run_soon
from crawlspace.runtime.http.errors import NotSent
from crawlspace.text import printable

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session


_WAY_OUT = "to index a page that is linked, yield its item in parse(), which is called for each"


class ParsingSpider(Protocol):
    crawler: Crawler

    @property
    def logger(self) -> logging.LoggerAdapter[Any]: ...

    def parse(self, response: Response, **kwargs: Any) -> Any: ...


class OwnParsing:
    """The pages that are being parsed by the spider's own code, and its requests."""

    def __init__(self, session: Session, spider: ParsingSpider, responses: Responses) -> None:
        self._session = session
        self._engine = session.engine
        self._spider = spider
        self._responses = responses
        self._logger = spider.logger
        self._tracebacks = Tracebacks()
        self.requests = OwnRequests(session.engine.frontier, session.site_delays, sent_ago_s=session.sending.ago_s)
        self._pages: dict[int, OpenPage] = {}
        """By the id of the URL, while `parse()` runs."""
        self._warned: set[str] = set()
        self._waiting: set[OpenPage] = set()
        """Pages that wait for their own requests."""

    @cached_property
    def _http_errors(self) -> HttpErrorMiddleware:
        middleware = HttpErrorMiddleware(self._spider.crawler.settings)
        middleware.crawler = self._spider.crawler
        return middleware

    @cached_property
    def _has_middlewares(self) -> bool:
        """Whether the user has spider middlewares."""
        return has_spider_middlewares(self._spider.crawler.settings, besides=OneOutcome)

    @property
    def _answered(self) -> Callable[..., AsyncIterator[Any]]:
        """The callback of own requests: one that shows spider middlewares the item of a page."""
        return showing_items(self.answered) if self._has_middlewares else self.answered

    @property
    def _stats(self) -> StatsCollector:
        return self._spider.crawler.stats  # not before the crawl starts

    # --- pages ----------------------------------------------------------------------------------------------------

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        """Run the spider's `parse()` for the response to a page request, if it has a page, and yield its outcome."""
        state: UrlState = response.request.meta[STATE]  # type: ignore[union-attr]
        fetched = self._responses.outcome(response, state)
        if fetched.page is None:
            yield fetched
            return
        may_follow = self._engine.recheck(state).follow
        page = OpenPage(state, fetched, response, may_follow=may_follow, complete=self._complete)
        self._pages[state.id] = page
        try:
            async for one in self._run(page, lambda: self._spider.parse(response), response=response):
                yield one
        finally:
            del self._pages[state.id]
        if not page.is_closed:
            response.meta[LATER] = True

    def default(self, response: Response) -> Iterable[Fetched]:
        """Yield what `super().parse(response)` has for a page: its outcome, with the item of `document()`."""
        state = response.request.meta.get(STATE)  # type: ignore[union-attr]
        page = self._pages.get(state.id) if state is not None else None
        if page is None:  # the answer to a request of the spider's own
            return
        item = self._responses.document(page.fetched, response)
        if item is not None and not is_document(item):
            page.fault = self._responses.no_item(page.fetched.outcome, item).detail
            item = None
        page.fetched.item = item
        yield page.fetched

    @property
    def holds_pages_back(self) -> bool:
        """Whether no page may be fetched now: requests of `start()` are sent first, and the number of waiting pages is bounded."""
        if self.requests.without_page or not self._waiting:
            return self.requests.without_page > 0
        return len(self._waiting) >= self._spider.crawler.settings.getint("CONCURRENT_REQUESTS")

    def leave(self, request: Request) -> UrlState | None:
        """Give up the page of a request of the spider's own without an outcome. Return its URL; None if the request has no page."""
        page = request.meta[OWN].page
        if page is None:
            self.requests.without_page -= 1
            return None
        self._close(page)
        page.response.meta[LATER] = True
        state: UrlState = page.state
        return state

    def close(self) -> None:
        """Give up the pages that still wait: their leases are released, and they are fetched again."""
        for page in list(self._waiting):
            self._close(page)

    # --- requests of the spider's own -----------------------------------------------------------------------------

    def adopt(self, request: Request) -> None:
        """Send a request that belongs to no page, such as one of `start()`."""
        self._prepare(request, None)
        self.requests.put(request)

    async def answered(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Run the callback of a request of the spider's own."""
        own: Own = response.request.meta[OWN]  # type: ignore[union-attr]
        try:
            self._http_errors.process_spider_input(response)
        except HttpError as error:
            failure = Failure(error)
            failure.request = response.request  # type: ignore[attr-defined]
            async for one in self.failed(failure):
                yield one
            return
        self.requests.ended(own)
        had_item = own.page is None or own.page.is_own_item
        async for one in self._run(own.page, lambda: (own.callback or self._spider.parse)(response, **kwargs), response=response):
            yield one
        if not had_item:
            self._note_item_of_another_page(own, response)

    async def failed(self, failure: Failure) -> AsyncIterator[Any]:
        """Run the errback of a request of the spider's own that was refused or has failed."""
        request: Request = failure.request  # type: ignore[attr-defined]
        own: Own = request.meta[OWN]
        self.requests.ended(own)
        page, error = own.page, failure.value
        if isinstance(error, NotSent) and page is not None:  # other workers may have its site, and fetch the page
            self._close(page)
            self._engine.not_sent(page.state.id)
            return
        refused = isinstance(error, IgnoreRequest) and not isinstance(error, (HttpError, RobotsUnavailable))
        if refused:
            self.inc_value("crawlspace/own_requests/refused")
        else:
            self.inc_value("crawlspace/own_requests/failed")
        why = f"{printable(request.url)}: {printable(str(error))}"
        if not own.errback:
            level, what = (logging.INFO, "is refused") if refused else (logging.WARNING, "failed")
            self._logger.log(level, "%sa request %s: %s", _of(page), what, why)
        if page is not None and not refused:
            page.failed_request = why
        async for one in self._run(page, lambda: own.errback(failure) if own.errback else None, raised=error):
            yield one

    # --- what they yield ------------------------------------------------------------------------------------------

    async def _run(
        self,
        page: OpenPage | None,
        call: Callable[[], Any],
        *,
        response: Response | None = None,
        raised: BaseException | None = None,
    ) -> AsyncIterator[Any]:
        """Yield the results of the spider's code to be passed on, and the page's outcome after its last request.

        What is yielded for a response goes through spider middlewares; an errback has none.
        """
        if page is not None and page.is_closed:
            return
        try:
            output = call()
            if not isinstance(output, Failure):  # from an errback: not handled
                async for one in as_async_generator(await ensure_awaitable(iterate_spider_output(output))):
                    taken = self._taken(one, page)
                    if taken is not None:
                        if response is not None and self._has_middlewares and isinstance(taken, Request) and OWN in taken.meta:
                            response.meta.setdefault(PREPARED, set()).add(taken.meta[OWN])
                        yield taken
        except CloseSpider:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the code of a project raises
            if error is not raised:  # an errback may raise what it was called for
                self._failed(page, error)
        if page is not None and (fetched := page.ended()) is not None:
            yield fetched

    def _failed(self, page: OpenPage | None, error: Exception) -> None:
        self._logger.error("%sits parsing failed (699): %s", _of(page), self._tracebacks.of(error))
        if page is not None:
            page.fault = page.fault or printable(str(error))

    def _taken(self, one: Any, page: OpenPage | None) -> Any:
        """Process a result of the spider; return what is passed on: a request, or an item that is not the page's document."""
        if isinstance(one, Request):
            return self._taken_request(detached(one), page)
        if isinstance(one, Fetched):
            if page is not None and one is page.fetched and not page.is_own_item:
                page.item, one.item = one.item, None
        elif one is None:
            pass
        elif not is_document(one):
            kind = type(one).__qualname__
            self._logger.error("%sit yielded a %s: yield a request, a dict, a Scrapy item or a dataclass (699)", _of(page), kind)
            if page is not None:
                page.fault = f"a {kind} was yielded"
        elif page is not None and not page.is_own_item:
            page.item, page.is_own_item = one, True
        elif page is None or page.fetched.outcome.index:
            self._note_item(page)
            return one
        return None

    def _taken_request(self, request: Request, page: OpenPage | None) -> Request | None:
        """Return a request, prepared to be sent or entered; None if it is left out."""
        if not is_own(request):
            if page is None:
                return request
            request.meta.setdefault("depth", page.state.depth + 1)
            return request if page.may_follow else None
        if page is None:
            self._prepare(request, None)
            return request
        fingerprint = self._spider.crawler.request_fingerprinter.fingerprint(request)
        if fingerprint in page.seen and not request.dont_filter:
            return None
        page.seen.add(fingerprint)
        page.requests += 1
        if page.requests > MOST_OF_A_PAGE:
            self.inc_value("crawlspace/own_requests/left_out")
            if page.requests == MOST_OF_A_PAGE + 1:
                self._logger.warning("%smore than %d requests of its own: the others are left out", _of(page), MOST_OF_A_PAGE)
            return None
        page.open += 1
        if page.at_end_of_lease is None:
            page.at_end_of_lease = call_later(self._lease_left_s(page.state), self._end_in_time, page)
            self._waiting.add(page)
            sent_ago_s = self._session.sending.ago_s(page.state.site)  # the delay counts from the page's sending, not its lease
            self._engine.note_request(page.state.site, sent_ago_s=sent_ago_s)
        self._prepare(request, page)
        return request

    def inc_value(self, stat: str) -> None:
        """Count for Scrapy and for the summary."""
        self._session.progress.own_requests[stat.rpartition("/")[2]] += 1
        self._stats.inc_value(stat)

    def _prepare(self, request: Request, page: OpenPage | None) -> None:
        takes_along = bool(request.cb_kwargs or request.meta)
        request.meta[OWN] = Own(page, request.callback, request.errback, takes_along)
        request.meta["download_slot"] = SLOT  # the slots of its site are kept in `own_requests`
        request.callback, request.errback = self._answered, self.failed
        self.inc_value("crawlspace/own_requests/yielded")
        if page is None:
            self.requests.without_page += 1
        if request.cookies and not self._spider.crawler.settings.getbool("COOKIES_ENABLED"):
            self._warn("cookies", "the cookies of requests are not sent, because COOKIES_ENABLED is False")

    # --- the end of a page ----------------------------------------------------------------------------------------

    def _complete(self, page: OpenPage) -> None:
        """Return the outcome of a page, from its parsing and its requests."""
        self._close(page)
        fetched = page.fetched
        if page.fault:
            fetched.outcome = failed(fetched.outcome, why=page.fault)
        elif page.item is None and page.failed_request and fetched.outcome.index:
            self._logger.error("%sno item came of it (699), because a request failed: %s", _of(page), page.failed_request)
            fetched.outcome = failed(fetched.outcome, why=f"a request failed: {page.failed_request}", code_failed=False)
        else:
            self._responses.add_item(fetched, page.item)
        if page.requests:  # a 304 would show nothing about what they bring
            fetched.outcome.etag = fetched.outcome.last_modified = None

    def _end_in_time(self, page: OpenPage) -> None:
        """Record a page whose lease ends, with what it has yielded so far."""
        if not page.is_closed and self._session.error is None:
            page.failed_request = page.failed_request or f"{page.open} not answered when the lease ended (CRAWLSPACE_LEASE_S)"
            self._logger.warning("%s%s", _of(page), page.failed_request)
            self._complete(page)
            crawler = self._spider.crawler
            run_soon(crawler.engine.scraper.start_itemproc_async(page.fetched, response=page.response))

    def _close(self, page: OpenPage) -> None:
        page.is_closed = True
        if page.at_end_of_lease is not None:
            page.at_end_of_lease.cancel()
            self._waiting.discard(page)

    def _lease_left_s(self, state: UrlState) -> float:
        lease_s = self._session.collection.lease_s
        left_s = lease_s if state.lease_until is None else state.lease_until - self._session.clock.now()
        return max(1.0, min(left_s, lease_s))

    # --- warnings, once each --------------------------------------------------------------------------------------

    def _note_item(self, page: OpenPage | None) -> None:
        self._stats.inc_value("crawlspace/items/not_indexed")
        if page is None:
            what = "an item of start() or its callbacks belongs to no page"
        else:
            what = f"{page.state.url} gives more than one item, and a page is one document"
        self._warn(
            "items", f"{what}: further items go through the pipelines and into exports, but not into the index; {_WAY_OUT}"
        )

    def _note_item_of_another_page(self, own: Own, response: Response) -> None:
        """Warn where a callback made a page's document of another page alone, as those of tutorials do for links of a list."""
        is_page = isinstance(response, HtmlResponse) and response.request.method == "GET"  # type: ignore[union-attr]
        if own.page is not None and own.page.is_own_item and is_page and not own.takes_along:
            self._warn(
                "another page",
                f"the document of {own.page.state.url} is the item of a callback for {printable(response.url)}, because items belong to"
                f" the page that their request came from; {_WAY_OUT}",
            )

    def warn_of_what_is_lost(self, request: Request) -> None:
        """Warn of what is lost of a request for a page, of which only the URL is kept."""
        given = {
            "cb_kwargs": request.cb_kwargs,
            "meta": [key for key in request.meta if key != "depth"],
            "headers": request.headers,
            "cookies": request.cookies,
            "errback": request.errback,
        }
        lost = [name for name, value in given.items() if value]
        if lost:
            self._warn(
                "lost",
                f"of a request for a page only the URL is kept, and parse() is called for it: the {', '.join(lost)} of"
                f" {printable(request.url)} has no effect; give it a callback of its own if it is to be sent as it is",
            )

    def _warn(self, kind: str, sentence: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            self._logger.warning("%s", sentence)


def is_own(request: Request) -> bool:
    """Return whether a request is sent as it is; if not, it is a link to a page."""
    callback = request.callback
    is_for_parse = callback is None or (getattr(callback, "__name__", "") == "parse" and inspect.ismethod(callback))
    return not is_for_parse or request.method != "GET" or bool(request.body)


def _of(page: OpenPage | None) -> str:
    return f"{page.state.url if page is not None else 'start()'}: "
