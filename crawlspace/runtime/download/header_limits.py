"""Bounds on what a server may send as headers: Twisted has none on their number and total size, and DOWNLOAD_MAXSIZE counts bodies only.

Status lines, headers, lines that continue a header, those of interim (1xx) answers and trailers count together, for each request. The
answer of a proxy to CONNECT has the same bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from crawlspace.runtime.download.errors import HeadersTooLarge
from crawlspace.runtime.download.http_internals import (
    ChunkedDecoder,
    ClientProtocol,
    ConnectionFactory,
    ResponseParser,
)
from crawlspace.runtime.download.tunnels import TunnelEndpoint, tunnel_state

MAX_HEADER_BYTES = 256 * 1024
MAX_HEADER_LINES = 1_000


class LimitedChunkedDecoder(ChunkedDecoder):
    """Reads a chunked body. Raises HeadersTooLarge for more trailers than are left of the lines of an answer.

    The chunks that come together are passed on together: they may hold one byte each, and what follows costs far more than that.
    """

    lines_left = MAX_HEADER_LINES

    def __init__(self, received: Callable[[bytes], None], finished: Callable[[bytes], None]) -> None:
        self._chunks: list[bytes] = []
        self._received, self._finished = received, finished
        super().__init__(self._chunks.append, self._finish)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        try:
            super().dataReceived(data)
        finally:
            self._pass_on()

    def _finish(self, rest: bytes) -> None:
        self._pass_on()
        self._finished(rest)

    def _pass_on(self) -> None:
        if self._chunks:
            body = b"".join(self._chunks)
            self._chunks.clear()
            self._received(body)

    def limit_trailers(self, *, lines: int, size: int) -> None:
        """Set what is left for trailers after the headers."""
        self.lines_left = lines
        self.limit_trailer_bytes(size)

    def trailers(self, number: int) -> None:
        if number > self.lines_left:
            raise HeadersTooLarge


class LimitedParser(ResponseParser, chunked=LimitedChunkedDecoder):
    """Parses an answer. Raises HeadersTooLarge as soon as its headers are over the bounds."""

    MAX_LENGTH = MAX_HEADER_BYTES
    # Class attributes, because Scrapy and we replace the class of a parser that exists.
    _header_bytes = 0
    _header_lines = -1  # the status line is none

    def lineReceived(self, line: bytes) -> None:  # noqa: N802
        self._header_bytes += len(line) + 1
        if line not in (b"", b"\r"):
            self._header_lines += 1
        if self._header_bytes > MAX_HEADER_BYTES or self._header_lines > MAX_HEADER_LINES:
            raise HeadersTooLarge
        super().lineReceived(line)

    def lineLengthExceeded(self, line: bytes) -> None:  # noqa: N802
        raise HeadersTooLarge

    def allHeadersReceived(self) -> None:  # noqa: N802
        if 100 <= self.response.code < 200:  # Twisted would log each of them
            self.connectionMade()
            del self.response
            return
        super().allHeadersReceived()

    def switchToBodyMode(self, decoder: Any) -> None:  # noqa: N802
        if isinstance(decoder, LimitedChunkedDecoder):
            decoder.limit_trailers(lines=MAX_HEADER_LINES - self._header_lines, size=MAX_HEADER_BYTES - self._header_bytes)
        super().switchToBodyMode(decoder)


class Reader(Protocol):
    """Takes what comes, in the place of a parser."""

    def received(self, data: bytes) -> None: ...

    def lost(self) -> None:
        """The connection is lost: have a parser read what came so far, to which that is reported next."""


class LimitedProtocol(ClientProtocol):
    """An HTTP connection with these bounds. It is closed at once, without ceremony, when what comes is no answer to a request."""

    reader: Reader | None = None
    """What reads the answer to a request that was not sent by the method below."""

    def request(self, request: Any) -> Any:
        answer = super().request(request)
        self.parse_with(LimitedParser)
        return answer

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if self.reader is not None:
            self.reader.received(data)
        elif not self.reads_response:
            self._abort()
        else:
            super().dataReceived(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802
        if self.reader is not None:
            self.reader.lost()
        super().connectionLost(reason)

    def response_complete(self, rest: bytes) -> None:
        if rest:  # it would be taken for the next answer
            self.do_not_keep()

    def given_up(self, reason: Failure) -> None:
        if not reason.check(ConnectionDone):  # an orderly end with TLS waits for the other side, which might go on sending
            self._abort()

    def _abort(self) -> None:
        transport: Any = self.transport
        transport.abortConnection()


class LimitedFactory(ConnectionFactory):
    """Makes connections with these bounds."""

    def buildProtocol(self, addr: Any) -> LimitedProtocol:  # noqa: N802
        protocol: LimitedProtocol = self.connection(LimitedProtocol)
        return protocol


def limit_connect_answer(endpoint: Any) -> None:
    """Have the answer of a proxy to CONNECT end the connection where it is too large, or nobody waits for it any more."""
    if not isinstance(endpoint, TunnelEndpoint):
        return
    process = endpoint.processProxyResponse

    def process_within_limits(data: bytes) -> None:
        ready, received, end = tunnel_state(endpoint)
        size, lines = len(received) + len(data), received.count(b"\n") + data.count(b"\n")
        if not ready.called and size <= MAX_HEADER_BYTES and lines <= MAX_HEADER_LINES:
            process(data)
            return
        end()
        if not ready.called:
            ready.errback(HeadersTooLarge())

    endpoint.processProxyResponse = process_within_limits  # type: ignore[method-assign]
