"""Sentences for failed downloads: one for each cause, with its details, for any download client.

The sentence is the detail of the error (`UrlState.detail`). An administrator must be able to tell from it whom to ask: the site, the one
who runs the proxy, or the one who set this collection up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from crawlspace.text import counted, printable

NAMES_SHOWN = 3
_LONGEST_NAME = 60


class Cause(StrEnum):
    """Why a download failed."""

    # of the certificate (614)
    EXPIRED = "expired"
    NOT_YET_VALID = "not yet valid"
    SELF_SIGNED = "self-signed"
    UNKNOWN_ISSUER = "unknown issuer"
    WRONG_NAME = "wrong name"
    REVOKED = "revoked"
    OTHER_CERTIFICATE = "other fault of the certificate"
    # of the handshake (614)
    OLD_PROTOCOL = "old protocol"
    NO_COMMON_CIPHER = "no common cipher"
    WEAK_KEY = "weak key"
    NO_TLS = "no TLS"
    CLIENT_CERTIFICATE = "client certificate"
    OTHER_HANDSHAKE = "other fault of the handshake"
    # of the connection (612, 613)
    REFUSED = "refused"
    RESET = "reset"
    CLOSED = "closed without an answer"
    CLOSED_IN_HANDSHAKE = "closed before the handshake began"
    NO_ROUTE = "no route"
    OTHER_CONNECTION = "other fault of the connection"
    NO_CONNECTION_IN_TIME = "no connection in time"
    # of the answer (611, 615)
    NO_HTTP = "no HTTP"
    WRONG_ENCODING = "wrong encoding"
    OTHER_READ_ERROR = "other read error"
    CUT_SHORT = "cut short"
    TOO_LARGE = "too large"
    HEADERS_TOO_LARGE = "headers too large"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The contents of a certificate. Times are seconds since 1970; None: unknown."""

    names: Sequence[str] = ()
    """The hosts that it is for."""
    subject: str = ""
    issuer: str = ""
    begins: float | None = None
    ends: float | None = None
    depth: int = 0
    """0: that of the site; 1: that of its issuer, and so on."""


NO_CERTIFICATE = Certificate()


def sentence(
    cause: Cause,
    *,
    host: str = "",
    certificate: Certificate = NO_CERTIFICATE,
    received: int | None = None,
    expected: int | None = None,
    limit: int | None = None,
    why: str = "",
) -> str:
    """Return a cause as a sentence, with its way out where there is one.

    `received` and `expected` are bytes, `limit` is that of DOWNLOAD_MAXSIZE or CRAWLSPACE_FILE_MAXSIZE; None: unknown. `why` is what
    the client reports.
    """
    if cause in _OF_CERTIFICATES:
        return _of_certificate(cause, host, certificate, why)
    if cause is Cause.CUT_SHORT:
        return f"the answer was cut short{_sizes(received, expected)}"
    if cause is Cause.TOO_LARGE:
        size = f"of {counted(expected, 'byte')} " if expected else ""
        return f"the answer {size}is larger than {'DOWNLOAD_MAXSIZE' if limit is None else counted(limit, 'byte')}"
    before, after = _SENTENCES[cause]
    return f"{before}{f' ({printable(why)})' if why else ''}{after}"


_OF_CERTIFICATES = frozenset(
    {
        Cause.EXPIRED,
        Cause.NOT_YET_VALID,
        Cause.SELF_SIGNED,
        Cause.UNKNOWN_ISSUER,
        Cause.WRONG_NAME,
        Cause.REVOKED,
        Cause.OTHER_CERTIFICATE,
    }
)
CAUSES_OF_TLS = _OF_CERTIFICATES | {
    Cause.OLD_PROTOCOL,
    Cause.NO_COMMON_CIPHER,
    Cause.WEAK_KEY,
    Cause.NO_TLS,
    Cause.CLIENT_CERTIFICATE,
    Cause.OTHER_HANDSHAKE,
}
_SENTENCES = {
    Cause.OLD_PROTOCOL: (
        "the server speaks only an old version of TLS, which is not accepted",
        ": DOWNLOAD_TLS_MIN_VERSION can allow it",
    ),
    Cause.NO_COMMON_CIPHER: (
        "the server refuses the handshake",
        ": it may have no version or cipher of TLS in common with this client, or want a certificate of it",
    ),
    Cause.WEAK_KEY: ("the key or signature of the server's certificate is too weak", ": the site must renew it"),
    Cause.NO_TLS: ("the server does not speak TLS at this port", ": the URL may be one of http"),
    Cause.CLIENT_CERTIFICATE: (
        "the server asks for a certificate of the client, or refuses the one it was sent",
        ": see 'client_certificate' in CRAWLSPACE_SITES",
    ),
    Cause.OTHER_HANDSHAKE: ("the TLS handshake failed", ""),
    Cause.REFUSED: ("connection refused", ""),
    Cause.RESET: ("the connection was reset before the answer was complete", ""),
    Cause.CLOSED: ("the server closed the connection without an answer", ""),
    Cause.CLOSED_IN_HANDSHAKE: (
        "the server closed the connection without answering the TLS handshake",
        ": it may not speak TLS at this port, and the URL be one of http",
    ),
    Cause.NO_ROUTE: ("there is no route to the host", ""),
    Cause.OTHER_CONNECTION: ("no connection", ""),
    Cause.NO_CONNECTION_IN_TIME: ("no connection in time", ""),
    Cause.NO_HTTP: ("what the server sends is not HTTP", ""),
    Cause.WRONG_ENCODING: ("the body is not encoded as its headers say", ""),
    Cause.OTHER_READ_ERROR: ("the answer could not be read", ""),
    Cause.HEADERS_TOO_LARGE: ("the headers are over the bounds: more than 1,000 lines, or 256 KiB", ""),
}
"""Text before and after the client's message."""


def _of_certificate(cause: Cause, host: str, certificate: Certificate, why: str) -> str:
    of, known_by = _of(certificate), _known_by(certificate)
    match cause:
        case Cause.EXPIRED:
            return f"{of} expired{_at(' on ', certificate.ends)}{known_by}: the site must renew it"
        case Cause.NOT_YET_VALID:
            begins = _at(", but from ", certificate.begins)
            return f"{of} is not valid yet{begins}{known_by}: the site must correct it, or the clock of this machine is wrong"
        case Cause.SELF_SIGNED:
            return f"{of} is self-signed{known_by}: 'ca_file' in CRAWLSPACE_SITES can trust it"
        case Cause.UNKNOWN_ISSUER:
            missing = "" if certificate.depth else ", or the server does not send its intermediate certificate"
            return f"{of} is of an unknown issuer{known_by}: 'ca_file' in CRAWLSPACE_SITES can trust it{missing}"
        case Cause.WRONG_NAME:
            names = f"for {_names(certificate.names)}" if certificate.names else "for no host by name"
            return f"{of} is {names}, not for {_short(host)}"
        case Cause.REVOKED:
            return f"{of} was revoked{known_by}: the site must renew it"
        case _:
            return f"{of} is not accepted{f' ({printable(why)})' if why else ''}{known_by}"


def _of(certificate: Certificate) -> str:
    return "the certificate" if not certificate.depth else f"the certificate of the authority {_short(certificate.subject)}"


def _known_by(certificate: Certificate) -> str:
    """Return the names and the issuer in brackets, to tell a certificate from others."""
    parts = [f"for {_names(certificate.names)}"] if certificate.names else []
    if certificate.issuer and certificate.issuer != certificate.subject:
        parts.append(f"issued by {_short(certificate.issuer)}")
    return f" ({', '.join(parts)})" if parts else ""


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(map(_short, names[:NAMES_SHOWN]))
    return f"{shown} and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else shown


def _short(name: str) -> str:
    return printable(name, most=_LONGEST_NAME)


def _at(word: str, seconds: float | None) -> str:
    """Return a day in UTC after a word; empty for an unknown one."""
    if seconds is None:
        return ""
    return f"{word}{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _sizes(received: int | None, expected: int | None) -> str:
    if received is None:
        return f": {counted(expected, 'byte')} were announced" if expected is not None else ""
    return f" after {counted(received, 'byte')}" + (f" of {expected:,}" if expected is not None else "")
