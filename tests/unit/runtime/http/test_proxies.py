"""Requests through proxies, with HTTP and SOCKS, log-in and TLS, and answers and failures of the proxy itself."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Response

from crawlspace.runtime.components.requests import set_proxy
from crawlspace.runtime.http.causes import Cause
from crawlspace.runtime.http.codes import PROXY_HANDSHAKE
from crawlspace.runtime.http.errors import AnswerFailed, HeadersTooLarge, KeptConnectionClosed, NoConnectionInTime, ProxyFailed
from crawlspace.runtime.http.proxies import ProxyServer, Reached, answered_by_proxy, failed_through_proxy, proxy_server
from tests.certificates import certificate
from tests.forward_proxy import forward_proxy
from tests.unit.runtime.http.fetching import PAGE, crawling, loopback, serving

LOGIN = "Basic Y3Jhd2xlcjpzM2NyZXQ="
"""crawler:s3cret"""


@dataclass
class Socks:
    """A SOCKS proxy, 4a and 5: it connects to loopback, whatever is asked of it, or answers with `refusal`."""

    login: tuple[bytes, bytes] | None = None
    refusal: int = 0
    asked: list[bytes] = field(default_factory=list)
    """Names and addresses that it was to connect to."""
    port: int = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            port = await (self._five(reader, writer) if await reader.readexactly(1) == b"\x05" else self._four(reader, writer))
            if port:
                from_site, to_site = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(_pump(reader, to_site), _pump(from_site, writer))
        writer.close()

    async def _five(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        """RFC 1928 and 1929."""
        offered = await reader.readexactly((await reader.readexactly(1))[0])
        method = 0 if self.login is None else 2
        writer.write(bytes([5, method if method in offered else 255]))
        if method not in offered:
            return 0
        if self.login is not None:
            await reader.readexactly(1)
            given = [await reader.readexactly((await reader.readexactly(1))[0]) for _ in range(2)]
            is_right = tuple(given) == self.login
            writer.write(bytes([1, 0 if is_right else 1]))
            if not is_right:
                return 0
        _, _, _, kind = await reader.readexactly(4)
        self.asked.append(await reader.readexactly((await reader.readexactly(1))[0] if kind == 3 else 4 if kind == 1 else 16))
        port = int.from_bytes(await reader.readexactly(2), "big")
        writer.write(bytes([5, self.refusal, 0, 1, 0, 0, 0, 0, 0, 0]))
        return 0 if self.refusal else port

    async def _four(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        await reader.readexactly(1)
        port = int.from_bytes(await reader.readexactly(2), "big")
        await reader.readexactly(4)
        await reader.readuntil(b"\0")
        self.asked.append((await reader.readuntil(b"\0"))[:-1])
        writer.write(bytes([0, 90]) + bytes(6))
        return port


async def _pump(source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65_536):
            into.write(data)
        into.close()


@asynccontextmanager
async def socks_proxy(proxy: Socks) -> AsyncIterator[Socks]:
    server = await asyncio.start_server(proxy.talk, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    yield proxy
    server.close()


def proxied(url: str, proxy: str, login: str = "") -> Request:
    request = Request(url)
    set_proxy(request, proxy, login, where="CRAWLSPACE_PROXY")
    return request


def https(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(folder / "own.pem"))
    return context


@pytest.mark.parametrize("kind", ["socks4", "socks4a", "socks5", "socks5h"])
@pytest.mark.parametrize("is_secure", [False, True])
async def test_socks(tmp_path: Path, kind: str, *, is_secure: bool) -> None:
    """The proxy looks the name up: here nobody could."""
    tls = https(tmp_path) if is_secure else None
    async with serving([PAGE], tls=tls) as server, socks_proxy(Socks()) as proxy, crawling() as crawl:
        url = server.url(host="nowhere.invalid", scheme="https" if is_secure else "http")
        for _ in range(2):
            response = await crawl.fetch(proxied(url, f"{kind}://127.0.0.1:{proxy.port}"))
            assert response.body == b"abc"
        assert proxy.asked == [b"nowhere.invalid"], "the connection is kept"
        assert b"proxy" not in server.requests[0].lower()


REFUSALS = [
    # log-in that the proxy wants, log-in that is sent, what the proxy answers, what is told
    (None,                  "",    2, "refuses requests to"),
    (None,                  "",    5, "(connection refused)"),
    (None,                  "",    4, "(no route to the host, or no such host)"),
    ((b"crawler", b"x"),    LOGIN, 0, "asks for a log-in: set or correct the user and password of CRAWLSPACE_PROXY"),
    ((b"crawler", b"x"),    "",    0, "asks for a log-in: set or correct the user and password of CRAWLSPACE_PROXY"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "sent", "refusal", "told"), REFUSALS)
async def test_what_a_socks_proxy_refuses(wanted: tuple[bytes, bytes] | None, sent: str, refusal: int, told: str) -> None:
    async with serving([PAGE]) as server, socks_proxy(Socks(wanted, refusal)) as proxy, crawling() as crawl:
        with pytest.raises(ProxyFailed) as raised:
            await crawl.fetch(proxied(server.url(), f"socks5://127.0.0.1:{proxy.port}", sent))
        assert told in str(raised.value)
        assert not server.requests


async def test_a_log_in_at_a_socks_proxy() -> None:
    async with serving([PAGE]) as server, socks_proxy(Socks((b"crawler", b"s3cret"))) as proxy, crawling() as crawl:
        request = proxied(server.url(), f"socks5://127.0.0.1:{proxy.port}", LOGIN)
        assert (await crawl.fetch(request)).body == b"abc"
        assert b"authorization" not in server.requests[0].lower()
        request.headers["Proxy-Authorization"] = "Bearer x"
        with pytest.raises(UnsupportedURLSchemeError):
            await crawl.fetch(request)


@pytest.mark.parametrize("speaks_tls", [False, True])
@pytest.mark.parametrize("is_secure", [False, True])
async def test_a_log_in_at_an_http_proxy(tmp_path: Path, *, speaks_tls: bool, is_secure: bool) -> None:
    """It goes to the proxy, and never to a site."""
    with forward_proxy(login="crawler:s3cret", tls=https(tmp_path) if speaks_tls else None) as proxy:
        async with serving([PAGE], tls=https(tmp_path) if is_secure else None) as server, crawling() as crawl:
            site = server.url("/a?b=c", scheme="https" if is_secure else "http")
            assert (await crawl.fetch(proxied(site, proxy.url, LOGIN))).body == b"abc"
            assert server.requests[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")
            assert b"authorization" not in server.requests[0].lower()
        assert len(proxy.asked) == 1


async def test_what_nobody_answers_at() -> None:
    async with crawling() as crawl:
        for proxy, why in (
            ("http://127.0.0.1:1", "connection refused"),
            ("socks5://nowhere.invalid", "its name cannot be looked up"),
        ):
            with pytest.raises(ProxyFailed) as raised:
                await crawl.fetch(proxied("http://a.example/", proxy))
            assert f"cannot be reached ({why}): start it, or correct CRAWLSPACE_PROXY" in str(raised.value)
        with pytest.raises(UnsupportedURLSchemeError, match="is no proxy"):
            await crawl.fetch(proxied("http://a.example/", "ftp://127.0.0.1:1"))


async def test_address_rules_do_not_hold_for_what_goes_through_a_proxy() -> None:
    with forward_proxy() as proxy:
        async with loopback([PAGE]) as (server, crawl):
            crawl.forbidden.add("127.0.0.1")
            assert (await crawl.fetch(proxied(server.url(), proxy.url))).body == b"abc"


# --- failures of the proxy itself -----------------------------------------------------------------------------------


PROXY = "http://proxy.example.com:3128"
HTTP, HTTPS = "http://a.example/", "https://a.example/"

ANSWERS: list[tuple[str, int, dict[str, str], bool]] = [
    # URL, status and headers of an answer, whether it is the proxy's own
    (HTTP,  200, {},                                       False),
    (HTTP,  200, {"Server": "squid/5.7", "Via": "1.1 p"},  False),
    (HTTP,  302, {},                                       False),
    (HTTP,  407, {},                                       True),
    (HTTPS, 407, {},                                       False),
    (HTTP,  403, {},                                       False),
    (HTTP,  403, {"X-Squid-Error": "ERR_ACCESS_DENIED 0"}, True),
    (HTTPS, 403, {"X-Squid-Error": "ERR_ACCESS_DENIED 0"}, False),
    (HTTP,  403, {"Server": "tinyproxy/1.11.1"},           True),
    (HTTP,  404, {"Server": "nginx"},                      False),
    (HTTP,  404, {"Proxy-Status": "p; error=dns_error"},   True),
    (HTTP,  404, {"Proxy-Status": "p; next-hop=x"},        False),
    (HTTP,  500, {},                                       False),
    (HTTP,  502, {},                                       True),
    (HTTP,  503, {},                                       True),
    (HTTP,  503, {"Retry-After": "60"},                    False),
    (HTTP,  504, {},                                       True),
]  # fmt: skip


@pytest.mark.parametrize(("url", "status", "headers", "is_of_proxy"), ANSWERS)
def test_answers(url: str, status: int, headers: dict[str, str], *, is_of_proxy: bool) -> None:
    failed = answered_by_proxy(request(url), Response(url, status=status, headers=headers))
    assert (failed is not None) is is_of_proxy
    assert failed is None or f"the proxy {PROXY}" in str(failed)


NOWHERE = Reached(code=7, is_connected=False, tunnel_status=0, proxy_error=0)
AT_PROXY = Reached(code=56, is_connected=True, tunnel_status=0, proxy_error=0)
AT_SITE = AT_PROXY._replace(tunnel_status=200)


def tunnel(status: int) -> Reached:
    return AT_PROXY._replace(tunnel_status=status)


def socks(proxy_error: int) -> Reached:
    return Reached(code=PROXY_HANDSHAKE, is_connected=True, tunnel_status=0, proxy_error=proxy_error)


FAILED = DownloadFailedError("x")
CONNECTION = "cannot be reached ({}): start it, or correct CRAWLSPACE_PROXY"
CUT = "(CRAWLSPACE_PROXY) has cut the connection"
FAILURES: list[tuple[str, BaseException, Reached, str | None]] = [
    # URL, what a request fails with, how far it has come, what is told of the proxy
    (HTTPS, DownloadConnectionRefusedError("x"), NOWHERE,     CONNECTION.format("connection refused")),
    (HTTPS, NoConnectionInTime("x"),             NOWHERE,     CONNECTION.format("no answer in time")),
    (HTTPS, CannotResolveHostError("x"),         NOWHERE,     CONNECTION.format("its name cannot be looked up")),
    (HTTPS, AnswerFailed(Cause.CLOSED),          NOWHERE,     CONNECTION.format("the connection was lost")),
    (HTTPS, AnswerFailed(Cause.CLOSED),          AT_PROXY,    CONNECTION.format("the connection was lost")),
    (HTTPS, FAILED,                              tunnel(407), "asks for a log-in (407): set or correct the user and password of CRAWLSPACE_PROXY"),
    (HTTPS, FAILED,                              tunnel(403), "(CRAWLSPACE_PROXY) refuses requests to a.example (403): have it allow the site"),
    (HTTPS, FAILED,                              tunnel(504), "(CRAWLSPACE_PROXY) does not reach a.example (504)"),
    (HTTPS, AnswerFailed(Cause.NO_HTTP),         AT_PROXY,    "does not answer as one: correct CRAWLSPACE_PROXY"),
    (HTTPS, AnswerFailed(Cause.RESET),           AT_SITE,     CUT),
    (HTTPS, ResponseDataLossError(),             AT_SITE,     CUT),
    (HTTP,  AnswerFailed(Cause.CLOSED),          AT_PROXY,    CUT),
    (HTTP,  FAILED,                              socks(33),   "asks for a log-in: set or correct the user and password of CRAWLSPACE_PROXY"),
    (HTTP,  FAILED,                              socks(19),   "(CRAWLSPACE_PROXY) does not reach a.example (connection refused)"),
    (HTTP,  FAILED,                              socks(23),   "(CRAWLSPACE_PROXY) refuses requests to a.example: have it allow the site"),
    (HTTP,  FAILED,                              socks(2),    "does not answer as one: correct CRAWLSPACE_PROXY"),
    (HTTPS, AnswerFailed(Cause.NO_HTTP),         AT_SITE,     None),
    (HTTPS, AnswerFailed(Cause.EXPIRED),         AT_SITE,     None),
    (HTTPS, HeadersTooLarge(),                   AT_SITE,     None),
    (HTTPS, KeptConnectionClosed(),              AT_SITE,     None),
    (HTTPS, FAILED,                              AT_SITE,     None),
    (HTTPS, ValueError("x"),                     AT_SITE,     None),
]  # fmt: skip


@pytest.mark.parametrize(("url", "error", "reached", "sentence"), FAILURES)
def test_failures(url: str, error: BaseException, reached: Reached, sentence: str | None) -> None:
    failed = failed_through_proxy(request(url), error, reached)
    if sentence is None:
        assert failed is None
    else:
        assert isinstance(failed, ProxyFailed)
        assert str(failed).startswith(f"the proxy {PROXY} {sentence}")


def test_a_certificate_that_is_refused_is_that_of_the_proxy_unless_there_is_a_tunnel() -> None:
    asked = request(HTTPS)
    asked.meta["proxy"] = "https://proxy.example.com:3129"
    error = AnswerFailed(Cause.SELF_SIGNED)
    failed = failed_through_proxy(asked, error, AT_PROXY)
    assert "cannot be reached (the TLS handshake with it failed: the certificate is self-signed" in str(failed)
    assert "correct its certificate or CRAWLSPACE_PROXY" in str(failed)
    assert failed_through_proxy(asked, error, AT_SITE) is None


def test_a_time_out_stays_one() -> None:
    failed = failed_through_proxy(request(HTTP), DownloadTimeoutError("Getting x took longer than 2 seconds."), AT_PROXY)
    assert isinstance(failed, DownloadTimeoutError)
    assert str(failed) == f"Getting x took longer than 2 seconds. (through the proxy {PROXY})"


SERVERS = [
    ("http://proxy.example.com:3128", ProxyServer("http", "proxy.example.com", 3128)),
    ("proxy.example.com:3128",        ProxyServer("http", "proxy.example.com", 3128)),
    ("https://proxy.example.com",     ProxyServer("https", "proxy.example.com", 443)),
    ("socks5://[::1]",                ProxyServer("socks5", "::1", 1080)),
    ("ftp://proxy.example.com",       None),
    ("http://",                       None),
]  # fmt: skip


@pytest.mark.parametrize(("url", "server"), SERVERS)
def test_where_a_proxy_is(url: str, server: ProxyServer | None) -> None:
    if server is not None:
        assert proxy_server(url) == server
        return
    with pytest.raises(ValueError, match="is no proxy"):
        proxy_server(url)


def test_the_proxy_of_a_spiders_own_request() -> None:
    own = Request(HTTP, meta={"proxy": PROXY})
    assert 'of request.meta["proxy"]' in str(answered_by_proxy(own, Response(HTTP, status=407)))


def request(url: str) -> Request:
    made = Request(url)
    set_proxy(made, PROXY, "Basic abc", where="CRAWLSPACE_PROXY")
    return made
