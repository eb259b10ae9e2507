"""Spider classes as Scrapy's documentation and common tutorials have them, for collections of the same names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.extensions.feedexport import ItemFilter
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import Rule

from crawlspace.content.page import Page
from spiders.collection import CollectionSpider


class Tutorial(CollectionSpider):
    """As written for Scrapy, with its base class replaced."""

    name = "tutorial"
    allowed_domains: ClassVar[list[str]] = ["127.0.0.1"]
    rules = (Rule(LinkExtractor(allow=r"/articles/"), callback="parse_article"),)
    handle_httpstatus_list: ClassVar[list[int]] = [404]

    def start_requests(self) -> Iterator[Any]:
        yield Request("http://start.test/")


class Customised(CollectionSpider):
    name = "customised"
    custom_settings = {"DEPTH_LIMIT": 1}  # noqa: RUF012 - as Scrapy's documentation has it


class Starting(CollectionSpider):
    name = "starting"
    start_urls = ["http://start.test/"]  # noqa: RUF012 - as Scrapy's documentation has it


class Half(CollectionSpider):
    """Breaks on the pages whose number is even, and keeps the others out of the index where they are below 4."""

    name = "half"

    def document(self, response: Response, page: Page) -> Any:
        number = response.url.rpartition("/")[2]
        if number and int(number) % 2 == 0:
            raise ValueError("a mistake in somebody's parsing")
        return None if number in ("", "1", "3") else super().document(response, page)


class OnlyShort(ItemFilter):
    """An `item_filter` of FEEDS."""

    def accepts(self, item: Any) -> bool:
        return len(ItemAdapter(item)["title"]) < 6


class Raising(CollectionSpider):
    name = "raising"

    def document(self, response: Response, page: Page) -> Any:
        if response.url.endswith("/a"):
            raise ValueError("no price")
        return super().document(response, page)


class Closing(CollectionSpider):
    name = "closing"

    def document(self, response: Response, page: Page) -> Any:
        if response.url.endswith("/a"):
            raise CloseSpider("seen_enough")
        return super().document(response, page)


class Starter(CollectionSpider):
    """Yields requests by itself; `base` is given on the command line."""

    name = "starter"

    async def start(self) -> AsyncIterator[Any]:
        for path in ("/b", "/secret"):
            yield Request(f"{self.base}{path}")  # type: ignore[attr-defined]


class Lamps(CollectionSpider):
    name = "lamps"
    user_agent = "lampbot/2.0"
