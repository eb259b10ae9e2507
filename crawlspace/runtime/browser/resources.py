"""What pages in the browser load, fetched by the crawl's own downloader: with its rules, addresses, robots.txt, log-ins and proxies."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK

from crawlspace.cache import Recent
from crawlspace.printable import printable
from crawlspace.runtime.browser.browser_request import BrowserRequest, Initiator
from crawlspace.runtime.browser.cached_resources import CachedResources, Resource
from crawlspace.runtime.components.requests import RESOURCE, SLOT, OfPage
from crawlspace.urls import MalformedUrl, parse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy.http import Response

    from crawlspace.frontier.site_queue import Pace
    from crawlspace.runtime.browser.loads import Loads
    from crawlspace.runtime.browser.loopback_proxy import Streams

logger = logging.getLogger(__name__)

SHARE_OF_DELAY, LONGEST_DELAY_S = 0.1, 1.0
"""The part of the delay of a site that is between two requests for what pages load from it, and the most that it may be."""
_SITES = 1_000
_NOT_SENT_ON = frozenset(
    {
        "host",
        "connection",
        "content-length",
        "accept-encoding",
        "user-agent",
        "proxy-connection",
        "proxy-authorization",
        "upgrade",
    }
)
"""Headers of the browser that are the downloader's to set."""
_NOT_GIVEN = frozenset(
    {
        "content-encoding",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "alt-svc",
        "strict-transport-security",
        "trailer",
    }
)
"""Headers of an answer that are about its transfer, or lead elsewhere."""
_OF_NO_ANSWER = frozenset({"referer", "user-agent"})
"""Headers of a request that no answer is expected to differ by."""


class Resources:
    """Answers the requests of pages in the browser."""

    def __init__(
        self,
        download: Callable[[Request], Awaitable[Response]],
        *,
        is_named: Callable[[str, str], bool],
        pace: Callable[[str], Pace],
        connect: Callable[[str, OfPage], Awaitable[Streams | str]],
        cached_bytes: int = 64 << 20,
    ) -> None:
        """`is_named` returns whether a page may load from a URL whatever the domain rules, `pace` the delay and concurrency of a site.

        `connect` returns a connection to a WebSocket's server, or why there is none.
        """
        self._download = download
        self._is_named = is_named
        self._pace = pace
        self._connect = connect
        self._cached = CachedResources(cached_bytes)
        self._turns: Recent[str, _SiteTurns] = Recent(_SITES)

    async def answer(self, request: BrowserRequest, page: str, loads: Loads) -> Resource | None:
        """Return the answer to a request of a page; None where it is refused, or there is none."""
        may_ask = loads.begin()
        try:
            if loads.is_over or not may_ask or request.is_superfluous:
                return None
            if request.is_refused_across_sites:
                loads.refuse(_host(request), f"a page of another site sends no {request.method} there")
                return None
            return await self._found(request, page, loads)
        except Exception:
            logger.exception("what %s loads could not be answered, through a fault of ours: please report it", printable(page))
            return None
        finally:
            loads.end()

    async def connect(self, request: BrowserRequest, page: str, loads: Loads) -> Streams | None:
        """Return a connection to the server of a WebSocket; None where it is refused, or there is none."""
        may_ask = loads.begin()
        try:
            if loads.is_over or not may_ask:
                return None
            found = await self._connect(request.url, self._of_page(request, page))
            if isinstance(found, str):
                loads.refuse(_host(request), found)
                return None
            loads.requests += 1
            return found
        finally:
            loads.end()

    def _of_page(self, request: BrowserRequest, page: str) -> OfPage:
        is_own = request.initiator is Initiator.OWN
        return OfPage(page, self._is_named(page, request.url), is_own, request.may_be_read_elsewhere)

    async def _found(self, request: BrowserRequest, page: str, loads: Loads) -> Resource | None:
        headers = {name: value for name, value in request.headers.items() if _is_sent_on(name)}
        if request.initiator is Initiator.OTHER:
            headers.pop("cookie", None)
        of_page = self._of_page(request, page)
        asked = Request(
            request.url,
            method=request.method,
            headers=headers,
            body=request.body,
            callback=NO_CALLBACK,
            dont_filter=True,
            meta={RESOURCE: of_page, "download_slot": SLOT} | ({} if of_page.is_own else {"dont_merge_cookies": True}),
        )
        if request.method != "GET" or "authorization" in headers or "range" in headers:
            return await self._loaded(asked, request, loads)
        differing = sorted((name, value) for name, value in headers.items() if name not in _OF_NO_ANSWER)
        return await self._cached.get(
            f"{parse_site(page)} {request.url} {differing}", lambda: self._loaded(asked, request, loads)
        )

    async def _loaded(self, asked: Request, request: BrowserRequest, loads: Loads) -> Resource | None:
        """Download something; None where that is refused, or fails."""
        async with self._turn(request.url):
            if loads.is_over:
                return None
            try:
                loads.requests += 1
                response = await self._download(asked)
            except IgnoreRequest as refused:
                loads.requests -= 1
                loads.refuse(_host(request), printable(str(refused)))
                return None
            except Exception as error:  # noqa: BLE001 - whatever a download raises
                if request.is_needed:
                    loads.fail(f"{_shown(request.url)} could not be loaded ({printable(str(error) or type(error).__name__)})")
                return None
        if request.is_needed and (response.status >= 500 or response.status == HTTPStatus.TOO_MANY_REQUESTS):
            loads.fail(f"{_shown(request.url)} answers {response.status}")
        return Resource(response.status, headers_given(response, without=_NOT_GIVEN), response.body)

    def _turn(self, url: str) -> _SiteTurns:
        """Return what is held while a site is asked, so that it never gets more requests at a time than it may, nor faster."""
        site = parse_site(url)
        turns = self._turns.get(site)
        if turns is None:
            turns = _SiteTurns(lambda: self._pace(site), max(1, self._pace(site).concurrency))
            self._turns.put(site, turns)
        return turns


class _SiteTurns:
    """Lets some requests to a site begin, each a share of the delay after the one before."""

    def __init__(self, pace: Callable[[], Pace], most_at_once: int) -> None:
        self._pace = pace
        self._at_once = asyncio.Semaphore(most_at_once)
        self._next = 0.0

    async def __aenter__(self) -> None:
        await self._at_once.acquire()
        now = monotonic()
        wait_s = max(0.0, self._next - now)
        self._next = now + wait_s + min(LONGEST_DELAY_S, SHARE_OF_DELAY * self._pace().delay_s)
        try:
            await asyncio.sleep(wait_s)
        except BaseException:
            self._at_once.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._at_once.release()


def _host(request: BrowserRequest) -> str:
    with suppress(ValueError):
        return urlsplit(request.url).hostname or ""
    return ""


def parse_site(url: str) -> str:
    """Return the site of a URL; the URL itself where it has none."""
    try:
        return parse(url).site
    except MalformedUrl:
        return url


def _is_sent_on(name: str) -> bool:
    return name not in _NOT_SENT_ON and not name.startswith("sec-ch-")


def headers_given(response: Response, *, without: frozenset[str]) -> dict[str, str]:
    """Return the headers of an answer as Playwright takes them: several of one name with line ends between."""
    return {
        name.decode("latin-1"): "\n".join(value.decode("latin-1") for value in response.headers.getlist(name))
        for name in response.headers
        if name.decode("latin-1").lower() not in without
    }


def _shown(url: str) -> str:
    """Return a URL without its query, which may have secrets."""
    return printable(url.partition("?")[0])[:200]
