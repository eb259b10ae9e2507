"""A spider whose `document()` depends on settings, as if its code had been changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy import Request
from scrapy.exceptions import DropItem
from scrapy.http import Response

from crawlspace.content.page import Page
from spiders.collection import CollectionSpider


class Demo(CollectionSpider):
    name = "demo"

    def document(self, response: Response, page: Page) -> Any:
        """Return an item with the field of EDITION; none for the titles of LEAVES, and an error for those of FAILS."""
        if page.title in self.settings.getlist("FAILS"):
            raise ValueError(f"no document of {page.title}")
        if page.title in self.settings.getlist("LEAVES"):
            return None
        return {"title": page.title, "text": page.text, "edition": self.settings["EDITION"] or "first"}


class Asking(CollectionSpider):
    name = "asking"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        """Yield an item at once, or behind a request with ASKS."""
        item = {"title": "asked" if self.settings.getbool("ASKS") else "at once", "text": response.url}
        if self.settings.getbool("ASKS"):
            yield Request(response.urljoin("/detail"), callback=self.parse_detail, cb_kwargs={"item": item})
        else:
            yield item

    def parse_detail(self, response: Response, item: dict[str, str]) -> Iterator[Any]:
        """Yield the item of the page that asked."""
        yield item


class Dropping:
    """Item pipeline that drops items with the title of DROPS."""

    def __init__(self, title: str) -> None:
        self._title = title

    @classmethod
    def from_crawler(cls, crawler: Any) -> Dropping:
        return cls(crawler.settings["DROPS"] or "")

    def process_item(self, item: Any) -> Any:
        if item["title"] == self._title:
            raise DropItem("not wanted")
        return item
