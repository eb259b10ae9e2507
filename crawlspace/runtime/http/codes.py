"""What the errors of libcurl mean: the exception with which a request fails."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, field

import pycurl
from scrapy.exceptions import (
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)

from crawlspace.runtime.http.causes import Cause
from crawlspace.runtime.http.errors import AnswerFailed, HeadersTooLarge, KeptConnectionClosed, NoConnectionInTime
from crawlspace.runtime.http.tls import refused_certificate


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a transfer: the error of libcurl, and what else is known."""

    code: int
    message: str
    url: str = ""
    host: str = ""
    timeout_s: float = 0.0
    os_error: int = 0
    is_connected: bool = False
    """There was a connection, without regard to TLS."""
    is_reused: bool = False
    """The connection had been kept from an earlier request."""
    has_answer: bool = False
    """The status line has come."""
    wants_certificate: bool = False
    """The server has requested a client certificate."""
    verify_result: int = 0
    """OpenSSL's result for the certificate."""
    certificates: tuple[str, ...] = field(default=(), repr=False)
    """Those that the server sent, in PEM, its own first."""


def error_of(ended: Ended) -> Exception:
    """Return the exception for the end of a transfer that has failed."""
    code, message = ended.code, ended.message
    if code == pycurl.E_OPERATION_TIMEDOUT:
        kind = DownloadTimeoutError if ended.is_connected else NoConnectionInTime
        return kind(f"Getting {ended.url} took longer than {ended.timeout_s:g} seconds.")
    if code == pycurl.E_PEER_FAILED_VERIFICATION:
        cause, certificate = refused_certificate(ended.verify_result, ended.certificates, message)
        why = f"OpenSSL's code {ended.verify_result}" if ended.verify_result else message
        return AnswerFailed(cause, host=ended.host, certificate=certificate, why=why)
    if code == pycurl.E_COULDNT_CONNECT:
        return _unconnected(ended)
    if _is_of_handshake(ended):
        return _of_handshake(ended)
    if code in _CLOSED:
        return _closed(ended)
    if code == pycurl.E_PARTIAL_FILE:
        return ResponseDataLossError(message)
    if code == TOO_LARGE or "Too large response headers" in message:
        return HeadersTooLarge()
    return AnswerFailed(Cause.NO_HTTP if code in _NO_HTTP else Cause.OTHER_READ_ERROR, why=message)


WEIRD_REPLY = pycurl.E_FTP_WEIRD_SERVER_REPLY
HTTP2_STREAM, PROXY_HANDSHAKE, TOO_LARGE = 92, 97, 100
"""These have no name in pycurl, or an old one (libcurl-errors(3))."""
_CLOSED = frozenset({pycurl.E_GOT_NOTHING, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR})
_NO_HTTP = frozenset({pycurl.E_UNSUPPORTED_PROTOCOL, WEIRD_REPLY, pycurl.E_HTTP2, HTTP2_STREAM})
_NO_ROUTE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH})
_TIMED_OUT = frozenset({errno.ETIMEDOUT})


def _unconnected(ended: Ended) -> Exception:
    if ended.os_error == errno.ECONNREFUSED:
        return DownloadConnectionRefusedError(ended.message)
    if ended.os_error in _TIMED_OUT:
        return NoConnectionInTime(ended.message)
    if ended.os_error in _NO_ROUTE:
        return AnswerFailed(Cause.NO_ROUTE)
    return AnswerFailed(Cause.OTHER_CONNECTION, why=errno.errorcode.get(ended.os_error, ""))


def _is_of_handshake(ended: Ended) -> bool:
    """Return whether TLS failed. An alert that refuses the certificate of the client comes after the handshake, with TLS 1.3."""
    if ended.code in (pycurl.E_SSL_CONNECT_ERROR, pycurl.E_SSL_CIPHER, pycurl.E_SSL_CERTPROBLEM):
        return True
    return ended.code in (pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR) and " alert " in ended.message and not ended.has_answer


def _of_handshake(ended: Ended) -> AnswerFailed:
    message = ended.message
    if _CLOSED_IN_HANDSHAKE.search(message):
        return AnswerFailed(Cause.CLOSED_IN_HANDSHAKE)
    reason = message.rpartition("::")[2] if "::" in message else message
    reason = reason.partition(", errno")[0]
    for words, cause in _HANDSHAKES:
        if words in reason:
            return AnswerFailed(cause, why=reason)
    return AnswerFailed(Cause.OTHER_HANDSHAKE, why=reason)


_CLOSED_IN_HANDSHAKE = re.compile(r"SSL_ERROR_SYSCALL|unexpected eof|SSL_ERROR_ZERO_RETURN|(?:Send|Recv) failure")
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
"""Messages of OpenSSL for a failed handshake; the first that fits counts. An alert is what the server has sent."""


def _closed(ended: Ended) -> Exception:
    """Return the exception for a connection that has ended before the answer."""
    if ended.is_reused and not ended.has_answer:
        return KeptConnectionClosed()
    if ended.wants_certificate and not ended.has_answer:  # with TLS 1.3 it refuses after the handshake
        return AnswerFailed(Cause.CLIENT_CERTIFICATE)
    if ended.code == pycurl.E_GOT_NOTHING:
        return AnswerFailed(Cause.CLOSED)
    if ended.has_answer and ("chunk" in ended.message.lower() or "unexpected eof" in ended.message):
        return ResponseDataLossError(ended.message)
    return AnswerFailed(Cause.RESET)
