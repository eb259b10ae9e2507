"""Gives each document the checksum by which equal documents are known; the store then decides which of them represents the group.

One behind a log-in has another than an equal public one: for who may not see it, it does not stand for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from crawlspace.content.text import last_segment
from crawlspace.index.as_sent.login_exclusion import checksum_behind_login, mark
from crawlspace.runtime.items import Fetched, checksum_of, document_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class BaseFingerprint:
    """Turns an item of any type into the document it is for the index, and fingerprints its text."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Fetched) and item.item is not None:
            collection = self._crawler.spider.session.collection  # type: ignore[union-attr]
            content, outcome = collection.content, item.outcome
            if isinstance(item.item, dict):
                item.item.setdefault("url", outcome.url)  # an export without it would be of little use
            document = document_of(item)
            if outcome.added:
                document.fields = {**document.fields, **outcome.added}
            outcome.document = document
            outcome.checksum = checksum_of(document, item, with_title=content.checksum_title, cut_off=content.checksum_cut_off)
            document.title = document.title or last_segment(
                outcome.url
            )  # not in the checksum: equal pages have several addresses
            if collection.sites.requires_login(outcome.url):
                mark(document)
                outcome.checksum = checksum_behind_login(outcome.checksum)
        return item
