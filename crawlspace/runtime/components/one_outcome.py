"""Ensures that every fetch ends in exactly one outcome, even when a spider's own parsing or a spider middleware fails."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Self

from itemadapter import is_item
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from crawlspace.model import UrlState
from crawlspace.runtime.components.items import Fetched, keep_out, unexpected
from crawlspace.runtime.components.requests import FAILED, FETCHED, LATER, OWN, PREPARED, STATE, detached
from crawlspace.text import printable, printable_message

logger = logging.getLogger(__name__)


class OneOutcome:
    """A page whose parsing raised is recorded as 699, so that it is tried again and not lost.

    Spider middlewares of a user get the item of a page; what they make of it is put back into the record of its fetch here.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._tracebacks = Tracebacks()
        if has_spider_middlewares(crawler.settings, besides=OneOutcome):
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
        """Return an exception in one line, with file and line number; with the traceback the first time for its type and line."""
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


# --- shown items ---------------------------------------------------------------------------------------------------


def has_spider_middlewares(settings: BaseSettings, *, besides: type) -> bool:
    """Return whether there are spider middlewares other than those of a class."""
    components = build_component_list(settings.get_component_priority_dict_with_base("SPIDER_MIDDLEWARES"))
    return any(not issubclass(load_object(one), besides) for one in components)


def showing_items(parse: Callable[..., Any]) -> Callable[..., AsyncIterator[Any]]:
    """Return a callback that yields the item of a page where `parse` yields a record of its fetch."""

    async def parse_and_show(response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        async for one in as_async_generator(iterate_spider_output(parse(response, **kwargs))):
            if not isinstance(one, Fetched):
                yield one
                continue
            first: Fetched = response.request.meta.setdefault(FETCHED, one)  # type: ignore[union-attr]
            if first is one and one.item is not None:
                yield one.item

    return parse_and_show


async def with_record(response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield the output of the middlewares, and the record of the page with its item.

    The item is the one that the page gave, else the first, which has taken its place; others only go on to the feeds. Without one the
    page is kept out of the index. A request of the spider's own that they dropped has ended.
    """
    meta: dict[str, Any] = response.request.meta if response.request is not None else {}
    items: list[Any] = []
    async for one in result:
        if isinstance(one, Request):
            is_prepared = OWN in one.meta and one.meta[OWN] is not meta.get(OWN)
            request = one if is_prepared else detached(one)
            meta.get(PREPARED, set()).discard(one.meta.get(OWN))
            if STATE in meta:
                request.meta.setdefault("depth", meta[STATE].depth + 1)
            yield request
        elif STATE in meta or OWN in meta:
            items.append(one)
        else:
            yield one
    fetched: Fetched | None = meta.pop(FETCHED, None)
    if not meta.get(FAILED):
        if fetched is None:
            if STATE in meta and not meta.get(LATER):
                yield _without_record(meta[STATE])
        elif fetched.item is not None:
            at = next((number for number, item in enumerate(items) if item is fetched.item), 0)
            yield _with_item(fetched, items.pop(at) if items else None)
        else:
            yield fetched
    for item in items:
        yield item
    for own in meta.pop(PREPARED, ()):  # a middleware has dropped them
        logger.debug("%s: a spider middleware dropped a request", response.url)
        if own.page is not None and (ended := own.page.ended()) is not None:
            yield ended


def _with_item(fetched: Fetched, item: Any) -> Fetched:
    if item is None:
        logger.debug("%s is kept out of the index, because a spider middleware dropped its item", fetched.outcome.url)
        return keep_out(fetched)
    if not is_item(item):
        kind = type(item).__qualname__
        logger.error("%s: a spider middleware put a %s in place of its item, which is no item (699)", fetched.outcome.url, kind)
        detail = f"a spider middleware yielded a {kind}"
        return Fetched(unexpected(fetched.outcome.id, fetched.outcome.url, why=detail))
    fetched.item = item
    return fetched


def _without_record(state: UrlState) -> Fetched:
    detail = "a spider middleware handled the exception of its parsing"
    logger.error("%s has no outcome (699): %s", state.url, detail)
    return Fetched(unexpected(state.id, state.url, why=detail))
