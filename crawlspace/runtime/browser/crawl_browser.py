"""The browser of one crawl: what it may load is what the crawl may, and its pages carry the log-ins of their sites."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.exceptions import IgnoreRequest

from crawlspace.cache import Recent
from crawlspace.decision import Reason
from crawlspace.frontier.robots.cache import RobotsVerdict
from crawlspace.runtime.browser.forward_proxy import ForwardProxy
from crawlspace.runtime.browser.loads import Loads
from crawlspace.runtime.browser.renderer import Renderer
from crawlspace.runtime.browser.resources import Resources, headers_given
from crawlspace.runtime.browser.tab import PageJob
from crawlspace.runtime.collection_rules import CHECKS_OF_A_NAMED_HOST, CHECKS_OF_A_RESOURCE
from crawlspace.runtime.download.host_addresses import addresses_of
from crawlspace.runtime.other_requests.robots import OtherRobots
from crawlspace.runtime.requests import STATE
from crawlspace.runtime.rule_middleware import refusal
from crawlspace.urls import MalformedUrl, Url, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlspace.config.rendering import SiteRendering
    from crawlspace.rules.domain import DomainMatcher
    from crawlspace.runtime.browser.tab import Dom
    from crawlspace.runtime.session import Session

_MATCHERS = 1_000
_NOT_FOR_THE_TAB = frozenset(
    {"strict-transport-security", "content-disposition", "refresh", "content-encoding", "content-length", "location"}
)
"""Headers of a page that would lead the tab elsewhere, or are about a transfer that is over."""


class CrawlBrowser:
    """Renders the pages of one crawl."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        self._session = session
        self._stats = crawler.stats
        settings = session.collection.browser
        self.timeout_s = settings.timeout_s
        self.most_bytes = crawler.settings.getint("DOWNLOAD_MAXSIZE")
        self._sites = session.collection.sites
        self._hosts: Recent[tuple[str, ...], DomainMatcher] = Recent(_MATCHERS)
        self._proxy = ForwardProxy(self._addresses)
        self._resources = Resources(
            partial(_download, crawler),
            is_named=self._is_named,
            most_at_once=lambda site: session.engine.site_delays.of(site).concurrency,
            why_not=self._why_not,
            announce=self._proxy.announce,
        )
        self._robots = OtherRobots(session, crawler)
        self._address = ""
        self._renderer = Renderer(
            settings,
            self._resources,
            proxy=self._way_out,
            user_agent=session.collection.user_agent,
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
        """Return a page as the browser shows it; `records` gets the loads of each attempt. Raises NotRenderedError and NotAsked."""
        state = request.meta[STATE]
        host, _, port = state.site.rpartition(":")
        job = PageJob(
            state.url,
            response.status,
            headers_given(response, without=_NOT_FOR_THE_TAB),
            response.body,
            self.timeout_s,
            wait_for=self._sites.of(host, int(port)).rendering.wait_for,
            cookies=_cookies_of(request),
            stays=stays,
        )

        def loads() -> Loads:
            records.append(Loads())
            return records[-1]

        return await self._renderer.render(job, loads)

    async def close(self) -> None:
        """End the browser and its way out, and note what it has needed."""
        await self._renderer.close()
        await self._proxy.close()
        if self._stats is not None:
            self._stats.set_value("crawlspace/browser/replaced", self._renderer.replaced)
            self._stats.set_value("crawlspace/browser/memory_max", self._renderer.most_memory)

    async def _way_out(self) -> str:
        if not self._address:
            self._address = await self._proxy.start()
        return self._address

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

    async def _why_not(self, url: str, page: str) -> str:
        """Return why a page may not connect to a URL; empty where it may."""
        parsed, decision = self._session.space.decide(url)
        if parsed is None:
            return decision.reason.sentence
        heeded = decision.heeding(CHECKS_OF_A_NAMED_HOST if self._is_named(page, url) else CHECKS_OF_A_RESOURCE)
        if not heeded.admitted:
            return refusal(heeded)
        if self._session.collection.proxies.has(parsed):
            return "its site is reached through a proxy, and WebSockets go through none"
        if not self._session.collection.robots_obey:
            return ""
        if self._robots_verdict(parsed) is RobotsVerdict.UNKNOWN:
            try:
                await self._robots.read(parsed)
            except IgnoreRequest as refused:
                return str(refused)
        return Reason.ROBOTS.sentence if self._robots_verdict(parsed) is RobotsVerdict.FORBIDDEN else ""

    def _robots_verdict(self, url: Url) -> RobotsVerdict:
        return self._session.engine.robots.ask(url.text, site=url.site)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        resolver = self._session.resolver()
        if resolver is None:
            return ()
        return await addresses_of(resolver, self._session.space.at_connect, host, port)


async def _download(crawler: Crawler, request: Request) -> Response:
    assert crawler.engine is not None
    return await crawler.engine.download_async(request)


def _cookies_of(request: Request) -> list[dict[str, Any]]:
    """Return the cookies that a page was requested with, for its host."""
    parts = urlsplit(request.url)
    pairs = (pair.strip().partition("=") for pair in (request.headers.get("Cookie") or b"").decode("latin-1").split(";"))
    return [
        {"name": name, "value": value, "domain": parts.hostname or "", "path": "/", "secure": parts.scheme == "https"}
        for name, _, value in pairs
        if name
    ]
