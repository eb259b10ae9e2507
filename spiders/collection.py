"""The spider of a collection: turns a response into one outcome.

A collection with its own parsing has a class here with its name:

    class Products(CollectionSpider):
        name = "products"

        def document(self, response, page):
            return {"title": page.title, "text": page.text, "price": response.css(".price::text").get()}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import scrapy
from itemadapter import is_item
from scrapy.http import Response
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.spider import iterate_spider_output

from crawlspace.content.charset import charset_parameter
from crawlspace.content.headers import PageHeaders, read_headers
from crawlspace.content.html import LINK_TAGS, extract
from crawlspace.content.mime import SNIFFED_BYTES, sniff
from crawlspace.content.page import Page
from crawlspace.content.robots_directives import NO_LIMITS
from crawlspace.content.text import extract_text_document
from crawlspace.crawl.inherited_metadata import added_by
from crawlspace.crawl.not_modified import not_modified
from crawlspace.decision import Reason
from crawlspace.errors import CrawlspaceError
from crawlspace.model import Document, Outcome, OutcomeKind, Status, UrlState
from crawlspace.plural import counted
from crawlspace.printable import printable
from crawlspace.runtime.download.failures import NotAsked, meaning_of
from crawlspace.runtime.download.headers import declared_type, header_values
from crawlspace.runtime.download.retry_after import retry_after_s
from crawlspace.runtime.items import Fetched
from crawlspace.runtime.loader import adding_components, overlay_collection, throttle_other_requests
from crawlspace.runtime.requests import ROBOTS, SLOT, STATE, is_conditional, request_id
from crawlspace.runtime.rule_middleware import STOPPED, document_type
from crawlspace.runtime.scheduler import open_session
from crawlspace.runtime.session import Session
from crawlspace.urls import MalformedUrl, join

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure

_PRODUCT = re.compile(r"[A-Za-z_-]+")
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


class CollectionSpider(scrapy.Spider):
    """Crawls the collection it is named after. `session` is None in `scrapy shell`, `fetch` and `parse`, which need no store."""

    session: Session | None = None
    _link_tags = LINK_TAGS
    _max_links = 10_000
    _agent_names: tuple[str, ...] = ()

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        with adding_components(settings):
            super().update_settings(settings)
        overlay_collection(settings, cls.name)
        own_starts = getattr(cls, "start_urls", None)
        if own_starts:
            settings.set("CRAWLSPACE_START_URLS", list(own_starts), priority="spider")
        sites = settings.get("CRAWLSPACE_SITES")
        throttle_other_requests(
            settings, sites if isinstance(sites, dict) else {}, slot=SLOT, requests=settings["CONCURRENT_REQUESTS"]
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, session: Session | None = None, **kwargs: Any) -> CollectionSpider:
        spider: CollectionSpider = super().from_crawler(crawler, *args, **kwargs)
        if session is None and crawler.crawling and not _is_of_a_scrapy_command(cls.start):
            session = open_session(cls.name, crawler.settings)  # a script's own CrawlerProcess; `scrapy crawl` hands one in
            session.log_warnings()
        spider.session = session
        if session is not None:
            spider._settle(session)
        return spider

    def _settle(self, session: Session) -> None:
        self.start_urls = []
        content = session.collection.content
        self._link_tags = content.link_tags
        self._max_links = content.max_links
        self._obey_meta_robots = content.obey_meta_robots
        self._agent_names = tuple(_PRODUCT.findall(session.collection.user_agent)[:1])
        self._soft_errors = session.collection.soft_errors
        self._space = session.space

    async def start(self) -> AsyncIterator[Any]:
        """The start URLs are in the store already; requests of a subclass's own `start` are candidates like any other."""
        no_requests: list[Any] = []
        for request in no_requests:
            yield request

    # --- what may be overridden -----------------------------------------------------------------------------------

    def document(self, response: Response, page: Page) -> Any:
        """Return the item for a page: a `Document`, or an item of any type Scrapy knows, or None to keep it out of the index.

        Fields named title, description, language, text, headings, content_type and modified are the document's own; what is
        missing or empty of them is taken from the page. All others are kept as its extra fields.
        """
        return Document(
            url=response.request.url,  # type: ignore[union-attr]
            title=page.title,
            description=page.description,
            language=page.language,
            text=page.text,
            headings=list(page.headings),
        )

    # --- every response ends as one outcome -----------------------------------------------------------------------

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        """Yield the one outcome of a response; without a store, as in `scrapy parse`, the item of a page and requests for its links."""
        if self.session is None:
            yield from self._parse_alone(response)
            return
        state: UrlState = response.request.meta[STATE]  # type: ignore[union-attr]
        status = response.status
        if not 100 <= status < 600:  # to be taken for a server error (RFC 9110, 15), and never for a code of our own
            self.logger.info("%s came with the status %.20s, which HTTP has not: taken for 500", state.url, status)
            status = 500
        if 200 <= status < 300:
            fetched = self._answered(response, state)
        elif 300 <= status < 400 and status != 304:
            fetched = Fetched(self._redirected(response, state, status))
        else:
            fetched = Fetched(self._error(response, state, status))
        fetched.outcome.sent_ago_s = self.session.sending.ago_s(state.site)
        yield fetched

    def _parse_alone(self, response: Response) -> Iterator[Any]:
        declared = declared_type(response.headers)
        mime = sniff(declared, response.body[:SNIFFED_BYTES])
        page = self._extract(response, mime=mime, declared=declared)
        item = self.document(response, page)
        if item is not None:
            yield item
        for href in page.followed:
            with suppress(MalformedUrl):
                yield scrapy.Request(join(page.base, href))

    def one_outcome_parser(self) -> Any:
        """Return what responses are given to: `parse`, and where a class has its own, one that sees to its outcome and its requests."""
        if type(self).parse is CollectionSpider.parse:
            return self.parse
        return self._parse_own

    async def _parse_own(self, response: Response) -> AsyncIterator[Any]:
        """Run an overridden `parse`: its requests are a link further than the page, and a page without an outcome gets one (699)."""
        state: UrlState = response.request.meta[STATE]  # type: ignore[union-attr]
        found = False
        async for one in as_async_generator(iterate_spider_output(self.parse(response))):
            if isinstance(one, scrapy.Request):
                if one.url != response.url and not self._may_follow(state):
                    continue
                one.meta.setdefault("depth", state.depth + 1)
            found = found or isinstance(one, Fetched)
            yield one
        if not found:
            self.logger.error(
                "%s: parse() yielded no outcome (699); override document(), or yield from super().parse(response)", state.url
            )
            yield Fetched(Outcome(state.id, state.url, OutcomeKind.FAILED, Status.UNEXPECTED, host_failure=True))

    def _may_follow(self, state: UrlState) -> bool:
        """Whether the rules let links of a page be taken; the requests that its parsing yields are links."""
        return self.session is None or self.session.engine.discovery.recheck(state).follow

    def failed(self, failure: Failure) -> Iterator[Fetched]:
        """Yield the one outcome of a download that failed; none where its URL has another turn instead."""
        request = failure.request  # type: ignore[attr-defined]
        state: UrlState = request.meta[STATE]
        session = self.session
        if session is not None and _has_another_turn(session, request, failure):
            session.engine.not_asked(state.id)
            return
        resolver = session.resolver() if session is not None else None
        meaning = meaning_of(_error_of(failure), url=state.url, resolver=resolver)
        outcome = Outcome(
            state.id,
            state.url,
            meaning.kind,
            meaning.status,
            host_failure=meaning.host_failure,
            reason=meaning.reason,
            detail=printable(str(failure.value)),
        )
        if meaning.status is Status.UNEXPECTED:
            self.logger.warning(
                "%s ended unexpectedly (699): %s: %s", state.url, type(failure.value).__name__, printable(str(failure.value))
            )
        yield Fetched(outcome)

    def robots_read(self, response: Response) -> None:
        """A site's robots.txt has come, after its redirects (the robots middleware follows them)."""
        fetch = response.request.meta[ROBOTS]  # type: ignore[union-attr]
        body = response.body.decode("utf-8-sig", "replace") if 200 <= response.status < 300 else ""
        wait = _header(response, b"Retry-After")
        now = self.session.engine.clock.now() if self.session is not None else 0.0
        wait_s = retry_after_s(wait, now=now) if wait is not None else None
        self._tell_robots(fetch, status=response.status, body=body, wait_s=wait_s)

    def robots_failed(self, failure: Failure) -> None:
        """A site's robots.txt could not be fetched. A host that does not exist, or may not be connected to, has none to obey."""
        request = failure.request  # type: ignore[attr-defined]
        session = self.session
        if session is not None and _has_another_turn(session, request, failure):
            session.engine.frontier.unblock(request.meta[ROBOTS].site)  # it comes again with the site's next turn
            return
        resolver = session.resolver() if session is not None else None
        meaning = meaning_of(_error_of(failure), url=request.url, resolver=resolver)
        self._tell_robots(request.meta[ROBOTS], status=int(meaning.status), body="", detail=printable(str(failure.value)))

    def _tell_robots(self, fetch: Any, *, status: int, body: str, wait_s: float | None = None, detail: str = "") -> None:
        session = self.session
        if session is None or session.error is not None:
            return
        try:
            session.engine.robots_read(fetch, status=status, body=body, retry_after_s=wait_s, detail=detail)
        except CrawlspaceError as error:
            session.fail(error, self.crawler)

    def _answered(self, response: Response, state: UrlState) -> Fetched:
        session = self.session
        assert session is not None
        if b"Location" in response.headers:
            return Fetched(self._redirected(response, state, int(Status.SOFT_REDIRECT)))
        headers = self._headers(response, state)
        declared = headers.content_type
        stopped = STOPPED in response.flags
        mime, decision = document_type(self._space, declared, None if stopped else response.body)
        if not decision.admitted:
            return Fetched(_excluded(state, Status.WRONG_TYPE, Reason.MIME_TYPE, detail=mime))
        if stopped:
            return Fetched(_stopped(state))
        page = self._extract(response, mime=mime, declared=declared)
        if page.links_left_out or page.text_left_out:
            self._report_limits(page, state)
        if response.status == 200 and self._soft_errors:
            code = self._soft_errors.status_of(state.url, title=page.title, text=page.text)
            if code is not None:
                return Fetched(_error(state, code, detail="a soft error page"))
        directives = page.robots & headers.robots if self._obey_meta_robots else NO_LIMITS
        decision = session.engine.discovery.recheck(state)
        index = directives.index and decision.index
        follow = directives.follow and decision.follow
        item = self.document(response, page) if index else None
        if item is not None and not isinstance(item, Document) and not is_item(item):
            return Fetched(self._no_item(state, item))
        outcome = Outcome(
            state.id,
            state.url,
            OutcomeKind.DOCUMENT,
            response.status,
            index=item is not None,
            document=None,
            links=(page.followed if self._obey_meta_robots else list(page.hrefs)) if follow else [],
            base=page.base if page.base != state.url else "",
            canonical=page.canonical or headers.canonical,
            declared_type=declared,
        )
        if not headers.concern_the_document:  # else it is to be asked for whole each time
            outcome.etag, outcome.last_modified = headers.etag, headers.last_modified
        said = decision.said
        if said.fields and session.collection.metadata_along_links:
            outcome.link_metadata = said.fields
        if item is not None:
            outcome.added = added_by(said, state.inherited)
        if item is None:
            outcome.kind = OutcomeKind.EXCLUDED
            outcome.status = int(Status.NOINDEX)
            outcome.reason = Reason.NOINDEX
        return Fetched(outcome, item, page, response.body, mime, headers.last_modified or "")

    def _extract(self, response: Response, *, mime: str, declared: str | None) -> Page:
        url = response.request.url  # type: ignore[union-attr]
        charset = charset_parameter(declared) if declared is not None else None
        if mime not in HTML_TYPES:
            return extract_text_document(response.body, url=url, content_type=mime, charset=charset)
        return extract(
            response.body,
            url=url,
            charset=charset,
            max_links=self._max_links,
            link_tags=self._link_tags,
            agent_names=self._agent_names,
            xhtml=mime != "text/html",
        )

    def _report_limits(self, page: Page, state: UrlState) -> None:
        assert self.session is not None
        refused = self.session.engine.discovery.refused
        if page.links_left_out:
            refused[Reason.PAGE_LINKS] += page.links_left_out
            self.logger.warning(
                "%s: %s beyond CRAWLSPACE_MAX_LINKS (%d) left out; pages to which nothing else leads are not found",
                state.url,
                counted(page.links_left_out, "link"),
                self._max_links,
            )
        if page.text_left_out:
            refused[Reason.PAGE_TEXT] += 1
            self.logger.warning(
                "%s: the last %d characters of its text are left out, and not found by a search", state.url, page.text_left_out
            )

    def _no_item(self, state: UrlState, returned: object) -> Outcome:
        kind = type(returned)
        several = " (a page gives one document)" if isinstance(returned, (Iterator, list, tuple)) else ""
        self.logger.error(
            "%s: document() of %s returned a %s%s: return a Document, a dict, a Scrapy item, a dataclass, or None (699)",
            state.url,
            type(self).__qualname__,
            kind.__qualname__,
            several,
        )
        detail = f"document() returned a {kind.__qualname__}"
        return Outcome(state.id, state.url, OutcomeKind.FAILED, Status.UNEXPECTED, host_failure=True, detail=detail)

    def _headers(self, response: Response, state: UrlState) -> PageHeaders:
        return read_headers(
            partial(header_values, response.headers),
            url=state.url,
            agent_names=self._agent_names,
            obey_robots=self._obey_meta_robots,
        )

    def _redirected(self, response: Response, state: UrlState, status: int) -> Outcome:
        location = response.headers.get(b"Location")
        target = location.decode("utf-8", "replace").strip() if location is not None else ""
        url = self._space.decide(target, base=state.url, base_host_as_written=state.host_as_written)[0] if target else None
        if url is None:
            return Outcome(state.id, state.url, OutcomeKind.GONE, Status.REDIRECT_MALFORMED, detail=printable(target))
        # As written, because domain rules may heed the case of a host.
        return Outcome(state.id, state.url, OutcomeKind.REDIRECTED, status, redirect_to=target, detail=printable(url.text))

    def _error(self, response: Response, state: UrlState, status: int) -> Outcome:
        if status == 304:
            return not_modified(state, self._headers(response, state), conditional=is_conditional(response.request))
        wait = _header(response, b"Retry-After")
        wait_s = retry_after_s(wait, now=self.session.engine.clock.now()) if wait is not None and self.session else None
        return _error(state, status, wait_s=wait_s)


def _is_of_a_scrapy_command(start: Any) -> bool:
    """`scrapy fetch` and `scrapy parse` put a start of their own into the class; they need no store, and must not enter URLs."""
    return str(getattr(start, "__module__", "")).startswith("scrapy.commands.")


def _has_another_turn(session: Session, request: scrapy.Request, failure: Failure) -> bool:
    """Whether a request was not sent, or only to a kept connection that was being closed."""
    return isinstance(failure.value, NotAsked) or session.second_turns.may_retry(request_id(request), failure.value)


def _error_of(failure: Failure) -> BaseException:
    error = failure.value
    assert error is not None
    return error


def _error(state: UrlState, status: int, *, wait_s: float | None = None, detail: str = "") -> Outcome:
    """The outcome of a page that answers with an error, or is mapped to one."""
    if status == 429 or (status == 503 and wait_s is not None):
        return Outcome(state.id, state.url, OutcomeKind.FAILED, status, retry_after_s=wait_s, detail=detail)
    return Outcome(state.id, state.url, OutcomeKind.GONE, status, host_failure=status >= 500, detail=detail)


def _stopped(state: UrlState) -> Outcome:
    """The outcome of a page of which only a part was read: nothing can be said of it, so it never becomes a document."""
    return Outcome(state.id, state.url, OutcomeKind.GONE, Status.CUT_SHORT, detail="the download was stopped")


def _excluded(state: UrlState, status: Status, reason: Reason, *, detail: str = "") -> Outcome:
    return Outcome(state.id, state.url, OutcomeKind.EXCLUDED, status, reason=reason, detail=detail)


def _header(response: Response, name: bytes) -> str | None:
    value = response.headers.get(name)
    return value.decode("latin-1") if value is not None else None
