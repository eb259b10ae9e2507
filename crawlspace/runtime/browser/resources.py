"""What pages in the browser load, fetched by the crawl's own downloader: with its rules, addresses, robots.txt, log-ins and proxies."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from crawlspace.cache import Recent
from crawlspace.document import essence
from crawlspace.frontier.site_queue import Pace
from crawlspace.rules.domain import public_suffix
from crawlspace.runtime.components.requests import RESOURCE, SLOT, OfPage
from crawlspace.text import printable
from crawlspace.urls import MalformedUrl, parse

if TYPE_CHECKING:
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
        self._slots: Recent[str, _SiteSlots] = Recent(_SITES)

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
        scrapy_request = Request(
            request.url,
            method=request.method,
            headers=headers,
            body=request.body,
            callback=NO_CALLBACK,
            dont_filter=True,
            meta={RESOURCE: of_page, "download_slot": SLOT} | ({} if of_page.is_own else {"dont_merge_cookies": True}),
        )
        if request.method != "GET" or "authorization" in headers or "range" in headers:
            return await self._loaded(scrapy_request, request, loads)
        differing = sorted((name, value) for name, value in headers.items() if name not in _OF_NO_ANSWER)
        return await self._cached.get(
            f"{parse_site(page)} {request.url} {differing}", lambda: self._loaded(scrapy_request, request, loads)
        )

    async def _loaded(self, scrapy_request: Request, request: BrowserRequest, loads: Loads) -> Resource | None:
        """Download something; None where that is refused, or fails."""
        async with self._slot(request.url):
            if loads.is_over:
                return None
            try:
                loads.requests += 1
                response = await self._download(scrapy_request)
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

    def _slot(self, url: str) -> _SiteSlots:
        """Return the slot to hold during a request to a site, which limits its concurrency and rate."""
        site = parse_site(url)
        slots = self._slots.get(site)
        if slots is None:
            slots = _SiteSlots(lambda: self._pace(site), max(1, self._pace(site).concurrency))
            self._slots.put(site, slots)
        return slots


class _SiteSlots:
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


# --- browser request -----------------------------------------------------------------------------------------------


_NOT_SHOWN = frozenset({"image", "audio", "video", "track", "font", "manifest", "report", "serviceworker", "document"})
"""Destinations of what shows nothing to read. The document of the tab is given to the browser without a request, so another one is a
pop-up's."""
_NOT_SHOWN_TYPES = ("image/", "text/event-stream")
"""The same by the header Accept, where there is no destination."""
_REPORTS = frozenset({"application/csp-report", "application/reports+json"})
_READ = frozenset({"GET", "HEAD"})
_SIMPLE_POST = frozenset({"", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
"""Types that a form may send (Fetch standard, "CORS-safelisted request-header")."""
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class Initiator(Enum):
    """The document that a request is made for, as seen from the requested host."""

    OWN = "same-origin"
    """One of the same origin."""
    SAME_SITE = "same-site"
    """One of another origin of the same registrable domain."""
    OTHER = "cross-site"
    """One of another site, or one that is not known."""


@dataclass(frozen=True, slots=True)
class BrowserRequest:
    """One request. Header names are in small letters."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    def header(self, name: str) -> str:
        """Return the value of a header, or ""."""
        return self.headers.get(name, "")

    @property
    def initiator(self) -> Initiator:
        named = self.header("sec-fetch-site")
        if named:
            return next((one for one in Initiator if one.value == named), Initiator.OTHER)
        source, target = _origin(self.header("origin") or self.header("referer")), _origin(self.url)
        if source is None or target is None:
            return Initiator.OTHER
        if source == target:
            return Initiator.OWN
        return Initiator.SAME_SITE if (source[0], _site(source[1])) == (target[0], _site(target[1])) else Initiator.OTHER

    @property
    def may_be_read_elsewhere(self) -> bool:
        """Whether a script of another origin could read the answer, where the server allows it: a request with CORS, or its preflight."""
        return self.initiator is not Initiator.OWN and "origin" in self.headers

    @property
    def is_document(self) -> bool:
        """Whether the answer is the document of a frame."""
        return self.header("sec-fetch-mode") == "navigate" or self.header("accept").startswith("text/html")

    @property
    def is_needed(self) -> bool:
        """Whether a page may have lost text where this fails."""
        return self.header("sec-fetch-dest") != "style" and not self.header("accept").startswith("text/css")

    @property
    def is_superfluous(self) -> bool:
        """Whether the answer shows nothing to read, or may never be shown; or the browser asks by itself, as what to fill forms with."""
        if (
            self.header("sec-fetch-site") == "none"
        ):  # a person would have asked: the document of the tab is given without a request
            return True
        if "prefetch" in self.header("sec-purpose") or "service-worker" in self.headers:
            return True
        if essence(self.header("content-type")) in _REPORTS or self.header("accept").startswith(_NOT_SHOWN_TYPES):
            return True
        return self.header("sec-fetch-dest") in _NOT_SHOWN

    @property
    def is_refused_across_sites(self) -> bool:
        """Whether the request would change something on another site: only GET, HEAD and what a form may post go there.

        A preflight is judged by the request that is to follow it; a POST that needs one is none that a form may send.
        """
        if self.initiator is not Initiator.OTHER:
            return False
        wanted = self.header("access-control-request-method")
        if self.method == "OPTIONS" and wanted:
            return wanted not in _READ
        return self.method not in _READ and not (self.method == "POST" and essence(self.header("content-type")) in _SIMPLE_POST)


def _origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of a URL or an origin; of a WebSocket those of its page's kind. None where it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if parts.hostname is None or port is None:
        return None
    return {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme), parts.hostname, port


def _site(host: str) -> str:
    """Return the registrable domain of a host; the host itself where it has none, as an address."""
    suffix = public_suffix(host)
    if not suffix or suffix == host:
        return host
    return f"{host.removesuffix(suffix).rstrip('.').rpartition('.')[2]}.{suffix}"


# --- cached resources ----------------------------------------------------------------------------------------------


SHORT_S = 60.0
"""How long data without a word about that is kept."""
LONG_S = 3600.0
"""The same of scripts and styles, and the longest of all."""
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,9})")
_CODE = ("javascript", "ecmascript", "text/css", "wasm")


class Resource(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes


class CachedResources:
    """A cache of responses, of `most_bytes` together; a request for one in flight waits for it."""

    def __init__(self, most_bytes: int, clock: Callable[[], float] = monotonic) -> None:
        self._most_bytes = most_bytes
        self._clock = clock
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[float, Resource]] = OrderedDict()
        self._loading: dict[str, asyncio.Task[Resource | None]] = {}

    async def get(self, key: str, load: Callable[[], Awaitable[Resource | None]]) -> Resource | None:
        """Return what is kept, else what `load` returns, which is kept as long as its headers allow."""
        kept = self._kept.get(key)
        if kept is not None:
            if kept[0] > self._clock():
                self._kept.move_to_end(key)
                return kept[1]
            self._drop(key)
        others = self._loading.get(key)
        if others is not None and (found := await asyncio.shield(others)) is not None:
            return found
        task = self._loading.get(key)  # those who waited with this one may be loading it by now
        if task is None:
            task = self._loading[key] = asyncio.ensure_future(self._load(key, load))
        return await asyncio.shield(task)

    async def _load(self, key: str, load: Callable[[], Awaitable[Resource | None]]) -> Resource | None:
        try:
            found = await load()
        finally:
            del self._loading[key]
        lasts_s = 0.0 if found is None else fresh_for_s(found)
        if found is not None and lasts_s and len(found.body) * 4 < self._most_bytes:
            self._kept[key] = self._clock() + lasts_s, found
            self._bytes += len(found.body)
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._kept)))
        return found

    def _drop(self, key: str) -> None:
        self._bytes -= len(self._kept.pop(key)[1].body)


def fresh_for_s(answer: Resource) -> float:
    """Return for how many seconds an answer may be used again (RFC 9111, 4.2; heuristic where it says nothing)."""
    headers = {name.lower(): value.lower() for name, value in answer.headers.items()}
    control = headers.get("cache-control", "")
    if answer.status != 200 or "set-cookie" in headers or headers.get("vary", "").strip() == "*":
        return 0.0
    if "no-store" in control or "no-cache" in control or headers.get("pragma", "") == "no-cache":
        return 0.0
    age = _MAX_AGE.search(control)
    if age is not None:
        return min(float(age[1]), LONG_S)
    return LONG_S if any(kind in headers.get("content-type", "") for kind in _CODE) else SHORT_S


# --- loads ---------------------------------------------------------------------------------------------------------


MOST_REQUESTS = 500
"""Maximal requests of one page, which is ended beyond that."""
MOST_REFUSED = 20
"""Hosts that are named."""
QUIET_S, LONG_QUIET_S = 0.4, 3.0
"""Time without requests in flight after which the network is idle. The page has to rest for a tenth of a second more before it is read.

It is the longer time while the browser has begun something that has not come to the proxy: it may be about to, or never come.
"""


@dataclass(eq=False)
class Loads:
    """Of one page while it is rendered."""

    began: float = field(default_factory=monotonic)
    """On the monotonic clock, in seconds."""
    requests: int = 0
    """Requests sent to servers, without resources loaded for another page before."""
    started: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """Hosts, with why they may not be requested."""
    failed: str = ""
    """The first script or data that could not be loaded because of its server, and why."""
    in_flight: int = 0
    """Requests that are being answered."""
    seen: int = 0
    """Requests that the browser has begun, those that it answers from its own cache too."""
    unfinished: int = 0
    """Of these, those that have not ended."""
    is_over: bool = False
    too_many: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the page has made too many requests."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def known(self) -> int:
        """Number of requests that the browser has begun or that have come here: it grows with each."""
        return self.seen + self.started

    def begin(self) -> bool:
        """Count a request of the page; return whether it is allowed."""
        self.started += 1
        self.in_flight += 1
        self._changed.set()
        if self.started > MOST_REQUESTS:
            self.too_many.set()
        return self.started <= MOST_REQUESTS

    def browser_begins(self) -> None:
        """The browser begins a request, which may come here, or not."""
        self.seen += 1
        self.unfinished += 1
        self._changed.set()
        if self.seen > 2 * MOST_REQUESTS:
            self.too_many.set()

    def browser_ends(self) -> None:
        """A request of the browser has ended."""
        self.unfinished -= 1
        self._changed.set()

    def touch(self) -> None:
        """The page connects to something."""
        self._changed.set()

    def end(self) -> None:
        """Note that a request of the page is complete, or failed."""
        self.in_flight -= 1
        self._changed.set()

    def refuse(self, host: str, why: str) -> None:
        if host in self.refused or len(self.refused) < MOST_REFUSED:
            self.refused[host] = why

    def fail(self, why: str) -> None:
        self.failed = self.failed or why

    def finish(self) -> None:
        """Answer no more requests."""
        self.is_over = True
        self._changed.set()

    async def idle(self) -> None:
        """Wait until no request has been in flight for a moment, or the page is ended."""
        while not self.is_over:
            self._changed.clear()
            try:
                async with asyncio.timeout(None if self.in_flight else LONG_QUIET_S if self.unfinished > 0 else QUIET_S):
                    await self._changed.wait()
            except TimeoutError:
                return
