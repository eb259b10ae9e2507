"""Item pipelines as people write them, most as Scrapy's documentation has them, and what listens to the signals of items."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.exceptions import DropItem

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class WithoutDate:
    """Takes a line that differs from page to page out of the text."""

    def process_item(self, item: Any) -> Any:
        adapter = ItemAdapter(item)
        adapter["text"] = adapter["text"].partition("printed on")[0]
        return item


class Renamed:
    """Asks somebody else, and returns an item of another type."""

    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(0)
        return {"title": f"Renamed {ItemAdapter(item)['title']}", "price": 7}


class NoDrafts:
    """Drops what is not wanted."""

    def process_item(self, item: Any) -> Any:
        if "Draft" in ItemAdapter(item)["title"]:
            raise DropItem("a draft")
        return item


class Raises:
    def process_item(self, item: Any) -> Any:
        raise ValueError("a mistake in somebody's pipeline")


class Forgets:
    """Returns nothing, which is easily forgotten."""

    def process_item(self, item: Any) -> None:
        ItemAdapter(item)["title"] = "Forgotten"


class WantsSpider:
    """As pipelines were written for earlier versions of Scrapy."""

    def process_item(self, item: Any, spider: Any) -> Any:
        ItemAdapter(item)["title"] = f"{spider.name}'s"
        return item


class Validated:
    """What scrapy-jsonschema does: an item that does not fit the schema of the project is dropped, and counted."""

    required, numbers = ("title", "price"), ("price",)

    def __init__(self, crawler: Crawler) -> None:
        self.stats = crawler.stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Validated:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        adapter = ItemAdapter(item)
        wrong = [name for name in self.required if name not in adapter]
        wrong += [name for name in self.numbers if not isinstance(adapter.get(name), (int, float))]
        if wrong:
            self.stats.inc_value(f"jsonschema/errors/{wrong[0]}")
            raise DropItem(f"schema validation failed: {', '.join(wrong)}")
        return item


class Listener:
    """An extension that logs the signals of items."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Listener:
        listener = cls()
        crawler.signals.connect(listener.scraped, signal=signals.item_scraped)
        crawler.signals.connect(listener.dropped, signal=signals.item_dropped)
        crawler.signals.connect(listener.failed, signal=signals.item_error)
        return listener

    def scraped(self, item: Any, response: Any) -> None:
        logger.warning("scraped %s", ItemAdapter(item)["title"])

    def dropped(self, item: Any, response: Any, exception: Exception) -> None:
        logger.warning("dropped %s of %s: %s", ItemAdapter(item)["title"], response.status, exception)

    def failed(self, item: Any, response: Any, failure: Any) -> None:
        logger.warning("failed %s: %s", ItemAdapter(item)["title"], failure.value)
