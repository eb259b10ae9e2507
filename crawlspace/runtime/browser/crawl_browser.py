"""The browser of one crawl: what it may load is what the crawl may, and its pages carry the log-ins of their sites."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from crawlspace.access.sessions import KeptCookie
from crawlspace.cache import Recent
from crawlspace.config.site_tls import SiteTls
from crawlspace.config.sites import SiteRendering
from crawlspace.decision import Reason
from crawlspace.frontier.robots import RobotsVerdict
from crawlspace.rules.domain import DomainMatcher
from crawlspace.runtime.access.cookies import SessionCookies, cookies_for_page, kept_cookies
from crawlspace.runtime.browser.forward_proxy import ForwardProxy, TabPage, make_certificate
from crawlspace.runtime.browser.loopback_proxy import Streams, connected
from crawlspace.runtime.browser.process import BrowserProcess
from crawlspace.runtime.browser.renderer import Renderer
from crawlspace.runtime.browser.resources import Loads, Resources, headers_given
from crawlspace.runtime.browser.tab import Dom, PageJob
from crawlspace.runtime.components.collection_rules import checks_of_a_resource
from crawlspace.runtime.components.requests import SESSION, STATE, OfPage
from crawlspace.runtime.components.robots import OtherRobots
from crawlspace.runtime.components.rule_middleware import refusal
from crawlspace.urls import MalformedUrl, Url, parse

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

_MATCHERS = 1_000
_NOT_FOR_THE_TAB = frozenset(
    {"strict-transport-security", "content-disposition", "refresh", "content-encoding", "content-length", "location"}
)
"""Headers of a page that would lead the tab elsewhere, or are about a transfer that is over."""


class CrawlBrowser:
    """Renders the pages of one crawl."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        self._session = session
        self._crawler = crawler
        self._stats = crawler.stats
        settings = session.collection.browser
        self.timeout_s = settings.timeout_s
        self.most_bytes = crawler.settings.getint("DOWNLOAD_MAXSIZE")
        self._sites = session.collection.sites
        self._hosts: Recent[tuple[str, ...], DomainMatcher] = Recent(_MATCHERS)
        self._resources = Resources(
            partial(_download, crawler), is_named=self._is_named, pace=session.site_delays.of, connect=self._connect
        )
        self._certificate = make_certificate()
        self._verifies = crawler.settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES")
        self._dead_end = ForwardProxy(self._resources, self._certificate.context)
        """Requests of the browser itself, which needs none."""
        self._robots = OtherRobots(session, crawler)
        self._address = ""
        self._renderer = Renderer(
            settings,
            start=self._start,
            proxy_of=lambda page, loads: ForwardProxy(self._resources, self._certificate.context, TabPage(page, loads)),
            is_stopping=lambda: not crawler.crawling,
        )

    @property
    def is_away(self) -> bool:
        """Whether no browser can be started at present."""
        return self._renderer.is_away

    @property
    def why_away(self) -> str:
        return self._renderer.why_away

    async def render(self, request: Request, response: Response, records: list[Loads], *, stays: bool) -> Dom:
        """Return a page as the browser shows it; `records` gets the loads of each attempt. Raises NotRenderedError and NotSent."""
        state = request.meta[STATE]
        site = self._sites.at(state.site)
        job = PageJob(
            state.url,
            response.status,
            headers_given(response, without=_NOT_FOR_THE_TAB),
            response.body,
            self.timeout_s,
            site.user_agent or self._session.collection.user_agent,
            wait_for=site.rendering.wait_for,
            cookies=self._cookies(request),
            stays=stays,
        )

        def loads() -> Loads:
            records.append(Loads())
            return records[-1]

        return await self._renderer.render(job, loads)

    def _cookies(self, request: Request) -> list[dict[str, Any]]:
        """Return the cookies that a page was requested with: of its session, of Scrapy's jar, or by its header alone."""
        header = (request.headers.get("Cookie") or b"").decode("latin-1")
        if not header:
            return []
        logins, middleware = self._session.logins, self._crawler.get_downloader_middleware(CookiesMiddleware)
        kept: list[KeptCookie] = []
        if SESSION in request.meta:
            access = logins.entry(request.meta[SESSION][0])
            carried = logins.sessions.current(access)
            kept = [] if carried is None else SessionCookies(carried.content).kept()
        elif middleware is not None:
            kept = kept_cookies(middleware.jars[request.meta.get("cookiejar")].jar)
        return cookies_for_page(request.url, header, kept)

    async def close(self) -> None:
        """End the browser and its way out, and note what it has needed."""
        await self._renderer.close()
        await self._dead_end.close()
        if self._stats is not None:
            self._stats.set_value("crawlspace/browser/replaced", self._renderer.replaced)
            self._stats.set_value("crawlspace/browser/memory_max", self._renderer.most_memory)

    async def _start(self) -> BrowserProcess:
        """Start a browser. Raises BrowserError."""
        if not self._address:
            self._address = await self._dead_end.start()
        options = [f"--ignore-certificate-errors-spki-list={self._certificate.key_hash}"]
        return await BrowserProcess.start(self._session.collection.browser, proxy=self._address, options=options)

    def _is_named(self, page: str, url: str) -> bool:
        """Return whether a page may load from the host of a URL whatever the domain rules."""
        try:
            of, target = parse(page), parse(url)
        except MalformedUrl:
            return False
        return self._matches(self._sites.of(of.host, of.port).rendering, target.host, target.port)

    def _matches(self, rendering: SiteRendering, host: str, port: int) -> bool:
        if not rendering.hosts:
            return False
        matcher = self._hosts.get(rendering.hosts)
        if matcher is None:
            matcher = rendering.load_matcher()
            self._hosts.put(rendering.hosts, matcher)
        return matcher.match(host, port) is not None

    async def _connect(self, url: str, of_page: OfPage) -> Streams | str:
        """Return a connection to the server of a WebSocket, whose URL has http or https; or why there is none."""
        parsed, decision = self._session.space.decide(url)
        if parsed is None:
            return decision.reason.sentence
        heeded = decision.heeding(checks_of_a_resource(of_page))
        if not heeded.admitted:
            return refusal(heeded)
        if self._session.collection.proxies.has(parsed):
            return "its site is reached through a proxy, and WebSockets go through none"
        if self._session.collection.robots_obey:
            if self._robots_verdict(parsed) is RobotsVerdict.UNKNOWN:
                try:
                    await self._robots.read(parsed)
                except IgnoreRequest as refused:
                    return str(refused)
            if self._robots_verdict(parsed) is RobotsVerdict.FORBIDDEN:
                return Reason.ROBOTS.sentence
        for address in await self._addresses(parsed.host, parsed.port):
            with suppress(OSError, TimeoutError):
                return await connected(address, parsed.port, tls=self._tls(parsed), name=parsed.host.strip("[]"))
        return "it cannot be connected to"

    def _tls(self, url: Url) -> ssl.SSLContext | None:
        """Return what a connection to a WebSocket is made with; None for one without TLS."""
        if url.scheme != "https":
            return None
        tls = self._sites.of(url.host, url.port).tls or SiteTls("")
        context = tls.context(verify=self._verifies)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _robots_verdict(self, url: Url) -> RobotsVerdict:
        return self._session.robots.check(url.text, site=url.site)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        resolver = self._session.resolver()
        if resolver is None:
            return ()
        return [address for _, address in await resolver.addresses(host.strip("[]"), port)]


async def _download(crawler: Crawler, request: Request) -> Response:
    assert crawler.engine is not None
    return await crawler.engine.download_async(request)
