"""The private names of Scrapy that are used, each with its reason; those of its HTTP client are in download/http_internals.py, those of
its scraper and downloader in shortcuts/.

This is what to compare when Scrapy changes. What other modules need of them has a public name here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import succeed

if TYPE_CHECKING:
    from http.cookiejar import Cookie

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.http.cookies import CookieJar

STOPPED = "download_stopped"
"""Scrapy's flag of a response whose body was not read to its end, because a component stopped the download."""


def wake(crawler: Crawler) -> None:
    """Have Scrapy ask for the next request soon. The engine has no public way to be woken before its 5 s heartbeat."""
    slot = getattr(crawler.engine, "_slot", None)
    if slot is not None:
        slot.nextcall.schedule()


def is_busy(crawler: Crawler) -> bool:
    """Return whether Scrapy downloads or reads anything. Its engine has a public method that asks the scheduler as well."""
    downloader, scraper = getattr(crawler.engine, "downloader", None), getattr(crawler.engine, "scraper", None)
    if downloader is None or scraper is None or scraper.slot is None:
        return True
    return bool(downloader.active) or not scraper.slot.is_idle()


def run_soon(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine on the event loop. Scrapy has no public function that does this with and without Twisted's reactor."""
    from scrapy.utils import defer  # noqa: PLC0415

    defer._schedule_coro(coroutine)


async def end_spider(crawler: Crawler, reason: str) -> None:
    """End a crawl, unless it is over by now. The engine has the spider only while it crawls."""
    if crawler.engine.spider is not None:
        await crawler.engine.close_spider_async(reason=reason)


def set_domain_splitter(split: Callable[[str], Any]) -> None:
    """Set the source of public suffixes for cookies. Scrapy has no setting for it, and its own fetches a list."""
    from scrapy.downloadermiddlewares import cookies  # noqa: PLC0415

    cookies._split_domain = split  # type: ignore[assignment]


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
    """Mixin of CookiesMiddleware: a method between the cookies of a response and the jar, where Scrapy has no public one."""

    def _process_cookies(self, cookies: Iterable[Cookie], *, jar: CookieJar, request: Request) -> None:
        kept = self.accept(cookies)
        super()._process_cookies(kept, jar=jar, request=request)  # type: ignore[misc]
        self.stored(kept, jar)

    def accept(self, cookies: Iterable[Cookie]) -> list[Cookie]:
        """Return those of a response that are to be kept."""
        return list(cookies)

    def stored(self, cookies: list[Cookie], jar: CookieJar) -> None:
        """These cookies are in the jar."""


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


def divert_responses(crawler: Crawler, takes: Callable[[Any, Request], bool]) -> Callable[[Any, Request], Any]:
    """Have each response shown to `takes` before anything else of Scrapy gets it, and no more of it done where that returns True.

    Returns what continues with a response, unless the crawl is ending. What waits in a callback would count for Scrapy as being parsed,
    and hold up all others.
    """
    scraper = crawler.engine.scraper
    scrape = scraper.enqueue_scrape

    def enqueue(result: Any, request: Request) -> Any:
        return succeed(None) if takes(result, request) else scrape(result, request)

    def continued(result: Any, request: Request) -> Any:
        is_open = scraper.slot is not None and scraper.slot.closing is None
        return scrape(result, request) if is_open else succeed(None)

    scraper.enqueue_scrape = enqueue  # type: ignore[method-assign]
    return continued
