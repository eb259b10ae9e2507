"""The rules in a Scrapy project with its own spiders, scheduler and middlewares: what `crawlspace.addon` adds to them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware
from scrapy.utils.httpobj import urlparse_cached

from crawlspace.config.proxies import proxies_of_environment
from crawlspace.config.sites import SiteTable
from crawlspace.decision import Decision, Reason
from crawlspace.model import Source, priority
from crawlspace.rules.space import CrawlSpace
from crawlspace.runtime.components.rule_middleware import (
    RULES,
    AddressRefusals,
    CheckedUrl,
    RequestRules,
    RuleMiddleware,
    is_exempt,
    may_redirect_robots_txt,
    rule_values,
    source_of_links,
)
from crawlspace.runtime.http.handler import CurlDownloadHandler
from crawlspace.runtime.http.resolver import GuardedResolver, as_in_urls, resolver_of_process
from crawlspace.text import printable

logger = logging.getLogger(__name__)

COUNTED = "crawlspace_counted"
"""The key of `request.meta` for the URL that CRAWLSPACE_MAX_URLS_PER_HOST has counted last, and its `retry_times` then."""
START = "crawlspace_start"
"""The key of `request.meta` that marks a start URL and what it redirects to."""
NOFOLLOW = "crawlspace/nofollow"
"""The stat that counts links dropped because their page is not to be followed."""
NOINDEX_ITEMS = "crawlspace/items_of_noindex_pages"
"""The stat that counts items passed on although their page is not to be indexed."""


class AddonRules(RequestRules):
    """The crawl space of one spider, with the number of its requests by host, and its part in the resolver of the process."""

    def __init__(self, space: CrawlSpace, sites: SiteTable, crawler: Crawler) -> None:
        super().__init__(space, crawler)
        self._sites = sites
        self._requests: Counter[str] = Counter()
        self._requested_hosts: set[str] = set()
        self._own: GuardedResolver | None = None
        self._shared: SharedResolver | None = None
        """That of the process, where the project has a download handler of its own."""

    def count(self, reason: Reason) -> None:
        self.count_stat(f"crawlspace/refused/{reason.value}")

    def count_stat(self, name: str) -> None:
        self._crawler.stats.inc_value(name)

    def refuse(self, request: Request, decision: Decision, *, checked: CheckedUrl | None = None) -> str:
        """Count and log a refusal; that of a start URL is a warning each time, because it may be why nothing is crawled."""
        if request.meta.get(START):
            first_url = (request.meta.get("redirect_urls") or [request.url])[0]
            leads = f" leads to {printable(request.url)}, which" if first_url != request.url else ""
            by = f" ({decision.rule}: {printable(decision.rule.text)})" if decision.rule is not None else ""
            logger.warning("the start URL %s%s is refused: %s%s", printable(first_url), leads, decision.reason.sentence, by)
        return super().refuse(request, decision, checked=checked)

    def is_robots_txt(self, request: Request) -> bool:
        """Return whether Scrapy requests a robots.txt, where it or a permitted redirect of it is."""
        if request.callback is not NO_CALLBACK or not request.meta.get("dont_obey_robotstxt"):
            return False
        chain = request.meta.get("redirect_urls") or [request.url]
        if urlsplit(chain[0]).path != "/robots.txt":
            return False
        hosts = [urlsplit(url).hostname for url in (chain[0], chain[-1])]
        target = self.check(request.url).url
        if target is None:
            return urlsplit(request.url).hostname in hosts
        return urlsplit(request.url).hostname in hosts or may_redirect_robots_txt(self.space, target, hosts)

    def at_request(self, request: Request, checked: CheckedUrl) -> Decision:
        """Count a request unless it is a retry, and return the decision with CRAWLSPACE_MAX_URLS_PER_HOST in it."""
        url, decision = checked.url, checked.decision
        if url is None:
            return decision
        most = self._sites.of(url.host, url.port).limits.max_urls_per_host
        if most is None:
            return decision
        retries = request.meta.get("retry_times", 0)
        counted, retries_then = request.meta.get(COUNTED) or (None, 0)
        request.meta[COUNTED] = (request.url, retries)  # a redirect target inherits all of these, and a link may
        if counted == request.url and retries > retries_then:
            return decision
        if self._requests[url.host] >= most:
            return Decision(Reason.URLS_PER_HOST, None, decision.trace)
        self._requests[url.host] += 1
        return decision

    # --- addresses ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Have the address rules hold, or warn that they cannot. Where the project has a download handler of its own, look-ups ask them."""
        if not self.space.has_address_rules:
            return
        if variables := proxies_of_environment(is_on=self._crawler.settings.getbool("HTTPPROXY_ENABLED")):
            logger.warning(
                "the address rules do not hold for what goes through the proxy of %s, because only that sees the addresses",
                variables,
            )
        if self._has_our_handler:
            return
        self._shared = self._shared_resolver()
        if self._shared is None:
            logger.warning(
                "the address rules of crawl.rules do NOT hold in this crawl, because names are not looked up by %s.%s:"
                " set TWISTED_DNS_RESOLVER to that, run the spider by `scrapy crawl` or a CrawlerProcess, and keep Twisted's reactor",
                SharedResolver.__module__,
                SharedResolver.__qualname__,
            )
            return
        logger.warning(
            "the address rules of crawl.rules hold for the look-ups of names only, because DOWNLOAD_HANDLERS has another handler than %s",
            OUR_HANDLER,
        )
        self._shared.add(self.at_connect)

    def stop(self) -> None:
        if self._shared is not None:
            self._shared.remove(self.at_connect)

    def resolver(self) -> GuardedResolver:
        """Return what looks names up for our download handler, with the address rules of this crawl alone."""
        if self._own is None:
            of_process = resolver_of_process(self._crawler.settings)
            self._own = of_process.for_one(*([self.space.at_connect] if self.space.has_address_rules else []))
        return self._own

    @property
    def _has_our_handler(self) -> bool:
        handlers = self._crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
        return all(handlers.get(scheme) == OUR_HANDLER for scheme in SCHEMES)

    def will_connect(self, request: Request, checked: CheckedUrl) -> None:
        """Note the host of a request; connections to other hosts, as to a mail server, are not checked.

        Beside the host that was checked, that is the one that the downloader reads in the URL, in case they differ.
        """
        if self._shared is not None:
            hosts = {urlparse_cached(request).hostname or "", checked.url.host.strip("[]") if checked.url is not None else ""}
            self._requested_hosts.update(as_in_urls(host) or host for host in hosts)

    def at_connect(self, host: str, port: int, address: str) -> Decision:
        """Return whether a connection may be made; one to a host that no request of this crawl has may.

        A host without a normal form, or with one in other letters than those of the request, may have been requested all the same.
        """
        if host not in self._requested_hosts and as_in_urls(host) == host and "xn--" not in host:
            return _NOT_OURS
        return self.space.at_connect(host, port, address)

    def why_unreachable(self, checked: CheckedUrl) -> Decision | None:
        """Return why no address of the URL's host was allowed, if none was."""
        resolver = self._own if self._own is not None else self._shared
        if resolver is None or checked.url is None:
            return None
        return resolver.why_refused(checked.url.host.strip("[]"), checked.url.port)

    def _shared_resolver(self) -> SharedResolver | None:
        if not self._crawler.settings.getbool("TWISTED_REACTOR_ENABLED"):
            return None
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

        resolver: Any = getattr(reactor, "nameResolver", None)
        return resolver if isinstance(resolver, SharedResolver) else None


class AddonDownloadHandler(CurlDownloadHandler):
    """Our download handler with the address rules of the add-on."""

    def resolver(self) -> GuardedResolver:
        return _rules_of(self.crawler).resolver()


OUR_HANDLER = f"{AddonDownloadHandler.__module__}.{AddonDownloadHandler.__qualname__}"
SCHEMES = ("http", "https")


class HasRules:
    """An add-on with rules, as the middlewares below find it."""

    rules: AddonRules


class OutsideRefused(RuleMiddleware):
    """The rule middleware with the rules of the add-on."""

    @classmethod
    def rules_of(cls, crawler: Crawler) -> AddonRules:
        return _rules_of(crawler)


class ForbiddenAddresses(AddressRefusals):
    """Nearest the network, so that a host without an allowed address is not tried again."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ForbiddenAddresses:
        return cls(_rules_of(crawler))


class LinksWithinRules(BaseSpiderMiddleware):
    """Spider middleware: drops links to outside and those of pages that are not to be followed, and gives the others their priority."""

    def __init__(self, crawler: Crawler, rules: AddonRules) -> None:
        super().__init__(crawler)
        self._rules = rules
        self._depth_priority = crawler.settings.getint("DEPTH_PRIORITY")
        self._started = 0
        self._refused_starts = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LinksWithinRules:
        return cls(crawler, _rules_of(crawler))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass on what the spider starts with; a request outside the rules is reported with the rule that refuses it."""
        async for one in super().process_start(start):
            yield one
        if self._refused_starts and not self._started:
            logger.error("no start URL is within the rules, so nothing is crawled")

    def get_processed_request(self, request: Request, response: Response | None) -> Request | None:
        if is_exempt(request):
            self._started += response is None
            return request
        if response is None:
            request.meta[START] = True
        else:
            request.meta.pop(START, None)  # a spider may pass on the meta of its page
        checked = self._rules.check(request.url)
        decision = checked.decision
        if not decision.admitted:
            self._rules.refuse(request, decision, checked=checked)
            self._refused_starts += response is None
            return None
        if response is None:
            self._started += 1
        elif request.url != response.url and not self._follows(response):
            self._rules.count_stat(NOFOLLOW)
            return None
        source = Source.USER if response is None else source_of_links(decision)
        # Scrapy's depth middleware has changed the priority by now; a spider that sets none leaves 0.
        by_depth = -request.meta.get("depth", 0) * self._depth_priority if response is not None else 0
        if request.priority == by_depth:
            request.priority += priority(source, decision.shift)
        request.meta[RULES] = rule_values(decision)
        return request

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        """Pass every item on, those of pages with noindex too: only the spider knows which items are of use."""
        if response is not None and not is_exempt(response.request):
            decision = self._rules.check(response.url).decision
            if decision.admitted and not decision.index:
                self._rules.count_stat(NOINDEX_ITEMS)
        return item

    def _follows(self, response: Response) -> bool:
        if is_exempt(response.request):
            return True
        decision = self._rules.check(response.url).decision
        return decision.follow or not decision.admitted


class SharedResolver(GuardedResolver):
    """A resolver for all spiders of a process: an address that the address rules of one of them forbid is reached by none.

    Here the requesting spider is unknown. Beyond address rules, as for private networks, one spider that allows an address is enough.
    """

    def decide(self, host: str, port: int, address: str) -> Decision:
        """Return whether a connection may be made by the rules of all guards."""
        decisions = [decision for guard in self._guards if (decision := guard(host, port, address)) is not _NOT_OURS]
        forbidden = (decision for decision in decisions if decision.reason is Reason.ADDRESS)
        admitted = (decision for decision in decisions if decision.admitted)
        return next(forbidden, None) or next(admitted, None) or next(iter(decisions), _NOT_OURS)


_NOT_OURS = Decision(Reason.ADMITTED, None, ())


def _rules_of(crawler: Crawler) -> AddonRules:
    addon = crawler.get_addon(HasRules)
    if addon is None:
        raise NotConfigured('it works only with ADDONS = {"crawlspace.addon.CrawlSpaceRules": 500}')
    return addon.rules
