"""A forward proxy for tests, plain and with CONNECT: it notes what it is asked for, and connects to the hosts that it is told of.

with serve(site) as origin, forward_proxy({"wiki.invalid:80": origin.netloc}, login="crawler:secret") as proxy:
    ...
    assert proxy.targets() == ["http://wiki.invalid/robots.txt", "http://wiki.invalid/"]
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.http import head_of
from tests.notifications import LONGEST_WAIT_S, notify

CUT = b""
"""A fault: the connection is closed without an answer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came to the proxy; the names of `headers` are in lower case."""

    method: str
    target: str
    """A URL, or the host and port of CONNECT."""
    headers: Mapping[str, str]


class ForwardProxy:
    """A running proxy. `fault` returns what is sent in place of an answer, None for none; `hosts` maps host and port to an address."""

    def __init__(self, hosts: Mapping[str, str], login: str, *, is_secure: bool) -> None:
        self.hosts, self.login, self.port = hosts, login, 0
        self.fault: Callable[[Asked], bytes | None] = lambda asked: None
        self.asked: list[Asked] = []
        self.connections = 0
        self._scheme = "https" if is_secure else "http"

    @property
    def netloc(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self.netloc}"

    @property
    def url_with_login(self) -> str:
        return f"{self._scheme}://{self.login}@{self.netloc}"

    def targets(self) -> list[str]:
        """What was asked for and passed on or not, in order."""
        return [one.target for one in self.asked]

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        self.connections += 1
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # either end has gone
        except asyncio.CancelledError:  # the proxy ends: what is not sent yet would keep the socket open
            writer.transport.abort()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ", 2)
        asked = Asked(
            method, target, {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        )
        self.asked.append(asked)
        notify()
        wanted = f"Basic {base64.b64encode(self.login.encode()).decode()}" if self.login else None
        fault = self.fault(asked)
        if fault is None and wanted is not None and asked.headers.get("proxy-authorization") != wanted:
            fault = refusal(407, {"Proxy-Authenticate": 'Basic realm="proxy"'})
        if fault is not None:
            writer.write(fault)
            await writer.drain()
            return
        parts = urlsplit(target)
        place = target if method == "CONNECT" else f"{parts.hostname}:{parts.port or 80}"
        host, _, port = self.hosts.get(place, place).rpartition(":")
        try:
            from_site, to_site = await asyncio.open_connection(host.strip("[]"), int(port))
        except OSError:
            writer.write(refusal(502, {}))
            return
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await asyncio.gather(_pump(reader, to_site), _pump(from_site, writer))
                return
            kept = [line for line in lines if not line.lower().startswith(("proxy-", "connection:"))]
            path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
            to_site.write(
                "\r\n".join([f"{method} {path} HTTP/1.1", *kept, "Via: 1.1 test", "Connection: close", "", ""]).encode("latin-1")
            )
            to_site.write(await reader.readexactly(int(asked.headers.get("content-length", 0))))
            head = await from_site.readuntil(b"\r\n\r\n")
            writer.write(head[:-2] + b"Connection: close\r\n\r\n")
            await _pump(from_site, writer)
        except asyncio.CancelledError:
            to_site.transport.abort()
            raise
        finally:
            to_site.close()


def refusal(code: int, headers: Mapping[str, str]) -> bytes:
    """An answer of the proxy's own."""
    return head_of(code, {"Content-Length": "0", "Connection": "close", **headers})


@contextmanager
def forward_proxy(
    hosts: Mapping[str, str] | None = None, *, login: str = "", tls: ssl.SSLContext | None = None
) -> Iterator[ForwardProxy]:
    """Run a proxy on a free port of loopback until the block ends."""
    proxy, loop = ForwardProxy(hosts or {}, login, is_secure=tls is not None), asyncio.new_event_loop()
    ready, stop = threading.Event(), asyncio.Event()

    async def run() -> None:
        server = await asyncio.start_server(proxy.talk, "127.0.0.1", 0, ssl=tls)
        proxy.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()
        while rest := asyncio.all_tasks() - {asyncio.current_task()}:  # one may begin another
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
        await asyncio.sleep(0)  # sockets are closed in the round after

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(LONGEST_WAIT_S)
        loop.close()


async def _pump(source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65_536):
            into.write(data)
            await into.drain()
    with suppress(OSError, RuntimeError):
        if into.can_write_eof():
            into.write_eof()
        else:
            into.close()
