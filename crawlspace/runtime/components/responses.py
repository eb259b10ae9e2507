"""A response to the one outcome of its fetch: a document, a redirect, an error, or why its page is kept out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from logging import LoggerAdapter
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.http import Response
from twisted.python.failure import Failure

from crawlspace.access.digest import schemes
from crawlspace.config.collection import Collection
from crawlspace.config.sites import mode_of
from crawlspace.content.charset import charset_parameter
from crawlspace.content.dates import http_time
from crawlspace.content.documents.contents import FileContents, TextStatus
from crawlspace.content.documents.page import page_of
from crawlspace.content.extraction_rules import Extracted
from crawlspace.content.headers import PageHeaders, read_headers
from crawlspace.content.mime import HTML_TYPES
from crawlspace.content.page import Page
from crawlspace.content.page_reader import PageReader
from crawlspace.content.robots_directives import NO_LIMITS, names_of
from crawlspace.content.sitemaps import SitemapContents
from crawlspace.crawl.conditional import not_modified
from crawlspace.crawl.files import unreadable
from crawlspace.crawl.inherited_metadata import added_by
from crawlspace.crawl.outcomes import excluded_status
from crawlspace.crawl.redirects import location_with_route, names_another, redirect_outcome
from crawlspace.crawl.run import FetchRobots
from crawlspace.decision import Decision, Reason, Render
from crawlspace.document import Document, essence
from crawlspace.errors import CrawlspaceError
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.runtime.components.items import Fetched, failed, is_document, keep_out, split, unexpected
from crawlspace.runtime.components.requests import (
    CONTENTS,
    CUT,
    EXCHANGE,
    EXTRACTED,
    FILE,
    PAGE,
    ROBOTS,
    SITEMAP,
    STATE,
    ReadPage,
    add_download,
    is_conditional,
    request_id,
)
from crawlspace.runtime.components.robots import robots_body
from crawlspace.runtime.components.rule_middleware import document_type
from crawlspace.runtime.components.scrapy_internals import STOPPED
from crawlspace.runtime.http.errors import LoggedOutError, NotSent
from crawlspace.runtime.http.failures import Meaning, detail_of, meaning_of
from crawlspace.runtime.http.file_body import FileBody
from crawlspace.runtime.http.headers import header_values, location_of
from crawlspace.runtime.http.retry_after import retry_after_of
from crawlspace.state.lifecycle import MOST_DETAIL
from crawlspace.status import NO_CONTENT, Status
from crawlspace.text import counted, printable
from crawlspace.urls import MalformedUrl, join, parse

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

IMMEDIATE_S = 1.0
"""A refresh after at most this many seconds is a redirect: the page is not meant to be read."""


class DocumentSpider(Protocol):
    """Makes the item of a page, or returns None where it is to be kept out of the index."""

    @property
    def logger(self) -> LoggerAdapter[Any]: ...

    def document(self, response: Response, page: Page) -> Any: ...


class PageReaders:
    """What is taken from the pages of each site of a collection."""

    def __init__(self, collection: Collection) -> None:
        self._sites = collection.sites
        self._agent_names = names_of(collection.user_agent)
        self._usual = collection.content.page_reader(self._agent_names)

    def agent_names(self, site: str) -> tuple[str, ...]:
        """Return our names in directives for robots that pages of a site have."""
        own = self._sites.at(site).user_agent
        return names_of(own) if own else self._agent_names

    def at(self, site: str) -> PageReader:
        """Return the reader of the pages of a site."""
        names = self.agent_names(site)
        return self._usual if names == self._agent_names else replace(self._usual, agent_names=names)


class Responses:
    """The outcomes of the responses of one crawl."""

    def __init__(self, session: Session, spider: DocumentSpider) -> None:
        collection = session.collection
        content = collection.content
        self._session = session
        self._space = session.space
        self._spider = spider
        self._readers = PageReaders(collection)
        self._max_links, self._link_tags = content.max_links, content.link_tags
        self._obey_meta_robots = content.obey_meta_robots
        self._soft_errors = collection.soft_errors
        self._misfits: set[str] = set()
        """Fields with values that are not of their type, for which that was logged."""

    def outcome(self, response: Response, state: UrlState) -> Fetched:
        """Return the outcome of a response. Where it has a page, that may become a document: see `add_document` and `add_item`."""
        status = response.status
        if not 100 <= status < 600:  # to be taken for a server error (RFC 9110, 15), and never for a code of our own
            self._spider.logger.info("%s came with the status %.20s, which HTTP has not: taken for 500", state.url, status)
            status = 500
        sitemap: SitemapContents | None = response.meta.pop(SITEMAP, None)
        if sitemap is not None and (sitemap.kind is not None or sitemap.fault):
            fetched = Fetched(self._sitemap(state, sitemap, self._headers(response, state)))
        elif 200 <= status < 300:
            fetched = self._answered(response, state)
        elif 300 <= status < 400 and status != 304:
            fetched = Fetched(self.redirected(response, state, status))
        else:
            fetched = Fetched(self.error(response, state, status))
        fetched.outcome.exchange = response.request.meta.pop(EXCHANGE, None)  # type: ignore[union-attr]
        add_download(fetched.outcome, response.request)  # type: ignore[arg-type]
        fetched.outcome.sent_ago_s = self._session.sending.ago_s(state.site)
        if not response.meta.get("autothrottle_dont_adjust_delay"):
            fetched.outcome.latency_s = response.meta.get("download_latency")
        checked = self._session.sitemaps.checked_guess(state, fetched.outcome)
        return fetched if checked is fetched.outcome else Fetched(checked)

    def add_document(self, fetched: Fetched, response: Response) -> None:
        """Complete the outcome of a page by the spider's `document()`."""
        item = self.document(fetched, response)
        if item is not None and not is_document(item):
            fetched.outcome = self.no_item(fetched.outcome, item)
        else:
            self.add_item(fetched, item)

    def document(self, fetched: Fetched, response: Response) -> Any:
        """Return what the spider's `document()` returns for a page; None where it may not be indexed."""
        if not fetched.outcome.index or fetched.page is None:
            return None
        item, fetched.parts = split(self._spider.document(response, fetched.page), fetched.outcome.url)
        return item

    def add_item(self, fetched: Fetched, item: Any) -> None:
        """Complete the outcome of a page by its item; None keeps it out of the index."""
        if item is not None and fetched.outcome.index:
            fetched.item = item
            if isinstance(item, Document):
                item.content_type = item.content_type or fetched.content_type
                item.modified = item.modified or fetched.modified
        else:
            keep_out(fetched)

    def _answered(self, response: Response, state: UrlState) -> Fetched:
        if response.status == 200 and names_another(target := location_of(response.headers.get(b"Location")), state, self._space):
            return Fetched(self._redirect(target, state, int(Status.SOFT_REDIRECT), response))
        if response.status in NO_CONTENT:
            reason = Reason.NO_CONTENT
            return Fetched(
                Outcome(state.id, state.url, OutcomeKind.EXCLUDED, response.status, reason=reason, detail=reason.sentence)
            )
        headers = self._headers(response, state)
        declared = headers.content_type
        contents: FileContents | None = response.meta.get(CONTENTS)
        stopped = STOPPED in response.flags and contents is None
        mime, decision = self._type_of(response, state, contents, declared=declared, stopped=stopped)
        if not decision.admitted:
            return Fetched(
                Outcome(state.id, state.url, OutcomeKind.EXCLUDED, Status.WRONG_TYPE, reason=Reason.MIME_TYPE, detail=mime)
            )
        if stopped:  # a part of a page never becomes a document
            detail = "the download was stopped"
            return Fetched(Outcome(state.id, state.url, OutcomeKind.GONE, Status.CUT_SHORT, detail=detail))
        page, lacking = self._page(response, state, contents, mime=mime, declared=declared)
        if names_another(target := _refreshed_at_once(page, headers), state, self._space):
            return Fetched(self._redirect(target, state, int(Status.SOFT_REDIRECT), response))
        left_out = _left_out(page, needs_browser=page.may_need_browser and not self._renders(state)) | lacking
        if left_out:
            self._session.engine.count_refused(left_out)
            self._report_limits(page, state, left_out, is_file=contents is not None)
        if response.status == 200 and self._soft_errors:
            code = self._soft_errors.status_of(state.url, title=page.title, text=page.text)
            if code is not None:
                return Fetched(_error(state, code, detail="a soft error page"))
        directives = page.robots & headers.robots if self._obey_meta_robots else NO_LIMITS
        decision = self._session.engine.recheck(state)
        index = decision.index and (directives.index or decision.actions.ignores_noindex)
        follow = decision.follow and (directives.follow or decision.actions.ignores_nofollow)
        outcome = Outcome(
            state.id,
            state.url,
            OutcomeKind.DOCUMENT,
            response.status,
            index=index,
            document=None,
            links=self._links(page, headers, state) if follow else [],
            base=page.base if page.base != state.url else "",
            left_out=left_out,
            canonical=page.canonical or headers.canonical,
            declared_type=declared,
        )
        # else each request for it is unconditional, so that a later one has what is missing
        if not headers.concern_the_document and Reason.NOT_EXTRACTED not in lacking:
            outcome.etag, outcome.last_modified = headers.etag, headers.last_modified
        if index and contents is not None and contents.status is not None:
            why = self._report_unreadable(contents, state)
            outcome = unreadable(state, outcome, why=why, policy=self._session.collection.policy)
            if outcome.kind is not OutcomeKind.DOCUMENT:
                return Fetched(outcome)
        actions = decision.actions
        if actions.fields and self._session.collection.metadata_along_links:
            outcome.link_metadata = actions.fields
        if index:
            outcome.added = added_by(actions, state.inherited)
        modified = page.modified or (http_time(headers.last_modified) if headers.last_modified else "")
        is_lost = contents is not None and contents.status is TextStatus.TOO_LARGE
        return Fetched(outcome, None, page, None if is_lost else response.body, _on_disk(response), mime, modified)

    def _sitemap(self, state: UrlState, contents: SitemapContents, headers: PageHeaders) -> Outcome:
        outcome = self._session.sitemaps.outcome(state, contents)
        if outcome.left_out:
            self._session.engine.count_refused(outcome.left_out)
        if outcome.links is not None and not self._session.engine.recheck(state).follow:
            outcome.links = []
        outcome.declared_type = headers.content_type
        if not contents.fault:  # else a later request must not be answered with 304
            outcome.etag, outcome.last_modified = headers.etag, headers.last_modified
        return outcome

    def _page(
        self, response: Response, state: UrlState, contents: FileContents | None, *, mime: str, declared: str | None
    ) -> tuple[Page, dict[Reason, int]]:
        """Return a page with the fields and the text that extraction rules take from it, and what these leave out."""
        if contents is not None:
            return self._page_of(contents, response), {}
        page, cut = self._read(response, state, mime=mime, declared=declared), dict[Reason, int]()
        if CUT in response.flags:
            page, cut = replace(page, fields={**page.fields, "text_status": "cut"}), {Reason.PAGE_TEXT: 1}
            self._spider.logger.warning(
                "%s is longer than DOWNLOAD_MAXSIZE: it is read and indexed up to there, and the rest is not found by a search",
                state.url,
            )
        extracted: Extracted | None = response.meta.pop(EXTRACTED, None)
        if extracted is None:
            return page, cut
        self._report_extracted(extracted, state)
        text = page.text if extracted.text is None else extracted.text
        numbers = {Reason.FIELD_TYPE: sum(extracted.misfits.values()), Reason.NOT_EXTRACTED: int(bool(extracted.fault))}
        lacking = cut | {reason: number for reason, number in numbers.items() if number}
        return replace(
            page, fields={**page.fields, **extracted.fields}, text=text, markdown=extracted.markdown, parts=extracted.parts
        ), lacking

    def _report_extracted(self, extracted: Extracted, state: UrlState) -> None:
        """Log values that don't fit their type, once for each field, and why rules could not be applied."""
        for name, number in extracted.misfits.items():
            if name not in self._misfits:
                self._misfits.add(name)
                self._spider.logger.warning(
                    "%s: %s for the field %s not of the type that extract.toml gives it, and left out; `scrapy extract` shows them. This"
                    " is not repeated for other pages, but counted",
                    state.url,
                    counted(number, "value"),
                    f"{name} is" if number == 1 else f"{name} are",
                )
        if extracted.fault:
            self._spider.logger.warning(
                "%s: what extract.toml and the settings take from a page could not be read (%s), and the document is without it until a"
                " later fetch",
                state.url,
                extracted.fault,
            )

    def _links(self, page: Page, headers: PageHeaders, state: UrlState) -> list[str]:
        """Return the links to follow. The canonical page of a Link header, and the URL of a Refresh header, are such as those of elements."""
        sitemaps = self._session.sitemaps
        feeds = page.feeds if page.feeds and sitemaps.are_read(state.url) else ()
        if not sitemaps.are_links_followed(state.url):
            return list(feeds)
        links = page.followed if self._obey_meta_robots else list(page.hrefs)
        links += (feed for feed in feeds if feed not in page.hrefs)
        if headers.canonical is not None and "link" in self._link_tags:
            links = [*links, headers.canonical]
        if headers.refresh is not None and "meta" in self._link_tags:
            links = [*links, headers.refresh[1]]
        return links

    def _type_of(
        self, response: Response, state: UrlState, contents: FileContents | None, *, declared: str | None, stopped: bool
    ) -> tuple[str, Decision]:
        """Return the type of a response, and whether it is taken."""
        if contents is None:
            body = _on_disk(response)
            start = response.body if body is None else body.start
            path = None if body is None else body.path
            return document_type(self._space, declared, None if stopped else start, site=state.site, on_disk=path)
        return contents.kind, self._space.at_headers(contents.kind, site=state.site, conclusive=True)

    def _renders(self, state: UrlState) -> bool:
        """Return whether a page that may need a browser was rendered, or was not because that is of no use to pages like it."""
        collection = self._session.collection
        if not collection.renders:
            return False
        actions = self._session.engine.recheck(state).actions
        return mode_of(parse(state.url), actions, collection.sites) is not Render.NEVER

    def _read(self, response: Response, state: UrlState, *, mime: str, declared: str | None) -> Page:
        """Return the page as another process has read it, or read it here."""
        read: ReadPage | None = response.meta.pop(PAGE, None)
        if read is not None and read.mime == mime:
            return read.page
        charset = None if declared is None else charset_parameter(declared)
        url = response.request.url  # type: ignore[union-attr]
        return self._readers.at(state.site).read(response.body, url=url, mime=mime, charset=charset)

    def _page_of(self, contents: FileContents, response: Response) -> Page:
        disposition = next(iter(header_values(response.headers, "Content-Disposition")), "")
        url = response.request.url  # type: ignore[union-attr]
        follow_links = self._session.collection.files.follow_links
        return page_of(contents, url=url, disposition=disposition, follow_links=follow_links)

    def _report_unreadable(self, contents: FileContents, state: UrlState) -> str:
        """Log that a file has no text, and return why."""
        assert contents.status is not None
        why = printable(f"{contents.status}: {contents.detail or contents.status.sentence}")
        self._spider.logger.info("%s has no text for the index (782): %s", state.url, why)
        return why

    def redirected(self, response: Response, state: UrlState, status: int) -> Outcome:
        """Return the outcome of a redirect; without a target that is a URL, the page counts as gone, and its links are taken."""
        target = location_with_route(location_of(response.headers.get(b"Location")), state)
        return self._redirect(target, state, status, response)

    def _redirect(self, target: str, state: UrlState, status: int, response: Response) -> Outcome:
        outcome = redirect_outcome(state, target, status, self._space, sets_cookie=b"Set-Cookie" in response.headers)
        if outcome.kind is OutcomeKind.GONE:
            self._add_links(outcome, response, state)
        return outcome

    def _add_links(self, outcome: Outcome, response: Response, state: UrlState) -> None:
        """Add the links of a page that is none of the collection itself, as that of a redirect without a target."""
        headers = self._headers(response, state)
        if STOPPED in response.flags or essence(headers.content_type) not in HTML_TYPES:
            return
        page = self._read(response, state, mime=essence(headers.content_type), declared=headers.content_type)
        directives = page.robots & headers.robots if self._obey_meta_robots else NO_LIMITS
        if directives.follow and self._session.engine.recheck(state).follow:
            outcome.links = self._links(page, headers, state)
            outcome.base = page.base if page.base != state.url else ""

    def error(self, response: Response, state: UrlState, status: int) -> Outcome:
        """Return the outcome of an error status, or of 304."""
        if status == 304:
            return not_modified(state, self._headers(response, state), conditional=is_conditional(response.request))
        logins = self._session.logins
        offered = schemes(response.headers.getlist(b"WWW-Authenticate")) if status == 401 else []
        if logins.is_refusal(state.site, status, response.body):
            why = logins.refusal(state.site, state.url, status, offered)
            return Outcome(state.id, state.url, OutcomeKind.FAILED, Status.LOGGED_OUT, detail=why)
        if offered:
            logins.note_wanted(state.site, offered)
        detail = f"it asks for a log-in: {', '.join(map(printable, offered))}" if offered else ""
        return _error(state, status, wait_s=retry_after_of(response, now=self._session.clock.now()), detail=detail)

    def _headers(self, response: Response, state: UrlState) -> PageHeaders:
        return read_headers(
            partial(header_values, response.headers),
            url=state.url,
            agent_names=self._readers.agent_names(state.site),
            obey_robots=self._obey_meta_robots,
        )

    def _report_limits(self, page: Page, state: UrlState, left_out: Mapping[Reason, int], *, is_file: bool) -> None:
        if page.links_left_out:
            self._spider.logger.warning(
                "%s: %s beyond CRAWLSPACE_MAX_LINKS (%d) left out; pages to which nothing else leads are not found",
                state.url,
                counted(page.links_left_out, "link"),
                self._max_links,
            )
        if page.text_left_out and is_file:
            self._spider.logger.warning(
                "%s: it has more text than is read of a file; the rest is not found by a search", state.url
            )
        elif page.text_left_out:
            self._spider.logger.warning(
                "%s: the last %d characters of its text are left out, and not found by a search", state.url, page.text_left_out
            )
        if Reason.NEEDS_BROWSER in left_out and self._session.progress.may_need_browser(state):
            self._spider.logger.warning(
                "%s has scripts and next to no text or links: it may show its content in a browser only, so documents may be missing;"
                ' render = "auto" for its site in CRAWLSPACE_SITES has such pages rendered. The same may apply to other pages of %s, for'
                " which this warning is not repeated in this run",
                state.url,
                state.site,
            )

    def no_item(self, outcome: Outcome, returned: object) -> Outcome:
        """Return the outcome of a page for which `document()` returned what is no item."""
        kind = type(returned).__qualname__
        several = (
            " (of several items all but one have a key, for they are parts of the page)" if isinstance(returned, list) else ""
        )
        self._spider.logger.error(
            "%s: document() of %s returned a %s%s: return a Document, a dict, a Scrapy item, a dataclass, or None (699)",
            outcome.url,
            type(self._spider).__qualname__,
            kind,
            several,
        )
        return failed(outcome, why=f"document() returned a {kind}")


def _refreshed_at_once(page: Page, headers: PageHeaders) -> str:
    """Return the URL that takes the place of a page without text at once; empty if there is none."""
    refresh = page.meta_refresh or headers.refresh
    if refresh is None or refresh[0] > IMMEDIATE_S or page.text:
        return ""
    try:
        return join(page.base, refresh[1])
    except MalformedUrl:
        return ""


def _left_out(page: Page, *, needs_browser: bool) -> dict[Reason, int]:
    """Return what is not taken from a page: the number of links beyond the limit, whether text, and whether what scripts may show."""
    numbers = {
        Reason.PAGE_LINKS: page.links_left_out,
        Reason.PAGE_TEXT: int(page.text_left_out > 0),
        Reason.NEEDS_BROWSER: int(needs_browser),
    }
    return {reason: number for reason, number in numbers.items() if number}


def _on_disk(response: Response) -> FileBody | None:
    body: FileBody | None = response.meta.get(FILE)
    return body if body is not None and body.path is not None and not body.is_too_large else None


def _error(state: UrlState, status: int, *, wait_s: float | None = None, detail: str = "") -> Outcome:
    """The outcome of a page that answers with an error, or is mapped to one."""
    if status == 429 or (status == 503 and wait_s is not None):
        return Outcome(state.id, state.url, OutcomeKind.FAILED, status, retry_after_s=wait_s, detail=detail)
    return Outcome(state.id, state.url, OutcomeKind.GONE, status, host_failure=status >= 500, detail=detail)


# --- failures ------------------------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)


def fetched_of_failure(failure: Failure, session: Session, *, logger: LoggerAdapter[Any]) -> Fetched | None:
    """Return the outcome of a page that could not be downloaded; None if its URL is tried again instead."""
    state: UrlState = failure.request.meta[STATE]  # type: ignore[attr-defined]
    if has_another_turn(failure, session):
        session.engine.not_sent(state.id)
        return None
    meaning = meaning_of_failure(failure, session, url=state.url)
    status = meaning.status
    if meaning.refused is not None:
        status = excluded_status(meaning.refused, state, space=session.space, global_space=session.engine.global_space)
    assert failure.value is not None
    detail = printable(detail_of(failure.value, meaning.status), most=MOST_DETAIL)
    _note_login_failure(failure, session, state.site)
    if meaning.status is Status.UNEXPECTED:
        logger.warning("%s ended unexpectedly (699): %s", state.url, detail)
    outcome = Outcome(
        state.id,
        state.url,
        meaning.kind,
        status,
        host_failure=meaning.host_failure,
        retry_after_s=0.0 if isinstance(failure.value, LoggedOutError) and failure.value.may_be_shown else None,
        reason=meaning.reason,
        detail=detail,
    )
    add_download(outcome, failure.request)  # type: ignore[attr-defined]
    return Fetched(outcome)


def _note_login_failure(failure: Failure, session: Session, site: str) -> None:
    """Note that a log-in failed which was not refused; others in flight at its site may fail with it."""
    error = failure.value
    if isinstance(error, LoggedOutError) and error.is_passing and not session.logins.wait_s(site):
        session.logins.note_failure(site, printable(str(error)))


def lost(state: UrlState, detail: str) -> Outcome:
    """Log that a page ended without an outcome, because of a component that is not ours, and return the one it gets."""
    logger.error("%s has no outcome (699): %s", state.url, detail)
    return unexpected(state.id, state.url, why=detail)


def has_another_turn(failure: Failure, session: Session) -> bool:
    """Return whether a request was not sent, or only to a kept connection that was being closed."""
    request = failure.request  # type: ignore[attr-defined]
    return isinstance(failure.value, NotSent) or session.second_attempts.may_retry(request_id(request), failure.value)


def meaning_of_failure(failure: Failure, session: Session, *, url: str) -> Meaning:
    """Return what a failed download means for its URL."""
    assert failure.value is not None
    return meaning_of(failure.value, url=url, resolver=session.resolver())


# --- robots txt ----------------------------------------------------------------------------------------------------


Stop = Callable[[CrawlspaceError], None]
"""Ends the crawl because of an error."""


def take_robots_txt(response: Response, session: Session, *, stop: Stop) -> None:
    """Give the engine a robots.txt that has come, after its redirects (the robots middleware follows them)."""
    fetch = response.request.meta[ROBOTS]  # type: ignore[union-attr]
    is_own = fetch.target_site == fetch.site
    if is_own and session.logins.is_refusal(fetch.site, response.status, response.body):
        offered = schemes(response.headers.getlist(b"WWW-Authenticate"))
        session.engine.refuse_login(fetch, session.logins.refusal(fetch.site, fetch.url, response.status, offered))
        return
    body = robots_body(response)
    wait_s = retry_after_of(response, now=session.clock.now())
    _take(session, stop, fetch, status=response.status, body=body, wait_s=wait_s)


def take_robots_failure(failure: Failure, session: Session, *, stop: Stop) -> None:
    """Report a robots.txt that could not be fetched. A host that does not exist, or may not be connected to, has none to obey."""
    request = failure.request  # type: ignore[attr-defined]
    fetch = request.meta[ROBOTS]
    if has_another_turn(failure, session):
        session.engine.robots_not_sent(fetch)  # it is requested again with the site's next slot
        return
    if isinstance(failure.value, LoggedOutError):
        _note_login_failure(failure, session, fetch.target_site)
        session.engine.pause_login(fetch, printable(str(failure.value)))
        return
    meaning = meaning_of_failure(failure, session, url=request.url)
    assert failure.value is not None
    detail = printable(detail_of(failure.value, meaning.status), most=MOST_DETAIL)
    _take(session, stop, fetch, status=int(meaning.status), body="", detail=detail)


def _take(
    session: Session, stop: Stop, fetch: FetchRobots, *, status: int, body: str, wait_s: float | None = None, detail: str = ""
) -> None:
    if session.error is not None:
        return
    try:
        session.engine.robots_read(fetch, status=status, body=body, retry_after_s=wait_s, detail=detail)
    except CrawlspaceError as error:
        stop(error)
