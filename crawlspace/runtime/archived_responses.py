"""Responses from the archive as Scrapy has them after its downloader middlewares: decoded, and of the class that fits their type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from crawlspace.runtime.middlewares.decompression import BaseDecompression

if TYPE_CHECKING:
    from crawlspace.archive.reader import StoredResponse

MOST_BYTES = 1 << 30
"""A body was within the limits of the crawl when it was fetched."""
_decompression = BaseDecompression.__new__(BaseDecompression)
"""Without the crawler that a middleware is made with, and that decompressing does not need."""


def response_of(stored: StoredResponse, request: Request | None = None) -> Response:
    """Return a response as its spider gets it. Raises UndecodableBody."""
    headers, body = _headers_of(stored), stored.body
    encodings = headers.getlist("Content-Encoding")
    if encodings:
        body, left = _decompression.decompress(body, encodings, MOST_BYTES)
        if left:
            headers["Content-Encoding"] = left
        else:
            del headers["Content-Encoding"]
    return _made(stored, headers, body, request)


def as_sent(stored: StoredResponse, request: Request) -> Response:
    """Return a response as Scrapy's downloader middlewares get it."""
    return _made(stored, _headers_of(stored), stored.body, request)


def _headers_of(stored: StoredResponse) -> Headers:
    headers = Headers()
    for name, value in stored.headers:
        headers.appendlist(name, value)
    return headers


def _made(stored: StoredResponse, headers: Headers, body: bytes, request: Request | None) -> Response:
    kind = responsetypes.from_args(headers=headers, url=stored.url, body=body)
    return kind(stored.url, status=stored.status, headers=headers, body=body, request=request or Request(stored.url))


def body_of(stored: StoredResponse) -> bytes:
    """Return a body without its content encoding. Raises UndecodableBody."""
    return response_of(stored).body
