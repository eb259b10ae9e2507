"""Scrapy's log messages, less those for each single page: making them costs more than the frontier does."""

from __future__ import annotations

import logging
from typing import Any

from scrapy.logformatter import LogFormatter


class QuietLogFormatter(LogFormatter):
    """Messages for each request and item are made only where DEBUG is logged."""

    def crawled(self, request: Any, response: Any, spider: Any) -> Any:
        return super().crawled(request, response, spider) if _debugging() else None

    def scraped(self, item: Any, response: Any, spider: Any) -> Any:
        return super().scraped(item, response, spider) if _debugging() else None

    def dropped(self, item: Any, exception: Any, response: Any, spider: Any) -> Any:
        return super().dropped(item, exception, response, spider) if _debugging() else None


def _debugging() -> bool:
    return logging.getLogger("scrapy").isEnabledFor(logging.DEBUG)
