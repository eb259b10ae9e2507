"""The way out of a tab: which requests it has answered, and in which form the browser gets what comes."""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path

import pytest

from crawlspace.runtime.browser.forward_proxy import MOST_BODY, ForwardProxy, TabPage, is_of_this_user, make_certificate
from crawlspace.runtime.browser.loopback_proxy import Streams
from crawlspace.runtime.browser.resources import BrowserRequest, Loads, Resource

SECONDS = 60
CERTIFICATE = make_certificate()


class Words:
    """Answers each request with what it was, but for a URL with "nothing" in it."""

    async def answer(self, request: BrowserRequest, page: str, loads: Loads) -> Resource | None:
        if "nothing" in request.url:
            return None
        words = f"{request.method} {request.url} [{request.body.decode()}] {request.header('x-own')}".encode()
        return Resource(200, {"Set-Cookie": "a=1\nb=2", "X-Odd": "a\rb"}, words)

    async def connect(self, request: BrowserRequest, page: str, loads: Loads) -> Streams | None:
        return None


NO_ANSWER = "HTTP/1.1 502 -\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n"
SOCKET = "Upgrade: websocket\r\nConnection: Upgrade\r\n"


def answered(words: str, *, has_body: bool = True) -> str:
    head = f"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Odd: a b\r\nContent-Length: {len(words)}\r\n\r\n"
    return head + (words if has_body else "")


ASKED = [
    ("GET http://a.example/x HTTP/1.1\r\nX-Own: 1\r\n\r\n", answered("GET http://a.example/x [] 1")),
    ("HEAD http://a.example/x HTTP/1.1\r\n\r\n", answered("HEAD http://a.example/x [] ", has_body=False)),
    ("POST http://a.example/x HTTP/1.1\r\nContent-Length: 2\r\n\r\nab", answered("POST http://a.example/x [ab] ")),
    ("GET http://a.example/nothing HTTP/1.1\r\n\r\n", NO_ANSWER),
    ("GET http://a.example/socket HTTP/1.1\r\n" + SOCKET + "\r\n", NO_ANSWER),
    ("GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", ""),
    ("GET https://a.example/x HTTP/1.1\r\n\r\n", ""),
    (f"POST http://a.example/x HTTP/1.1\r\nContent-Length: {MOST_BODY + 1}\r\n\r\n", ""),
    ("POST http://a.example/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ""),
    ("CONNECT a.example HTTP/1.1\r\n\r\nG", "HTTP/1.1 200 Connection established\r\n\r\n"),
    (
        "CONNECT a.example:81 HTTP/1.1\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 Connection established\r\n\r\n" + answered("GET http://a.example:81/x [] "),
    ),
]


@pytest.mark.parametrize(("sent", "expected"), ASKED)
def test_what_a_tab_gets(sent: str, expected: str) -> None:
    assert asyncio.run(got(sent, page="http://a.example/")) == expected


def test_a_browser_gets_nothing_without_a_page() -> None:
    assert asyncio.run(got("GET http://a.example/x HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 403 ")


def test_connections_by_tls_end_at_the_proxy() -> None:
    assert asyncio.run(got_by_tls("/1", "/2")) == ["GET https://a.example/1 [] ", "GET https://a.example/2 [] "]


async def got_by_tls(*paths: str) -> list[str]:
    proxy = ForwardProxy(Words(), CERTIFICATE.context, TabPage("https://a.example/", Loads()))
    address = await proxy.start()
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
            writer.write(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            await writer.start_tls(tls)
            found = []
            for path in paths:
                writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
                await reader.readuntil(b"\r\n\r\n")
                found.append((await reader.readexactly(len(f"GET https://a.example{path} [] "))).decode())
            writer.close()
            return found
    finally:
        await proxy.close()


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system does not tell whose a connection is")
@pytest.mark.parametrize(("user", "expected"), [(0, True), (1, False)])
def test_nobody_else_on_the_machine_is_served(monkeypatch: pytest.MonkeyPatch, user: int, expected: bool) -> None:
    """`user` is added to the number of this one."""
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + user)
    assert asyncio.run(is_served()) is expected


async def is_served() -> bool:
    found = asyncio.get_running_loop().create_future()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.set_result(is_of_this_user(writer))
        writer.close()

    async with asyncio.timeout(SECONDS), await asyncio.start_server(accepted, "127.0.0.1", 0) as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        served: bool = await found
        writer.close()
    return served


async def got(sent: str, *, page: str = "") -> str:
    """Return all that comes back, once the connection is half closed."""
    proxy = ForwardProxy(Words(), CERTIFICATE.context, TabPage(page, Loads()) if page else None)
    address = await proxy.start()
    try:
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
            writer.write(sent.encode())
            writer.write_eof()
            found = await reader.read()
            writer.close()
            return found.decode()
    finally:
        await proxy.close()
