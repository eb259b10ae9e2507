"""What a failed download means: one exception, one status code and one kind of outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

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
from crawlspace.runtime.download.errors import (
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
        if module.startswith(("OpenSSL", "service_identity")) or "VerificationError" in type(cause).__name__:
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
