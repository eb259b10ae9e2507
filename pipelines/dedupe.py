"""Computes the checksum by which equal documents are found. The store then decides which of them represents the group.

A document behind a log-in has another checksum than an equal public one, because not everybody may see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from crawlspace.content.text import last_segment
from crawlspace.index.login_exclusion import checksum_behind_login, mark
from crawlspace.runtime.components.items import checksum_of, document_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawlspace.runtime.components.items import Fetched


class Fingerprint:
    """Turns an item of any type into a document for the index, and computes the checksum of its text."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_fetch(self, fetched: Fetched) -> None:
        """Set the document and the checksum of an outcome, if the page has an item."""
        outcome = fetched.outcome
        if fetched.item is None:
            return
        collection = self._crawler.spider.session.collection  # type: ignore[union-attr]
        content = collection.content
        if isinstance(fetched.item, dict):
            fetched.item.setdefault("url", outcome.url)  # an export without it would be of little use
        document = document_of(fetched)
        document.fields = {**document.fields, **outcome.added}
        outcome.document = document
        outcome.checksum = checksum_of(document, fetched, with_title=content.checksum_title, cut_off=content.checksum_cut_off)
        # Not part of the checksum, because equal pages have several addresses.
        document.title = document.title or last_segment(outcome.url)
        if collection.sites.requires_login(outcome.url):
            mark(document)
            outcome.checksum = checksum_behind_login(outcome.checksum)
