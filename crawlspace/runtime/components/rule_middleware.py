"""A request and a response against the rules: the one implementation, as a Scrapy downloader middleware.

It has two bindings, which find the rules and add what only they know: `middlewares/crawl_space.py` for a collection of this project, and
`crawlspace.addon` for any other Scrapy project.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Collection
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Headers, Response

from crawlspace.cache import Recent
from crawlspace.content.documents.kinds import FILE_TYPES, FIRST_BYTES, file_kind, is_html
from crawlspace.content.mime import SNIFFED_BYTES, sniff
from crawlspace.decision import Decision, Reason
from crawlspace.document import essence
from crawlspace.model import Source, source_of
from crawlspace.rules.space import CrawlSpace
from crawlspace.runtime.components.requests import site_text
from crawlspace.runtime.components.scrapy_internals import STOPPED
from crawlspace.runtime.http.errors import ProxyFailed
from crawlspace.runtime.http.headers import declared_type
from crawlspace.status import NO_CONTENT
from crawlspace.text import printable
from crawlspace.urls import Url

logger = logging.getLogger(__name__)

RULES = "crawlspace_rules"
"""The key of `request.meta` for what the rules set for a URL, as plain values. False there exempts a request from the rules."""
CACHED_DECISIONS = 25_000


@dataclass(slots=True)
class CheckedUrl:
    """A URL and the decision for it. `counted`: its refusal is in the statistics already."""

    url: Url | None
    decision: Decision
    counted: bool = False


class RequestRules:
    """The crawl space of one crawl, and how a refusal is reported. A binding overrides what it knows more about."""

    def __init__(self, space: CrawlSpace, crawler: Crawler) -> None:
        self.space = space
        self._crawler = crawler
        self._checked: Recent[str, CheckedUrl] = Recent(CACHED_DECISIONS)

    def check(self, text: str) -> CheckedUrl:
        """Return the decision for an absolute URL."""
        checked = self._checked.get(text)
        if checked is None:
            checked = CheckedUrl(*self.space.decide(text))
            self._checked.put(text, checked)
        return checked

    def refuse(self, request: Request, decision: Decision, *, checked: CheckedUrl | None = None) -> str:
        """Count and log a refusal, and return the sentence: why, and by which rule. `checked`: counted once for this URL."""
        sentence = refusal(decision)
        if checked is None or not checked.counted:
            self.count(decision.reason)
            logger.debug("Refused: %s: %s", printable(str(request)), sentence, extra={"spider": self._crawler.spider})
        if checked is not None:
            checked.counted = True
        return sentence

    # --- what a binding may override ------------------------------------------------------------------------------

    def start(self) -> None:
        """The first request is about to be sent."""

    def count(self, reason: Reason) -> None:
        """Count one refusal."""
        raise NotImplementedError

    def is_leased(self, request: Request) -> bool:
        """Return whether the frontier has just checked this request, and its response becomes an outcome."""
        return False

    def is_robots_txt(self, request: Request) -> bool:
        """Return whether a request is for a robots.txt, to which limits of pages do not apply."""
        return False

    def checks_for(self, request: Request) -> Collection[Reason] | None:
        """Return the checks that a request must pass which is for no page, so that its document may be of any type; None for a page."""
        return None

    def takes(self, request: Request, declared: str | None) -> bool:
        """Return whether the body of a response is wanted, by its type."""
        return self.space.at_headers(declared, site=site_text(request)).admitted

    def before(self, request: Request, checked: CheckedUrl) -> Awaitable[None] | None:
        """Return what must be waited for before robots.txt can decide about a request."""
        return None

    def after_response(self, request: Request, response: Response) -> Response | Request:
        """Return the answer to a request that is for no page, or the request that follows it."""
        return response

    def after_exception(self, request: Request, exception: Exception) -> Request | None:
        """Return a request that failed once more, if it is to be tried again."""
        return None

    def at_request(self, request: Request, checked: CheckedUrl) -> Decision:
        """Return the decision for an admitted URL with what depends on more than the URL."""
        return checked.decision

    def robots_refusal(self, request: Request) -> str | None:
        """Return why robots.txt refuses a request, if it does and is not checked by another middleware."""
        return None

    def will_connect(self, request: Request, checked: CheckedUrl) -> None:
        """A request is sent; connections for it may be made."""

    def why_unreachable(self, checked: CheckedUrl) -> Decision | None:
        """Return why no address of the URL's host was allowed, if that was so."""
        return None

    def stop(self) -> None:
        """The spider is closed."""


class RuleMiddleware:
    """Downloader middleware: refuses requests outside the rules, those of redirects too, and documents of other types."""

    def __init__(self, rules: RequestRules) -> None:
        self._rules = rules
        self._started = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RuleMiddleware:
        middleware = cls(cls.rules_of(crawler))
        crawler.signals.connect(middleware.headers_received, signal=signals.headers_received)
        crawler.signals.connect(middleware.spider_closed, signal=signals.spider_closed)
        return middleware

    @classmethod
    def rules_of(cls, crawler: Crawler) -> RequestRules:
        """Return the rules of a crawl. Raises NotConfigured where it has none."""
        raise NotImplementedError

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """Raise IgnoreRequest with reason and rule for a request outside the rules. Returns what must be waited for, if anything."""
        rules = self._rules
        if rules.is_leased(request):
            return None
        if not self._started:  # not before: the resolver of the process is installed when its reactor starts
            self._started = True
            rules.start()
        checked = rules.check(request.url)
        if not is_exempt(request):
            if not rules.is_robots_txt(request):
                self._check(request, checked)
            rules.will_connect(request, checked)
        before = rules.before(request, checked)
        if before is not None:
            return self._wait_and_ask(before, request)
        self._ask_robots(request)
        return None

    def _check(self, request: Request, checked: CheckedUrl) -> None:
        rules, decision = self._rules, checked.decision
        heeded = rules.checks_for(request)
        if heeded is not None and checked.url is not None:
            decision = decision.heeding(heeded)
        if not decision.admitted:
            raise IgnoreRequest(rules.refuse(request, decision, checked=checked))
        if heeded is None:
            decision = rules.at_request(request, checked)
            if not decision.admitted:
                raise IgnoreRequest(rules.refuse(request, decision))
        request.meta[RULES] = rule_values(decision)

    async def _wait_and_ask(self, before: Awaitable[None], request: Request) -> None:
        await before
        self._ask_robots(request)

    def _ask_robots(self, request: Request) -> None:
        refusal = self._rules.robots_refusal(request)
        if refusal is not None:
            raise IgnoreRequest(refusal)

    def headers_received(self, headers: Headers, request: Request) -> None:
        """Stop before the body where the header names a type that is not taken; `process_response` or the spider then refuses it."""
        if is_exempt(request) or self._rules.is_robots_txt(request) or self._rules.checks_for(request) is not None:
            return
        if not self._rules.takes(request, declared_type(headers)):
            request.meta["dont_cache"] = True  # Scrapy's cache would keep it without its body
            raise StopDownload(fail=False)

    def process_response(self, request: Request, response: Response) -> Response | Request:
        """Raise IgnoreRequest for a document of a type that is not taken, by its header or else by its first bytes."""
        rules = self._rules
        if rules.is_leased(request):
            return response
        if rules.checks_for(request) is not None:
            return rules.after_response(request, response)
        if not 200 <= response.status < 300 or is_exempt(request) or rules.is_robots_txt(request):
            return response
        has_body = request.method != "HEAD" and response.status not in NO_CONTENT and STOPPED not in response.flags
        body = response.body if has_body else None
        decision = document_type(rules.space, declared_type(response.headers), body, site=site_text(request))[1]
        if not decision.admitted:
            raise IgnoreRequest(rules.refuse(request, decision))
        return response

    def spider_closed(self) -> None:
        self._rules.stop()


class AddressRefusals:
    """Downloader middleware: reports a host without an allowed address as such. It belongs behind those that try again."""

    def __init__(self, rules: RequestRules) -> None:
        self._rules = rules

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Raise IgnoreRequest where an address rule kept the connection from being made."""
        rules = self._rules
        if isinstance(exception, IgnoreRequest) or rules.is_leased(request):
            return None
        decision = (
            None if is_exempt(request) or isinstance(exception, ProxyFailed) else rules.why_unreachable(rules.check(request.url))
        )
        if decision is not None:
            counted = CheckedUrl(None, decision, counted=rules.is_robots_txt(request))
            raise IgnoreRequest(rules.refuse(request, decision, checked=counted)) from exception
        return rules.after_exception(request, exception)


def document_type(
    space: CrawlSpace, declared: str | None, body: bytes | None, *, site: str, on_disk: Path | None = None
) -> tuple[str, Decision]:
    """Return the type of a document and whether it is taken of its site: by its header, else by its first bytes; without a body by the header.

    Of a file that is `on_disk`, the body is its first bytes.
    """
    decision = space.at_headers(declared, site=site)
    if body is None or not decision.admitted:
        return essence(declared), decision
    mime = sniff(declared, body[:SNIFFED_BYTES])
    if mime in FILE_TYPES and is_html(body):  # an error page in place of the file, say
        mime = "text/html"
    elif mime not in FILE_TYPES and body.startswith(FIRST_BYTES):  # what kind of a zip file it is, its first bytes may not show
        with BytesIO(body) if on_disk is None else on_disk.open("rb") as file:
            mime = file_kind(declared, file)
    return mime, space.at_headers(mime, site=site, conclusive=True)


def may_redirect_robots_txt(space: CrawlSpace, target: Url, hosts: Collection[str | None]) -> bool:
    """Return whether a redirect of a robots.txt may be followed: within its hosts, or to one that the crawl space may reach.

    Limits of pages do not apply, because a robots.txt is no page.
    """
    return target.host in hosts or space.may_reach(target)


def refusal(decision: Decision) -> str:
    """Return why a URL is refused, and by which rule."""
    return f"{decision.reason.sentence} ({decision.rule})" if decision.rule else decision.reason.sentence


def is_exempt(request: Request | None) -> bool:
    """Return whether the code that made a request has exempted it from the rules."""
    return request is None or request.meta.get(RULES) is False


def rule_values(decision: Decision) -> dict[str, Any]:
    """Return what the rules set for a URL as plain values, so that a request can be written to a job's folder."""
    return {
        "index": decision.index,
        "follow": decision.follow,
        "shift": decision.shift,
        "source": source_of_links(decision).label,
        "label": decision.actions.label,
        "fields": dict(decision.actions.fields),
    }


def source_of_links(decision: Decision) -> Source:
    return source_of(index=decision.index, follow=decision.follow)
