"""The options of requests through a proxy, and what a proxy has kept away, or answered for a site.

That is an error of its own, which tells nothing about the page and deletes nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import pycurl
from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Response

from crawlspace.config.proxies import SCHEMES
from crawlspace.runtime.components.requests import PROXIED
from crawlspace.runtime.http.causes import CAUSES_OF_TLS, Cause
from crawlspace.runtime.http.codes import PROXY_HANDSHAKE
from crawlspace.runtime.http.errors import AnswerFailed, HeadersTooLarge, KeptConnectionClosed, ProxyFailed
from crawlspace.text import printable

if TYPE_CHECKING:
    from crawlspace.runtime.http.tls import Options

LONGEST_CONNECT_S = 30.0
"""Until a proxy must have taken a connection, and at most half the time of a request: later it is not known what kept the answer away."""
_GATEWAY = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
_SERVERS = ("squid", "tinyproxy")
"""Of answers that proxies of these names give themselves, and not for a site."""
_KINDS = {
    "http": pycurl.PROXYTYPE_HTTP,
    "https": 2,  # CURLPROXY_HTTPS, which has no name in pycurl
    "socks4": pycurl.PROXYTYPE_SOCKS4A,
    "socks4a": pycurl.PROXYTYPE_SOCKS4A,
    "socks5": pycurl.PROXYTYPE_SOCKS5_HOSTNAME,
    "socks5h": pycurl.PROXYTYPE_SOCKS5_HOSTNAME,
}
"""Of SOCKS those that have the proxy look names up, as HTTP proxies do: the names of a network may be known to its proxy only."""


class ProxyServer(NamedTuple):
    """The address of a proxy. `host` is without brackets."""

    scheme: str
    host: str
    port: int

    @property
    def is_socks(self) -> bool:
        return self.scheme.startswith("socks")

    def options(self, authorization: bytes | None, *, timeout_s: float, tunnels: bool) -> Options:
        """Return the options of requests through it. Raises UnsupportedURLSchemeError for a log-in that it cannot be sent."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        options: Options = [
            (pycurl.PROXY, f"{host}:{self.port}"),
            (pycurl.PROXYTYPE, _KINDS[self.scheme]),
            (pycurl.HEADEROPT, pycurl.HEADER_SEPARATE),
            (pycurl.HTTPPROXYTUNNEL, int(tunnels and not self.is_socks)),
            (pycurl.CONNECTTIMEOUT_MS, int(1000 * min(timeout_s / 2, LONGEST_CONNECT_S)) or 1),
        ]
        if authorization is None:
            return options
        if not self.is_socks:
            return [*options, (pycurl.PROXYHEADER, [b"Proxy-Authorization: " + authorization])]
        kind, _, token = authorization.partition(b" ")
        if kind.lower() != b"basic":
            raise UnsupportedURLSchemeError("a SOCKS proxy takes a user and a password only")
        user, _, password = base64.b64decode(token).partition(b":")
        return [*options, (pycurl.PROXYUSERNAME, user), (pycurl.PROXYPASSWORD, password)]


def proxy_server(url: str) -> ProxyServer:
    """Return where the proxy of a request is, of `meta["proxy"]`. Raises ValueError for what is none."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise ValueError(f"{printable(url)} is no proxy")
    return ProxyServer(parts.scheme, parts.hostname, parts.port or SCHEMES[parts.scheme])


class Reached(NamedTuple):
    """Progress of a request that failed on its way through a proxy."""

    code: int
    """The error of libcurl."""
    is_connected: bool
    """With the proxy."""
    tunnel_status: int
    """Of the answer to CONNECT; 0: none."""
    proxy_error: int
    """Of SOCKS (CURLPX_ of CURLINFO_PROXY_ERROR(3)); 0: none."""


def failed_through_proxy(request: Request, error: BaseException, reached: Reached) -> Exception | None:
    """Return the error of a request whose answer the proxy has kept away, as far as anybody can tell; None for others.

    A time-out after the proxy has taken the connection mostly is the site's: it stays one, and its message names the proxy.
    """
    if isinstance(error, KeptConnectionClosed | HeadersTooLarge):
        return None
    proxy, where = _proxy(request)
    cause = error.cause if isinstance(error, AnswerFailed) else None
    unreachable = f"the proxy {proxy} cannot be reached ({_why(error)}): start it, or correct {where}"
    lacks_tunnel = request.url.startswith("https:") and not reached.tunnel_status
    if reached.code == PROXY_HANDSHAKE:
        return ProxyFailed(_of_socks(request, reached.proxy_error))
    if reached.tunnel_status and not 200 <= reached.tunnel_status < 300:
        return ProxyFailed(refusal(request, reached.tunnel_status))
    if not reached.is_connected:
        return ProxyFailed(unreachable)
    if cause in CAUSES_OF_TLS and proxy.startswith("https:") and not reached.tunnel_status:
        why = f"the TLS handshake with it failed: {error}"
        return ProxyFailed(f"the proxy {proxy} cannot be reached ({why}): correct its certificate or {where}")
    if lacks_tunnel and cause in _NO_ANSWER:
        return ProxyFailed(refusal(request, 0))
    if lacks_tunnel and cause in _CUT and not proxy.startswith("socks"):
        return ProxyFailed(unreachable)
    if cause in _CUT or isinstance(error, ResponseDataLossError):
        return ProxyFailed(f"the proxy {proxy} ({where}) has cut the connection: look for the reason in its log, or at the site")
    if isinstance(error, DownloadTimeoutError):
        return DownloadTimeoutError(f"{error} (through the proxy {proxy})")
    return None


_CUT = frozenset({Cause.RESET, Cause.CLOSED, Cause.CLOSED_IN_HANDSHAKE})
_NO_ANSWER = frozenset({Cause.NO_HTTP, Cause.OTHER_READ_ERROR})


def answered_by_proxy(request: Request, response: Response) -> ProxyFailed | None:
    """Return the error of a request that its proxy has answered itself.

    Over https a proxy cannot: it refuses the tunnel. Over http, 407 is always its own; 502, 503 and 504 mostly are, and tell nothing about
    the page anyway; of another answer only its headers can tell.
    """
    if request.url.startswith("https:"):
        return None
    headers = {
        name: (response.headers.get(name) or b"").decode("latin-1")
        for name in ("X-Squid-Error", "Proxy-Status", "Server", "Retry-After")
    }
    return ProxyFailed(refusal(request, response.status)) if is_of_proxy(response.status, headers) else None


def is_of_proxy(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether a proxy, and not the site, gives an answer over http with these headers."""
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED or headers.get("X-Squid-Error"):
        return True
    if status < HTTPStatus.BAD_REQUEST:
        return False
    if "error=" in headers.get("Proxy-Status", "") or headers.get("Server", "").lower().startswith(_SERVERS):  # RFC 9209
        return True
    return status in _GATEWAY and not headers.get("Retry-After")


def refusal(request: Request, status: int, *, reported: str | None = None) -> str:
    """Return what an answer of the proxy means, and the way out. `status` 0: it is none; `reported`: what is shown in place of the status."""
    proxy, where = _proxy(request)
    site = urlsplit(request.url).netloc.rpartition("@")[2]
    reported = f" ({int(status)})" if reported is None else reported
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return f"the proxy {proxy} asks for a log-in{reported}: set or correct the user and password of {where}"
    if status in _GATEWAY:
        return f"the proxy {proxy} ({where}) does not reach {site}{reported}: see whether its machine does, or have the site requested directly"
    if not status:
        return f"the proxy {proxy} does not answer as one: correct {where}"
    return f"the proxy {proxy} ({where}) refuses requests to {site}{reported}: have it allow the site, or have the site requested directly"


def _of_socks(request: Request, code: int) -> str:
    """Return what a SOCKS proxy has refused, and the way out."""
    if code in _SOCKS_LOGIN:
        return refusal(request, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED, reported="")
    if code in _SOCKS_UNREACHABLE:
        return refusal(request, HTTPStatus.BAD_GATEWAY, reported=f" ({_SOCKS_UNREACHABLE[code]})")
    return refusal(request, HTTPStatus.FORBIDDEN if code == _SOCKS_NOT_ALLOWED else 0, reported="")


_SOCKS_LOGIN = frozenset({7, 8, 12, 14, 33})
"""CURLPX_IDENTD, IDENTD_DIFFER, NO_AUTH, RECV_AUTH and USER_REJECTED: pycurl has no names for these."""
_SOCKS_NOT_ALLOWED = 23
_SOCKS_UNREACHABLE = {
    19: "connection refused",
    20: "general failure",
    21: "no route to the host, or no such host",
    22: "no route to the network",
    24: "no answer in time",
    26: "refused or failed",
}
"""CURLPX_REPLY_…, and REQUEST_FAILED of SOCKS 4."""


def _proxy(request: Request) -> tuple[str, str]:
    """Return the URL of a request's proxy and the setting that names it."""
    _, where = request.meta.get(PROXIED, ("", 'request.meta["proxy"]'))
    return printable(request.meta["proxy"]), where


def _why(error: BaseException) -> str:
    match error:
        case DownloadConnectionRefusedError():
            return "connection refused"
        case DownloadTimeoutError():
            return "no answer in time"
        case CannotResolveHostError():
            return "its name cannot be looked up"
        case AnswerFailed(cause=cause) if cause in _CUT:
            return "the connection was lost"
    return printable(str(error))
