"""The shorter ways of a page through Scrapy: fewer tasks, and the same for whoever listens or waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pydispatch import dispatcher
from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.scraper import Scraper
from scrapy.extensions.feedexport import FeedExporter
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.test import get_crawler

from crawlspace.runtime.shortcuts.downloads import download_at_once
from crawlspace.runtime.shortcuts.scraping import scrape_at_once
from crawlspace.runtime.shortcuts.signals import send_if_heard

URL = "http://shop.example/"
SLOT = "slot"
NO_COMPONENTS = {
    "TWISTED_REACTOR_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "DOWNLOADER_MIDDLEWARES_BASE": {},
    "SPIDER_MIDDLEWARES_BASE": {},
    "EXTENSIONS_BASE": {},
    "DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https", "file", "data", "s3", "ftp")),
}


class Pages(Spider):
    name = "pages"

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {"url": response.url}
        if response.status == 500:
            raise ValueError("a mistake in parsing")

    def other(self, response: Response) -> Iterator[Any]:
        yield {"other": response.url}

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": repr(failure.value)}


class RecoversItems:
    """A spider middleware."""

    def process_spider_exception(self, response: Response, exception: Exception) -> list[Any]:
        return [{"recovered": str(exception)}]


class ChangesItems(RecoversItems):
    async def process_spider_output(self, response: Response, result: Any) -> Any:
        async for item in result:
            yield {**item, "changed": True}


def tasks_of(work: Callable[[], Awaitable[Any]]) -> int:
    """Run something, and return how many tasks were made meanwhile."""
    made: list[Any] = []

    def note(loop: Any, coroutine: Any, **named: Any) -> asyncio.Task[Any]:
        made.append(coroutine)
        return asyncio.Task(coroutine, loop=loop, **named)

    async def count() -> int:
        asyncio.get_running_loop().set_task_factory(note)
        await work()
        return len(made)

    return asyncio.run(count())


class Scraping:
    """A scraper, and the items that come out of it."""

    def __init__(self, **settings: Any) -> None:
        self.crawler: Any = get_crawler(Pages, {**NO_COMPONENTS, **settings})
        self.spider = self.crawler.spider = Pages.from_crawler(self.crawler)
        self.items: list[Any] = []
        self.errors: list[str] = []
        self.crawler.signals.connect(self.scraped, signals.item_scraped)
        self.crawler.signals.connect(self.raised, signals.spider_error)

    def scraped(self, item: Any) -> None:
        self.items.append(item)

    def raised(self, failure: Any) -> None:
        self.errors.append(str(failure.value))

    async def open(self) -> Scraper:
        scraper = Scraper(self.crawler)
        await scraper.open_spider_async()
        return scraper

    async def scrape(self, scraper: Any, result: Any, callback: Any) -> None:
        request = Request(URL, callback=callback, errback=self.spider.failed)
        if isinstance(result, Response):
            result.request = request
        await maybe_deferred_to_future(scraper.enqueue_scrape(result, request))
        assert scraper.slot.is_idle()
        assert scraper.slot.active_size == 0


PAGES = [
    # spider middleware; status; callback; items; errors
    (None, 200, "parse", [{"url": URL}], []),
    (None, 500, "parse", [{"url": URL}], ["a mistake in parsing"]),
    (None, 200, "other", [{"other": URL}], []),
    (ChangesItems, 200, "parse", [{"url": URL, "changed": True}], []),
    (RecoversItems, 500, "parse", [{"url": URL}, {"recovered": "a mistake in parsing"}], []),
]


@pytest.mark.parametrize(("middleware", "status", "callback", "items", "errors"), PAGES)
@pytest.mark.parametrize("is_short", [True, False])
def test_the_same_comes_of_a_response(
    middleware: type | None, status: int, callback: str, items: list[Any], errors: list[str], *, is_short: bool
) -> None:
    scraping = Scraping(SPIDER_MIDDLEWARES={middleware: 10} if middleware else {})

    async def scrape() -> None:
        scraper = await scraping.open()
        parse = scraping.spider.parse
        if is_short:
            scrape_at_once(scraper, parse)
        await scraping.scrape(scraper, Response(URL, status=status), parse if callback == "parse" else scraping.spider.other)

    asyncio.run(scrape())
    assert (scraping.items, scraping.errors) == (items, errors)


def test_a_response_is_parsed_in_one_task() -> None:
    scraping = Scraping()

    async def scrape() -> None:
        scraper = await scraping.open()
        scrape_at_once(scraper, parse := scraping.spider.parse)
        scraping.crawler.signals.disconnect(scraping.scraped, signals.item_scraped)
        await scraping.scrape(scraper, Response(URL), parse)

    assert tasks_of(scrape) == 1


class Downloads:
    """A downloader whose handler answers when it is told to."""

    def __init__(self, **slot: Any) -> None:
        settings = {**NO_COMPONENTS, "DOWNLOAD_SLOTS": {SLOT: {"delay": 0, **slot}}}
        self.crawler: Any = get_crawler(Pages, settings)
        self.crawler.spider = Pages.from_crawler(self.crawler)
        self.downloader: Any = Downloader(self.crawler)
        handlers: Any = SimpleNamespace(download_request_async=self.download)
        self.downloader.handlers = handlers
        self.begun: list[asyncio.Future[Response]] = []
        self.has_begun = asyncio.Event()
        download_at_once(self.downloader)

    async def download(self, _: Request) -> Response:
        self.begun.append(asyncio.get_running_loop().create_future())
        self.has_begun.set()
        return await self.begun[-1]

    def fetch(self) -> Any:
        return maybe_deferred_to_future(self.downloader.fetch(Request(URL, meta={"download_slot": SLOT})))

    async def next(self) -> asyncio.Future[Response]:
        await self.has_begun.wait()
        self.has_begun.clear()
        return self.begun[-1]

    def close(self) -> None:
        self.downloader.close()
        slot = self.downloader.slots[SLOT]
        assert not any((self.downloader.active, slot.active, slot.transferring, slot.queue))


def test_a_request_is_downloaded_in_one_task() -> None:
    async def fetch() -> None:
        downloads = Downloads()
        fetched = downloads.fetch()
        (await downloads.next()).set_result(Response(URL))
        assert (await fetched).status == 200
        downloads.close()

    assert tasks_of(fetch) == 2, "the other one looks for slots that are not used any more"


def test_a_slot_without_room_has_its_requests_wait() -> None:
    async def fetch() -> None:
        downloads = Downloads(concurrency=1)
        first, second = downloads.fetch(), downloads.fetch()
        begun = await downloads.next()
        assert len(downloads.downloader.slots[SLOT].queue) == 1
        begun.set_exception(ValueError("no answer"))
        (await downloads.next()).set_result(Response(URL))
        with pytest.raises(ValueError, match="no answer"):
            await first
        assert (await second).status == 200
        assert len(downloads.begun) == 2
        downloads.close()

    asyncio.run(fetch())


HEARD = [
    # connected to; whether it hears
    ({"signal": signals.response_received}, True),
    ({"signal": dispatcher.Any}, True),
    ({"signal": signals.response_received, "sender": dispatcher.Any}, True),
    ({"signal": dispatcher.Any, "sender": dispatcher.Any}, True),
    ({"signal": signals.item_dropped}, False),
    ({"signal": signals.response_received, "sender": "another crawl"}, False),
]


@pytest.mark.parametrize(("connected", "hears"), HEARD)
def test_whoever_listens_hears(connected: dict[str, Any], *, hears: bool) -> None:
    manager = get_crawler(Pages, NO_COMPONENTS).signals
    heard: list[str] = []

    def hear(response: str) -> str:
        heard.append(response)
        return "heard"

    manager.connect(hear, **connected)
    send_if_heard(manager)
    found = manager.send_catch_log(signals.response_received, response="first")
    also = asyncio.run(manager.send_catch_log_async(signals.response_received, response="second"))
    manager.disconnect(hear, **connected)
    assert found == also == ([(hear, "heard")] if hears else [])
    assert heard == (["first", "second"] if hears else [])
    assert manager.send_catch_log(signals.response_received, response="third") == []


class Export(FeedExporter):
    def __init__(self) -> None:
        self.items: list[Any] = []

    def item_scraped(self, item: Any, spider: Any) -> None:
        self.items.append(item)


@pytest.mark.parametrize(("waits", "tasks"), [(False, 0), (True, 2)])
def test_an_export_gets_items_without_a_task_and_others_are_waited_for(*, waits: bool, tasks: int) -> None:
    manager = get_crawler(Pages, NO_COMPONENTS).signals
    export, stored = Export(), []

    async def store(item: Any) -> None:
        await asyncio.sleep(0)
        stored.append(item)

    manager.connect(export.item_scraped, signals.item_scraped)
    if waits:
        manager.connect(store, signals.item_scraped)
    send_if_heard(manager)
    assert tasks_of(lambda: manager.send_catch_log_async(signals.item_scraped, item="item", spider=None)) == tasks
    assert (export.items, stored) == (["item"], ["item"] if waits else [])
