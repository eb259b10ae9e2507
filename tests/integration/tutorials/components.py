"""Item pipelines, downloader middlewares and an extension as Scrapy's documentation and tutorials have them: none is adapted."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from itemadapter import ItemAdapter
from scrapy import Request, signals
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import DropItem, NotConfigured

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)


# --- item pipelines -----------------------------------------------------------------------------------------------


class PricePipeline:
    """Makes a number of the price, adds the tax, and drops what has no price."""

    vat_factor = 1.2

    def process_item(self, item: Any) -> Any:
        adapter = ItemAdapter(item)
        if not adapter.get("price"):
            raise DropItem(f"no price in {adapter['name']}")
        adapter["price"] = round(float(adapter["price"].strip("€ ")) * self.vat_factor, 2)
        return item


class DuplicatesPipeline:
    """Keeps the first item with an id."""

    def __init__(self) -> None:
        self.ids_seen: set[str] = set()

    def process_item(self, item: Any) -> Any:
        adapter = ItemAdapter(item)
        if adapter["id"] in self.ids_seen:
            raise DropItem(f"item ID already seen: {adapter['id']}")
        self.ids_seen.add(adapter["id"])
        return item


class JsonWriterPipeline:
    """Writes each item into a file, one a line."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings["ITEMS_FILE"])

    def open_spider(self) -> None:
        self.file = Path(self.path).open("w", encoding="utf-8")  # noqa: SIM115 - closed with the spider

    def close_spider(self) -> None:
        self.file.close()

    def process_item(self, item: Any) -> Any:
        self.file.write(json.dumps(ItemAdapter(item).asdict()) + "\n")
        return item


# --- downloader middlewares ---------------------------------------------------------------------------------------


class TokenMiddleware:
    """Sets a header of which the settings have the value."""

    def __init__(self, token: str) -> None:
        self.token = token

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings.get("API_TOKEN"))

    def process_request(self, request: Request) -> None:
        request.headers["X-Api-Token"] = self.token


class AnotherAgentMiddleware:
    """Asks again as somebody else where it was refused."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.agents: list[str] = crawler.settings.getlist("USER_AGENTS")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response | Request:
        if response.status != 403:
            return response
        again = get_retry_request(request, spider=self.crawler.spider, reason="refused", max_retry_times=len(self.agents))  # type: ignore[arg-type]
        if again is None:
            return response
        again.headers["User-Agent"] = self.agents[again.meta["retry_times"] - 1]
        return again


# --- an extension -------------------------------------------------------------------------------------------------


class SpiderOpenCloseLogging:
    """Logs when the spider is opened and closed, and how many items there were."""

    def __init__(self, item_count: int) -> None:
        self.item_count = item_count
        self.items_scraped = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings.getbool("MYEXT_ENABLED"):
            raise NotConfigured
        extension = cls(crawler.settings.getint("MYEXT_ITEMCOUNT", 1000))
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(extension.item_scraped, signal=signals.item_scraped)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        logger.info("opened spider %s", spider.name)

    def spider_closed(self, spider: Spider) -> None:
        logger.info("closed spider %s after %d items", spider.name, self.items_scraped)

    def item_scraped(self, item: Any, spider: Spider) -> None:
        self.items_scraped += 1
        if self.items_scraped % self.item_count == 0:
            logger.info("scraped %d items", self.items_scraped)
