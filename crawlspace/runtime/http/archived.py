"""What the archive keeps of a request and its response, taken where they are as they were sent."""

from __future__ import annotations

from functools import lru_cache
from time import time

from scrapy import Request
from scrapy.http import Response

from crawlspace.config.access import is_credential
from crawlspace.outcome import Exchange
from crawlspace.runtime.components.requests import CUT, FILE
from crawlspace.runtime.http.file_body import FileBody


def exchange_of(request: Request, response: Response) -> Exchange:
    """Return a request and the response to it, whose body is not decoded yet. Headers with credentials are left out."""
    file: FileBody | None = request.meta.get(FILE)
    return Exchange(
        request.url,
        request.method,
        [(name, values) for name, values in dict.items(request.headers) if not _is_credential(name)],
        response.status,
        list(dict.items(response.headers)),  # not by Scrapy's method, which looks each of them up in turn
        response.body if file is None or file.path is None else file.kept(),
        time(),
        _PROTOCOLS.get(response.protocol or "", "HTTP/1.1"),
        None if response.ip_address is None else str(response.ip_address),
        is_cut=CUT in response.flags,
    )


_PROTOCOLS = {"HTTP/1.0": "HTTP/1.0"}
"""A record in WARC has the form of HTTP/1.1, even for HTTP/2."""


@lru_cache(100)
def _is_credential(name: bytes) -> bool:
    return is_credential(name.decode("latin-1"))
