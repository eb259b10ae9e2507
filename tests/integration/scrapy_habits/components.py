"""Middlewares and extensions after the examples of Scrapy's documentation: one idea each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self

from itemadapter import ItemAdapter
from scrapy import Request, signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import DontCloseSpider, IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.logformatter import LogFormatter
from scrapy.statscollectors import MemoryStatsCollector

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


def is_page(request: Request, path: str) -> bool:
    return request.url.endswith(path)


# --- downloader middlewares ---------------------------------------------------------------------------------------


class SetsHeader:
    def process_request(self, request: Request) -> None:
        request.headers["X-Token"] = "secret"


class AnswersItself:
    """Returns a response, so that /a is not downloaded."""

    def process_request(self, request: Request) -> Response | None:
        return HtmlResponse(request.url, body=b"<title>Made up</title>", encoding="utf-8") if is_page(request, "/a") else None


class ReplacesRequest:
    """Returns another request for the same URL, once."""

    def process_request(self, request: Request) -> Request | None:
        if is_page(request, "/a") and "X-Again" not in request.headers:
            return request.replace(headers={"X-Again": "1"})
        return None


class ReplacesRequestAlways:
    def process_request(self, request: Request) -> Request | None:
        return request.copy() if is_page(request, "/a") else None


class ReplacesUrl:
    """As middlewares do that route requests through a service."""

    def process_request(self, request: Request) -> Request | None:
        return request.replace(url=request.url.replace("/a", "/elsewhere")) if is_page(request, "/a") else None


class StartsAnew:
    """Returns a request that knows nothing of the page's."""

    def process_request(self, request: Request) -> Request | None:
        return Request(request.url + "?again") if is_page(request, "/a") else None


class IgnoresRequest:
    def process_request(self, request: Request) -> None:
        if is_page(request, "/a"):
            raise IgnoreRequest("not today")


class ChangesBody:
    def process_response(self, request: Request, response: Response) -> Response:
        return response.replace(body=response.body.replace(b"A page", b"Another page"))


class RetriesUnfinished:
    """Asks again for a page that says it is not ready, as Scrapy's documentation shows for get_retry_request."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Request | Response:
        if b"not ready" in response.body:
            again = get_retry_request(request, reason="not ready", spider=self._crawler.spider)  # type: ignore[arg-type]
            return again or response
        return response


class IgnoresResponse:
    def process_response(self, request: Request, response: Response) -> Response:
        if is_page(request, "/a"):
            raise IgnoreRequest("not wanted")
        return response


class ReturnsNoResponse:
    def process_response(self, request: Request, response: Response) -> Any:
        return "text" if is_page(request, "/a") else response


class AnswersExceptions:
    def process_exception(self, request: Request, exception: Exception) -> Response | None:
        return HtmlResponse(request.url, body=b"<title>Instead</title>", encoding="utf-8") if is_page(request, "/a") else None


class RetriesExceptions:
    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        if is_page(request, "/a") and not request.meta.get("tried"):
            return request.replace(meta={**request.meta, "tried": True}, dont_filter=True)
        return None


class Breaks:
    def process_request(self, request: Request) -> None:
        if is_page(request, "/a"):
            raise ValueError("a mistake in somebody's middleware")


# --- spider middlewares -------------------------------------------------------------------------------------------


class RefusesInput:
    def process_spider_input(self, response: Response) -> None:
        if response.url.endswith("/a"):
            raise ValueError("no such input")


class ReturnsInput:
    """What Scrapy forbids, and calls an error of the middleware."""

    def process_spider_input(self, response: Response) -> Any:
        return response if response.url.endswith("/a") else None


class AddsField:
    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for one in result:
            if not isinstance(one, Request):
                one = {**ItemAdapter(one), "url": response.url, "section": "news"}  # noqa: PLW2901
            yield one


class DropsItem:
    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for one in result:
            if isinstance(one, Request) or not response.url.endswith("/a"):
                yield one


class DropsRequests:
    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for one in result:
            if not isinstance(one, Request) or one.url.endswith("/sent"):
                yield one


class AddsItemAndRequest:
    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        if response.url.endswith("/a"):
            yield {"url": "extra", "title": "Extra"}
            yield Request(response.urljoin("/more"), meta=response.meta)
        async for one in result:
            yield one


class YieldsText:
    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for one in result:
            yield "text" if response.url.endswith("/a") else one


class FailsInOutput:
    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for one in result:
            if response.url.endswith("/a"):
                raise ValueError("a mistake in somebody's middleware")
            yield one


class HandlesException:
    """Used with a class whose parsing of /a raises."""

    def process_spider_exception(self, response: Response, exception: Exception) -> list[Any]:
        return [{"url": response.url, "title": f"Failed: {exception}"}]


class FiltersStart:
    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for one in start:
            if "/secret" not in one.url:
                yield one


class SyncOutput:
    """As before Scrapy 2.18: no asynchronous generator."""

    def process_spider_output(self, response: Response, result: Any) -> Any:
        yield from result


# --- extensions ---------------------------------------------------------------------------------------------------


class Listens:
    """Counts signals in the stats, as the example extension of Scrapy's documentation does."""

    NAMES = (
        "engine_started spider_opened spider_idle spider_error item_scraped request_reached_downloader request_left_downloader headers_received response_received response_downloaded"
    ).split()

    def __init__(self, crawler: Crawler) -> None:
        self._connected: list[Any] = []
        for name in self.NAMES:

            def count(name: str = name, **_: Any) -> None:
                crawler.stats.inc_value(f"mine/{name}")

            self._connected.append(count)  # signals hold their receivers weakly
            crawler.signals.connect(count, signal=getattr(signals, name))
        crawler.signals.connect(self.closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def closed(self, reason: str) -> None:
        logger.warning("closed: %s", reason)


class AddsWhenIdle:
    """Asks for one more page when everything is done."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler, self._added = crawler, False
        crawler.signals.connect(self.idle, signal=signals.spider_idle)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def idle(self) -> None:
        if not self._added:
            self._added = True
            self._crawler.engine.crawl(Request(self._crawler.settings["LATE_URL"]))
            raise DontCloseSpider


class ClosesOnItem:
    """Closes the crawl when an item has a title."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals.connect(self.scraped, signal=signals.item_scraped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def scraped(self, item: Any) -> None:
        if ItemAdapter(item)["title"] == "A page":
            closing = self._crawler.engine.close_spider_async(reason="seen_enough")
            self._closing = asyncio.ensure_future(closing)  # not awaited: it waits for the item  # type: ignore[union-attr]


class Downloads:
    """An item pipeline that asks for something else of the site for each item."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_item(self, item: Any) -> Any:
        adapter = ItemAdapter(item)
        response = await self._crawler.engine.download_async(Request(adapter["url"] + "?detail"))
        logger.warning("detail of %s: %s", adapter["url"], response.status)
        return item


# --- other classes of settings ------------------------------------------------------------------------------------


class Quiet(LogFormatter):
    def scraped(self, item: Any, response: Any, spider: Any) -> Any:
        return {"level": logging.WARNING, "msg": "SCRAPED %(title)s", "args": {"title": ItemAdapter(item)["title"]}}


class Stats(MemoryStatsCollector):
    def close_spider(self, spider: Any = None, reason: str | None = None) -> None:
        logger.warning("STATS %s", self.get_value("crawlspace/fetched"))


class Handler(HTTP11DownloadHandler):
    async def download_request(self, request: Request) -> Response:
        response = await super().download_request(request)
        return response.replace(body=response.body.replace(b"A page", b"Handled"))
