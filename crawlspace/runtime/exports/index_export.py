"""Writes documents of the index in the forms of Scrapy's feeds, as a crawl does that fetches them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError as ScrapyUsageError
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.conf import feed_process_params_from_cli

from crawlspace.errors import CrawlspaceError, ExportError, UsageError
from crawlspace.runtime.exports.feeds import Exports, check_exports, file_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlspace.model import Document

_AT_ONCE = 200
"""Documents between two looks at what is still being stored: a batch that is complete keeps its file open until then."""
STDOUT = "stdout:"

Feeds = dict[str, dict[str, Any]]
"""A value of FEEDS."""


def read_feeds(settings: BaseSettings, new: Sequence[str], replaced: Sequence[str]) -> Feeds:
    """Return the feeds that `-o` and `-O` name, in Scrapy's notation. Raises UsageError, also for a file of `new` that is there."""
    without_feeds = settings.copy()
    without_feeds.set("FEEDS", {}, priority="cmdline")
    try:
        feeds: Feeds = feed_process_params_from_cli(without_feeds, [*new], overwrite_output=[*replaced])
    except ScrapyUsageError as error:
        raise UsageError(str(error)) from error
    for uri, options in feeds.items():
        path = file_of(uri)
        if new and path is not None and path.is_file():
            raise UsageError(f"{path} exists already: -O replaces it")
        if uri != STDOUT:
            options["overwrite"] = True
    return feeds


def export(documents: Iterable[Document], feeds: Mapping[str, Any], settings: BaseSettings, *, name: str) -> int:
    """Write documents to feeds; return how many. Raises ConfigError and ExportError; a file that was there stays then."""
    own = Settings(settings)
    own.set("FEEDS", feeds, priority="cmdline")
    check_exports(own)
    crawler = Crawler(type("IndexSpider", (Spider,), {"name": name}), own)
    crawler.stats = MemoryStatsCollector(crawler)
    crawler.spider = crawler.spidercls.from_crawler(crawler)
    return asyncio.run(_exported(documents, Exports(crawler), crawler.spider))


async def _exported(documents: Iterable[Document], exports: Exports, spider: Spider) -> int:
    number = 0
    try:
        exports.open_spider(spider)
        for number, document in enumerate(documents, 1):
            exports.item_scraped(document, spider)
            if number % _AT_ONCE == 0:
                await exports.stored()
            _raise_failure(exports)
        await exports.close_spider(spider)
        _raise_failure(exports)
    except (CrawlspaceError, BrokenPipeError, asyncio.CancelledError):
        exports.discard()
        raise
    except Exception as error:  # an exporter of the user's may raise anything
        exports.discard()
        raise ExportError(f"document {number:,} cannot be exported: {type(error).__name__}: {error}") from error
    return number


def _raise_failure(exports: Exports) -> None:
    """Raise why an export could not be written, or BrokenPipeError where its reader has closed the pipe."""
    if exports.failure is not None:
        cause = exports.failure.__cause__
        raise cause if isinstance(cause, BrokenPipeError) else exports.failure
