"""Spider classes as Scrapy's documentation and common tutorials have them, for collections of the same names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from scrapy import Request
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import Rule

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
