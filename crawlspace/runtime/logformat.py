"""Scrapy's log messages, less those for each single page: making them costs more than the frontier does."""

from __future__ import annotations

import logging
from typing import Any

from scrapy.logformatter import LogFormatter

from crawlspace.printable import message


class QuietLogFormatter(LogFormatter):
    """Messages for each request and item are made only where DEBUG is logged."""

    def crawled(self, request: Any, response: Any, spider: Any) -> Any:
        return super().crawled(request, response, spider) if _debugging() else None

    def scraped(self, item: Any, response: Any, spider: Any) -> Any:
        return super().scraped(item, response, spider) if _debugging() else None

    def dropped(self, item: Any, exception: Any, response: Any, spider: Any) -> Any:
        return super().dropped(item, exception, response, spider) if _debugging() else None


class PrintableMessages(logging.Filter):
    """Makes messages fit to be printed that hold what a server has sent."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = message(record.getMessage()), ()
        return True


def make_printable() -> None:
    """Have what libraries log of header lines, cookies and lines of robots.txt (DEBUG) be short and without control characters."""
    for name in _OF_SERVERS:
        logger = logging.getLogger(name)
        if not any(isinstance(one, PrintableMessages) for one in logger.filters):
            logger.addFilter(PrintableMessages())


_OF_SERVERS = (
    "scrapy.core.downloader.handlers.http11",
    "scrapy.downloadermiddlewares.cookies",
    "protego._protego",
    "protego._ruleset",
)


def _debugging() -> bool:
    return logging.getLogger("scrapy").isEnabledFor(logging.DEBUG)
