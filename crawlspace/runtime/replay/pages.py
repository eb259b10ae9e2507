"""Gives Scrapy's components the archived response of a page as if it had just been downloaded.

It passes the downloader middlewares, the readers of files, the spider and the item pipelines. Scrapy's own queues are left out: nothing is
waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.python.failure import Failure

from crawlspace.runtime.archived_responses import as_downloaded
from crawlspace.runtime.requests import page_request

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scrapy.crawler import Crawler

    from crawlspace.archive.reader import StoredResponse
    from crawlspace.model import UrlState


class ArchivedPages:
    """`parse` and `failed` are the callbacks of page requests."""

    def __init__(self, crawler: Crawler, *, parse: Callable[..., Any], failed: Callable[..., Any]) -> None:
        self._crawler = crawler
        self._parse = parse
        self._failed = failed

    async def handle(self, state: UrlState, stored: StoredResponse) -> None:
        """Have the response of a page handled; return when that is done."""
        request = page_request(state, callback=self._parse, errback=self._failed)

        async def answer(_: Request) -> Response:
            return as_downloaded(stored, request)

        engine: Any = self._crawler.engine
        result: Response | Failure
        try:
            response = await engine.downloader.middleware.download_async(answer, request)
            if isinstance(response, Request):
                return
            response.request = request
            result = response
        except Exception:  # noqa: BLE001 - whatever a middleware raises: it becomes the outcome of the page
            result = Failure()
        await maybe_deferred_to_future(engine.scraper.enqueue_scrape(result, request))
