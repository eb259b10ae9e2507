"""What a failed download means: one exception, one status code, one kind of outcome, and a sentence with what is known of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from OpenSSL import SSL
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from twisted.internet import error as tx
from twisted.web.client import RequestGenerationFailed, ResponseFailed

from crawlspace.decision import Decision, Reason
from crawlspace.model import OutcomeKind, Status
from crawlspace.runtime.download.causes import Cause, sentence
from crawlspace.runtime.download.errors import (
    CertificateRefused,
    ClosedInHandshake,
    HeadersTooLarge,
    KeptConnectionClosed,
    LoggedOutError,
    NotRenderedError,
    ProxyFailed,
    UndecodableBody,
)
from crawlspace.runtime.download.http_internals import ParseError
from crawlspace.urls import DEFAULT_PORTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlspace.runtime.download.resolver import GuardedResolver


@dataclass(frozen=True, slots=True)
class Meaning:
    """`host_failure`: the failure may be the host's and not the page's."""

    kind: OutcomeKind
    status: Status
    host_failure: bool = False
    reason: Reason | None = None
    refused: Decision | None = None
    """Why no address of the host may be connected to."""


TOO_LARGE = Meaning(OutcomeKind.GONE, Status.CUT_SHORT)
CUT_SHORT = Meaning(OutcomeKind.GONE, Status.CUT_SHORT, host_failure=True)
TIMEOUT = Meaning(OutcomeKind.FAILED, Status.TIMEOUT, host_failure=True)
CONNECT = Meaning(OutcomeKind.FAILED, Status.CONNECT_ERROR, host_failure=True)
OTHER_CONNECT = Meaning(OutcomeKind.GONE, Status.CONNECT_ERROR, host_failure=True)
TLS = Meaning(OutcomeKind.GONE, Status.TLS_FAILED, host_failure=True)
READ = Meaning(OutcomeKind.GONE, Status.READ_ERROR, host_failure=True)
NO_SUCH_HOST = Meaning(OutcomeKind.GONE, Status.NO_SUCH_HOST, host_failure=True)
NO_DNS_ANSWER = Meaning(OutcomeKind.FAILED, Status.NO_DNS_ANSWER, host_failure=True)
NOT_FETCHED = Meaning(OutcomeKind.EXCLUDED, Status.PORT_OR_SCHEME, reason=Reason.SCHEME)
PROXY = Meaning(OutcomeKind.FAILED, Status.PROXY_FAILED, host_failure=True)
LOGGED_OUT = Meaning(OutcomeKind.FAILED, Status.LOGGED_OUT)
NOT_RENDERED = Meaning(OutcomeKind.FAILED, Status.NOT_RENDERED)
IGNORED = Meaning(OutcomeKind.EXCLUDED, Status.UNEXPECTED)
UNEXPECTED = Meaning(OutcomeKind.FAILED, Status.UNEXPECTED, host_failure=True)


def meaning_of(error: BaseException, *, url: str, resolver: GuardedResolver | None) -> Meaning:
    """Return what a download's exception means."""
    if isinstance(error, CannotResolveHostError):
        return _unresolved(url, resolver)
    if isinstance(error, IgnoreRequest):  # the decompression names the limit it met; other middlewares just leave a URL out
        return TOO_LARGE if "DOWNLOAD_MAXSIZE" in str(error) else IGNORED
    if any(isinstance(cause, HeadersTooLarge) for cause in causes_of(error)):
        return TOO_LARGE
    for kind, meaning in _MEANINGS:
        if isinstance(error, kind):
            return meaning
    if isinstance(error, DownloadFailedError | ResponseFailed):
        return _failed(error)
    if isinstance(error, tx.ConnectError | tx.ConnectionDone):
        return OTHER_CONNECT
    return UNEXPECTED


_MEANINGS: tuple[tuple[type[BaseException], Meaning], ...] = (
    (DownloadTimeoutError, TIMEOUT),
    (DownloadConnectionRefusedError, CONNECT),
    (KeptConnectionClosed, CONNECT),
    (ClosedInHandshake, CONNECT),
    (ProxyFailed, PROXY),
    (DownloadCancelledError, TOO_LARGE),
    (ResponseDataLossError, CUT_SHORT),
    (UndecodableBody, READ),
    (LoggedOutError, LOGGED_OUT),
    (NotRenderedError, NOT_RENDERED),
    (UnsupportedURLSchemeError, NOT_FETCHED),
    (TunnelError, PROXY),
    (tx.TimeoutError, TIMEOUT),
    (tx.TCPTimedOutError, TIMEOUT),
    (tx.ConnectionRefusedError, CONNECT),
    (tx.ConnectionLost, CONNECT),
)


def _unresolved(url: str, resolver: GuardedResolver | None) -> Meaning:
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    if resolver is not None:
        refused = resolver.why_refused(host, port)
        if refused is not None:
            return Meaning(OutcomeKind.EXCLUDED, Status.EXCLUDED, reason=refused.reason, refused=refused)
        if resolver.does_not_exist(host):
            return NO_SUCH_HOST
    return NO_DNS_ANSWER


def _failed(error: BaseException) -> Meaning:
    for cause in causes_of(error):
        module = type(cause).__module__
        if (
            isinstance(cause, CertificateRefused)
            or module.startswith(("OpenSSL", "service_identity"))
            or "VerificationError" in type(cause).__name__
        ):
            return TLS
        if isinstance(cause, tx.TimeoutError):
            return TIMEOUT
        if isinstance(cause, tx.ConnectionLost | tx.ConnectionDone | ConnectionResetError):
            return CONNECT
        if isinstance(cause, ParseError | RequestGenerationFailed):
            return READ
    return READ


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions below a failed download, as Twisted wraps them."""
    todo: list[BaseException] = [error]
    while todo:
        one = todo.pop(0)
        yield one
        if one.__cause__ is not None:
            todo.append(one.__cause__)
        todo.extend(reason.value for reason in getattr(one, "reasons", ()))


def detail_of(error: BaseException, status: Status) -> str:
    """Return what is known of a failed download beside its status, as a sentence; empty where the status says it all."""
    if status is Status.UNEXPECTED:
        return f"{type(error).__name__}: {error}"
    if status not in _OF_DOWNLOADS:
        return str(error)
    causes = list(causes_of(error))
    match status:
        case Status.TLS_FAILED:
            return _of_handshake(causes)
        case Status.CONNECT_ERROR:
            return _of_connection(causes)
        case Status.TIMEOUT:
            connecting = any(isinstance(cause, tx.TCPTimedOutError) for cause in causes)
            through = _PROXY.search(str(error))
            return sentence(Cause.NO_CONNECTION_IN_TIME) if connecting else f"no answer in time{through[0]}" if through else ""
        case Status.CUT_SHORT:
            return _of_size(causes)
        case Status.READ_ERROR:
            return _of_reading(causes)
    return ""


_OF_DOWNLOADS = frozenset(
    {
        Status.READ_ERROR,
        Status.CONNECT_ERROR,
        Status.TIMEOUT,
        Status.TLS_FAILED,
        Status.CUT_SHORT,
        Status.NO_SUCH_HOST,
        Status.NO_DNS_ANSWER,
    }
)
"""The statuses whose exceptions are not ours: their texts are not for users."""
_PROXY = re.compile(r" \(through the proxy .*\)")


def _of_handshake(causes: list[BaseException]) -> str:
    refused = next((cause for cause in causes if isinstance(cause, CertificateRefused)), None)
    if refused is not None:
        return str(refused)
    reasons = [reason for cause in causes if isinstance(cause, SSL.Error) for reason in _reasons(cause)]
    for reason in reasons:
        for words, kind in _HANDSHAKES:
            if words in reason:
                return sentence(kind, why=reason)
    return sentence(Cause.OTHER_HANDSHAKE, why=", ".join(reasons))


def _reasons(error: SSL.Error) -> list[str]:
    """Return what OpenSSL reports, in its words, such as `wrong version number`."""
    entries = error.args[0] if error.args and isinstance(error.args[0], list) else ()
    return [str(entry[-1]) for entry in entries if entry]


_HANDSHAKES = (
    ("unsupported protocol", Cause.OLD_PROTOCOL),
    ("protocol version", Cause.OLD_PROTOCOL),
    ("version too low", Cause.OLD_PROTOCOL),
    ("wrong version number", Cause.NO_TLS),
    ("packet length too long", Cause.NO_TLS),
    ("record layer failure", Cause.NO_TLS),
    ("http request", Cause.NO_TLS),
    ("certificate required", Cause.CLIENT_CERTIFICATE),
    ("alert bad certificate", Cause.CLIENT_CERTIFICATE),
    ("alert unknown ca", Cause.CLIENT_CERTIFICATE),
    ("alert certificate", Cause.CLIENT_CERTIFICATE),
    ("key too small", Cause.WEAK_KEY),
    ("md too weak", Cause.WEAK_KEY),
    ("handshake failure", Cause.NO_COMMON_CIPHER),
    ("no shared cipher", Cause.NO_COMMON_CIPHER),
    ("no ciphers available", Cause.NO_COMMON_CIPHER),
)
"""What OpenSSL reports of a handshake that failed, the first that fits. An alert is what the server has sent."""


def _of_connection(causes: list[BaseException]) -> str:
    for cause in causes:
        for kind, found in _CONNECTIONS:
            if isinstance(cause, kind):
                return sentence(found)
    unconnected = next((cause for cause in causes if isinstance(cause, tx.ConnectError)), None)
    return "" if unconnected is None else sentence(Cause.OTHER_CONNECTION, why=str(unconnected.osError or ""))


_CONNECTIONS: tuple[tuple[type[BaseException], Cause], ...] = (
    (DownloadConnectionRefusedError, Cause.REFUSED),
    (tx.ConnectionRefusedError, Cause.REFUSED),
    (tx.NoRouteError, Cause.NO_ROUTE),
    (KeptConnectionClosed, Cause.CLOSED),
    (ClosedInHandshake, Cause.CLOSED_IN_HANDSHAKE),
    (tx.ConnectionDone, Cause.CLOSED),
    (tx.ConnectionLost, Cause.RESET),
    (ConnectionResetError, Cause.RESET),
)


def _of_size(causes: list[BaseException]) -> str:
    if any(isinstance(cause, HeadersTooLarge) for cause in causes):
        return sentence(Cause.HEADERS_TOO_LARGE)
    if any(isinstance(cause, ResponseDataLossError) for cause in causes):
        return sentence(Cause.CUT_SHORT)
    announced = _ANNOUNCED.search(str(causes[0]))
    expected, limit = (None, None) if announced is None else map(int, announced.groups())
    return sentence(Cause.TOO_LARGE, expected=expected, limit=limit)


_ANNOUNCED = re.compile(r"Expected to receive ([0-9]{1,15}) bytes which is larger than download max size \(([0-9]{1,15})\)")
"""What Scrapy says of an answer that is too large by its headers. Of others it tells no sizes."""


def _of_reading(causes: list[BaseException]) -> str:
    for cause in causes:
        if isinstance(cause, UndecodableBody):
            return sentence(Cause.WRONG_ENCODING, why=str(cause))
        if isinstance(cause, ParseError):
            return sentence(Cause.NO_HTTP, why=str(cause.args[0]) if cause.args else "")
    return sentence(Cause.OTHER_READ_ERROR, why=type(causes[-1]).__name__)
