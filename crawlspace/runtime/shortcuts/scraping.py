"""The way of a response through the spider and the item pipelines, in one task.

Scrapy has five generators around the callback, and three tasks with a queue between it and the pipelines.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.core.scraper import Scraper
from scrapy.http import Response
from twisted.python.failure import Failure

from crawlspace.runtime.middlewares.outcome import BaseOneOutcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from scrapy import Request
    from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)


def scrape_at_once(scraper: Scraper | None, parse: Callable[..., Any]) -> None:
    """Have what `parse`, a generator function, yields for a response go to the item pipelines directly, one after the other.

    Scrapy's own way is taken for other callbacks, for downloads that failed, after an exception, and where there are spider middlewares.
    """
    if type(scraper) is not Scraper or not all(isinstance(one, BaseOneOutcome) for one in scraper.spidermw.middlewares):
        return
    scrape = scraper._scrape

    async def scrape_page(result: Response | Failure, request: Request) -> None:
        if not isinstance(result, Response) or result.request is None or result.request.callback is not parse:
            await scrape(result, request)
            return
        try:
            for item in parse(result, **result.request.cb_kwargs):
                await scraper.start_itemproc_async(item, response=result)
        except Exception as error:  # noqa: BLE001 - as Scrapy
            try:
                items: AsyncIterator[Any] = scraper.spidermw._process_spider_exception(result, error)
            except Exception:  # noqa: BLE001 - as Scrapy
                scraper.handle_spider_error(Failure(), request, result)
            else:
                await scraper.handle_spider_output_async(items, request, result)

    def enqueue(result: Response | Failure, request: Request) -> Deferred[None]:
        assert scraper.slot is not None
        done = scraper.slot.add_response_request(result, request)
        scraper._scrape_next()
        return done.addErrback(broke, request).addBoth(ended, result, request)

    def broke(failure: Failure, request: Request) -> None:
        logger.error("Scraper bug processing %s", request, exc_info=failure.value, extra={"spider": scraper.crawler.spider})

    def ended(_: None, result: Response | Failure, request: Request) -> None:
        assert scraper.slot is not None
        scraper.slot.finish_response(result, request)
        scraper._check_if_closing()
        scraper._scrape_next()

    scraper._scrape = scrape_page  # type: ignore[method-assign]
    scraper.enqueue_scrape = enqueue  # type: ignore[method-assign]
