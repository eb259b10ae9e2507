"""Responses from the archive as Scrapy has them after its downloader middlewares: decoded, and of the class that fits their type.

Of a page that was rendered they have the DOM as their body, as the response had in the crawl: nothing is rendered again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http import Headers, HtmlResponse, Response
from scrapy.responsetypes import responsetypes

from crawlspace.content.mime import SNIFFED_BYTES, sniff
from crawlspace.runtime.components.middlewares import Decompression
from crawlspace.runtime.components.responses import HTML_TYPES, PageReader
from crawlspace.runtime.http.errors import UndecodableBody
from crawlspace.runtime.http.headers import declared_type

if TYPE_CHECKING:
    from crawlspace.archive.reader import ArchiveReader, StoredResponse
    from crawlspace.config.content import ContentSettings
    from crawlspace.content.page import Page
    from crawlspace.model import UrlState

MOST_BYTES = 1 << 30
"""A body was within the limits of the crawl when it was fetched."""
_OF_THE_BODY = ("Content-Encoding", "Content-Length", "Transfer-Encoding")
_decompression = Decompression.__new__(Decompression)
"""Without the crawler that a middleware is made with, and that decompressing does not need."""


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
        body, left = _decompression.decompress(body, encodings, MOST_BYTES)
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
    return kind(stored.url, status=stored.status, headers=headers, body=body, request=request or Request(stored.url))


# --- archived page -------------------------------------------------------------------------------------------------


def archived_page(state: UrlState, archive: ArchiveReader, content: ContentSettings) -> Page | None:
    """Return the page of a URL as it was archived; None where the archive has none, or no HTML."""
    stored = None if state.archived is None else archive.response(state.archived, state.url)
    if stored is None or not 200 <= stored.status < 300:
        return None
    try:
        response = response_of(stored)
    except UndecodableBody:
        return None
    declared = declared_type(response.headers)
    mime = sniff(declared, response.body[:SNIFFED_BYTES])
    if mime not in HTML_TYPES:
        return None
    return PageReader.of(content).read(response, mime=mime, declared=declared, url=state.url)
