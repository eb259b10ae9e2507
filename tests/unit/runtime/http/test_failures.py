"""What a failed download means, as a table: the exception that Scrapy gives, its status, and the words for its cause."""

from __future__ import annotations

import pytest
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
from crawlspace.runtime.http.causes import CAUSES_OF_TLS, Cause, Certificate, sentence
from crawlspace.runtime.http.errors import (
    AnswerFailed,
    AnswerTooLarge,
    HeadersTooLarge,
    KeptConnectionClosed,
    NoConnectionInTime,
    NotRenderedError,
    ProxyFailed,
    UndecodableBody,
)
from crawlspace.runtime.http.failures import detail_of, meaning_of
from crawlspace.runtime.http.sending import SecondAttempts
from crawlspace.status import Status

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


REFUSED = AnswerFailed(Cause.WRONG_NAME, host="a.example", certificate=Certificate(("b.example",)))

TABLE = [
    # what                                  exception                                            resolver                                  status                     kind       may be the host's
    ("no bytes that are HTTP",              AnswerFailed(Cause.NO_HTTP),                         None,                                     Status.READ_ERROR,         PERMANENT, True),
    ("a body that is not compressed as declared", UndecodableBody("x"),                          None,                                     Status.READ_ERROR,         PERMANENT, True),
    ("a failure without details",    DownloadFailedError("x"),                            None,                                     Status.READ_ERROR,         PERMANENT, True),
    ("the connection is refused",           DownloadConnectionRefusedError("x"),                 None,                                     Status.CONNECT_ERROR,      TEMPORARY, True),
    ("the connection is reset",             AnswerFailed(Cause.RESET),                           None,                                     Status.CONNECT_ERROR,      TEMPORARY, True),
    ("the connection is closed, no answer", AnswerFailed(Cause.CLOSED),                          None,                                     Status.CONNECT_ERROR,      TEMPORARY, True),
    ("the connection is closed in the TLS handshake", AnswerFailed(Cause.CLOSED_IN_HANDSHAKE),   None,                                     Status.CONNECT_ERROR,      TEMPORARY, True),
    ("the proxy is not there, refuses, or cuts the connection", ProxyFailed("x"),                None,                                     Status.PROXY_FAILED,       TEMPORARY, True),
    ("there is no way to the host",         AnswerFailed(Cause.NO_ROUTE),                        None,                                     Status.CONNECT_ERROR,      PERMANENT, True),
    ("no answer in time",                   DownloadTimeoutError("x"),                           None,                                     Status.TIMEOUT,            TEMPORARY, True),
    ("no connection in time",               NoConnectionInTime("x"),                             None,                                     Status.TIMEOUT,            TEMPORARY, True),
    ("the certificate is not accepted",     REFUSED,                                             None,                                     Status.TLS_FAILED,         PERMANENT, True),
    ("the TLS handshake fails",             AnswerFailed(Cause.OTHER_HANDSHAKE),                 None,                                     Status.TLS_FAILED,         PERMANENT, True),
    ("fewer bytes than announced",          ResponseDataLossError("x"),                          None,                                     Status.CUT_SHORT,          PERMANENT, True),
    ("more bytes than DOWNLOAD_MAXSIZE",    AnswerTooLarge(expected=None, limit=9),              None,                                     Status.CUT_SHORT,          PERMANENT, False),
    ("more bytes when decompressed",        IgnoreRequest("exceeded DOWNLOAD_MAXSIZE"),          None,                                     Status.CUT_SHORT,          PERMANENT, False),
    ("more headers than are read",          HeadersTooLarge(),                                   None,                                     Status.CUT_SHORT,          PERMANENT, False),
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


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_has_a_status(cause: Cause) -> None:
    of_download = Status.TLS_FAILED if cause in CAUSES_OF_TLS else None
    status = meaning_of(AnswerFailed(cause), url=URL, resolver=None).status
    assert status is of_download or (
        of_download is None and status in (Status.CONNECT_ERROR, Status.READ_ERROR, Status.CUT_SHORT)
    )


DETAILS = [
    # exception                                     status                   a part of what is told; empty: nothing beside the status
    (REFUSED,                                       Status.TLS_FAILED,       "the certificate is for b.example, not for a.example"),
    (AnswerFailed(Cause.NO_TLS, why="x"),           Status.TLS_FAILED,       "the server does not speak TLS at this port (x)"),
    (DownloadConnectionRefusedError("x"),           Status.CONNECT_ERROR,    "connection refused"),
    (AnswerFailed(Cause.RESET),                     Status.CONNECT_ERROR,    "the connection was reset"),
    (AnswerFailed(Cause.CLOSED),                    Status.CONNECT_ERROR,    "the server closed the connection without an answer"),
    (KeptConnectionClosed(),                        Status.CONNECT_ERROR,    "the server closed the connection without an answer"),
    (AnswerFailed(Cause.CLOSED_IN_HANDSHAKE),       Status.CONNECT_ERROR,    "the server closed the connection without answering the TLS handshake"),
    (AnswerFailed(Cause.NO_ROUTE),                  Status.CONNECT_ERROR,    "there is no route to the host"),
    (AnswerFailed(Cause.OTHER_CONNECTION, why="EADDRNOTAVAIL"), Status.CONNECT_ERROR, "no connection (EADDRNOTAVAIL)"),
    (NoConnectionInTime("x"),                       Status.TIMEOUT,          "no connection in time"),
    (DownloadTimeoutError("Getting http://u:p@a.example/ took longer"), Status.TIMEOUT, ""),
    (DownloadTimeoutError("Getting it took long (through the proxy http://p:3128)"), Status.TIMEOUT, "no answer in time (through the proxy http://p:3128)"),
    (ResponseDataLossError("x"),                    Status.CUT_SHORT,        "the answer was cut short"),
    (AnswerTooLarge(expected=5_000, limit=1_024),   Status.CUT_SHORT,        "the answer of 5,000 bytes is larger than 1,024 bytes"),
    (AnswerTooLarge(expected=None, limit=1_024),    Status.CUT_SHORT,        "the answer is larger than DOWNLOAD_MAXSIZE"),
    (DownloadCancelledError(""),                    Status.CUT_SHORT,        "the answer is larger than DOWNLOAD_MAXSIZE"),
    (IgnoreRequest("exceeded DOWNLOAD_MAXSIZE"),    Status.CUT_SHORT,        "the answer is larger than DOWNLOAD_MAXSIZE"),
    (HeadersTooLarge(),                             Status.CUT_SHORT,        "the headers are over the bounds"),
    (AnswerFailed(Cause.NO_HTTP, why="not enough parts"), Status.READ_ERROR, "what the server sends is not HTTP (not enough parts)"),
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


def test_a_request_on_a_kept_connection_that_was_closed_has_a_second_attempt_on_a_new_one() -> None:
    second = SecondAttempts()
    assert not second.may_retry(7, ValueError("x"))
    assert not second.begins(7)
    assert second.may_retry(7, KeptConnectionClosed())
    assert [second.begins(8), second.begins(7), second.begins(7)] == [False, True, False]


SITE = Certificate(("a.example", "www.a.example"), "a.example", "An authority", begins=1_750_000_000, ends=1_760_000_000)
ABOVE = Certificate((), "An authority", "The root", begins=1_750_000_000, ends=1_760_000_000, depth=1)
MANY = Certificate([f"{number}.a.example" for number in range(1_000)], "a.example", "a.example")
HOSTILE = Certificate(("x" * 5_000, "\x1b[2Jhttp://user:secret@b.example"), "y" * 5_000, "z\x00" * 5_000)

KNOWN_BY = " (for a.example, www.a.example, issued by An authority)"
TRUST = ": 'ca_file' in CRAWLSPACE_SITES can trust it"
CAUSES = [
    # cause, what is known -> the sentence
    (Cause.EXPIRED, {"certificate": SITE}, f"the certificate expired on 2025-10-09 08:53 UTC{KNOWN_BY}: the site must renew it"),
    (Cause.EXPIRED, {}, "the certificate expired: the site must renew it"),
    (Cause.EXPIRED, {"certificate": ABOVE}, "the certificate of the authority An authority expired on 2025-10-09 08:53 UTC (issued by The root): the site must renew it"),
    (Cause.NOT_YET_VALID, {"certificate": SITE}, f"the certificate is not valid yet, but from 2025-06-15 15:06 UTC{KNOWN_BY}: the site must correct it, or the clock of this machine is wrong"),
    (Cause.SELF_SIGNED, {"certificate": MANY}, f"the certificate is self-signed (for 0.a.example, 1.a.example, 2.a.example and 997 more){TRUST}"),
    (Cause.UNKNOWN_ISSUER, {"certificate": SITE}, f"the certificate is of an unknown issuer{KNOWN_BY}{TRUST}, or the server does not send its intermediate certificate"),
    (Cause.UNKNOWN_ISSUER, {"certificate": ABOVE}, f"the certificate of the authority An authority is of an unknown issuer (issued by The root){TRUST}"),
    (Cause.WRONG_NAME, {"certificate": SITE, "host": "b.example"}, "the certificate is for a.example, www.a.example, not for b.example"),
    (Cause.WRONG_NAME, {"host": "b.example"}, "the certificate is for no host by name, not for b.example"),
    (Cause.REVOKED, {"certificate": SITE}, f"the certificate was revoked{KNOWN_BY}: the site must renew it"),
    (Cause.OTHER_CERTIFICATE, {"certificate": SITE, "why": "OpenSSL's code 24"}, f"the certificate is not accepted (OpenSSL's code 24){KNOWN_BY}"),
    (Cause.OLD_PROTOCOL, {"why": "unsupported protocol"}, "the server speaks only an old version of TLS, which is not accepted (unsupported protocol): DOWNLOAD_TLS_MIN_VERSION can allow it"),
    (Cause.NO_TLS, {}, "the server does not speak TLS at this port: the URL may be one of http"),
    (Cause.REFUSED, {}, "connection refused"),
    (
        Cause.CLOSED_IN_HANDSHAKE,
        {},
        "the server closed the connection without answering the TLS handshake: it may not speak TLS at this port, and the URL be one of http",
    ),
    (Cause.RESET, {}, "the connection was reset before the answer was complete"),
    (Cause.NO_ROUTE, {}, "there is no route to the host"),
    (Cause.CUT_SHORT, {}, "the answer was cut short"),
    (Cause.CUT_SHORT, {"received": 1_200}, "the answer was cut short after 1,200 bytes"),
    (Cause.CUT_SHORT, {"received": 1, "expected": 5_000}, "the answer was cut short after 1 byte of 5,000"),
    (Cause.TOO_LARGE, {}, "the answer is larger than DOWNLOAD_MAXSIZE"),
    (Cause.TOO_LARGE, {"expected": 5_000, "limit": 1_024}, "the answer of 5,000 bytes is larger than 1,024 bytes"),
    (Cause.NO_HTTP, {"why": "not enough parts"}, "what the server sends is not HTTP (not enough parts)"),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "known", "expected"), CAUSES)
def test_sentences(cause: Cause, known: dict[str, object], expected: str) -> None:
    assert sentence(cause, **known) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("cause", Cause)
def test_a_hostile_certificate_is_shown_in_a_short_and_printable_sentence(cause: Cause) -> None:
    told = sentence(cause, host="h" * 5_000, certificate=HOSTILE, why="\x1b[31m" + "w" * 5_000)
    assert 0 < len(told) < 600
    assert told.isprintable()
    assert "secret" not in told


def test_each_cause_has_words_of_its_own() -> None:
    assert len({sentence(cause, certificate=SITE, host="b.example") for cause in Cause}) == len(Cause)
