"""Requests through proxies: HTTP and SOCKS, with a log-in and without, to sites with TLS and without."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import UnsupportedURLSchemeError

from crawlspace.runtime.components.requests import set_proxy
from crawlspace.runtime.http.errors import ProxyFailed
from tests.certificates import certificate
from tests.forward_proxy import forward_proxy
from tests.unit.runtime.http.fetching import PAGE, Crawl, crawling, serving

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
def test_socks(tmp_path: Path, kind: str, *, is_secure: bool) -> None:
    """The proxy looks the name up: here nobody could."""

    async def run() -> None:
        tls = https(tmp_path) if is_secure else None
        async with serving([PAGE], tls=tls) as server, socks_proxy(Socks()) as proxy, crawling() as crawl:
            url = server.url(host="nowhere.invalid", scheme="https" if is_secure else "http")
            for _ in range(2):
                response = await crawl.fetch(proxied(url, f"{kind}://127.0.0.1:{proxy.port}"))
                assert response.body == b"abc"
            assert proxy.asked == [b"nowhere.invalid"], "the connection is kept"
            assert b"proxy" not in server.requests[0].lower()

    asyncio.run(run())


REFUSALS = [
    # log-in that the proxy wants, log-in that is sent, what the proxy answers, what is told
    (None,                  "",    2, "refuses what is asked of"),
    (None,                  "",    5, "(connection refused)"),
    (None,                  "",    4, "(no route to the host, or no such host)"),
    ((b"crawler", b"x"),    LOGIN, 0, "asks for a log-in: set or correct the user and password of CRAWLSPACE_PROXY"),
    ((b"crawler", b"x"),    "",    0, "asks for a log-in: set or correct the user and password of CRAWLSPACE_PROXY"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "sent", "refusal", "told"), REFUSALS)
def test_what_a_socks_proxy_refuses(wanted: tuple[bytes, bytes] | None, sent: str, refusal: int, told: str) -> None:
    async def run() -> None:
        async with serving([PAGE]) as server, socks_proxy(Socks(wanted, refusal)) as proxy, crawling() as crawl:
            with pytest.raises(ProxyFailed) as raised:
                await crawl.fetch(proxied(server.url(), f"socks5://127.0.0.1:{proxy.port}", sent))
            assert told in str(raised.value)
            assert not server.requests

    asyncio.run(run())


def test_a_log_in_at_a_socks_proxy() -> None:
    async def run() -> None:
        async with serving([PAGE]) as server, socks_proxy(Socks((b"crawler", b"s3cret"))) as proxy, crawling() as crawl:
            request = proxied(server.url(), f"socks5://127.0.0.1:{proxy.port}", LOGIN)
            assert (await crawl.fetch(request)).body == b"abc"
            assert b"authorization" not in server.requests[0].lower()
            request.headers["Proxy-Authorization"] = "Bearer x"
            with pytest.raises(UnsupportedURLSchemeError):
                await crawl.fetch(request)

    asyncio.run(run())


@pytest.mark.parametrize("speaks_tls", [False, True])
@pytest.mark.parametrize("is_secure", [False, True])
def test_a_log_in_at_an_http_proxy(tmp_path: Path, *, speaks_tls: bool, is_secure: bool) -> None:
    """It goes to the proxy, and never to a site."""

    async def run(url: str) -> None:
        async with serving([PAGE], tls=https(tmp_path) if is_secure else None) as server, crawling() as crawl:
            site = server.url("/a?b=c", scheme="https" if is_secure else "http")
            assert (await crawl.fetch(proxied(site, url, LOGIN))).body == b"abc"
            assert server.requests[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")
            assert b"authorization" not in server.requests[0].lower()

    with forward_proxy(login="crawler:s3cret", tls=https(tmp_path) if speaks_tls else None) as proxy:
        asyncio.run(run(proxy.url))
        assert len(proxy.asked) == 1


def test_what_nobody_answers_at() -> None:
    async def run() -> None:
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

    asyncio.run(run())


def test_address_rules_do_not_hold_for_what_goes_through_a_proxy() -> None:
    async def fetch(crawl: Crawl, server: Any, url: str) -> None:
        assert (await crawl.fetch(proxied(server.url(), url))).body == b"abc"

    async def run(url: str) -> None:
        async with serving([PAGE]) as server, crawling() as crawl:
            crawl.forbidden.add("127.0.0.1")
            await fetch(crawl, server, url)

    with forward_proxy() as proxy:
        asyncio.run(run(proxy.url))
