"""The way out of a browser in which somebody logs in: to the hosts of the log-in, and to nothing else."""

from __future__ import annotations

import asyncio
import socket

import pytest

from crawlspace.runtime.access.login_proxy import LoginProxy
from tests.http import Request
from tests.sites import Answer, Server, Site, serve, text

OWN, OTHER = "127.0.0.1", "127.0.0.2"
SECONDS = 60


def echo(request: Request) -> Answer:
    sent = " ".join(sorted(name for name in request.headers if name.startswith(("proxy", "connection", "x-"))))
    return text(f"{request.method} {request.path} [{request.body.decode()}] {sent}")


async def asked(proxy: LoginProxy, *parts: str) -> bytes:
    """Return all that comes back for what is sent in these parts; the second follows the first answer."""
    address = await proxy.start()
    try:
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
            found = b""
            for number, part in enumerate(parts):
                writer.write(part.encode())
                if number + 1 < len(parts):
                    found += await reader.readuntil(b"\r\n\r\n")
            found += await reader.read()
            writer.close()
            return found
    finally:
        await proxy.close()


def proxy(*, allows_http: bool = True) -> LoginProxy:
    return LoginProxy(lambda host, _: host == OWN, allows_http=allows_http)


def get(server: Server, *, close: str = "close") -> str:
    return f"GET /page?a=b HTTP/1.1\r\nHost: {server.netloc}\r\nConnection: {close}\r\n\r\n"


@pytest.mark.parametrize(("host", "status"), [(OWN, b"200"), (OTHER, b"403")])
def test_tunnels_lead_to_hosts_of_the_log_in_only(host: str, status: bytes) -> None:
    with serve(Site({}, otherwise=echo), host=host) as server:
        connect = f"CONNECT {server.netloc} HTTP/1.1\r\nHost: {server.netloc}\r\n\r\n"
        found = asyncio.run(asked(proxy(), connect, get(server)))
        assert found.split(b" ")[1] == status
        assert server.paths() == (["/page?a=b"] if status == b"200" else [])


HEAD = "{} http://{}{} HTTP/1.1\r\nHost: {}\r\nProxy-Connection: keep-alive\r\nX-Own: 1\r\nProxy-Authorization: p\r\n"


@pytest.mark.parametrize(
    ("host", "allows_http", "path", "expected"),
    [
        (OWN, True, "/page?a=b", b"GET /page?a=b [] connection x-own"),
        (OWN, True, "", b"GET / [] connection x-own"),
        (OWN, False, "/", b""),
        (OTHER, True, "/", b""),
    ],
)
def test_plain_requests_get_the_answer_of_their_server_or_none(host: str, allows_http: bool, path: str, expected: bytes) -> None:
    with serve(Site({}, otherwise=echo), host=host) as server:
        head = HEAD.format("GET", server.netloc, path, server.netloc)
        found = asyncio.run(asked(proxy(allows_http=allows_http), head + "\r\n"))
    assert found.partition(b"\r\n\r\n")[2] == expected
    assert bool(found) == bool(expected)


async def test_what_follows_a_request_is_not_sent_to_its_server() -> None:
    """A server that keeps the connection would take it for its own."""
    got = bytearray()

    async def keeps(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            got.extend(data)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(keeps, OWN, 0)
    place = f"{OWN}:{server.sockets[0].getsockname()[1]}"
    first = HEAD.format("POST", place, "/one", place) + "Content-Length: 4\r\n\r\nbody"
    second = HEAD.format("GET", f"{OTHER}:80", "/two", OTHER) + "\r\n"
    await asked(proxy(), first + second)
    await asked(proxy(), first, second)
    server.close()
    assert (got.count(b"POST /one HTTP/1.1"), got.count(b"body"), got.count(b"/two")) == (2, 2, 0)


def test_why_a_host_cannot_be_reached() -> None:
    with socket.create_server((OWN, 0)) as taken:
        port = taken.getsockname()[1]
    found = proxy()
    assert asyncio.run(asked(found, f"CONNECT {OWN}:{port} HTTP/1.1\r\n\r\n")).split(b" ")[1] == b"403"
    assert found.unreachable == {OWN: "Connection refused"}


@pytest.mark.parametrize(
    "line", ["nonsense", "GET / HTTP/1.1", "CONNECT host HTTP/1.1", "CONNECT [ HTTP/1.1", "GET ftp://127.0.0.1/ HTTP/1.1"]
)
def test_what_is_no_request_to_a_proxy_gets_nothing(line: str) -> None:
    assert b"200" not in asyncio.run(asked(proxy(), f"{line}\r\n\r\n"))
