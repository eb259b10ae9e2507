"""The meaning of a failed download: one exception, one status code, one kind of outcome, and a sentence with details.

A project may have another download handler for a scheme. Of its exceptions those of Scrapy's public classes are known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

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

from crawlspace.decision import Decision, Reason
from crawlspace.outcome import OutcomeKind
from crawlspace.runtime.http.causes import CAUSES_OF_TLS, Cause, sentence
from crawlspace.runtime.http.errors import (
    AnswerFailed,
    AnswerTooLarge,
    LoggedOutError,
    NoConnectionInTime,
    NotRenderedError,
    ProxyFailed,
    UndecodableBody,
)
from crawlspace.status import Status
from crawlspace.urls import DEFAULT_PORTS

if TYPE_CHECKING:
    from crawlspace.runtime.http.resolver import GuardedResolver


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
    if isinstance(error, AnswerFailed):
        return TLS if error.cause in CAUSES_OF_TLS else _BY_CAUSE.get(error.cause, READ)
    return next((meaning for kind, meaning in _MEANINGS if isinstance(error, kind)), UNEXPECTED)


_BY_CAUSE = {
    Cause.REFUSED: CONNECT,
    Cause.RESET: CONNECT,
    Cause.CLOSED: CONNECT,
    Cause.CLOSED_IN_HANDSHAKE: CONNECT,
    Cause.NO_ROUTE: OTHER_CONNECT,
    Cause.OTHER_CONNECTION: OTHER_CONNECT,
    Cause.HEADERS_TOO_LARGE: TOO_LARGE,
}
_MEANINGS: tuple[tuple[type[BaseException], Meaning], ...] = (
    (DownloadTimeoutError, TIMEOUT),
    (DownloadConnectionRefusedError, CONNECT),
    (ProxyFailed, PROXY),
    (DownloadCancelledError, TOO_LARGE),
    (ResponseDataLossError, CUT_SHORT),
    (UndecodableBody, READ),
    (LoggedOutError, LOGGED_OUT),
    (NotRenderedError, NOT_RENDERED),
    (UnsupportedURLSchemeError, NOT_FETCHED),
    (DownloadFailedError, READ),
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


def detail_of(error: BaseException, status: Status) -> str:
    """Return details of a failed download in addition to its status, as a sentence; empty if the status is sufficient."""
    if status is Status.UNEXPECTED:
        return f"{type(error).__name__}: {error}"
    if isinstance(error, AnswerFailed | AnswerTooLarge) or status not in _OF_DOWNLOADS:
        return str(error)
    match error:
        case DownloadConnectionRefusedError():
            return sentence(Cause.REFUSED)
        case NoConnectionInTime():
            return sentence(Cause.NO_CONNECTION_IN_TIME)
        case DownloadTimeoutError():
            through = _PROXY.search(str(error))
            return f"no answer in time{through[0]}" if through else ""
        case ResponseDataLossError():
            return sentence(Cause.CUT_SHORT)
        case DownloadCancelledError() | IgnoreRequest():
            return sentence(Cause.TOO_LARGE)
        case UndecodableBody():
            return sentence(Cause.WRONG_ENCODING, why=str(error))
        case DownloadFailedError():
            return sentence(Cause.OTHER_READ_ERROR, why=type(error).__name__)
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
