"""One class for each collection of `test_own_spiders.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy.http import Response

from crawlspace.content.page import Page
from spiders.collection import CollectionSpider


class Extra(CollectionSpider):
    name = "extra"

    def document(self, response: Response, page: Page) -> Any:
        return {"title": page.title, "text": page.text, "price": 7, "half": "\ud800", "words": len(page.text)}


class Forgetful(CollectionSpider):
    """Yields items and requests as any Scrapy spider does, and no outcome."""

    name = "forgetful"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}
        yield response.follow("/next")


class Deeper(CollectionSpider):
    name = "deeper"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield from super().parse(response)
        yield response.follow("/" + "x" * len(response.url))


class Adding(CollectionSpider):
    """Sets components the way Scrapy spiders do."""

    name = "adding"
    custom_settings = {"ITEM_PIPELINES": {"tests.integration.own_spiders.spiders.DropAll": 1000}}  # noqa: RUF012


class Broken(CollectionSpider):
    name = "broken"

    def document(self, response: Response, page: Page) -> Any:
        raise ValueError("a slip in somebody's parsing")


class DropAll:
    """An item pipeline that loses every page before it is recorded."""

    def process_item(self, item: Any) -> Any:
        from scrapy.exceptions import DropItem

        raise DropItem("not wanted")
