"""Responses from the archive as Scrapy has them after its downloader middlewares: decoded, and of the class that fits their type.

Of a page that was rendered they have the DOM as their body, as the response had in the crawl: nothing is rendered again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Headers, HtmlResponse, Response
from scrapy.responsetypes import responsetypes
from scrapy.utils.asyncio import CallLaterResult, call_later

from crawlspace.archive.reader import ArchiveReader, StoredResponse
from crawlspace.config.collection import Collection
from crawlspace.config.content import ContentSettings
from crawlspace.content.charset import charset_parameter, decode
from crawlspace.content.fingerprint import checksum, with_parts
from crawlspace.content.mime import HTML_TYPES, SNIFFED_BYTES, sniff
from crawlspace.content.page import Page
from crawlspace.crawl.rule_changes.archived import DocumentMoving, LinkJudging
from crawlspace.document import Document
from crawlspace.errors import CrawlspaceError, StoreAway, StoreError, StoreFull
from crawlspace.index.login_exclusion import checksum_behind_login, is_marked
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.runtime.components.middlewares import Decompression, beginning_of
from crawlspace.runtime.components.requests import CUT, page_request
from crawlspace.runtime.components.responses import Responses
from crawlspace.runtime.components.scrapy_internals import wake
from crawlspace.runtime.http.errors import UndecodableBody
from crawlspace.runtime.http.headers import declared_type, header_values

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

MOST_BYTES = 1 << 30
"""A body was within the limits of the crawl when it was fetched."""
_OF_THE_BODY = ("Content-Encoding", "Content-Length", "Transfer-Encoding")
_decompression = Decompression.__new__(Decompression)
"""The middleware without a crawler, which decompression does not need."""


def with_dom(response: Response, dom: bytes) -> HtmlResponse:
    """Return a response with a DOM as its body: HTML in UTF-8, with the headers of such."""
    headers = response.headers.copy()
    headers["Content-Type"] = "text/html; charset=utf-8"
    for name in _OF_THE_BODY:
        headers.pop(name, None)
    return response.replace(cls=HtmlResponse, headers=headers, body=dom, encoding="utf-8")


def response_of(stored: StoredResponse, request: Request | None = None) -> Response:
    """Return a response as its spider gets it. Raises UndecodableBody."""
    return sent_response_of(stored, request) if stored.dom is None else _rendered(stored, stored.dom, request)


def sent_response_of(stored: StoredResponse, request: Request | None = None) -> Response:
    """Return a response as it was before its page was rendered, decoded. Raises UndecodableBody."""
    headers, body = _headers_of(stored), stored.body
    encodings = headers.getlist("Content-Encoding")
    if encodings:
        beginning = beginning_of(body, encodings, MOST_BYTES) if stored.is_cut else None
        body, left = _decompression.decompress(body, encodings, MOST_BYTES) if beginning is None else (beginning, [])
        if left:
            headers["Content-Encoding"] = left
        else:
            del headers["Content-Encoding"]
    return _made(stored, headers, body, request)


def as_downloaded(stored: StoredResponse, request: Request) -> Response:
    """Return a response as Scrapy's downloader middlewares get it; that of a page that was rendered as it was behind them."""
    if stored.dom is not None:
        return _rendered(stored, stored.dom, request)
    return _made(stored, _headers_of(stored), stored.body, request)


def _rendered(stored: StoredResponse, dom: bytes, request: Request | None) -> HtmlResponse:
    made = Response(stored.url, status=stored.status, headers=_headers_of(stored), request=request or Request(stored.url))
    return with_dom(made, dom)


def _headers_of(stored: StoredResponse) -> Headers:
    headers = Headers()
    for name, value in stored.headers:
        headers.appendlist(name, value)
    return headers


def _made(stored: StoredResponse, headers: Headers, body: bytes, request: Request | None) -> Response:
    kind = responsetypes.from_args(headers=headers, url=stored.url, body=body)
    flags = [CUT] if stored.is_cut else None
    return kind(stored.url, status=stored.status, headers=headers, body=body, flags=flags, request=request or Request(stored.url))


def decoded_body(stored: StoredResponse) -> str:
    """Return the body of a response as text: of HTML, or of another text; that of a page that was rendered is its DOM."""
    try:
        response = response_of(stored)
    except UndecodableBody:
        return ""
    declared = declared_type(response.headers)
    text, _ = decode(response.body, None if declared is None else charset_parameter(declared), markup=True)
    return text


# --- archived page -------------------------------------------------------------------------------------------------


class Archived(Protocol):
    """A URL with the place of its response in the archive."""

    @property
    def url(self) -> str: ...

    @property
    def archived(self) -> int | None: ...


class FetchedHtml(NamedTuple):
    """A page as it was fetched: its markup, the headers of its response, and what it has."""

    html: str
    headers: tuple[tuple[str, str], ...]
    page: Page


def archived_page(known: Archived, archive: ArchiveReader, content: ContentSettings) -> Page | None:
    """Return the page of a URL as it was archived; None where the archive has none, or no HTML."""
    found = _archived_html(known, archive)
    return None if found is None else _page_of(found, content, known.url)


def archived_html(known: Archived, archive: ArchiveReader, content: ContentSettings) -> FetchedHtml | None:
    """As `archived_page`, with what the page was made of."""
    found = _archived_html(known, archive)
    return None if found is None else _fetched(found, content, known.url)


def html_of_file(body: bytes, content: ContentSettings, url: str) -> FetchedHtml:
    """Return the page in a file as if it had been fetched from a URL, without headers."""
    return _fetched(HtmlResponse(url, body=body), content, url)


def _archived_html(known: Archived, archive: ArchiveReader) -> Response | None:
    stored = None if known.archived is None else archive.response(known.archived, known.url)
    if stored is None or not 200 <= stored.status < 300:
        return None
    try:
        response = response_of(stored)
    except UndecodableBody:
        return None
    return response if sniff(declared_type(response.headers), response.body[:SNIFFED_BYTES]) in HTML_TYPES else None


def _page_of(response: Response, content: ContentSettings, url: str) -> Page:
    declared = declared_type(response.headers)
    mime = sniff(declared, response.body[:SNIFFED_BYTES])
    charset = None if declared is None else charset_parameter(declared)
    return content.page_reader().read(response.body, url=url, mime=mime if mime in HTML_TYPES else "text/html", charset=charset)


def _fetched(response: Response, content: ContentSettings, url: str) -> FetchedHtml:
    declared = declared_type(response.headers)
    html, _ = decode(response.body, None if declared is None else charset_parameter(declared), markup=True)
    names = [name.decode("latin-1") for name in response.headers]
    headers = tuple((name, value) for name in names for value in header_values(response.headers, name))
    return FetchedHtml(html, headers, _page_of(response, content, url))


# --- archive work --------------------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

T = TypeVar("T")

_PAUSE_S = 1.0
"""Seconds between two checks whether documents can be pushed again: too many wait, or the store is unavailable or full."""
_AGAIN_S = 60.0
"""Seconds between two checks of the leases."""


class ArchiveWork:
    """Judges the links of archived pages and moves archived documents, a few pages in each iteration of the loop."""

    def __init__(self, session: Session, responses: Responses | None, crawler: Crawler) -> None:
        """`responses`: None where the spider makes of pages what it wants, so that they are fetched."""
        self._session = session
        self._responses = responses
        self._crawler = crawler
        engine, archive = session.engine, session.collection.archive
        files = session.store.archive_files
        self._archive = ArchiveReader(archive.folder, files() if archive.is_on else {}, look_up=files)
        judging = LinkJudging(engine, _if_archived(self._outcome))
        self._steps = [judging.step] if engine.is_judging else []
        self._moving: DocumentMoving | None = None
        if archive.is_on and engine.folded:
            self._moving = DocumentMoving(engine, _if_archived(self._document), partial(checksum_under, session.collection))
            self._steps.append(self._moving.step)
        self._next: CallLaterResult | None = call_later(0, self._step) if self._steps else None

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
        self._archive.close()

    def _step(self) -> None:
        self._next = None
        try:
            self._steps = [step for step in self._steps if self._session.error is None and step()]
            if self._steps:
                self._next = call_later(_PAUSE_S if self._session.deliveries.blocks_crawl else 0, self._step)
            elif self._session.error is None and self._moving is not None and self._moving.retry():
                self._next = call_later(_AGAIN_S, self._step)
            wake(self._crawler)
        except (StoreAway, StoreFull):  # the crawl ends where that lasts
            self._next = call_later(_PAUSE_S, self._step)
        except CrawlspaceError as error:
            self._session.fail(error, self._crawler)
        except Exception as error:
            logger.exception("what the archive has could not be used")
            fault = f"what the archive has could not be used, through a fault of ours ({type(error).__name__}: {error})"
            self._session.fail(StoreError(f"{fault}: the log has the details, please report it; nothing is lost"), self._crawler)

    def _outcome(self, place: int, state: UrlState) -> Outcome | None:
        """Return the outcome of the stored response."""
        stored = None if self._responses is None else self._archive.response(place, state.url)
        if stored is None or self._responses is None:
            return None
        response = response_of(stored, page_request(state, callback=None, errback=None))
        if sniff(declared_type(response.headers), response.body[:SNIFFED_BYTES]) not in HTML_TYPES:
            return None
        outcome = self._responses.outcome(response, state).outcome
        return outcome if outcome.kind is OutcomeKind.DOCUMENT else None

    def _document(self, place: int, state: UrlState) -> Document | None:
        return self._archive.document(place, state.url)


def _if_archived(read: Callable[[int, UrlState], T | None]) -> Callable[[UrlState], T | None]:
    """Return a function that reads what is stored of a page, and returns None where that fails, so that the page is fetched."""

    def read_or_none(state: UrlState) -> T | None:
        if state.archived is None:
            return None
        try:
            return read(state.archived, state)
        except UndecodableBody:
            return None
        except Exception:
            logger.exception("%s: what the archive has of it could not be read, so the page is fetched", state.url)
            return None

    return read_or_none


def checksum_under(collection: Collection, document: Document, url: str) -> bytes | None:
    """Return the checksum that a stored document has under another URL; None where only a fetch can tell."""
    if not document.text.strip() or collection.sites.requires_login(url) != is_marked(document):
        return None
    content = collection.content
    made = checksum(document.text, title=document.title if content.checksum_title else None, cut_off=content.checksum_cut_off)
    made = made if content.checksum_cut_off else with_parts(made, document.parts)
    return checksum_behind_login(made) if is_marked(document) else made
