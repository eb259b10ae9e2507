"""The base class of a project's `CollectionSpider`: each response, and each failed download, ends in one outcome.

Scrapy imports it for every command; what only a crawl needs is imported when one begins.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import BaseSettings
from twisted.python.failure import Failure

from crawlspace.errors import CrawlspaceError
from crawlspace.model import UrlState
from crawlspace.runtime.components.loader import (
    add_start_urls,
    add_to_ours,
    adding_components,
    overlay_collection,
    throttle_other_requests,
)
from crawlspace.runtime.components.requests import SLOT, STATE
from crawlspace.urls import MalformedUrl, join

if TYPE_CHECKING:
    from crawlspace.content.page import Page
    from crawlspace.runtime.components.items import Fetched
    from crawlspace.runtime.components.responses import Responses
    from crawlspace.runtime.session.session import Session


class FrontierSpider(scrapy.Spider):
    """The base of a collection's spider. `session` is None in `scrapy shell`, `fetch` and `parse`, which need no store."""

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
    def from_crawler(cls, crawler: Crawler, *args: Any, session: Session | None = None, **kwargs: Any) -> FrontierSpider:
        spider: FrontierSpider = super().from_crawler(crawler, *args, **kwargs)
        if session is None and crawler.crawling and not _is_of_a_scrapy_command(cls.start):
            from crawlspace.runtime.components.scheduler import open_session

            session = open_session(cls, crawler.settings)  # a script's own CrawlerProcess; `scrapy crawl` passes a session
            session.log_warnings()
        if session is not None:
            spider.use_session(session)
        return spider

    def use_session(self, session: Session) -> None:
        """Use a session: the responses that come belong to it."""
        from crawlspace.runtime.components.own_parsing import OwnParsing
        from crawlspace.runtime.components.responses import Responses

        self.session = session
        self.start_urls = []
        self._responses = Responses(session, self)
        self.own = OwnParsing(session, self, self._responses)

    async def start(self) -> AsyncIterator[Any]:
        """The start URLs are in the store already; requests of a subclass's own `start` are candidates like any other."""
        no_requests: list[Any] = []
        for request in no_requests:
            yield request

    def document(self, response: Response, page: Page) -> Any:
        """Return the item for a page: a `Document`, or an item of any type Scrapy knows, or None to keep it out of the index."""
        raise NotImplementedError

    # --- every response ends as one outcome -----------------------------------------------------------------------

    def parse(self, response: Response, **kwargs: Any) -> Any:
        """Yield the one outcome of a response; without a store, as in `scrapy parse`, the item of a page and requests for its links.

        A class may have its own, which yields items and requests as any spider of Scrapy: see `own_parsing`.
        """
        if self.session is None:
            yield from self._parse_alone(response)
            return
        if self._parses:
            yield from self.own.default(response)
            return
        state: UrlState | None = response.request.meta.get(STATE)  # type: ignore[union-attr]
        if state is not None:  # and not the answer to a request of `start()`
            fetched = self._responses.outcome(response, state)
            if fetched.page is not None:
                self._responses.add_document(fetched, response)
            yield fetched

    def _parse_alone(self, response: Response) -> Iterator[Any]:
        from crawlspace.content.charset import charset_parameter
        from crawlspace.content.documents.contents import FileLimits
        from crawlspace.content.documents.kinds import FILE_TYPES, is_html
        from crawlspace.content.documents.page import page_of
        from crawlspace.content.documents.readers import read_file
        from crawlspace.content.mime import SNIFFED_BYTES, sniff
        from crawlspace.content.page_reader import PageReader
        from crawlspace.document import Document
        from crawlspace.runtime.components.items import split
        from crawlspace.runtime.http.headers import declared_type

        declared = declared_type(response.headers)
        mime = sniff(declared, response.body[:SNIFFED_BYTES])
        if mime in FILE_TYPES and not is_html(response.body):
            contents = read_file(BytesIO(response.body), declared, FileLimits())
            page = page_of(contents, url=response.url)
        else:
            charset = None if declared is None else charset_parameter(declared)
            page = PageReader().read(response.body, url=response.request.url, mime=mime, charset=charset)  # type: ignore[union-attr]
        item, parts = split(self.document(response, page), response.url)
        if isinstance(item, Document):
            item.parts = item.parts or parts
        if item is not None:
            yield item
        for href in page.followed:
            with suppress(MalformedUrl):
                yield scrapy.Request(join(page.base, href))

    @property
    def _parses(self) -> bool:
        """Whether the class has a `parse()` of its own."""
        return type(self).parse is not FrontierSpider.parse

    @property
    def linking(self) -> Responses | None:
        """The link extractor of pages; None where a `parse()` of the class extracts them."""
        return None if self._parses else self._responses

    def page_parser(self) -> Any:
        """Return the callback of page requests."""
        from crawlspace.runtime.components.one_outcome import OneOutcome, has_spider_middlewares, showing_items

        parse = self.own.parse if self._parses else self.parse
        return showing_items(parse) if has_spider_middlewares(self.crawler.settings, besides=OneOutcome) else parse

    def failed(self, failure: Failure) -> Iterator[Fetched]:
        """Yield the one outcome of a failed download; none where its URL is tried again at once."""
        from crawlspace.runtime.components.responses import fetched_of_failure

        assert self.session is not None
        fetched = fetched_of_failure(failure, self.session, logger=self.logger)
        if fetched is not None:
            yield fetched

    def robots_read(self, response: Response) -> None:
        """Process a site's robots.txt, whose redirects the robots middleware has followed."""
        from crawlspace.runtime.components.responses import take_robots_txt

        assert self.session is not None
        take_robots_txt(response, self.session, stop=self._stop)

    def robots_failed(self, failure: Failure) -> None:
        """Process the failure to fetch a site's robots.txt."""
        from crawlspace.runtime.components.responses import take_robots_failure

        assert self.session is not None
        take_robots_failure(failure, self.session, stop=self._stop)

    def _stop(self, error: CrawlspaceError) -> None:
        assert self.session is not None
        self.session.fail(error, self.crawler)


def _is_of_a_scrapy_command(start: Any) -> bool:
    """Return whether `scrapy fetch` or `scrapy parse` has replaced `start`; they need no store, and must not insert URLs."""
    return str(getattr(start, "__module__", "")).startswith("scrapy.commands.")
