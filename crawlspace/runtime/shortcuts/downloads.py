"""The way of a request to the download handler, in the task that it has already.

Scrapy puts each request into the queue of its slot, and has another task take it out, with a deferred between the two. What a middleware
returns becomes a coroutine to be awaited, even where it is nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader import middleware as middlewares
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, ensure_awaitable

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


def download_at_once(downloader: Downloader | None) -> None:
    """Have a request whose slot has room and no delay go to the download handler directly."""
    if type(downloader) is not Downloader:  # a class of the user's may do each step in another way
        return
    enqueue = downloader._enqueue_request
    middlewares.ensure_awaitable = _awaitable  # type: ignore[attr-defined, assignment]

    def fetch(request: Request) -> Deferred[Response | Request]:
        downloader.active.add(request)
        fetched = deferred_from_coro(downloader.middleware.download_async(download, request))
        return fetched.addBoth(ended, request)

    def ended(result: Any, request: Request) -> Any:
        downloader.active.remove(request)
        return result

    async def download(request: Request) -> Response:
        key, slot = downloader._get_slot(request)
        if slot.delay or slot.latercall or slot.queue or slot.free_transfer_slots() <= 0:
            return await enqueue(request)
        request.meta[Downloader.DOWNLOAD_SLOT] = key
        slot.active.add(request)
        try:
            crawler = downloader.crawler
            crawler.signals.send_catch_log(signal=signals.request_reached_downloader, request=request, spider=crawler.spider)
            slot.lastseen = monotonic()
            return await downloader._download(slot, request)
        finally:
            slot.active.remove(request)

    downloader.fetch = fetch  # type: ignore[method-assign, assignment]


class _Ready:
    """What can be awaited and is there already."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from ()
        return self._value


_NOTHING = _Ready(None)


def _awaitable(value: Any, _warn: str | None = None) -> Awaitable[Any]:
    """Return something to await, as Scrapy's function does."""
    if value is None:
        return _NOTHING
    return _Ready(value) if isinstance(value, (Response, Request)) else ensure_awaitable(value, _warn)
