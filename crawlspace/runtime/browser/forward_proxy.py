"""The browser's only way out: a proxy on the loopback that looks names up, and connects to the very addresses it checked.

What a page loads does not come here: it is fetched by the crawl's own downloader, and given to the browser (`resources`). Only WebSockets
come, which pages in its tabs announce before. Everything else is what the browser would do by itself, and refused.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

Addresses = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host that may be connected to at a port."""

_MOST_HEAD = 64 * 1024
_HEAD_S = 30.0
_CONNECT_S = 30.0
_IDLE_S = 300.0
_AT_ONCE = 64 * 1024
_MOST_CONNECTIONS = 200


class ForwardProxy:
    """Serves one browser."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._announced: Counter[str] = Counter()

    def announce(self, url: str) -> None:
        """Let one connection be made to the place of a WebSocket that was judged, by its URL."""
        parts = urlsplit(url)
        self._announced[f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'wss' else 80)}"] += 1

    async def start(self) -> str:
        """Listen on the loopback; return the URL."""
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, limit=_MOST_HEAD)
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}"

    async def close(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        if self._open:
            await asyncio.wait(list(self._open))

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._open) >= _MOST_CONNECTIONS:
            writer.close()
            return
        self._open.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # to the browser, a connection that ended
        except asyncio.CancelledError:
            pass  # the crawl ends
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.partition(b"\r\n")[0].decode("latin-1").split(" ", 2)
        parts = urlsplit(f"//{target}")
        host, port = parts.hostname, parts.port
        if method != "CONNECT" or not host or not port or not self._is_announced(f"{host}:{port}"):
            await _answer(writer, "403 Forbidden")
            return
        there = await self._connected(host, port)
        if there is None:
            await _answer(writer, "502 Bad Gateway")
            return
        try:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _relay(reader, writer, *there)
        finally:
            there[1].close()

    def _is_announced(self, place: str) -> bool:
        """Return whether a connection may be made to a place, once."""
        is_announced = self._announced[place] > 0
        self._announced[place] -= is_announced
        self._announced = +self._announced  # without what has come to nothing
        return is_announced

    async def _connected(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect to the first address of a host that answers."""
        for address in await self._addresses(host, port):
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_S):
                    return await asyncio.open_connection(address, port)
        return None


async def _answer(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()


async def _relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, there: asyncio.StreamReader, to_there: asyncio.StreamWriter
) -> None:
    """Pass on what comes from either side, until one ends or both are silent for long."""
    ways = {asyncio.ensure_future(_pass_on(reader, to_there)), asyncio.ensure_future(_pass_on(there, writer))}
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, TimeoutError):
        while True:
            async with asyncio.timeout(_IDLE_S):
                data = await reader.read(_AT_ONCE)
            if not data:
                return
            writer.write(data)
            await writer.drain()
