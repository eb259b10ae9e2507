"""Send requests by libcurl: the options of each, the addresses it is sent to, and its result.

Names are looked up by our own resolver, and libcurl is given the addresses that the address rules allow: those are checked once more when
a connection is made, and before a request is written to it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pycurl
from scrapy import Request
from scrapy.exceptions import CannotResolveHostError, DownloadFailedError, ResponseDataLossError, UnsupportedURLSchemeError
from twisted.internet.ssl import Certificate

from crawlspace.cache import Recent
from crawlspace.config.site_tls import SiteTls
from crawlspace.runtime.components.requests import NEGOTIATE
from crawlspace.runtime.http.causes import Cause
from crawlspace.runtime.http.codes import Ended, error_of
from crawlspace.runtime.http.errors import AnswerFailed
from crawlspace.runtime.http.negotiate import FailedLogins, NegotiateLogin
from crawlspace.runtime.http.proxies import ProxyServer, Reached, failed_through_proxy, proxy_server
from crawlspace.runtime.http.resolver import GuardedResolver, as_in_urls
from crawlspace.runtime.http.transfer import AnswerHead, Body, EasyHandle, Permission, RequestOrigin, Transfer
from crawlspace.runtime.http.transfers import Transfers
from crawlspace.text import printable
from crawlspace.urls import DEFAULT_PORTS

if TYPE_CHECKING:
    from crawlspace.runtime.http.tls import Options, TlsOptions

MOST_IDLE = 2_000
"""Connections kept for a site's next request, where the process may have four times as many files open: http and https have a client each."""
MOST_HANDLES = 200
"""Of each kind of requests, kept for further ones."""
MOST_KINDS = 1_000
_ORIGINS = 5_000
_USUAL_LENGTH = 300
"""Scheme, host and port of a request; longer ones are not kept."""
_ATTEMPTS = 3
"""Connections that are tried for a request, where the kept one was closed."""
_NOWHERE = Reached(code=0, is_connected=False, tunnel_status=0, proxy_error=0)
_PERMITTED = Permission()


@dataclass(frozen=True, slots=True)
class Download:
    """The result of a request, without its body. `error`: why the body is incomplete."""

    head: AnswerHead
    address: IPv4Address | IPv6Address | None
    certificate: Certificate | None
    is_stopped: bool
    is_partial: bool
    """It is not known whether the body is complete: it ends with its connection, and TLS does not confirm the end."""
    latency_s: float
    error: Exception | None = None


class HttpClient:
    """Sends requests on one event loop, and keeps their connections."""

    def __init__(
        self,
        tls: TlsOptions,
        *,
        tls_of: Callable[[str, int], SiteTls | None] = lambda _host, _port: None,
        permission: Permission = _PERMITTED,
        bind_address: object = None,
        decodes: bool = False,
    ) -> None:
        """`tls_of` returns the certificates that the settings have for a host and port; `decodes`: whether bodies are decompressed."""
        self._tls, self._tls_of = tls, tls_of
        self._permission = permission
        self._bind_address = bind_address
        self._decodes = decodes
        self._transfers = Transfers(most_idle=min(MOST_IDLE, _most_files() // 4))
        self._handles: dict[Hashable, list[EasyHandle]] = {}
        """Those that run nothing, by the kind of requests that they are for."""
        self._answered: Recent[str, int] = Recent(_ORIGINS)
        """Sites that have answered over TLS. The handshakes of others are traced, which tells more of why one fails."""
        self._failed_logins = FailedLogins()
        self._certificates: Recent[int | str, Certificate] = Recent(2 * MOST_IDLE)
        """Of servers, by the number that libcurl has for the connection, and the last one by site."""

    def close(self) -> None:
        """Close all connections."""
        self._transfers.close()

    async def fetch(
        self,
        request: Request,
        body: Body,
        resolver: GuardedResolver,
        *,
        timeout_s: float,
        needs_new: bool = False,
    ) -> Download:
        """Send a request, and return its answer; `body` takes the body.

        Raises Scrapy's exceptions of downloads, those of `errors`, and what the body raises. `needs_new`: on a new connection.
        """
        began, incarnation = monotonic(), self._permission.incarnation()
        origin, proxy = _origin_of(request.url), self._proxy_of(request)
        to = origin if proxy is None else proxy
        found = resolver.cached(to.host, to.port, is_proxy=proxy is not None)
        if found is None:
            found = await resolver.addresses(to.host, to.port, is_proxy=proxy is not None)
        if not found:
            error = CannotResolveHostError(f"{printable(to.host)} has no address that may be connected to")
            raise error if proxy is None else failed_through_proxy(request, error, _NOWHERE) or error
        addresses = [address for _, address in found]
        for attempt in range(_ATTEMPTS):
            left_s = max(0.001, timeout_s - (monotonic() - began)) if timeout_s else 0.0
            attempted = _Attempt(request, origin, proxy, addresses, left_s, timeout_s, needs_new or attempt > 0)
            reply = await self._send(attempted, body, resolver, incarnation)
            if reply is not None:
                return reply
        raise DownloadFailedError("no kept connection could be used")

    async def _send(self, attempt: _Attempt, body: Body, resolver: GuardedResolver, incarnation: int) -> Download | None:
        """Return the answer; None where the request has not been sent, because a kept connection had been closed."""
        kind, handle = self._handle_for(attempt)
        origin, proxy = attempt.origin, attempt.proxy
        transfer = Transfer(
            handle,
            origin,
            body,
            kept_for=(None if _is_shared_by_sites(origin, proxy) else origin.text, proxy),
            transfers=self._transfers,
            permission=self._permission,
            incarnation=incarnation,
            resolver=resolver,
            addresses=None if proxy is not None else frozenset(attempt.addresses),
            login=NegotiateLogin(origin.site, self._failed_logins) if attempt.negotiates else None,
        )
        handle.transfer = transfer
        try:
            self._transfers.start(transfer)
            code, message = await transfer.result
            return self._reply(attempt, transfer, code, message)
        finally:
            self._transfers.stop(transfer)
            handle.transfer = None
            if kind is not None:
                self._give_back(kind, handle)
            else:
                handle.curl.close()

    # --- options --------------------------------------------------------------------------------------------------

    def _handle_for(self, attempt: _Attempt) -> tuple[Hashable, EasyHandle]:
        """Return a handle with the options of a request, and the kind of requests it is for; None: for this one only."""
        request, origin, proxy = attempt.request, attempt.origin, attempt.proxy
        attempt.negotiates = NEGOTIATE in request.meta
        tls = self._tls_of(origin.host, origin.port) if origin.scheme == "https" else None
        bind = request.meta.get("bindaddress") or self._bind_address
        authorization = request.headers.get(b"Proxy-Authorization") if proxy is not None else None
        connect_s = 0.0 if proxy is None else attempt.timeout_s
        kind: Hashable = (origin.scheme == "https", tls, proxy, authorization, connect_s, str(bind or ""))
        is_usual = request.method == "GET" and not request.body and not attempt.negotiates
        idle = self._handles.get(kind) if is_usual else None
        handle = idle.pop() if idle else EasyHandle(self._options(attempt, tls, authorization, bind))
        curl = handle.curl
        curl.setopt(pycurl.URL, origin.text + request.url[_length_of_origin(request.url) :])
        curl.setopt(pycurl.RESOLVE, _resolved(origin if proxy is None else proxy, attempt.addresses))
        curl.setopt(pycurl.HTTPHEADER, _header_lines(request))
        curl.setopt(pycurl.TIMEOUT_MS, ceil(attempt.left_s * 1000))
        curl.setopt(pycurl.FRESH_CONNECT, int(attempt.needs_new))
        if attempt.negotiates:
            curl.setopt(pycurl.VERBOSE, 1)  # tells why there is no ticket
        elif origin.scheme == "https":
            curl.setopt(pycurl.VERBOSE, int(self._tls.are_logged or self._answered.get(origin.site) is None))
        return kind if is_usual else None, handle

    def _options(self, attempt: _Attempt, tls: SiteTls | None, authorization: bytes | None, bind: Any) -> Options:
        request, proxy = attempt.request, attempt.proxy
        is_https = attempt.origin.scheme == "https"
        options: Options = self._tls.of_site(tls) if is_https else []
        if proxy is None:
            options.append((pycurl.CONNECTTIMEOUT_MS, _LONGEST_MS))  # else that is 5 minutes, whatever the request's time is
        else:
            if proxy.scheme == "https":
                options += self._tls.of_proxy(self._tls_of(proxy.host, proxy.port))
            options += proxy.options(authorization, timeout_s=attempt.timeout_s, tunnels=is_https)
        if self._decodes:
            options.append((pycurl.ACCEPT_ENCODING, ""))  # whatever libcurl can
        if bind:
            host, port = (bind, 0) if isinstance(bind, str) else bind
            options += [(pycurl.INTERFACE, f"host!{host}"), (pycurl.LOCALPORT, int(port))]
        if request.method == "HEAD" and not request.body:
            options.append((pycurl.NOBODY, 1))
        elif request.body or request.method in _WITH_BODY:
            options += [(pycurl.POSTFIELDS, request.body), (pycurl.CUSTOMREQUEST, request.method)]
        elif request.method != "GET":
            options.append((pycurl.CUSTOMREQUEST, request.method))
        if attempt.negotiates:
            # It logs a connection in, not a stream of HTTP/2: of several at a time, libcurl sends some without a ticket.
            options += [(pycurl.HTTPAUTH, pycurl.HTTPAUTH_NEGOTIATE), (pycurl.USERPWD, ":")]
            options.append((pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1))
        return options

    def _give_back(self, kind: Hashable, handle: EasyHandle) -> None:
        idle = self._handles.get(kind)
        if idle is None:
            if len(self._handles) >= MOST_KINDS:
                self._handles.clear()
            idle = self._handles[kind] = []
        if len(idle) < MOST_HANDLES:
            idle.append(handle)
        else:
            handle.curl.close()

    def _proxy_of(self, request: Request) -> ProxyServer | None:
        url = request.meta.get("proxy")
        if not url:
            return None
        try:
            return proxy_server(str(url))
        except ValueError as error:
            raise UnsupportedURLSchemeError(str(error)) from error

    # --- the end --------------------------------------------------------------------------------------------------

    def _reply(self, attempt: _Attempt, transfer: Transfer, code: int, message: str) -> Download | None:
        if transfer.error is not None:
            raise transfer.error
        if transfer.is_stale:
            return None
        error = None if code == 0 or transfer.is_stopped else self._error(attempt, transfer, code, message)
        head = transfer.head
        if head is None or (error is not None and not isinstance(error, ResponseDataLossError)):
            raise error or AnswerFailed(Cause.RESET)  # the connection has ended within the head
        curl = transfer.curl
        if attempt.origin.scheme == "https":
            self._answered.put(attempt.origin.site, 1)
        is_partial = error is not None and head.length is None and _UNCONFIRMED in message
        is_partial = is_partial and b"Transfer-Encoding" not in head.headers
        return Download(
            head,
            _address(transfer.address),
            self._certificate(curl, attempt.origin.site) if attempt.origin.scheme == "https" else None,
            transfer.is_stopped,
            is_partial,
            transfer.answered_at - transfer.sent_at,
            None if is_partial else error,
        )

    def _error(self, attempt: _Attempt, transfer: Transfer, code: int, message: str) -> Exception:
        curl, request = transfer.curl, attempt.request
        ended = Ended(
            code,
            message,
            url=printable(request.url),
            host=attempt.origin.host,
            timeout_s=attempt.timeout_s,
            os_error=curl.getinfo(pycurl.OS_ERRNO),
            is_connected=curl.getinfo(pycurl.CONNECT_TIME) > 0 or transfer.sent_at > 0,
            is_reused=transfer.is_reused,
            has_answer=transfer.has_status_line or bool(transfer.lines),
            wants_certificate=transfer.wants_certificate,
            verify_result=curl.getinfo(pycurl.SSL_VERIFYRESULT),
            certificates=tuple(_certificates(curl)) if code == pycurl.E_PEER_FAILED_VERIFICATION else (),
        )
        error = error_of(ended)
        if attempt.proxy is None:
            return error
        tunnel_status, proxy_error = curl.getinfo(pycurl.HTTP_CONNECTCODE), curl.getinfo(pycurl.PROXY_ERROR)
        reached = Reached(code, ended.is_connected, tunnel_status, proxy_error)
        return failed_through_proxy(request, error, reached) or error

    def _certificate(self, curl: pycurl.Curl, site: str) -> Certificate | None:
        """Return the certificate of a site; where a session of TLS was resumed, none was sent."""
        number = curl.getinfo(pycurl.CONN_ID)
        own = next(_certificates(curl), None) if curl.getinfo(pycurl.NUM_CONNECTS) else None
        if own is None and self._certificates.get(number) is None and self._certificates.get(site) is None:
            own = self._certificate_of_running(site)
        if own is not None:
            certificate = Certificate.loadPEM(own)
            self._certificates.put(number, certificate)
            self._certificates.put(site, certificate)
        return self._certificates.get(number) or self._certificates.get(site)

    def _certificate_of_running(self, site: str) -> str | None:
        """Return what a site has sent to a request that still runs: with HTTP/2, a later one may end before the first of a connection."""
        return next((pem for one in self._transfers.running() if one.site == site for pem in _certificates(one.curl)), None)


@dataclass(slots=True)
class _Attempt:
    """A request that is about to be sent."""

    request: Request
    origin: RequestOrigin
    proxy: ProxyServer | None
    addresses: list[str]
    left_s: float
    """Of the time of the request; 0: it has no limit."""
    timeout_s: float
    needs_new: bool
    negotiates: bool = False


_ORIGIN = re.compile(r"[^:/?#]+://[^/?#]*")
_LONGEST_MS = 2**31 - 1
_UNCONFIRMED = "unexpected eof"
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


def _certificates(curl: pycurl.Curl) -> Any:
    """Yield the certificates that the server sent, in PEM."""
    for fields in curl.getinfo(pycurl.INFO_CERTINFO):
        pem = next((value for name, value in fields if name == "Cert"), None)
        if pem is not None:
            yield pem


@lru_cache(_ORIGINS)
def _address(text: str) -> IPv4Address | IPv6Address | None:
    return ip_address(text) if text else None


def _origin_of(url: str) -> RequestOrigin:
    """Return where a request for a URL is sent. Raises UnsupportedURLSchemeError, and CannotResolveHostError for what is no host."""
    origin = url[: _length_of_origin(url)]
    return _usual_origin(origin) if len(origin) <= _USUAL_LENGTH else _read_origin(origin)


def _length_of_origin(url: str) -> int:
    found = _ORIGIN.match(url)
    return 0 if found is None else found.end()


def _read_origin(origin: str) -> RequestOrigin:
    parts = urlsplit(origin)
    if parts.scheme not in DEFAULT_PORTS:
        raise UnsupportedURLSchemeError(f"{printable(origin)} is not fetched")
    try:
        host, port = as_in_urls(parts.hostname or ""), parts.port or DEFAULT_PORTS[parts.scheme]
    except ValueError:
        host, port = None, 0
    if not host:
        raise CannotResolveHostError(f"{printable(origin)} has no valid host")
    shown = f"[{host}]" if ":" in host else host
    site = f"{shown}:{port}"
    origin = f"{parts.scheme}://{shown}" if port == DEFAULT_PORTS[parts.scheme] else f"{parts.scheme}://{site}"
    return RequestOrigin(parts.scheme, host, port, site, origin)


_usual_origin = lru_cache(_ORIGINS)(_read_origin)


def _is_shared_by_sites(origin: RequestOrigin, proxy: ProxyServer | None) -> bool:
    """Return whether a connection is one to a proxy that passes on requests for any site."""
    return proxy is not None and origin.scheme == "http" and not proxy.is_socks


def _resolved(to: RequestOrigin | ProxyServer, addresses: list[str]) -> list[str]:
    """Return what libcurl is to know of a host's addresses (CURLOPT_RESOLVE(3)); an empty list would leave what a handle had before."""
    if addresses == [to.host]:
        return _NOTHING_RESOLVED
    return [f"+{to.host}:{to.port}:{','.join(f'[{one}]' if ':' in one else one for one in addresses)}"]


_NOTHING_RESOLVED = ["-nothing.invalid:1"]


def _header_lines(request: Request) -> list[bytes]:
    """Return the headers of a request as libcurl sends them: in their order, and without those that it would add."""
    headers: dict[bytes, list[bytes]] = request.headers
    lines = [
        b"%b: %b" % (name, value) if (value := _one_line(given)) else b"%b;" % name
        for name, values in dict.items(headers)
        if _is_sent(name)
        for given in values
    ]
    lines += [line for name, line in _ADDED.items() if not dict.__contains__(headers, name)]
    return lines


@lru_cache(1_000)
def _is_sent(name: bytes) -> bool:
    """Return whether a header is sent: not one whose name would begin another line, or end itself."""
    return name not in _NOT_SENT and not _NO_NAME.search(name)


_NO_NAME = re.compile(rb"[\x00-\x20:;\x7f]|^$")
_NOT_SENT = frozenset({b"Proxy-Authorization", b"Content-Length", b"Transfer-Encoding"})
"""The first is for the proxy; the others are those of the body that is sent."""
_ADDED = {name: b"%b:" % name for name in (b"Accept", b"Content-Type", b"Expect", b"User-Agent")}


def _one_line(value: bytes) -> bytes:
    """Return a value without ends of lines, which would begin another header."""
    if b"\r" in value or b"\n" in value or b"\0" in value:
        return b" ".join(value.replace(b"\0", b"").split())
    return value


def _most_files() -> int:
    """Return how many files this process may have open."""
    if sys.platform == "win32":
        return 2 * MOST_IDLE
    import resource  # noqa: PLC0415 - there is none on Windows

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft != resource.RLIM_INFINITY else 2 * MOST_IDLE
