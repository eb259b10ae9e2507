"""The browser: its requests, the proxy that they go through, and the start of a crawl where it is not installed."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from crawlspace.config.access import SiteAccess, read_site_access
from crawlspace.errors import ConfigError
from crawlspace.runtime.browser import extra
from crawlspace.runtime.browser.forward_proxy import MOST_BODY, ForwardProxy, TabPage, is_of_this_user, make_certificate
from crawlspace.runtime.browser.loopback_proxy import Streams
from crawlspace.runtime.browser.resources import BrowserRequest, Initiator, Loads, Resource
from crawlspace.settings import BrowserSettings

A = "http://a.example.com/page"
OWN, SAME_SITE, OTHER = Initiator.OWN, Initiator.SAME_SITE, Initiator.OTHER

INITIATORS = [
    # URL, headers, the document that asks
    ("https://a.example.com/x", {"sec-fetch-site": "same-origin"}, OWN),
    ("https://a.example.com/x", {"sec-fetch-site": "same-site"}, SAME_SITE),
    ("https://a.example.com/x", {"sec-fetch-site": "cross-site"}, OTHER),
    ("https://a.example.com/x", {"sec-fetch-site": "none"}, OTHER),
    ("https://a.example.com/x", {"sec-fetch-site": "cross-site", "referer": "https://a.example.com/"}, OTHER),
    ("http://a.example.com/x", {"referer": A}, OWN),
    ("http://a.example.com:80/x", {"referer": A}, OWN),
    ("http://a.example.com:8080/x", {"referer": A}, SAME_SITE),
    ("https://a.example.com/x", {"referer": A}, OTHER),
    ("http://b.example.com/x", {"referer": A}, SAME_SITE),
    ("http://a.example.org/x", {"referer": A}, OTHER),
    ("http://b.co.uk/x", {"referer": "http://a.co.uk/"}, OTHER),
    ("http://b.github.io/x", {"referer": "http://a.github.io/"}, OTHER),
    ("http://127.0.0.1/x", {"referer": "http://127.0.0.2/"}, OTHER),
    ("http://[::1]/x", {"referer": "http://[::1]/"}, OWN),
    ("http://intranet/x", {"referer": "http://intranet/"}, OWN),
    ("http://a.example.com/x", {"origin": "http://a.example.com"}, OWN),
    ("http://a.example.com/x", {"origin": "http://evil.example", "referer": A}, OTHER),
    ("http://a.example.com/x", {"origin": "null", "referer": A}, OTHER),
    ("http://a.example.com/x", {"referer": "http://a.example.com:x/"}, OTHER),
    ("http://a.example.com/x", {}, OTHER),
]


@pytest.mark.parametrize(("url", "headers", "expected"), INITIATORS)
def test_which_document_a_request_is_for(url: str, headers: dict[str, str], expected: Initiator) -> None:
    assert BrowserRequest("GET", url, headers).initiator is expected


FORM, JSON = {"content-type": "application/x-www-form-urlencoded"}, {"content-type": "application/json"}
SENT = [
    # method, headers, to: the own host, the own site, another site
    ("GET", {}, True, True, True),
    ("HEAD", {}, True, True, True),
    ("POST", {}, True, True, True),
    ("POST", FORM, True, True, True),
    ("POST", {"content-type": "multipart/form-data; boundary=x"}, True, True, True),
    ("POST", {"content-type": "Text/Plain;charset=UTF-8"}, True, True, True),
    ("POST", JSON, True, True, False),
    ("PUT", {}, True, True, False),
    ("PATCH", JSON, True, True, False),
    ("DELETE", {}, True, True, False),
    ("OPTIONS", {}, True, True, False),
    ("OPTIONS", {"access-control-request-method": "GET"}, True, True, True),
    ("OPTIONS", {"access-control-request-method": "POST"}, True, True, False),
    ("OPTIONS", {"access-control-request-method": "DELETE"}, True, True, False),
]


@pytest.mark.parametrize(("method", "headers", "own", "same_site", "other"), SENT)
def test_what_is_sent_across_sites(method: str, headers: dict[str, str], own: bool, same_site: bool, other: bool) -> None:
    sent = [
        not BrowserRequest(method, "https://a.example.com/", headers | {"sec-fetch-site": one.value}).is_refused_across_sites
        for one in (OWN, SAME_SITE, OTHER)
    ]
    assert sent == [own, same_site, other]


SUPERFLUOUS = [
    ({"sec-fetch-site": "none", "sec-fetch-dest": "empty"}, True),
    ({"sec-fetch-dest": "image"}, True),
    ({"sec-fetch-dest": "font"}, True),
    ({"sec-fetch-dest": "document"}, True),
    ({"sec-fetch-dest": "iframe"}, False),
    ({"sec-fetch-dest": "script"}, False),
    ({"sec-fetch-dest": "empty"}, False),
    ({"accept": "image/avif,image/webp,*/*;q=0.8"}, True),
    ({"accept": "text/event-stream"}, True),
    ({"accept": "text/html,*/*"}, False),
    ({"sec-purpose": "prefetch;prerender"}, True),
    ({"service-worker": "script"}, True),
    ({"content-type": "application/csp-report"}, True),
]


@pytest.mark.parametrize(("headers", "expected"), SUPERFLUOUS)
def test_what_shows_nothing(headers: dict[str, str], expected: bool) -> None:
    assert BrowserRequest("GET", "http://a.example.com/", headers).is_superfluous is expected


# --- the proxy of a tab ---------------------------------------------------------------------------------------------


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


SETTINGS = BrowserSettings(executable="", pages=1, timeout_s=1.0, max_pages=1, memory_bytes=1 << 30)
FORM_LOGIN: Mapping[str, object] = {"type": "form", "url": "https://wiki.example.com/login", "fields": {"user": "me"}}
BROWSER_LOGIN: Mapping[str, object] = {"type": "browser", "url": "https://wiki.example.com/login", "steps": [{"click": "#go"}]}


def access(login: Mapping[str, object]) -> SiteAccess:
    found = read_site_access("X", "wiki.example.com", {"login": login})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("installed", "missing"),
    [
        (set(), "playwright and psutil are not installed"),
        ({"playwright"}, "psutil is not installed"),
    ],
)
def test_without_the_extra_a_log_in_in_the_browser_is_named(
    monkeypatch: pytest.MonkeyPatch, installed: set[str], missing: str
) -> None:
    monkeypatch.setattr(extra, "find_spec", lambda name: ModuleSpec(name, None) if name in installed else None)
    extra.check_browser([access(FORM_LOGIN)], SETTINGS)
    with pytest.raises(ConfigError) as raised:
        extra.check_browser([access(FORM_LOGIN), access(BROWSER_LOGIN)], SETTINGS)
    assert str(raised.value) == (
        f"CRAWLSPACE_SITES['wiki.example.com'] has a log-in in the browser, and {missing}: run `make browser`, or install"
        " crawlspace[browser]"
    )
    with pytest.raises(ConfigError, match=r"^pages are to be rendered in a browser \(CRAWLSPACE_RENDER"):
        extra.check_extra()
