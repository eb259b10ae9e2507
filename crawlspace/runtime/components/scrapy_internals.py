"""The private names of Scrapy that are read or overridden, each with its reason. None is replaced in an object or module of Scrapy.

This is what to compare when Scrapy changes. What other modules need of them has a public name here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from http.cookiejar import Cookie
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.cookies import CookieJar

STOPPED = "download_stopped"
"""Scrapy's flag of a response whose body was not read to its end, because a component stopped the download."""


def wake(crawler: Crawler) -> None:
    """Make Scrapy fetch the next request soon. The engine has no public way to be woken before its 5 s heartbeat."""
    slot = getattr(crawler.engine, "_slot", None)
    if slot is not None:
        slot.nextcall.schedule()


def is_busy(crawler: Crawler) -> bool:
    """Return whether Scrapy downloads or reads anything. Its engine has a public method that includes the scheduler."""
    downloader, scraper = getattr(crawler.engine, "downloader", None), getattr(crawler.engine, "scraper", None)
    if downloader is None or scraper is None or scraper.slot is None:
        return True
    return bool(downloader.active) or not scraper.slot.is_idle()


def is_closing(crawler: Crawler) -> bool:
    """Return whether the crawl is ending. The engine has no public name for it."""
    slot = getattr(crawler.engine, "_slot", None)
    return slot is None or slot.closing is not None


def run_soon(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine on the event loop. Scrapy has no public function that does this with and without Twisted's reactor."""
    from scrapy.utils import defer  # noqa: PLC0415

    defer._schedule_coro(coroutine)


async def end_spider(crawler: Crawler, reason: str) -> None:
    """End a crawl, unless it is over by now. The engine has the spider only while it crawls."""
    if crawler.engine.spider is not None:
        await crawler.engine.close_spider_async(reason=reason)


def is_too_large(error: Exception) -> bool:
    """Return whether decompression ended at DOWNLOAD_MAXSIZE. Scrapy has no public class for that error."""
    from scrapy.utils._compression import _DecompressionMaxSizeExceeded  # noqa: PLC0415

    return isinstance(error, _DecompressionMaxSizeExceeded)


def other_attributes(cookie: Cookie) -> dict[str, str | None]:
    """Return the attributes of a cookie that Python's jar has no name for, by their names in small letters."""
    return {name.lower(): value for name, value in cookie._rest.items()}  # type: ignore[attr-defined]


def cookies_by_path(jar: CookieJar, domain: str) -> dict[str, dict[str, Cookie]]:
    """Return the cookies of a domain in the order they came. The public iterator walks through those of all domains."""
    found: dict[str, dict[str, Cookie]] = jar._cookies.get(domain, {})
    return found


class UrlAsGiven:
    """Mixin of Request: its URL is in normal form already. Scrapy would escape it again, at a cost for each page."""

    def _set_url(self, url: str) -> None:
        self._url = url


class CookieHook:
    """Mixin of CookiesMiddleware: a method between cookies and the jar, where Scrapy has no public one."""

    def _process_cookies(self, cookies: Iterable[Cookie], *, jar: CookieJar, request: Request) -> None:
        self.store(cookies, jar, request)

    def store(self, cookies: Iterable[Cookie], jar: CookieJar, request: Request) -> None:
        """Put the cookies of a request or response into the jar."""
        raise NotImplementedError


class DecompressionHook:
    """Mixin of HttpCompressionMiddleware: one method around the decompression of a body, where Scrapy has no public one."""

    def _handle_encoding(self, body: bytes, content_encoding: list[bytes], max_size: int) -> tuple[bytes, list[bytes]]:
        return self.decompress(body, content_encoding, max_size)

    def _warn_unknown_encoding(self, response: Response, encodings: list[bytes]) -> None:
        self.unknown_encoding(response, encodings)

    def decompress(self, body: bytes, encodings: list[bytes], max_size: int) -> tuple[bytes, list[bytes]]:
        """Return the body decompressed, and the encodings that are not known."""
        decompressed: tuple[bytes, list[bytes]] = super()._handle_encoding(body, encodings, max_size)  # type: ignore[misc]
        return decompressed

    def unknown_encoding(self, response: Response, encodings: list[bytes]) -> None:
        """Report encodings that are not known."""


class ExportHook:
    """Mixin of FeedExporter: a method around the end of one export, and one that waits for it; Scrapy has no public ones."""

    _pending_close_tasks: list[Any]

    async def stored(self) -> None:
        """Wait until all batches that are complete are stored."""
        if self._pending_close_tasks:
            await asyncio.wait(list(self._pending_close_tasks))

    async def _close_slot(self, slot: Any, spider: Any) -> None:
        await self.end_export(slot, spider)

    async def end_export(self, slot: Any, spider: Any) -> None:
        """Finish the file of an export, and store it."""
        await super()._close_slot(slot, spider)  # type: ignore[misc]
