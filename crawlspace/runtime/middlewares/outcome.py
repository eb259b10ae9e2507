"""Ensures that every fetch ends in exactly one outcome, even when a spider's own parsing or a spider middleware fails."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.exceptions import CloseSpider
from twisted.python.failure import Failure

from crawlspace.printable import printable, printable_message
from crawlspace.runtime.items import Fetched, unexpected
from crawlspace.runtime.requests import FAILED, STATE
from crawlspace.runtime.spiders.shown_items import has_spider_middlewares, with_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)


class BaseOneOutcome:
    """A page whose parsing raised is recorded as 699, so that it is tried again and not lost.

    Spider middlewares of a user get the item of a page; what they make of it is put back into the record of its fetch here.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._tracebacks = Tracebacks()
        if has_spider_middlewares(crawler.settings, besides=BaseOneOutcome):
            self.process_spider_output = with_record

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_spider_exception(self, response: Response, exception: Exception) -> Iterable[Any] | None:
        meta = response.request.meta if response.request is not None else {}
        state = meta.get(STATE)
        if state is None or isinstance(exception, CloseSpider):  # the page is fetched by the next start
            return None
        meta[FAILED] = True
        logger.error("%s could not be parsed (699): %s", state.url, self._tracebacks.of(exception))
        self._report(response, exception)
        return [Fetched(unexpected(state.id, state.url, why=printable(str(exception))))]

    def _report(self, response: Response, exception: Exception) -> None:
        """Send the signal and count the stats that Scrapy has for an exception of a callback."""
        spider, stats = self._crawler.spider, self._crawler.stats
        self._crawler.signals.send_catch_log(signals.spider_error, failure=Failure(exception), response=response, spider=spider)
        if stats is not None:
            stats.inc_value("spider_exceptions/count")
            stats.inc_value(f"spider_exceptions/{type(exception).__name__}")


class Tracebacks:
    """Describes exceptions for the log, each kind with its traceback once: a fault in somebody's code may occur on every page."""

    def __init__(self) -> None:
        self._shown: set[tuple[type, str, int]] = set()

    def of(self, exception: BaseException) -> str:
        """Return an exception in a line, with its place; below it, where none of its type was raised there before, the traceback."""
        frame, number = next(reversed([*traceback.walk_tb(exception.__traceback__)]), (None, 0))
        file = "" if frame is None else frame.f_code.co_filename
        sentence = f"{printable(f'{type(exception).__qualname__}: {exception}')} ({file}:{number})"
        kind = (type(exception), file, number)
        if kind in self._shown:
            return sentence
        self._shown.add(kind)
        return f"{sentence}; with its traceback, this once:\n{_traceback_of(exception)}"


def _traceback_of(exception: BaseException) -> str:
    """Return the traceback of an exception, each of its lines fit to be printed: a message may hold a whole page."""
    lines = "".join(traceback.format_exception(exception)).splitlines()
    return "\n".join(printable_message(line) for line in lines)
