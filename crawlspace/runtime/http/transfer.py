"""One request and the response to it: what libcurl's callbacks are given, until the transfer has ended."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from math import ceil, inf
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pycurl
from scrapy.exceptions import CannotResolveHostError
from scrapy.http import Headers

from crawlspace.runtime.http.errors import HeadersTooLarge, KeptConnectionClosed, NotSent
from crawlspace.text import printable

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from crawlspace.runtime.http.negotiate import NegotiateLogin
    from crawlspace.runtime.http.resolver import GuardedResolver
    from crawlspace.runtime.http.transfers import Connection, Transfers

MAX_HEADER_BYTES = 256 * 1024
MAX_HEADER_LINES = 1_000
"""Of status lines after the first, headers, and trailers of an answer together. libcurl has a bound of its own for one line: 100 KiB."""
_TRIES_FOR: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)
"""The option that bounds for how many milliseconds the system sends again what is not acknowledged; Linux has it."""
_LONGEST_MS = 2**31 - 1
MOST_READS_IN_VAIN = 100
"""Of a socket: libcurl has no bound on the extensions of a chunk. A record of TLS may take some thirty reads until it is there."""
UNAUTHORIZED = 401
_STOPPED = 0
"""Value that callbacks for data return to end a transfer."""


class RequestOrigin(NamedTuple):
    """The origin of a request: `site` is host and port as the frontier has them. `host` is without brackets."""

    scheme: str
    host: str
    port: int
    site: str
    text: str
    """Scheme, host and port as they begin a URL."""


class Permission(NamedTuple):
    """Callbacks that permit requests to be sent, and note that one is.

    `owned_for_s` returns for how long a site is still this worker's: a request to a site that is not is not sent, and fails with NotSent;
    neither is one of an earlier `incarnation` of the worker.

    The system must not send the data after that time either: in a network failure it repeats the sending, and the site would get the
    request when the network is back (Linux: TCP_USER_TIMEOUT in tcp(7), RFC 5482).
    """

    sent: Callable[[str], None] = lambda _: None
    owned_for_s: Callable[[str], float] = lambda _: inf
    incarnation: Callable[[], int] = lambda: 0


class AnswerHead(NamedTuple):
    """The head of an answer. `length` is that of the body by its headers; None where they have none."""

    status: int
    protocol: str
    headers: Headers
    length: int | None


class Body(Protocol):
    """Receives the parts of a response. Its errors end the transfer."""

    def begin(self, head: AnswerHead) -> bool:
        """Take the head of the answer; return whether the body is to be read."""

    def write(self, data: bytes) -> bool:
        """Take a part of the body; return whether there may be more."""


class EasyHandle:
    """An easy handle of libcurl for requests with the same options; its callbacks are those of the transfer that has it."""

    __slots__ = ("curl", "transfer")

    def __init__(self, options: Sequence[tuple[int, object]]) -> None:
        self.transfer: Transfer | None = None
        curl = self.curl = pycurl.Curl()
        for option, value in (*_OF_ALL, *options):
            if value is None:
                curl.unsetopt(option)
            else:
                curl.setopt(option, value)
        curl.setopt(pycurl.HEADERFUNCTION, self._header)
        curl.setopt(pycurl.WRITEFUNCTION, self._write)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.SOCKOPTFUNCTION, self._socket_opened)
        curl.setopt(pycurl.PREREQFUNCTION, self._before_sending)
        curl.setopt(pycurl.DEBUGFUNCTION, self._traced)

    def _traced(self, kind: int, data: bytes) -> None:
        if self.transfer is not None:
            self.transfer.traced(kind, data)

    def _header(self, line: bytes) -> int | None:
        transfer = self.transfer
        if transfer is None:
            return _STOPPED
        lines = transfer.lines  # all here, since there are ten for each page
        lines.append(line)
        transfer.head_bytes += len(line)
        is_usual = len(line) > 2 and len(lines) < transfer.most_lines and transfer.head_bytes <= MAX_HEADER_BYTES
        return None if is_usual else transfer.end_of_lines()

    def _write(self, data: bytes) -> int:
        return _STOPPED if self.transfer is None else self.transfer.write(data)

    def _open_socket(self, _purpose: int, where: Any) -> Any:
        return pycurl.SOCKET_BAD if self.transfer is None else self.transfer.open_socket(where)

    def _socket_opened(self, number: int, _purpose: int) -> int:
        return pycurl.SOCKOPT_ERROR if self.transfer is None else self.transfer.socket_opened(number)

    def _before_sending(self, address: str, _local: str, _port: int, local_port: int) -> int:
        return _REFUSED if self.transfer is None else self.transfer.before_sending((address, local_port))


_REFUSED = pycurl.PREREQFUNC_ABORT
_CERTIFICATE_REQUEST = b"\x0d"
"""The type of that message of a handshake (RFC 8446, 4)."""
_OF_TLS = (b"SSL connection using", b"subject:", b"issuer:")
_SUPPRESS_CONNECT_HEADERS = 265
"""CURLOPT_SUPPRESS_CONNECT_HEADERS, which has no name in pycurl."""
_OF_ALL: tuple[tuple[int, object], ...] = (
    (pycurl.NOSIGNAL, 1),
    # Else the environment's variables are heeded; Scrapy's middleware decides which requests go through a proxy.
    (pycurl.NOPROXY, ""),
    (pycurl.PROXY, ""),
    (pycurl.USERAGENT, ""),
    (pycurl.PATH_AS_IS, 1),
    (pycurl.NETRC, pycurl.NETRC_IGNORED),
    (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
    (_SUPPRESS_CONNECT_HEADERS, 1),
    (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
    (pycurl.BUFFERSIZE, 64 * 1024),
)


class Transfer:
    """One request. Its result is set at its end: whether it is complete, or an exception."""

    def __init__(
        self,
        handle: EasyHandle,
        origin: RequestOrigin,
        body: Body,
        *,
        kept_for: Hashable,
        transfers: Transfers,
        permission: Permission,
        incarnation: int,
        resolver: GuardedResolver,
        addresses: frozenset[str] | None,
        login: NegotiateLogin | None = None,
    ) -> None:
        """`kept_for`: which transfers may use the same connections. `incarnation`: that in which the request was begun.

        `addresses`: those that may be connected to; None: any, as with a proxy, which a person has named. `login`: libcurl makes it when the
        site answers 401, by a second request.
        """
        self.curl = handle.curl
        self._origin, self._body, self._kept_for, self._transfers = origin, body, kept_for, transfers
        self._permission, self._incarnation, self._resolver, self._addresses = permission, incarnation, resolver, addresses
        self._login = login
        self.result: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()
        self.error: Exception | None = None
        """Why it was ended by us."""
        self.is_stopped = False
        """The body was not read to its end, because it is not to be."""
        self.is_stale = False
        """The connection that was kept for it cannot be used: it has not been sent, and may be on another one."""
        self.head: AnswerHead | None = None
        self.sent_at = 0.0
        """Time when the request was written, by time.monotonic(); 0: it was not."""
        self.answered_at = 0.0
        self.is_reused = False
        self.has_status_line = False
        self.wants_certificate = False
        """Whether the server has requested one, as far as its handshake was traced (pycurl.VERBOSE)."""
        self.is_shared = False
        """Its connection carries several requests at a time (HTTP/2)."""
        self._socket = -1
        self._reads_in_vain = 0
        """Number of reads of its socket, after the head, since the last part of the body."""
        self._is_begun = False
        """The head of the answer was given to `body`."""
        self._opening: list[socket.socket] = []
        self._sockets: list[int] = []
        """Those that were opened for it, the one that is used last."""
        self._connection: Connection | None = None
        self.lines: list[bytes] = []
        """Those of a head, or of trailers, that have come so far."""
        self.head_bytes = 0
        """Of all heads and trailers."""
        self.most_lines = MAX_HEADER_LINES + 3
        """At so many lines there are too many; the first status line and the empty line are not counted. 0: none is taken."""

    # --- the connection -------------------------------------------------------------------------------------------

    def open_socket(self, where: Any) -> Any:
        """Return a socket for an address, if it may be connected to."""
        try:
            if self._connection is not None and not self._may_repeat():
                return pycurl.SOCKET_BAD
            if not self._is_allowed(where.addr[0]):
                return pycurl.SOCKET_BAD
            kind = where.socktype & ~(getattr(socket, "SOCK_CLOEXEC", 0) | getattr(socket, "SOCK_NONBLOCK", 0))
            opened = socket.socket(where.family, kind, where.protocol)
        except Exception as error:  # noqa: BLE001 - it would be lost in libcurl
            self.error = error
            return pycurl.SOCKET_BAD
        self._opening.append(opened)  # pycurl makes a duplicate
        return opened

    def socket_opened(self, number: int) -> int:
        """Take the number of a socket that is about to be connected."""
        self._close_opening()
        self._sockets.append(number)
        try:
            os.set_inheritable(number, False)  # noqa: FBT003 - its name says it; the duplicate could be inherited by a browser
            self._bound_resending(number, self._owned_for_s())
        except Exception as error:  # noqa: BLE001 - it would be lost in libcurl
            self.error = error
            return pycurl.SOCKOPT_ERROR
        return pycurl.SOCKOPT_OK

    def before_sending(self, connection: Connection) -> int:
        """Return whether the request may be written now, on the connection that there is."""
        try:
            return pycurl.PREREQFUNC_OK if self._may_send(connection) else _REFUSED
        except Exception as error:  # noqa: BLE001 - it would be lost in libcurl
            self.error = error
            return _REFUSED

    def traced(self, kind: int, data: bytes) -> None:
        """Process a part of a handshake, or of a message: a text of libcurl, or bytes sent or received."""
        if kind == pycurl.INFOTYPE_SSL_DATA_IN:
            is_request = data[:1] == _CERTIFICATE_REQUEST and int.from_bytes(data[1:4], "big") == len(data) - 4
            self.wants_certificate = self.wants_certificate or is_request
        elif kind == pycurl.INFOTYPE_TEXT and self._login is not None and self._login.traced(data):
            if self._login.is_over:
                self.most_lines = 0
        elif kind == pycurl.INFOTYPE_TEXT and data.strip().startswith(_OF_TLS):
            logger.debug("%s: %s", self._origin.site, printable(data.decode("utf-8", "replace").strip()))

    def _may_send(self, connection: Connection) -> bool:
        if self._connection is not None and not self._may_repeat():
            return False
        if self._login is not None:
            self._login.check()
        kept, number = self._transfers.kept, -1
        if self._sockets:
            number = self._sockets[-1]
            self.is_reused = False
            kept.opened(self._kept_for, connection, number)
        else:
            self.is_reused = True
            taken = kept.take(self._kept_for, connection)
            if taken is None:
                self.is_stale = True
                return False
            number = taken
        self._connection = connection
        owned_for_s = self._owned_for_s()
        if not owned_for_s:
            self.error = NotSent()
            return False
        if not self._is_allowed(connection[0]):
            return False
        if owned_for_s < inf:
            self._bound_resending(number, owned_for_s)
        self._permission.sent(self._origin.site)
        self.sent_at = monotonic()
        self._transfers.by_socket[number] = self
        self._socket = number
        return True

    def _may_repeat(self) -> bool:
        """Return whether libcurl may send a further request: as the answer to a 401 only.

        It would send a request again at once, without the site's delay, where a kept connection was closed before an answer.
        """
        if self._login is not None and self.head is not None and self.head.status == UNAUTHORIZED:
            self._sockets.clear()
            self.head = None
            return True
        if self.error is None:
            self.error = KeptConnectionClosed()
        return False

    def _is_allowed(self, address: str) -> bool:
        if self._addresses is None or address in self._addresses:
            return True
        host, port = self._origin.host, self._origin.port
        decision = self._resolver.decide(host, port, address)
        if not decision.admitted:
            self._resolver.refuse(host, port, decision)
            self.error = CannotResolveHostError(f"no address of {host} may be connected to")
        return decision.admitted

    def _owned_for_s(self) -> float:
        permission = self._permission
        return permission.owned_for_s(self._origin.site) if permission.incarnation() == self._incarnation else 0.0

    def _bound_resending(self, number: int, owned_for_s: float) -> None:
        if _TRIES_FOR is None or not 0 < owned_for_s < inf:
            return
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=number)
        try:
            opened.setsockopt(socket.IPPROTO_TCP, _TRIES_FOR, min(ceil(owned_for_s * 1000), _LONGEST_MS))
        finally:
            opened.detach()

    def _close_opening(self) -> None:
        for opened in self._opening:
            opened.close()
        self._opening.clear()

    # --- the answer -----------------------------------------------------------------------------------------------

    def end_of_lines(self) -> int | None:
        """Process the received lines, at the end of a head or of trailers, or if there are too many; return None to continue."""
        try:
            if self._login is not None and self._login.is_over:
                raise self._login.error()
            if len(self.lines) >= self.most_lines or self.head_bytes > MAX_HEADER_BYTES:
                raise HeadersTooLarge
            if self.lines[-1] not in _EMPTY:
                return None
            lines, self.lines = self.lines, []
            self.most_lines -= len(lines) - 1
            if not lines[0].startswith(b"HTTP/"):  # trailers
                return None
            return None if self._take_head(lines) else self._stop()
        except Exception as error:  # noqa: BLE001 - it would be lost in libcurl
            self.error = error
            return _STOPPED

    def _take_head(self, lines: list[bytes]) -> bool:
        protocol, status = _status(lines[0])
        self.has_status_line = True
        if 100 <= status < 200 and status != 101:
            return True
        if self._login is not None:
            self._login.take(status)
        headers = Headers()
        values = _read_headers(lines)
        dict.update(headers, values)
        lengths = values.get(b"Content-Length")
        length = int(lengths[0]) if lengths and lengths[0].isdigit() and len(lengths[0]) < 16 else None
        self.answered_at = monotonic()
        self.is_shared = protocol == "h2"
        self.head = AnswerHead(status, protocol, headers, length)
        self._is_begun = self._login is None or status != UNAUTHORIZED  # else it may not be the last one
        return not self._is_begun or self._body.begin(self.head)

    def has_read(self) -> bool:
        """Return whether to stop reading the response: further bytes are no part of its body, such as an endless chunk extension."""
        if self.head is None or self.is_shared:
            return False
        self._reads_in_vain += 1
        if self._reads_in_vain <= MOST_READS_IN_VAIN:
            return False
        self.error = HeadersTooLarge()
        return True

    def write(self, data: bytes) -> int:
        """Take a part of the body."""
        self._reads_in_vain = 0
        try:
            return len(data) if self._begin_late() and self._body.write(data) else self._stop()
        except Exception as error:  # noqa: BLE001 - it would be lost in libcurl
            self.error = error
            return _STOPPED

    def _begin_late(self) -> bool:
        """Begin the body of an answer that libcurl could have answered; return whether it is to be read."""
        if self._is_begun or self.head is None:
            return True
        self._is_begun = True
        return self._body.begin(self.head)

    @property
    def site(self) -> str:
        """Host and port that the request is for."""
        return self._origin.site

    @property
    def address(self) -> str:
        """Address of the server; empty where there was no connection."""
        return "" if self._connection is None else self._connection[0]

    def _stop(self) -> int:
        self.is_stopped = True
        return _STOPPED

    def ended(self, code: int, message: str) -> None:
        """Take the end of the transfer."""
        self._close_opening()
        if self._transfers.by_socket.get(self._socket) is self:
            del self._transfers.by_socket[self._socket]
        if code == 0 and not self._is_begun:
            self.write(b"")
        if self._connection is not None:
            number = self.curl.getinfo(pycurl.ACTIVESOCKET)
            self._transfers.kept.release(self._kept_for, self._connection, number, is_shared=self.is_shared)
        if not self.result.done():
            self.result.set_result((code, message))


_EMPTY = (b"\r\n", b"\n")


def _read_headers(lines: list[bytes]) -> dict[bytes, list[bytes]]:
    """Return the values by name, in Scrapy's spelling, of the lines of a head."""
    values: dict[bytes, list[bytes]] = {}
    last: list[bytes] = []
    for line in lines[1:-1]:
        raw, _, value = line.partition(b":")
        if line[0] in b" \t":
            if last:
                last[-1] += b" " + line.strip()
            continue
        name = _usual_name(raw) if len(raw) <= _USUAL_LENGTH else raw.strip().title()
        found = values.get(name)
        if found is None:
            values[name] = last = [value.strip()]
        else:
            found.append(value.strip())
            last = found
    return values


_USUAL_LENGTH = 60
"""Of the names that are remembered."""


@lru_cache(2_000)
def _usual_name(raw: bytes) -> bytes:
    return raw.strip().title()


@lru_cache(500)
def _status(line: bytes) -> tuple[str, int]:
    """Return the protocol and the status of a status line, which libcurl has accepted; it takes the first three digits of more."""
    protocol, _, rest = line.partition(b" ")
    code = rest.split(None, 1)[0] if rest.strip() else b"0"
    name = protocol.decode("ascii", "replace")
    return ("h2" if name.startswith("HTTP/2") else name), int(code) if code.isdigit() and len(code) < 10 else 0
