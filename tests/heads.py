"""The head of an answer as Twisted and Scrapy read it, line by line, and as it is read in one go."""

from __future__ import annotations

from typing import Any

from scrapy.core.downloader.handlers.http11 import _ScrapyAgent
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.web._newclient import Request
from twisted.web.client import URI
from twisted.web.http_headers import Headers

from crawlspace.runtime.http.header_limits import LimitedFactory
from crawlspace.runtime.http.plain_head import plain_head


def as_twisted_reads(data: bytes) -> Any:
    """Return the status, Scrapy's headers, the length of the body, and whether the connection may be kept; None if it is not read."""
    kept: list[Any] = []
    connection = LimitedFactory(kept.append, "").buildProtocol(None)
    connection.makeConnection(StringTransport())
    results: list[Any] = []
    url = URI.fromBytes(b"http://a.example/")
    request = Request._construct(b"GET", b"/", Headers({b"host": [b"a.example"]}), None, persistent=True, parsedURI=url)
    connection.request(request).addBoth(results.append)
    connection.dataReceived(data)
    if not results or isinstance(results[0], Failure):
        return None
    [response] = results
    assert response.version == (b"HTTP", 1, 1)
    headers = dict.items(_ScrapyAgent._headers_from_twisted_response(response))
    rest = data[data.index(b"\r\n\r\n") + 4 :]
    if response.length:
        connection.dataReceived(b"a" * (response.length - len(rest)))
    return response.code, [*headers], response.length, bool(kept)


def as_read_in_one_go(data: bytes) -> Any:
    head = plain_head(data)
    assert head is None or data[: head.size].endswith(b"\r\n\r\n")
    return None if head is None else (head.status, [*head.headers.items()], head.length, True)


def differs(data: bytes) -> bool:
    """Return whether the head of an answer that is read in one go is not what Twisted and Scrapy read."""
    read = as_read_in_one_go(data)
    return read is not None and read != as_twisted_reads(data[: data.index(b"\r\n\r\n") + 4 + read[2]])
