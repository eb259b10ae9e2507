"""The way of a request on a kept connection, and of an answer that is as most are.

Twisted and Scrapy make some forty objects for each: a parser that takes a line at a time, deferreds between all steps, two timers, the
headers in three forms. Here a GET is written at once, what comes is kept until it is a whole answer, and the response is made of that.

Wherever an answer is unusual, its connection is lost, its time is over, or somebody listens to its parts, Twisted's parser and Scrapy are
given what came so far, as if they had sent the request. So what that means is decided by them alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import signals
from scrapy.http import Headers
from twisted.internet.defer import Deferred, fail
from twisted.internet.ssl import Certificate
from twisted.python.failure import Failure
from twisted.web.client import URI
from twisted.web.http_headers import Headers as SentHeaders
from twisted.web.http_headers import InvalidHeaderName

from crawlspace.runtime.download.errors import NotAsked
from crawlspace.runtime.download.http_internals import DownloadAgent, make_response, normalize_bind_address
from crawlspace.runtime.download.plain_head import PlainHead, plain_head
from crawlspace.runtime.rule_middleware import RuleMiddleware
from crawlspace.runtime.shortcuts.signals import is_heard, only_receiver

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

LARGEST = 1024 * 1024
"""Bytes of a body that is kept here until it is whole."""
ORIGINS = 5_000
USUAL_LENGTH = 300
"""Of the scheme, host and port of a URL."""


class ShortAgent(DownloadAgent):
    """Downloads one response, in the short way if it can."""

    def download_request(self, request: Request) -> Deferred[Response]:
        pool: Any = self._pool
        sent = sent_in_short(request) if hasattr(pool, "take_kept") and not self._tls_verbose_logging else None
        if sent is None:
            return super().download_request(request)
        connection = pool.take_kept((*sent.key, normalize_bind_address(self._bindAddress)))
        if connection is None:
            return super().download_request(request)
        return ShortExchange(self, request, connection).begin(sent.head)

    def timeout_s(self, request: Request) -> float:
        return request.meta.get("download_timeout") or self._connectTimeout

    def takes(self, request: Request, head: PlainHead, headers: Headers) -> bool:
        """Whether the body after a head is a page, of a usual size, and nobody is to hear of its parts."""
        meta, length = request.meta, head.length
        largest = meta.get("download_maxsize", self._maxsize)
        warned_of = meta.get("download_warnsize", self._warnsize)
        if length > LARGEST or (largest and length > largest) or (warned_of and length > warned_of):
            return False
        if not self._may_be_taken(request, headers):
            return False
        file = self.body_for(request, lambda name: dict.get(headers, name, []), length=length, page_limit=largest)
        return file is None or length == 0

    def _may_be_taken(self, request: Request, headers: Headers) -> bool:
        """Whether the one that listens to the headers is the check of the type, and lets them pass."""
        manager = self._crawler.signals
        if is_heard(manager, signals.bytes_received):
            return False
        if not is_heard(manager, signals.headers_received):
            return True
        check = only_receiver(manager, signals.headers_received)
        if getattr(check, "__func__", None) is not RuleMiddleware.headers_received:
            return False
        try:
            check(headers=headers, request=request)
        except Exception:  # noqa: BLE001 - StopDownload, most likely: Scrapy asks it again
            return False
        return True


class ShortExchange:
    """A request on a kept connection, and what came of its answer. `answer` is its response to be."""

    __slots__ = (
        "_agent",
        "_began",
        "_connection",
        "_data",
        "_ends",
        "_head",
        "_headers",
        "_missing",
        "_request",
        "_response",
        "_timer",
        "answer",
    )

    def __init__(self, agent: ShortAgent, request: Request, connection: Any) -> None:
        self._agent, self._request, self._connection = agent, request, connection
        self._head: PlainHead | None = None
        self._data: list[bytes] = []
        self._missing = 0
        self._response: Deferred[Response] | None = None
        """What Scrapy makes of the answer, once that is left to it."""
        self.answer: Deferred[Response] = Deferred(self._cancel)

    def begin(self, head: bytes) -> Deferred[Response]:
        connection, agent = self._connection, self._agent
        timeout_s = agent.timeout_s(self._request)
        self._began = monotonic()
        self._ends = self._began + timeout_s
        if not connection.watch.begins(self._request.url.encode("ascii")):
            return fail(NotAsked())
        connection.reader = self
        self._timer = agent.call_later(timeout_s, self._time_is_over)
        connection.watch.write_now(head)
        return self.answer

    def received(self, data: bytes) -> None:
        """Take what the server sent. What belongs to a usual answer is kept until that is whole."""
        self._data.append(data)
        if self._head is None:
            head = plain_head(data)
            if head is None:
                self.lost()
                return
            self._headers = Headers()
            dict.update(self._headers, head.headers)
            if not self._agent.takes(self._request, head, self._headers):
                self.lost()
                return
            self._head = head
            self._missing = head.size + head.length
            self._request.meta["download_latency"] = monotonic() - self._began
        self._missing -= len(data)
        if self._missing == 0:
            self._end(self._head)
        elif self._missing < 0:
            self.lost()

    def lost(self) -> None:
        """Leave the answer to Twisted's parser and to Scrapy, from its first byte on."""
        left_s = 0.0
        if self._timer is not None:
            self._timer.cancel()
            left_s = self._ends - monotonic()
        connection, data = self._connection, b"".join(self._data)
        connection.reader = None
        self._response = self._agent.read_as_usual(self._request, connection.watch.read, began=self._began, timeout_s=left_s)
        self._response.chainDeferred(self.answer)
        if data:
            connection.dataReceived(data)

    def _time_is_over(self) -> None:
        self._timer = None
        self.lost()

    def _end(self, head: PlainHead) -> None:
        self._timer.cancel()
        connection = self._connection
        connection.reader = None
        connection.watch.answered()
        try:
            connection.return_to_pool()
            response = self._response_of(head)
        except Exception:  # noqa: BLE001 - as a deferred
            self.answer.errback(Failure())
        else:
            self.answer.callback(response)

    def _response_of(self, head: PlainHead) -> Response:
        data, transport = self._data, self._connection.transport
        certified = getattr(transport, "getPeerCertificate", None)  # with TLS
        return make_response(
            url=self._request.url,
            status=head.status,
            headers=self._headers,
            body=data[0][head.size :] if len(data) == 1 else b"".join(data)[head.size :],
            certificate=None if certified is None else Certificate(certified()),
            ip_address=_address(transport.getPeer().host),
            protocol="HTTP/1.1",
        )

    def _cancel(self, _: Deferred[Response]) -> None:
        if self._response is None:
            self.lost()
        if self._response is not None:
            self._response.cancel()


class RequestHead(NamedTuple):
    """A request as it is sent. `key`: the scheme, host and port, by which connections are kept."""

    key: tuple[bytes, bytes, int]
    head: bytes


def sent_in_short(request: Request) -> RequestHead | None:
    """Return what Twisted would send for a request; None unless it is a GET of a usual URL, without a body and through no proxy."""
    meta = request.meta
    if request.method != "GET" or request.body or meta.get("proxy") or meta.get("bindaddress"):
        return None
    url = _USUAL_URL.fullmatch(request.url)
    if url is None or url.end(1) > USUAL_LENGTH:
        return None
    key, host = _of_origin(url[1])
    lines = [b"GET %b HTTP/1.1\r\n" % url[2].encode("ascii")]
    for name, values in dict.items(request.headers):
        sent_name = _sent_name(name) if len(name) <= USUAL_LENGTH else None
        if sent_name is None:
            return None
        lines += [b"%b: %b\r\n" % (sent_name, value) for value in values]
    lines.append(host)
    head = b"".join(lines)
    if not head.count(b"\r") == head.count(b"\n") == len(lines) + 1:  # a line's end in a value
        return None
    return RequestHead(key, head)


_USUAL_URL = re.compile(
    r"(https?://[a-z0-9_.-]+(?::[0-9]{1,5})?)"
    r"(/(?:[!-\"$-.0-:<->@-~][!-\"$-:<->@-~]*)?(?:\?[!-\"$-~]+)?)"  # no fragment, parameters, empty query, or second slash at the start
)
"""URLs whose parts after the host are sent as they are. Twisted takes others apart and puts them together again."""


@lru_cache(ORIGINS)
def _of_origin(origin: str) -> tuple[tuple[bytes, bytes, int], bytes]:
    """Return the scheme, host and port of a URL, and the last lines of a request to it."""
    uri = URI.fromBytes(origin.encode("ascii"))
    port = b"" if (uri.scheme, uri.port) in ((b"http", 80), (b"https", 443)) else b":%d" % uri.port
    return (uri.scheme, uri.host, uri.port), b"Host: %b%b\r\n\r\n" % (uri.host, port)


@lru_cache(1_000)
def _sent_name(name: bytes) -> bytes | None:
    """Return the name of a header as Twisted sends it; None for a request's own Host, and for what it refuses to send."""
    try:
        [(sent, _)] = SentHeaders({name: [b""]}).getAllRawHeaders()
    except InvalidHeaderName:
        return None
    return None if sent == b"Host" else sent


@lru_cache(ORIGINS)
def _address(host: str) -> IPv4Address | IPv6Address:
    return ip_address(host)
