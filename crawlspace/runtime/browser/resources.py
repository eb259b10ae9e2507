"""What pages in the browser load, fetched by the crawl's own downloader: with its rules, addresses, robots.txt, log-ins and proxies.

The browser gets what comes as the answer to its request, so that it need not connect to anything.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from playwright.async_api import Error as PlaywrightError
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK

from crawlspace.cache import Recent
from crawlspace.printable import printable
from crawlspace.runtime.browser.cached_resources import CachedResources, Resource
from crawlspace.runtime.download.headers import location_of
from crawlspace.runtime.requests import RESOURCE, SLOT
from crawlspace.urls import MalformedUrl, parse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy.http import Response

    from crawlspace.runtime.browser.loads import Loads

logger = logging.getLogger(__name__)

NOT_LOADED = frozenset({"image", "media", "font", "texttrack", "manifest", "ping", "cspviolationreport", "eventsource"})
"""Kinds of requests that show nothing to read, or that never end."""
_NEEDED = frozenset({"script", "fetch", "xhr", "document", "other"})
MOST_REDIRECTS = 10
_SITES = 1_000
_NOT_SENT_ON = frozenset({"host", "connection", "content-length", "accept-encoding", "cookie", "user-agent", "proxy-connection"})
"""Headers of the browser that are the downloader's to set."""
_NOT_GIVEN = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive", "alt-svc"})
"""Headers of an answer that are about its transfer, or lead elsewhere."""


class OfPage(NamedTuple):
    """For which page a resource is requested (`request.meta[RESOURCE]`)."""

    url: str
    is_named: bool
    """Its host is among the `render_hosts` of the page's site, so that domain rules don't apply to it."""


class Resources:
    """Answers the requests of pages in the browser."""

    def __init__(
        self,
        download: Callable[[Request], Awaitable[Response]],
        *,
        is_named: Callable[[str, str], bool],
        most_at_once: Callable[[str], int],
        why_not: Callable[[str, str], Awaitable[str]],
        announce: Callable[[str], object],
        cached_bytes: int = 64 << 20,
    ) -> None:
        """`is_named` returns whether a page may load from a URL whatever the domain rules, `most_at_once` the concurrency of a site;
        `why_not` why a URL may not be connected to by a page. `announce` lets a connection be made.
        """
        self._download = download
        self._is_named = is_named
        self._most_at_once = most_at_once
        self._why_not = why_not
        self._announce = announce
        self._cached = CachedResources(cached_bytes)
        self._turns: Recent[str, asyncio.Semaphore] = Recent(_SITES)

    async def answer(self, route: Any, page: str, loads: Loads) -> None:
        """Answer a request of a page, whatever comes of it."""
        may_ask = loads.begin()
        try:
            request = route.request
            if loads.is_over or not may_ask or request.resource_type in NOT_LOADED or _is_ahead(request):
                await route.abort("blockedbyclient")
                return
            found = await self._found(request, page, loads)
            if found is None:
                await route.abort("failed")
            else:
                await route.fulfill(status=found.status, headers=found.headers, body=found.body)
        except PlaywrightError:
            pass  # the page has gone on, or the browser has ended
        except Exception:
            logger.exception("what %s loads could not be answered", page)
            with suppress(PlaywrightError):
                await route.abort("failed")
        finally:
            loads.end()

    async def may_connect(self, url: str, page: str, loads: Loads) -> bool:
        """Return whether a page may connect to a WebSocket; then it can."""
        as_http = "http" + url.removeprefix("ws")
        why = await self._why_not(as_http, page) if url.startswith(("ws:", "wss:")) else "it is no URL"
        if why:
            loads.refuse(urlsplit(url).hostname or "", why)
            return False
        loads.requests += 1
        self._announce(url)
        return True

    async def _found(self, request: Any, page: str, loads: Loads) -> Resource | None:
        """Return the answer to a request of the browser; None where there is none."""
        url, method = request.url, request.method
        if urlsplit(url).scheme not in {"http", "https"}:
            return None
        headers = {name: value for name, value in request.headers.items() if _is_sent_on(name)}
        if loads.has_cookies and (cookies := await self._cookies(request, url)):
            headers["Cookie"] = cookies
        is_kept = method == "GET" and "authorization" not in headers and "range" not in headers
        if not is_kept:
            return await self._loaded(request, page, loads, headers)
        key = f"{parse_site(page)} {url} {headers.get('accept', '')}"
        return await self._cached.get(key, lambda: self._loaded(request, page, loads, headers))

    async def _loaded(self, request: Any, page: str, loads: Loads, headers: dict[str, str]) -> Resource | None:
        url, method, body = request.url, request.method, request.post_data_buffer or b""
        for _ in range(MOST_REDIRECTS):
            asked = Request(
                url,
                method=method,
                headers=headers,
                body=body,
                callback=NO_CALLBACK,
                dont_filter=True,
                meta={RESOURCE: OfPage(page, self._is_named(page, url)), "download_slot": SLOT},
            )
            response = await self._response(asked, loads, is_needed=request.resource_type in _NEEDED)
            if response is None:
                return None
            location = location_of(response.headers.get(b"Location"))
            if not (300 <= response.status < 400 and location):
                loads.has_cookies = loads.has_cookies or b"Set-Cookie" in response.headers
                return Resource(response.status, headers_given(response, without=_NOT_GIVEN), response.body)
            url, method, body = _redirected(url, location, response.status, method, body)
            if not body:
                headers.pop("content-type", None)
            if parse_site(url) != parse_site(asked.url):
                headers = {name: value for name, value in headers.items() if name.lower() not in {"authorization", "cookie"}}
        return None

    async def _response(self, asked: Request, loads: Loads, *, is_needed: bool) -> Response | None:
        """Download something; None where that is refused, or fails."""
        async with self._turn(asked.url):
            if loads.is_over:
                return None
            try:
                loads.requests += 1
                response = await self._download(asked)
            except IgnoreRequest as refused:
                loads.requests -= 1
                loads.refuse(urlsplit(asked.url).hostname or "", printable(str(refused)))
                return None
            except Exception as error:  # noqa: BLE001 - whatever a download raises
                if is_needed:
                    loads.fail(f"{_shown(asked.url)} could not be loaded ({printable(str(error) or type(error).__name__)})")
                return None
        if is_needed and (response.status >= 500 or response.status == HTTPStatus.TOO_MANY_REQUESTS):
            loads.fail(f"{_shown(asked.url)} answers {response.status}")
        return response

    def _turn(self, url: str) -> asyncio.Semaphore:
        """Return what is held while a site is asked, so that it never gets more requests at a time than it may."""
        site = parse_site(url)
        turn = self._turns.get(site)
        if turn is None:
            turn = asyncio.Semaphore(max(1, self._most_at_once(site)))
            self._turns.put(site, turn)
        return turn

    async def _cookies(self, request: Any, url: str) -> str:
        """Return the cookies that the browser has for a URL, as a header."""
        try:
            cookies = await request.frame.page.context.cookies(url)
        except PlaywrightError:
            return ""  # of a worker
        return "; ".join(f"{one['name']}={one['value']}" for one in cookies)


def parse_site(url: str) -> str:
    """Return the site of a URL; the URL itself where it has none."""
    try:
        return parse(url).site
    except MalformedUrl:
        return url


def _is_sent_on(name: str) -> bool:
    return name not in _NOT_SENT_ON and not name.startswith(("sec-ch-", ":"))


def _is_ahead(request: Any) -> bool:
    """Whether the browser asks for something that may never be shown."""
    return "prefetch" in request.headers.get("sec-purpose", request.headers.get("purpose", ""))


def headers_given(response: Response, *, without: frozenset[str]) -> dict[str, str]:
    """Return the headers of an answer as Playwright takes them: several of one name with line ends between."""
    return {
        name.decode("latin-1"): "\n".join(value.decode("latin-1") for value in response.headers.getlist(name))
        for name in response.headers
        if name.decode("latin-1").lower() not in without
    }


def _redirected(url: str, location: str, status: int, method: str, body: bytes) -> tuple[str, str, bytes]:
    """Return what follows a redirect (RFC 9110, 15.4)."""
    target = urljoin(url, location)
    if status == HTTPStatus.SEE_OTHER or (status in {301, 302} and method == "POST"):
        return target, "HEAD" if method == "HEAD" else "GET", b""
    return target, method, body


def _shown(url: str) -> str:
    """Return a URL without its query, which may have secrets."""
    return printable(url.partition("?")[0])[:200]
