"""What a failed download means, as a table: the exception that Scrapy gives, and what it counts as."""

from __future__ import annotations

import pytest
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
from twisted.python.failure import Failure
from twisted.web._newclient import ParseError, ResponseFailed

from crawlspace.decision import Decision, Reason
from crawlspace.model import OutcomeKind, Status
from crawlspace.runtime.http.causes import Cause, Certificate
from crawlspace.runtime.http.errors import (
    CertificateRefused,
    ClosedInHandshake,
    HeadersTooLarge,
    KeptConnectionClosed,
    NotRenderedError,
    ProxyFailed,
    UndecodableBody,
)
from crawlspace.runtime.http.failures import detail_of, meaning_of
from crawlspace.runtime.http.kept_connections import SecondTurns

URL = "http://a.example/"
PERMANENT, TEMPORARY, KEPT_OUT = OutcomeKind.GONE, OutcomeKind.FAILED, OutcomeKind.EXCLUDED


class Resolver:
    """What the resolver knows of the last look-up."""

    def __init__(self, *, refused: Reason | None = None, exists: bool = True) -> None:
        self._refused = None if refused is None else Decision(refused, None, ())
        self._exists = exists

    def why_refused(self, host: str, port: int) -> Decision | None:
        return self._refused

    def does_not_exist(self, host: str) -> bool:
        return not self._exists


def because(cause: BaseException) -> BaseException:
    """A failed download as Scrapy passes it on."""
    error = DownloadFailedError("failed")
    error.__cause__ = cause
    return error


def within(cause: BaseException) -> BaseException:
    """A failed download as Twisted passes it on."""
    return ResponseFailed([Failure(cause)])


REFUSED = CertificateRefused(Cause.WRONG_NAME, host="a.example", certificate=Certificate(("b.example",)))


def handshake(*reasons: str) -> BaseException:
    """A handshake that failed, with what OpenSSL reports."""
    return because(within(SSL.Error([("SSL routines", "", reason) for reason in reasons])))


TABLE = [
    # what                                  exception                                            resolver                                  status                     kind       may be the host's
    ("no bytes that are HTTP",              because(ParseError("x", b"y")),                      None,                                     Status.READ_ERROR,         PERMANENT, True),
    ("a body that is not compressed as declared", UndecodableBody("x"),                          None,                                     Status.READ_ERROR,         PERMANENT, True),
    ("a failure without details",    DownloadFailedError("x"),                            None,                                     Status.READ_ERROR,         PERMANENT, True),
    ("the connection is refused",           DownloadConnectionRefusedError("x"),                 None,                                     Status.CONNECT_ERROR,      TEMPORARY, True),
    ("the connection is reset",             within(ConnectionResetError()),                      None,                                     Status.CONNECT_ERROR,      TEMPORARY, True),
    ("the connection is lost",              within(tx.ConnectionLost()),                         None,                                     Status.CONNECT_ERROR,      TEMPORARY, True),
    ("the connection is closed, no answer", within(tx.ConnectionDone()),                         None,                                     Status.CONNECT_ERROR,      TEMPORARY, True),
    ("the connection is closed in the TLS handshake", ClosedInHandshake(),                       None,                                     Status.CONNECT_ERROR,      TEMPORARY, True),
    ("the proxy makes no tunnel",           TunnelError("x"),                                    None,                                     Status.PROXY_FAILED,       TEMPORARY, True),
    ("the proxy is not there, refuses, or cuts the connection", ProxyFailed("x"),                None,                                     Status.PROXY_FAILED,       TEMPORARY, True),
    ("there is no way to the host",         tx.NoRouteError(),                                   None,                                     Status.CONNECT_ERROR,      PERMANENT, True),
    ("no answer in time",                   DownloadTimeoutError("x"),                           None,                                     Status.TIMEOUT,            TEMPORARY, True),
    ("no connection in time",               tx.TCPTimedOutError(),                               None,                                     Status.TIMEOUT,            TEMPORARY, True),
    ("the certificate is not accepted",     because(REFUSED),                                    None,                                     Status.TLS_FAILED,         PERMANENT, True),
    ("the TLS handshake fails",             because(SSL.Error([("x", "y", "z")])),               None,                                     Status.TLS_FAILED,         PERMANENT, True),
    ("fewer bytes than announced",          ResponseDataLossError("x"),                          None,                                     Status.CUT_SHORT,          PERMANENT, True),
    ("more bytes than DOWNLOAD_MAXSIZE",    DownloadCancelledError("x"),                         None,                                     Status.CUT_SHORT,          PERMANENT, False),
    ("more bytes when decompressed",        IgnoreRequest("exceeded DOWNLOAD_MAXSIZE"),          None,                                     Status.CUT_SHORT,          PERMANENT, False),
    ("more headers than are read",          within(HeadersTooLarge()),                           None,                                     Status.CUT_SHORT,          PERMANENT, False),
    ("there is no such host",               CannotResolveHostError("x"),                         Resolver(exists=False),                   Status.NO_SUCH_HOST,       PERMANENT, True),
    ("the look-up gives no answer",         CannotResolveHostError("x"),                         Resolver(),                               Status.NO_DNS_ANSWER,      TEMPORARY, True),
    ("no address of the host is allowed",   CannotResolveHostError("x"),                         Resolver(refused=Reason.ADDRESS),         Status.EXCLUDED,           KEPT_OUT,  False),
    ("a private address that nothing allows", CannotResolveHostError("x"),                       Resolver(refused=Reason.PRIVATE_ADDRESS), Status.EXCLUDED,           KEPT_OUT,  False),
    ("the browser cannot render the page",  NotRenderedError("x"),                               None,                                     Status.NOT_RENDERED,       TEMPORARY, False),
    ("a scheme that is not fetched",        UnsupportedURLSchemeError("x"),                      None,                                     Status.PORT_OR_SCHEME,     KEPT_OUT,  False),
    ("an exception of the spider's or ours", ValueError("x"),                                    None,                                     Status.UNEXPECTED,         TEMPORARY, True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "error", "resolver", "status", "kind", "may_be_the_hosts"), TABLE, ids=[row[0] for row in TABLE]
)
def test_failures(
    what: str, error: BaseException, resolver: Resolver | None, status: Status, kind: OutcomeKind, may_be_the_hosts: bool
) -> None:
    meaning = meaning_of(error, url=URL, resolver=resolver)  # type: ignore[arg-type]
    assert (meaning.status, meaning.kind, meaning.host_failure) == (status, kind, may_be_the_hosts)
    assert (meaning.reason is not None) is (kind is KEPT_OUT)


TOO_LARGE = "Expected to receive 5000 bytes which is larger than download max size (1024) in request <GET http://a.example/>."
DETAILS = [
    # exception                                     status                   a part of what is told; empty: nothing beside the status
    (because(within(REFUSED)),                      Status.TLS_FAILED,       "the certificate is for b.example, not for a.example"),
    (handshake("unsupported protocol"),             Status.TLS_FAILED,       "the server speaks only an old version of TLS"),
    (handshake("tlsv1 alert protocol version"),     Status.TLS_FAILED,       "the server speaks only an old version of TLS"),
    (handshake("wrong version number"),             Status.TLS_FAILED,       "the server does not speak TLS at this port"),
    (handshake("record layer failure"),             Status.TLS_FAILED,       "the server does not speak TLS at this port"),
    (handshake("sslv3 alert handshake failure"),    Status.TLS_FAILED,       "the server refuses the handshake"),
    (handshake("tlsv13 alert certificate required"), Status.TLS_FAILED,      "the server asks for a certificate of the client"),
    (handshake("dh key too small"),                 Status.TLS_FAILED,       "is too weak"),
    (handshake("something new"),                    Status.TLS_FAILED,       "the TLS handshake failed (something new)"),
    (because(SSL.Error()),                          Status.TLS_FAILED,       "the TLS handshake failed"),
    (DownloadConnectionRefusedError("x"),           Status.CONNECT_ERROR,    "connection refused"),
    (tx.ConnectionRefusedError(),                   Status.CONNECT_ERROR,    "connection refused"),
    (because(within(ConnectionResetError())),       Status.CONNECT_ERROR,    "the connection was reset"),
    (within(tx.ConnectionLost()),                   Status.CONNECT_ERROR,    "the connection was reset"),
    (within(tx.ConnectionDone()),                   Status.CONNECT_ERROR,    "the server closed the connection without an answer"),
    (KeptConnectionClosed(),                        Status.CONNECT_ERROR,    "the server closed the connection without an answer"),
    (ClosedInHandshake(),                           Status.CONNECT_ERROR,    "the server closed the connection without answering the TLS handshake"),
    (tx.NoRouteError(),                             Status.CONNECT_ERROR,    "there is no route to the host"),
    (tx.ConnectError(osError="EADDRNOTAVAIL"),      Status.CONNECT_ERROR,    "no connection (EADDRNOTAVAIL)"),
    (tx.TCPTimedOutError(),                         Status.TIMEOUT,          "no connection in time"),
    (DownloadTimeoutError("Getting http://u:p@a.example/ took longer"), Status.TIMEOUT, ""),
    (DownloadTimeoutError("Getting it took long (through the proxy http://p:3128)"), Status.TIMEOUT, "no answer in time (through the proxy http://p:3128)"),
    (ResponseDataLossError("x"),                    Status.CUT_SHORT,        "the answer was cut short"),
    (DownloadCancelledError(TOO_LARGE),             Status.CUT_SHORT,        "the answer of 5,000 bytes is larger than 1,024 bytes"),
    (DownloadCancelledError(""),                    Status.CUT_SHORT,        "the answer is larger than DOWNLOAD_MAXSIZE"),
    (IgnoreRequest("exceeded DOWNLOAD_MAXSIZE"),    Status.CUT_SHORT,        "the answer is larger than DOWNLOAD_MAXSIZE"),
    (within(HeadersTooLarge()),                     Status.CUT_SHORT,        "the headers are over the bounds"),
    (because(ParseError("not enough parts", b"y")), Status.READ_ERROR,       "what the server sends is not HTTP (not enough parts)"),
    (UndecodableBody("BadGzipFile: x"),             Status.READ_ERROR,       "the body is not encoded as its headers say (BadGzipFile: x)"),
    (DownloadFailedError("x"),                      Status.READ_ERROR,       "the answer could not be read (DownloadFailedError)"),
    (CannotResolveHostError("x"),                   Status.NO_SUCH_HOST,     ""),
    (ProxyFailed("the proxy is away"),              Status.PROXY_FAILED,     "the proxy is away"),
    (NotRenderedError("no browser"),                Status.NOT_RENDERED,     "no browser"),
    (ValueError("a fault"),                         Status.UNEXPECTED,       "ValueError: a fault"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "status", "told"), DETAILS)
def test_details(error: BaseException, status: Status, told: str) -> None:
    assert meaning_of(error, url=URL, resolver=Resolver(exists=False)).status is status  # type: ignore[arg-type]
    detail = detail_of(error, status)
    assert told in detail
    assert bool(told) is bool(detail)


def test_a_request_on_a_kept_connection_that_was_closed_has_a_second_turn_on_a_new_one() -> None:
    second = SecondTurns()
    assert not second.may_retry(7, ValueError("x"))
    assert not second.begins(7)
    assert second.may_retry(7, KeptConnectionClosed())
    assert [second.begins(8), second.begins(7), second.begins(7)] == [False, True, False]
