"""The words for a download that failed: each cause has its own, with what is known of it."""

from __future__ import annotations

import pytest

from crawlspace.runtime.http.causes import Cause, Certificate, sentence

SITE = Certificate(("a.example", "www.a.example"), "a.example", "An authority", begins=1_750_000_000, ends=1_760_000_000)
ABOVE = Certificate((), "An authority", "The root", begins=1_750_000_000, ends=1_760_000_000, depth=1)
MANY = Certificate([f"{number}.a.example" for number in range(1_000)], "a.example", "a.example")
HOSTILE = Certificate(("x" * 5_000, "\x1b[2Jhttp://user:secret@b.example"), "y" * 5_000, "z\x00" * 5_000)

KNOWN_BY = " (for a.example, www.a.example, issued by An authority)"
TRUST = ": 'ca_file' in CRAWLSPACE_SITES can trust it"
TABLE = [
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


@pytest.mark.parametrize(("cause", "known", "expected"), TABLE)
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
