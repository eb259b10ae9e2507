"""Code of a user that fails."""

from __future__ import annotations

from typing import Any

from itemadapter import ItemAdapter


class FailingPipeline:
    """Fails on a page, with the settings and the spider in its variables."""

    def __init__(self, crawler: Any) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Any) -> FailingPipeline:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        settings, spider = self._crawler.settings, self._crawler.spider
        if "boom" in ItemAdapter(item)["url"]:
            raise ValueError(f"a fault of the user's code in {spider.name}, with {len(settings)} settings")
        return item
