"""What a proxy has kept away, or answered for a site: an error of its own, which tells nothing about the page and deletes nothing."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.exceptions import CannotResolveHostError, DownloadFailedError, DownloadTimeoutError, ResponseDataLossError
from twisted.internet import error as tx
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from crawlspace.model import Status
from crawlspace.printable import printable
from crawlspace.runtime.download.errors import (
    CertificateRefused,
    HeadersTooLarge,
    KeptConnectionClosed,
    NotConnected,
    ProxyFailed,
    TunnelRefused,
)
from crawlspace.runtime.download.failures import causes_of, detail_of
from crawlspace.runtime.requests import PROXIED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request
    from scrapy.http import Response

_GATEWAY = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
_OF_THE_PAGE = (KeptConnectionClosed, HeadersTooLarge)
_SERVERS = ("squid", "tinyproxy")
"""Of answers that proxies of these names give themselves, and not for a site."""


def failed_through_proxy(request: Request, error: BaseException) -> Exception | None:
    """Return the error of a request whose answer the proxy has kept away, as far as anybody can tell; None for others.

    A time-out after the proxy has taken the connection mostly is the site's: it stays one, and its message names the proxy.
    """
    causes = list(causes_of(error))
    if any(isinstance(cause, _OF_THE_PAGE) for cause in causes):
        return None
    refused = next((cause for cause in causes if isinstance(cause, TunnelRefused)), None)
    if refused is not None:
        return ProxyFailed(sentence(request, refused.status))
    proxy, where = _proxy(request)
    if any(isinstance(cause, NotConnected) for cause in causes):
        return ProxyFailed(f"the proxy {proxy} cannot be reached ({_why(causes)}): start it, or correct {where}")
    if isinstance(error, ResponseDataLossError | DownloadFailedError) and any(isinstance(cause, _CUT) for cause in causes):
        return ProxyFailed(f"the proxy {proxy} ({where}) has cut the connection: look for the reason in its log, or at the site")
    if not request.url.startswith("https:") and any(map(_is_of_tls, causes)):  # only the proxy speaks TLS
        return ProxyFailed(f"the proxy {proxy} cannot be reached ({_why(causes)}): correct its certificate or {where}")
    if isinstance(error, DownloadTimeoutError):
        return DownloadTimeoutError(f"{error} (through the proxy {proxy})")
    return None


_CUT = (tx.ConnectionLost, tx.ConnectionDone, ConnectionResetError, ResponseDataLossError)


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
    return ProxyFailed(sentence(request, response.status)) if is_of_proxy(response.status, headers) else None


def is_of_proxy(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether a proxy, and not the site, gives an answer over http with these headers."""
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED or headers.get("X-Squid-Error"):
        return True
    if status < HTTPStatus.BAD_REQUEST:
        return False
    if "error=" in headers.get("Proxy-Status", "") or headers.get("Server", "").lower().startswith(_SERVERS):  # RFC 9209
        return True
    return status in _GATEWAY and not headers.get("Retry-After")


def sentence(request: Request, status: int) -> str:
    """Return what an answer of the proxy means, and the way out."""
    proxy, where = _proxy(request)
    return refusal(status, proxy=proxy, where=where, site=urlsplit(request.url).netloc.rpartition("@")[2])


def refusal(status: int, *, proxy: str, where: str, site: str) -> str:
    """Return what an answer of a proxy means, and the way out. `where`: the setting that names it."""
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return f"the proxy {proxy} asks for a log-in (407): set or correct the user and password of {where}"
    if status in _GATEWAY:
        return f"the proxy {proxy} ({where}) does not reach {site} ({status}): see whether its machine does, or have the site requested directly"
    if not status:
        return f"the proxy {proxy} does not answer as one: correct {where}"
    return f"the proxy {proxy} ({where}) refuses what is asked of {site} ({status}): have it allow the site, or have the site requested directly"


def not_connected(failure: Failure) -> Failure:
    """Return why no connection to a proxy was made, as such."""
    if failure.check(CancelledError, TunnelRefused, HeadersTooLarge):
        return failure
    error = NotConnected()
    error.__cause__ = failure.value
    return Failure(error)


def _proxy(request: Request) -> tuple[str, str]:
    """Return the URL of a request's proxy and the setting that names it."""
    _, where = request.meta.get(PROXIED, ("", 'request.meta["proxy"]'))
    return printable(request.meta["proxy"]), where


def _why(causes: list[BaseException]) -> str:
    for cause in causes:
        if isinstance(cause, tx.ConnectionRefusedError):
            return "connection refused"
        if isinstance(cause, tx.TimeoutError | tx.TCPTimedOutError | DownloadTimeoutError):
            return "no answer in time"
        if isinstance(cause, tx.DNSLookupError | CannotResolveHostError):
            return "its name cannot be looked up"
        if _is_of_tls(cause):
            return f"the TLS handshake with it failed: {detail_of(cause, Status.TLS_FAILED)}"
    return "the connection was lost" if any(isinstance(cause, _CUT) for cause in causes) else printable(str(causes[-1]))


def _is_of_tls(error: BaseException) -> bool:
    found = isinstance(error, CertificateRefused) or type(error).__module__.startswith(("OpenSSL", "service_identity"))
    return found or "VerificationError" in type(error).__name__
