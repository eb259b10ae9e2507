"""How many headers an answer may have, over Twisted's connections without a socket: 256 KiB or 1,000 lines, however they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from protego import Protego
from scrapy.exceptions import DownloadFailedError, ResponseDataLossError
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.web._newclient import Request, ResponseFailed
from twisted.web.client import URI
from twisted.web.http_headers import Headers

from crawlspace.model import OutcomeKind, Status
from crawlspace.printable import MESSAGE
from crawlspace.runtime.http.errors import HeadersTooLarge
from crawlspace.runtime.http.failures import meaning_of
from crawlspace.runtime.http.header_limits import MAX_HEADER_BYTES, LimitedFactory, limit_connect_answer
from crawlspace.runtime.http.tunnels import TunnelEndpoint
from crawlspace.runtime.logformat import make_libraries_printable

OK = b"HTTP/1.1 200 OK\r\n"
KIB = 1024


class Body(Protocol):
    """Reads a body; `ended` is why it is over."""

    def __init__(self) -> None:
        self.received = b""
        self.pieces = 0
        self.ended: Failure | None = None

    def dataReceived(self, data: bytes) -> None:
        self.received += data
        self.pieces += 1

    def connectionLost(self, reason: Any = None) -> None:
        self.ended = reason


class Exchange:
    """One request, and what comes of what a server sends."""

    def __init__(self) -> None:
        self.transport = StringTransport()
        self.kept: list[Any] = []
        self.connection = LimitedFactory(self.kept.append, "").buildProtocol(None)
        self.connection.makeConnection(self.transport)
        self.results: list[Any] = []
        self.body = Body()
        self.ask()

    def ask(self) -> None:
        url = URI.fromBytes(b"http://a.example/")
        request = Request._construct(b"GET", b"/", Headers({b"host": [b"a.example"]}), None, persistent=True, parsedURI=url)
        self.connection.request(request).addBoth(self._answered)

    def _answered(self, result: Any) -> None:
        self.results.append(result)
        if not isinstance(result, Failure):
            result.deliverBody(self.body)

    def send(self, data: bytes, *, at_a_time: int = 65_536) -> int:
        """Send until the connection is closed; return how much was sent."""
        for start in range(0, len(data), at_a_time):
            if self.transport.disconnecting:
                return start
            self.connection.dataReceived(data[start : start + at_a_time])
        return len(data)

    @property
    def causes(self) -> Iterator[BaseException]:
        todo: list[Any] = [result.value for result in (*self.results, self.body.ended) if isinstance(result, Failure)]
        while todo:
            error = todo.pop()
            yield error
            todo += [reason.value for reason in getattr(error, "reasons", ())]

    @property
    def is_too_large(self) -> bool:
        return any(isinstance(cause, HeadersTooLarge) for cause in self.causes)


def head(lines: int, *, rest: bytes = b"Content-Length: 0\r\n\r\n") -> bytes:
    """An answer with so many header lines."""
    return OK + b"".join(b"X-%d: a\r\n" % number for number in range(lines - 1)) + rest


def folded(lines: int, *, line: bytes = b" b\r\n") -> bytes:
    return OK + b"Content-Length: 0\r\nX-A: a\r\n" + line * (lines - 2) + b"\r\n"


def interim(answers: int) -> bytes:
    return b"HTTP/1.1 103 Early Hints\r\n\r\n" * answers + head(2)


def trailers(lines: int, *, headers: int = 1) -> bytes:
    return head(headers, rest=b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n") + b"X-B: b\r\n" * lines + b"\r\n"


SENT = [
    # what                                   bytes                                                              too large
    ("usual headers",                        head(20),                                                          False),
    ("1,000 lines",                          head(1_000),                                                       False),
    ("1,001 lines",                          head(1_001),                                                       True),
    ("1,000 lines, folded",                  folded(1_000),                                                     False),
    ("1,001 lines, folded",                  folded(1_001),                                                     True),
    ("folded lines without a CR",            folded(1_001, line=b" \n"),                                        True),
    ("lines without a colon",                OK + b"word\r\n" * 1_000 + b"Content-Length: 0\r\n\r\n",           True),
    ("250 KiB in one header",                OK + b"X: " + b"a" * 250 * KIB + b"\r\nContent-Length: 0\r\n\r\n", False),
    ("257 KiB in one header",                OK + b"X: " + b"a" * 257 * KIB + b"\r\nContent-Length: 0\r\n\r\n", True),
    ("257 KiB in many headers",              OK + (b"X: " + b"a" * KIB + b"\r\n") * 257,                        True),
    ("a header that does not end",           OK + b"X: " + b"a" * 1024 * KIB,                                   True),
    ("a status line that does not end",      b"HTTP/1.1 200 " + b"a" * 1024 * KIB,                              True),
    ("400 interim answers",                  interim(400),                                                      False),
    ("1,200 interim answers",                interim(1_200),                                                    True),
    ("999 trailers",                         trailers(999),                                                     False),
    ("1,000 trailers after a header",        trailers(1_000),                                                   True),
    ("600 trailers after 600 headers",       trailers(600, headers=600),                                        True),
]  # fmt: skip


@pytest.mark.parametrize("at_a_time", [65_536, 1_000])
@pytest.mark.parametrize(("what", "sent", "too_large"), SENT, ids=[row[0] for row in SENT])
def test_headers_have_bounds(what: str, sent: bytes, at_a_time: int, *, too_large: bool) -> None:
    exchange = Exchange()
    exchange.send(sent, at_a_time=at_a_time)
    assert len(exchange.results) == 1
    assert exchange.is_too_large is too_large
    assert exchange.transport.disconnecting is too_large, "the connection is closed"
    assert bool(exchange.kept) is not too_large, "or kept"


@pytest.mark.parametrize("line", [b"X-A: a\r\n", b" a\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"a" * 100])
def test_endless_headers_are_read_no_further(line: bytes) -> None:
    exchange = Exchange()
    sent = exchange.send((b"" if line.startswith(b"HTTP") else OK + b"X: ") + line * (10 * MAX_HEADER_BYTES // len(line)))
    assert sent <= MAX_HEADER_BYTES + 65_536
    exchange.send(b"a" * 1_000_000)
    assert len(exchange.connection.__dict__.get("_buffer", b"")) == 0


CHUNKED = head(1, rest=b"Transfer-Encoding: chunked\r\n\r\n")
BODIES = [
    # what comes after the headers, the body as far as it was read, whether the connection is kept
    (b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"abcde", True),
    (b"3\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n", b"abcde", True),
    (b"3\r\nabc\r\n2\r\nd", b"abcd", False),
    (b"3\r\nabc\r\nz\r\n", b"abc", False),
]


@pytest.mark.parametrize("at_a_time", [1, 65_536])
@pytest.mark.parametrize(("sent", "body", "kept"), BODIES)
def test_chunked_bodies(sent: bytes, body: bytes, at_a_time: int, *, kept: bool) -> None:
    exchange = Exchange()
    exchange.send(CHUNKED + sent, at_a_time=at_a_time)
    assert exchange.body.received == body
    assert bool(exchange.kept) is kept


def test_tiny_chunks_are_passed_on_together() -> None:
    exchange = Exchange()
    exchange.send(CHUNKED)
    exchange.send(b"1\r\na\r\n" * 30_000, at_a_time=60_000)
    assert len(exchange.body.received) == 30_000
    assert exchange.body.pieces == 3


def test_log_messages_of_libraries_about_a_server_are_cut(caplog: pytest.LogCaptureFixture) -> None:
    make_libraries_printable()
    make_libraries_printable()
    with caplog.at_level("DEBUG"):
        Exchange().send(OK + b"\x1b[2J" + b"a" * 100_000 + b"\r\n\r\n")
        Protego.parse("User-agent: *\nCrawl-delay: \x1b[2J" + "a" * 100_000).crawl_delay("*")
    assert [len(shown) for shown in caplog.messages] == [MESSAGE, MESSAGE]
    assert all(shown.isprintable() for shown in caplog.messages)


def test_the_headers_of_each_answer_are_counted_by_themselves() -> None:
    exchange = Exchange()
    for _ in range(3):
        exchange.send(head(900))
        exchange.ask()
    assert not exchange.is_too_large


@pytest.mark.parametrize("answer", [head(2), b"HTTP/1.1 304 Not Modified\r\n\r\n", CHUNKED + b"0\r\n\r\n"])
def test_an_answer_longer_than_declared_ends_its_connection(answer: bytes) -> None:
    """Else what is left of it would be taken for the next one."""
    exchange = Exchange()
    exchange.send(answer + b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
    assert not isinstance(exchange.results[0], Failure)
    assert not exchange.kept
    assert exchange.transport.disconnecting


def test_what_comes_without_a_request_ends_a_kept_connection() -> None:
    exchange = Exchange()
    exchange.send(head(2))
    assert exchange.kept
    exchange.send(head(2))
    assert exchange.transport.disconnecting


def wrapped(error: BaseException, *, below: BaseException) -> BaseException:
    error.__cause__ = below
    return error


FAILURES = [
    HeadersTooLarge(),
    wrapped(DownloadFailedError("x"), below=ResponseFailed([Failure(HeadersTooLarge())])),
    wrapped(ResponseDataLossError("x"), below=ResponseFailed([Failure(HeadersTooLarge())])),
]


@pytest.mark.parametrize("error", FAILURES)
def test_they_count_as_too_large(error: BaseException) -> None:
    meaning = meaning_of(error, url="http://a.example/", resolver=None)
    assert (meaning.status, meaning.kind, meaning.host_failure) == (Status.CUT_SHORT, OutcomeKind.GONE, False)


class Tunnel:
    """A tunnel through a proxy that has been asked for."""

    def __init__(self) -> None:
        reactor: Any = MemoryReactorClock()
        context: Any = SimpleNamespace(creatorForNetloc=lambda host, port: None)
        site: Any = SimpleNamespace(host=b"a.example", port=443)
        endpoint = TunnelEndpoint(TCP4ClientEndpoint(reactor, "proxy.example", 3128), site, None, context)
        limit_connect_answer(endpoint)
        self.transport = StringTransport()
        self.is_secure: list[Any] = []
        self.transport.startTLS = lambda *_: self.is_secure.append(True)  # type: ignore[attr-defined]
        self.failed: list[Failure] = []
        self.ready: Deferred[Any] = endpoint.connect(Factory.forProtocol(Protocol))
        self.ready.addErrback(self.failed.append)
        self.protocol = reactor.tcpClients[0][2].buildProtocol(None)
        self.protocol.makeConnection(self.transport)


PROXY_ANSWERS = [
    # what                            bytes                                                        too large  the tunnel is there
    ("a usual answer",                OK + b"Via: proxy\r\n\r\n",                                  False,     True),
    ("too many lines",                OK + b"X: a\r\n" * 1_001,                                    True,      False),
    ("one header that does not end",  OK + b"X: " + b"a" * 1024 * KIB,                             True,      False),
]  # fmt: skip


@pytest.mark.parametrize(("what", "sent", "too_large", "there"), PROXY_ANSWERS, ids=[row[0] for row in PROXY_ANSWERS])
def test_the_answer_of_a_proxy_to_connect_has_the_same_bounds(what: str, sent: bytes, *, too_large: bool, there: bool) -> None:
    tunnel = Tunnel()
    for start in range(0, len(sent), 10_000):
        if not tunnel.transport.disconnecting:
            tunnel.protocol.dataReceived(sent[start : start + 10_000])
    assert [failure.type for failure in tunnel.failed] == [HeadersTooLarge] * too_large
    assert tunnel.transport.disconnecting is too_large
    assert bool(tunnel.is_secure) is there


def test_a_tunnel_that_nobody_waits_for_any_more_is_closed() -> None:
    """As after DOWNLOAD_TIMEOUT, which ends the request but not its connection."""
    tunnel = Tunnel()
    tunnel.protocol.dataReceived(OK)
    tunnel.ready.cancel()
    tunnel.protocol.dataReceived(b"X: a\r\n")
    assert tunnel.transport.disconnecting
