"""Sends documents and deletions to the index while the crawl runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from crawlspace.runtime.session.index_sending import IndexSender

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class DrainIndex:
    """Sends what the outbox holds, in batches: at once when a batch is full, else every half second; all of it at the end."""

    def __init__(self, crawler: Crawler) -> None:
        self._sender = IndexSender(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def open_spider(self) -> None:
        self._sender.start()

    async def close_spider(self) -> None:
        await self._sender.finish()
