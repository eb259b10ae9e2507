"""Connections with TLS: which certificates are accepted, and what is known of one that is not."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pycurl
import pytest
from scrapy.http import Response
from scrapy.settings import Settings

from crawlspace.config.site_tls import SiteTls
from crawlspace.errors import SettingError
from crawlspace.runtime.http.causes import Cause
from crawlspace.runtime.http.codes import Ended, error_of
from crawlspace.runtime.http.errors import AnswerFailed
from crawlspace.runtime.http.tls import TlsOptions, refused_certificate
from tests.certificates import DAY, Authority, certificate
from tests.unit.runtime.http.fetching import PAGE, crawling, serving

ROOT, BETWEEN = Authority("The root"), Authority("Between")
VERIFIED: Any = {"DOWNLOAD_VERIFY_CERTIFICATES": True}


def served_with(file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def trusted(folder: Path) -> SiteTls:
    file = folder / "root.pem"
    file.write_bytes(ROOT.pem())
    return SiteTls("the entry", file)


def fetched(tls: ssl.SSLContext, entry: SiteTls | None = None, *, times: int = 1, **settings: Any) -> list[Response]:
    async def run() -> list[Response]:
        async with serving([PAGE], tls=tls) as server, crawling(with_session=True, tls=entry, **settings) as crawl:
            return [await crawl.fetch(server.url(scheme="https")) for _ in range(times)]

    return asyncio.run(run())


def test_what_a_response_over_tls_has(tmp_path: Path) -> None:
    """On a kept connection, too, where no certificate is sent."""
    for response in fetched(served_with(ROOT.issue(tmp_path / "own.pem")), trusted(tmp_path), times=3):
        assert (response.body, response.protocol, str(response.ip_address)) == (b"abc", "HTTP/1.1", "127.0.0.1")
        assert response.certificate is not None
        assert response.certificate.original.to_cryptography().issuer.rfc4514_string() == "CN=The root"


def test_without_verification_any_certificate_is_accepted(tmp_path: Path) -> None:
    tls = served_with(certificate(tmp_path / "own.pem"))
    assert fetched(tls, DOWNLOAD_VERIFY_CERTIFICATES=False)[0].body == b"abc"
    with pytest.raises(AnswerFailed) as raised:  # the authority of an entry is asked all the same
        fetched(tls, trusted(tmp_path), DOWNLOAD_VERIFY_CERTIFICATES=False)
    assert raised.value.cause is Cause.SELF_SIGNED


REFUSED = [
    # certificate, why it is refused
    (lambda file: ROOT.issue(file, begins=-9 * DAY, ends=-2 * DAY), Cause.EXPIRED),
    (lambda file: ROOT.issue(file, begins=2 * DAY, ends=9 * DAY),   Cause.NOT_YET_VALID),
    (lambda file: BETWEEN.issue(file),                              Cause.UNKNOWN_ISSUER),
    (lambda file: ROOT.issue(file, name="other.example"),           Cause.WRONG_NAME),
    (certificate,                                                   Cause.SELF_SIGNED),
]  # fmt: skip


@pytest.mark.parametrize(("issue", "cause"), REFUSED)
def test_certificates_that_are_refused(tmp_path: Path, issue: Any, cause: Cause) -> None:
    with pytest.raises(AnswerFailed) as raised:
        fetched(served_with(issue(tmp_path / "own.pem")), trusted(tmp_path), **VERIFIED)
    assert raised.value.cause is cause


def test_the_authorities_of_the_system_are_asked_where_no_entry_names_others(tmp_path: Path) -> None:
    with pytest.raises(AnswerFailed) as raised:
        fetched(served_with(ROOT.issue(tmp_path / "own.pem")), **VERIFIED)
    assert raised.value.cause is Cause.UNKNOWN_ISSUER
    assert "issued by The root" in str(raised.value)


HANDSHAKES = [
    # what libcurl tells of a handshake                                                         what it means
    ("TLS connect error: error:0A000102:SSL routines::unsupported protocol",                    Cause.OLD_PROTOCOL),
    ("TLS connect error: error:0A00042E:SSL routines::tlsv1 alert protocol version",            Cause.OLD_PROTOCOL),
    ("TLS connect error: error:0A00010B:SSL routines::wrong version number",                    Cause.NO_TLS),
    ("TLS connect error: error:0A000139:SSL routines::record layer failure",                    Cause.NO_TLS),
    ("TLS connect error: error:0A000410:SSL routines::sslv3 alert handshake failure",           Cause.NO_COMMON_CIPHER),
    ("TLS connect error: error:0A00018A:SSL routines::dh key too small",                        Cause.WEAK_KEY),
    ("OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to a.example:443",                   Cause.CLOSED_IN_HANDSHAKE),
    ("TLS connect error: error:0A000126:SSL routines::unexpected eof while reading",            Cause.CLOSED_IN_HANDSHAKE),
    ("Recv failure: Connection reset by peer",                                                  Cause.CLOSED_IN_HANDSHAKE),
    ("TLS connect error: error:0A0000FF:SSL routines::something new",                           Cause.OTHER_HANDSHAKE),
]  # fmt: skip


@pytest.mark.parametrize(("message", "cause"), HANDSHAKES)
def test_handshakes_that_fail(message: str, cause: Cause) -> None:
    error = error_of(Ended(pycurl.E_SSL_CONNECT_ERROR, message))
    assert isinstance(error, AnswerFailed)
    assert error.cause is cause
    assert cause is not Cause.OTHER_HANDSHAKE or "(something new)" in str(error)


def test_a_certificate_of_the_client_that_is_refused_after_the_handshake() -> None:
    """As with TLS 1.3; where the alert was lost, the server had at least asked for one."""
    alert = "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0"
    reset = "Send failure: Connection reset by peer"
    for ended in (Ended(pycurl.E_RECV_ERROR, alert), Ended(pycurl.E_SEND_ERROR, reset, wants_certificate=True)):
        error = error_of(ended)
        assert isinstance(error, AnswerFailed)
        assert error.cause is Cause.CLIENT_CERTIFICATE


def test_a_certificate_that_cannot_be_read_has_a_cause_all_the_same() -> None:
    cause, known = refused_certificate(20, ["no PEM"], "")
    assert (cause, known.names, known.depth) == (Cause.UNKNOWN_ISSUER, (), 0)
    assert refused_certificate(99, [], "")[0] is Cause.OTHER_CERTIFICATE


VERSIONS = [
    # settings, SSLVERSION, ciphers
    ({},                                                                               0,                         None),
    ({"DOWNLOAD_TLS_MIN_VERSION": "TLSv1.2"},                                          pycurl.SSLVERSION_TLSv1_2, None),
    ({"DOWNLOAD_TLS_MAX_VERSION": "TLSv1.2"},                                          pycurl.SSLVERSION_MAX_TLSv1_2, None),
    ({"DOWNLOADER_CLIENT_TLS_METHOD": "TLSv1.2"},                                      pycurl.SSLVERSION_TLSv1_2 | pycurl.SSLVERSION_MAX_TLSv1_2, None),
    ({"DOWNLOAD_TLS_MIN_VERSION": "TLSv1.0"},                                          pycurl.SSLVERSION_TLSv1_0, "DEFAULT:@SECLEVEL=0"),
    ({"DOWNLOADER_CLIENT_TLS_CIPHERS": "HIGH"},                                        0,                         "HIGH"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "version", "ciphers"), VERSIONS)
def test_settings_of_scrapy(settings: dict[str, str], version: int, ciphers: str | None) -> None:
    options = dict(TlsOptions.from_settings(Settings(settings)).of_site(None))
    assert (options[pycurl.SSLVERSION], options.get(pycurl.SSL_CIPHER_LIST)) == (version, ciphers)


def test_a_version_that_there_is_not() -> None:
    with pytest.raises(SettingError, match=r"DOWNLOAD_TLS_MIN_VERSION is 'TLSv9'; it must be one of TLSv1\.0, TLSv1\.1"):
        TlsOptions.from_settings(Settings({"DOWNLOAD_TLS_MIN_VERSION": "TLSv9"}))


def test_handshakes_are_logged_where_that_is_asked_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="crawlspace.runtime.http.transfer"):
        fetched(served_with(ROOT.issue(tmp_path / "own.pem")), trusted(tmp_path), DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING=True)
    assert "SSL connection using TLSv1.3" in caplog.text
    assert "issuer: CN=The root" in caplog.text
