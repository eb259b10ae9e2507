"""The rules in a Scrapy project that has spiders, a scheduler and middlewares of its own: what `crawlspace.addon` puts beside them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, NotConfigured, StopDownload
from scrapy.http.request import NO_CALLBACK
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware
from scrapy.utils.httpobj import urlparse_cached

from crawlspace.cache import Recent
from crawlspace.config.sites import SiteTable
from crawlspace.content.mime import SNIFFED_BYTES, sniff
from crawlspace.decision import Decision, Reason
from crawlspace.model import Source, priority, source_of
from crawlspace.printable import printable
from crawlspace.rules.space import CrawlSpace
from crawlspace.runtime.download.headers import declared_type
from crawlspace.runtime.download.resolver import GuardedResolver, as_in_urls
from crawlspace.urls import Url

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response

logger = logging.getLogger(__name__)

RULES = "crawlspace_rules"
"""The key of `request.meta` under which a spider finds what the rules say of a URL. False there frees a request from the rules."""
COUNTED = "crawlspace_counted"
"""The key of `request.meta` for the URL that CRAWLSPACE_MAX_URLS_PER_HOST has counted last, and its `retry_times` then."""
START = "crawlspace_start"
"""The key of `request.meta` that is there for a start URL and what it redirects to."""
NOFOLLOW = "crawlspace/nofollow"
"""The stat that counts links dropped because their page is not to be followed."""
NOINDEX_ITEMS = "crawlspace/items_of_noindex_pages"
"""The stat that counts items passed on although their page is not to be indexed."""
MEMORY = 25_000
"""URLs whose decision is remembered."""


@dataclass(slots=True)
class Judged:
    """A URL and the decision for it. `told`: its refusal has been counted."""

    url: Url | None
    decision: Decision
    told: bool = False


class RulesAlone:
    """The crawl space of one spider, with what is remembered of it while it crawls."""

    def __init__(self, space: CrawlSpace, sites: SiteTable, crawler: Crawler) -> None:
        self.space = space
        self._sites = sites
        self._crawler = crawler
        self._judged: Recent[str, Judged] = Recent(MEMORY)
        self._requests: Counter[str] = Counter()
        self._asked: set[str] = set()
        self._resolver: SharedResolver | None = None

    def judge(self, text: str) -> Judged:
        """Return the decision for an absolute URL."""
        judged = self._judged.get(text)
        if judged is None:
            judged = Judged(*self.space.decide(text))
            self._judged.put(text, judged)
        return judged

    def within_host_limit(self, request: Request, judged: Judged) -> Decision:
        """Count a request of an admitted URL unless it is a retry, and return the decision with CRAWLSPACE_MAX_URLS_PER_HOST in it."""
        url, decision = judged.url, judged.decision
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

    def refused(self, request: Request, decision: Decision, *, told: bool = False) -> str:
        """Count a refusal unless it has been `told`, log it, and return the sentence: why, and by which rule.

        That of a start URL is a warning in any case: it may be why nothing is crawled.
        """
        sentence = f"{decision.reason.sentence} ({decision.rule})" if decision.rule else decision.reason.sentence
        if request.meta.get(START):
            asked_first = (request.meta.get("redirect_urls") or [request.url])[0]
            leads = f" leads to {request.url}, which" if asked_first != request.url else ""
            by = f" ({decision.rule}: {printable(decision.rule.text)})" if decision.rule is not None else ""
            logger.warning("the start URL %s%s is refused: %s%s", asked_first, leads, decision.reason.sentence, by)
        if not told:
            self._crawler.stats.inc_value(f"crawlspace/refused/{decision.reason.value}")
            logger.debug("Refused: %s: %s", request, sentence, extra={"spider": self._crawler.spider})
        return sentence

    def count(self, name: str) -> None:
        self._crawler.stats.inc_value(name)

    def is_robots(self, request: Request) -> bool:
        """A robots.txt that Scrapy asks for itself. It may redirect within its host and to what the rules admit."""
        if request.callback is not NO_CALLBACK or not request.meta.get("dont_obey_robotstxt"):
            return False
        asked_first = (request.meta.get("redirect_urls") or [request.url])[0]
        first, now = urlsplit(asked_first), urlsplit(request.url)
        return first.path == "/robots.txt" and (first.hostname == now.hostname or self.judge(request.url).decision.admitted)

    # --- addresses ------------------------------------------------------------------------------------------------

    def hold_addresses(self) -> None:
        """Have the resolver ask these rules from now on; where it cannot, say so. Only address rules need it."""
        if not self.space.has_address_rules:
            return
        if getproxies():
            logger.warning(
                "a proxy is configured: the address rules do not hold for what goes through it, because only it sees the addresses"
            )
        self._resolver = self._shared_resolver()
        if self._resolver is None:
            logger.warning(
                "the address rules of crawl.rules do NOT hold in this crawl, because names are not looked up by %s.%s:"
                " set TWISTED_DNS_RESOLVER to that, run the spider by `scrapy crawl` or a CrawlerProcess, and keep Twisted's reactor",
                SharedResolver.__module__,
                SharedResolver.__qualname__,
            )
            return
        self._resolver.add(self.at_connect)

    def release_addresses(self) -> None:
        if self._resolver is not None:
            self._resolver.remove(self.at_connect)

    def will_connect(self, request: Request, judged: Judged) -> None:
        """A request goes out. Connections to other hosts are none of ours: a mail server's, a data base's.

        Beside the host that was judged, that is the one the downloader reads in the URL, in case it reads another.
        """
        if self._resolver is not None:
            hosts = {urlparse_cached(request).hostname or "", judged.url.host.strip("[]") if judged.url is not None else ""}
            self._asked.update(as_in_urls(host) or host for host in hosts)

    def at_connect(self, host: str, port: int, address: str) -> Decision:
        """Return whether a connection may be made; one that no request of this crawl asked for may.

        What has no normal form, or one in letters that were asked for as others, may be a host that was asked for all the same.
        """
        if host not in self._asked and as_in_urls(host) == host and "xn--" not in host:
            return _NOT_OURS
        return self.space.at_connect(host, port, address)

    def why_unreachable(self, judged: Judged) -> Decision | None:
        """Why no address of the URL's host was allowed, if that was so."""
        if self._resolver is None or judged.url is None:
            return None
        return self._resolver.why_refused(judged.url.host.strip("[]"), judged.url.port)

    def _shared_resolver(self) -> SharedResolver | None:
        if not self._crawler.settings.getbool("TWISTED_REACTOR_ENABLED"):
            return None
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

        resolver: Any = getattr(reactor, "nameResolver", None)
        return resolver if isinstance(resolver, SharedResolver) else None


class HoldsRules:
    """What an add-on is, for the middlewares below to find its rules."""

    rules: RulesAlone


class OutsideRefused:
    """Downloader middleware: no request goes outside the rules, a redirect's neither, and no document of another type comes in."""

    def __init__(self, rules: RulesAlone) -> None:
        self._rules = rules
        self._begun = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OutsideRefused:
        middleware = cls(_rules_of(crawler))
        crawler.signals.connect(middleware.headers_received, signal=signals.headers_received)
        crawler.signals.connect(middleware.spider_closed, signal=signals.spider_closed)
        return middleware

    def process_request(self, request: Request) -> None:
        """Raise IgnoreRequest with reason and rule for a request outside."""
        if not self._begun:  # not before: the resolver of the process is put in when its reactor starts
            self._begun = True
            self._rules.hold_addresses()
        if _is_free(request):
            return
        judged = self._rules.judge(request.url)
        decision = judged.decision
        if not decision.admitted and not self._rules.is_robots(request):
            told, judged.told = judged.told, True
            raise IgnoreRequest(self._rules.refused(request, decision, told=told))
        if not self._rules.is_robots(request):
            decision = self._rules.within_host_limit(request, judged)
            if not decision.admitted:
                raise IgnoreRequest(self._rules.refused(request, decision))
            request.meta[RULES] = _for_spiders(decision)
        self._rules.will_connect(request, judged)

    def headers_received(self, headers: Headers, request: Request) -> None:
        """Stop before the body where the header says that it is of no use; `process_response` then says why."""
        if _is_free(request) or self._rules.is_robots(request):
            return
        if not self._rules.space.at_headers(declared_type(headers)).admitted:
            request.meta["dont_cache"] = True  # Scrapy's cache would keep it without its body
            raise StopDownload(fail=False)

    def process_response(self, request: Request, response: Response) -> Response:
        """Raise IgnoreRequest for a document of a type that is not taken, by its header or else by its first bytes."""
        if not 200 <= response.status < 300 or _is_free(request) or self._rules.is_robots(request):
            return response
        declared = declared_type(response.headers)
        decision = self._rules.space.at_headers(declared)
        if decision.admitted and response.body:
            decision = self._rules.space.at_headers(sniff(declared, response.body[:SNIFFED_BYTES]), conclusive=True)
        if not decision.admitted:
            raise IgnoreRequest(self._rules.refused(request, decision))
        return response

    def spider_closed(self) -> None:
        self._rules.release_addresses()


class ForbiddenAddresses:
    """Downloader middleware, nearest the network: a host without an allowed address is told as such, and not tried again."""

    def __init__(self, rules: RulesAlone) -> None:
        self._rules = rules

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ForbiddenAddresses:
        return cls(_rules_of(crawler))

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Raise IgnoreRequest where it was an address rule that kept the connection from being made."""
        if isinstance(exception, IgnoreRequest) or _is_free(request):
            return
        decision = self._rules.why_unreachable(self._rules.judge(request.url))
        if decision is not None:
            raise IgnoreRequest(self._rules.refused(request, decision, told=self._rules.is_robots(request))) from exception


class LinksWithinRules(BaseSpiderMiddleware):
    """Spider middleware: drops links to outside and those of pages that are not to be followed, and gives the others their priority."""

    def __init__(self, crawler: Crawler, rules: RulesAlone) -> None:
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
        if _is_free(request):
            self._started += response is None
            return request
        if response is None:
            request.meta[START] = True
        else:
            request.meta.pop(START, None)  # a spider may pass on the meta of its page
        judged = self._rules.judge(request.url)
        decision = judged.decision
        if not decision.admitted:
            told, judged.told = judged.told, True
            self._rules.refused(request, decision, told=told)
            self._refused_starts += response is None
            return None
        if response is None:
            self._started += 1
        elif request.url != response.url and not self._follows(response):
            self._rules.count(NOFOLLOW)
            return None
        source = Source.USER if response is None else _source_of(decision)
        # Scrapy's depth middleware has taken its share by now; a spider that sets no priority leaves 0.
        by_depth = -request.meta.get("depth", 0) * self._depth_priority if response is not None else 0
        if request.priority == by_depth:
            request.priority += priority(source, decision.shift)
        request.meta[RULES] = _for_spiders(decision)
        return request

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        """Pass every item on: whether one of a page that is not to be indexed is of use only the spider knows."""
        if response is not None and not _is_free(response.request):
            decision = self._rules.judge(response.url).decision
            if decision.admitted and not decision.index:
                self._rules.count(NOINDEX_ITEMS)
        return item

    def _follows(self, response: Response) -> bool:
        if _is_free(response.request):
            return True
        decision = self._rules.judge(response.url).decision
        return decision.follow or not decision.admitted


class SharedResolver(GuardedResolver):
    """A resolver for all spiders of a process: an address that the address rules of one of them forbid is reached by none.

    Which of them asks cannot be told from here. For what is no matter of address rules, such as private networks, one that may is enough.
    """

    def decide(self, host: str, port: int, address: str) -> Decision:
        """Return whether a connection may be made, as all guards together say."""
        decisions = [decision for guard in self._guards if (decision := guard(host, port, address)) is not _NOT_OURS]
        forbidden = (decision for decision in decisions if decision.reason is Reason.ADDRESS)
        admitted = (decision for decision in decisions if decision.admitted)
        return next(forbidden, None) or next(admitted, None) or next(iter(decisions), _NOT_OURS)


_NOT_OURS = Decision(Reason.ADMITTED, None, ())


def _rules_of(crawler: Crawler) -> RulesAlone:
    addon = crawler.get_addon(HoldsRules)
    if addon is None:
        raise NotConfigured('it works only with ADDONS = {"crawlspace.addon.CrawlSpaceRules": 500}')
    return addon.rules


def _is_free(request: Request | None) -> bool:
    """Whether the spider has freed a request from the rules."""
    return request is None or request.meta.get(RULES) is False


def _for_spiders(decision: Decision) -> dict[str, Any]:
    """Plain values, so that a request can be written to a job's folder."""
    return {
        "index": decision.index,
        "follow": decision.follow,
        "shift": decision.shift,
        "source": _source_of(decision).label,
        "label": decision.said.label,
        "fields": dict(decision.said.fields),
    }


def _source_of(decision: Decision) -> Source:
    return source_of(index=decision.index, follow=decision.follow)
