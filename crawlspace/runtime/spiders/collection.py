"""What `CollectionSpider` of a project derives from: each response, and each download that failed, ends as one outcome."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.http import Response
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.spider import iterate_spider_output

from crawlspace.content.mime import SNIFFED_BYTES, sniff
from crawlspace.content.page import Page
from crawlspace.errors import CrawlspaceError
from crawlspace.model import Outcome, OutcomeKind, Status, UrlState
from crawlspace.runtime.download.headers import declared_type
from crawlspace.runtime.items import Fetched
from crawlspace.runtime.loader import add_start_urls, add_to_ours, adding_components, overlay_collection, throttle_other_requests
from crawlspace.runtime.middlewares.outcome import BaseOneOutcome
from crawlspace.runtime.requests import SLOT, STATE, detached
from crawlspace.runtime.scheduler import open_session
from crawlspace.runtime.session import Session
from crawlspace.runtime.spiders.failures import fetched_of_failure
from crawlspace.runtime.spiders.responses import PageReader, Responses
from crawlspace.runtime.spiders.robots_txt import take_robots_failure, take_robots_txt
from crawlspace.runtime.spiders.shown_items import has_spider_middlewares, showing_items
from crawlspace.urls import MalformedUrl, join

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure


class BaseCollectionSpider(scrapy.Spider):
    """Crawls the collection it is named after. `session` is None in `scrapy shell`, `fetch` and `parse`, which need no store."""

    session: Session | None = None

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        add_to_ours(settings)
        with adding_components(settings):
            super().update_settings(settings)
        overlay_collection(settings, cls.name)
        add_start_urls(settings, cls)
        agent = getattr(cls, "user_agent", None)
        if isinstance(agent, str):  # Scrapy sends it; robots.txt is matched with the same name
            settings.set("USER_AGENT", agent, priority="spider")
        sites = settings.get("CRAWLSPACE_SITES")
        throttle_other_requests(
            settings, sites if isinstance(sites, dict) else {}, slot=SLOT, requests=settings["CONCURRENT_REQUESTS"]
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, session: Session | None = None, **kwargs: Any) -> BaseCollectionSpider:
        spider: BaseCollectionSpider = super().from_crawler(crawler, *args, **kwargs)
        if session is None and crawler.crawling and not _is_of_a_scrapy_command(cls.start):
            session = open_session(cls, crawler.settings)  # a script's own CrawlerProcess; `scrapy crawl` passes a session
            session.log_warnings()
        if session is not None:
            spider.use_session(session)
        return spider

    def use_session(self, session: Session) -> None:
        """Use a session: the responses that come belong to it."""
        self.session = session
        self.start_urls = []
        self._responses = Responses(session, self)

    async def start(self) -> AsyncIterator[Any]:
        """The start URLs are in the store already; requests of a subclass's own `start` are candidates like any other."""
        no_requests: list[Any] = []
        for request in no_requests:
            yield request

    def document(self, response: Response, page: Page) -> Any:
        """Return the item for a page: a `Document`, or an item of any type Scrapy knows, or None to keep it out of the index."""
        raise NotImplementedError

    # --- every response ends as one outcome -----------------------------------------------------------------------

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        """Yield the one outcome of a response; without a store, as in `scrapy parse`, the item of a page and requests for its links."""
        if self.session is None:
            yield from self._parse_alone(response)
            return
        state: UrlState = response.request.meta[STATE]  # type: ignore[union-attr]
        status = response.status
        if not 100 <= status < 600:  # to be taken for a server error (RFC 9110, 15), and never for a code of our own
            self.logger.info("%s came with the status %.20s, which HTTP has not: taken for 500", state.url, status)
            status = 500
        if 200 <= status < 300:
            fetched = self._responses.answered(response, state)
        elif 300 <= status < 400 and status != 304:
            fetched = Fetched(self._responses.redirected(response, state, status))
        else:
            fetched = Fetched(self._responses.error(response, state, status))
        fetched.outcome.sent_ago_s = self.session.sending.ago_s(state.site)
        if not response.meta.get("autothrottle_dont_adjust_delay"):
            fetched.outcome.latency_s = response.meta.get("download_latency")
        yield fetched

    def _parse_alone(self, response: Response) -> Iterator[Any]:
        declared = declared_type(response.headers)
        mime = sniff(declared, response.body[:SNIFFED_BYTES])
        page = PageReader().read(response, mime=mime, declared=declared)
        item = self.document(response, page)
        if item is not None:
            yield item
        for href in page.followed:
            with suppress(MalformedUrl):
                yield scrapy.Request(join(page.base, href))

    def one_outcome_parser(self) -> Any:
        """Return what responses are given to: `parse`, and where a class has its own, one that ensures its outcome and its requests."""
        parse = self.parse if type(self).parse is BaseCollectionSpider.parse else self._parse_own
        return showing_items(parse) if has_spider_middlewares(self.crawler.settings, besides=BaseOneOutcome) else parse

    async def _parse_own(self, response: Response) -> AsyncIterator[Any]:
        """Run an overridden `parse`: its requests are a link further than the page, and a page without an outcome gets one (699)."""
        state: UrlState = response.request.meta[STATE]  # type: ignore[union-attr]
        found = False
        async for one in as_async_generator(iterate_spider_output(self.parse(response))):
            if isinstance(one, scrapy.Request):
                if one.url != response.url and not self._may_follow(state):
                    continue
                one = detached(one, response.request)  # noqa: PLW2901
                one.meta.setdefault("depth", state.depth + 1)
            found = found or isinstance(one, Fetched)
            yield one
        if not found:
            self.logger.error(
                "%s: parse() yielded no outcome (699); override document(), or yield from super().parse(response)", state.url
            )
            yield Fetched(Outcome(state.id, state.url, OutcomeKind.FAILED, Status.UNEXPECTED, host_failure=True))

    def _may_follow(self, state: UrlState) -> bool:
        """Whether the rules let links of a page be taken; the requests that its parsing yields are links."""
        return self.session is None or self.session.engine.discovery.recheck(state).follow

    def failed(self, failure: Failure) -> Iterator[Fetched]:
        """Yield the one outcome of a download that failed; none where its URL has another turn instead."""
        assert self.session is not None
        fetched = fetched_of_failure(failure, self.session, logger=self.logger)
        if fetched is not None:
            yield fetched

    def robots_read(self, response: Response) -> None:
        """A site's robots.txt has come, after its redirects (the robots middleware follows them)."""
        assert self.session is not None
        take_robots_txt(response, self.session, stop=self._stop)

    def robots_failed(self, failure: Failure) -> None:
        """A site's robots.txt could not be fetched."""
        assert self.session is not None
        take_robots_failure(failure, self.session, stop=self._stop)

    def _stop(self, error: CrawlspaceError) -> None:
        assert self.session is not None
        self.session.fail(error, self.crawler)


def _is_of_a_scrapy_command(start: Any) -> bool:
    """`scrapy fetch` and `scrapy parse` put a start of their own into the class; they need no store, and must not enter URLs."""
    return str(getattr(start, "__module__", "")).startswith("scrapy.commands.")
