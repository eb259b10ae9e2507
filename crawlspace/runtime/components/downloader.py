"""Scrapy's downloader: sends the requests of a collection without a queue, because the frontier keeps delays and concurrency.

Scrapy puts each request into the queue of its slot, from which another task takes it, with two deferreds in between.
"""

from __future__ import annotations

from typing import Any

from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred

from crawlspace.runtime.components.requests import SLOT
from crawlspace.runtime.http.response_body import is_heard


class FrontierDownloader(Downloader):
    """Sends requests with the slot of the frontier at once, and others as Scrapy does."""

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Response | Request]:
        """Send a request through the downloader middlewares; return the result."""
        if request.meta.get(self.DOWNLOAD_SLOT) != SLOT:
            return super().fetch(request)
        self.active.add(request)
        return deferred_from_coro(self.middleware.download_async(self._send, request)).addBoth(self._ended, request)

    async def _send(self, request: Request) -> Response:
        self._signal(signals.request_reached_downloader, request=request)
        try:
            response: Response = await self.handlers.download_request_async(request)
            self._signal(signals.response_downloaded, response=response, request=request)
        finally:
            self._signal(signals.request_left_downloader, request=request)
        return response

    def _ended(self, result: Any, request: Request) -> Any:
        self.active.remove(request)
        return result

    def _signal(self, signal: object, **values: Any) -> None:
        if is_heard(self.signals, signal):
            self.signals.send_catch_log(signal=signal, spider=self.crawler.spider, **values)
