"""Proxies on the loopback, each of them the only way out of a browser: what they have in common."""

from __future__ import annotations

import asyncio
import ssl
from abc import abstractmethod
from collections.abc import Coroutine
from contextlib import suppress

MOST_HEAD = 64 * 1024
_HEAD_S = 30.0
_IDLE_S = 300.0
_AT_ONCE = 64 * 1024
_MOST_CONNECTIONS = 200
CONNECT_S = 30.0
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class LoopbackProxy:
    """Serves one browser. Subclasses implement `serve`."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def serve(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a request of the browser, of which `head` was read. What it raises for a connection ends that."""

    async def start(self) -> str:
        """Listen on the loopback; return the URL."""
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, limit=MOST_HEAD)
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
            async with asyncio.timeout(_HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
            await self.serve(head, reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # to the browser, a connection that ended
        except asyncio.CancelledError:
            pass  # the crawl ends
        finally:
            self._open.discard(task)
            writer.close()


async def connected(address: str, port: int, *, tls: ssl.SSLContext | None = None, name: str = "") -> Streams:
    """Connect to an address or a host, by TLS to the host of a name. Raises OSError and TimeoutError."""
    async with asyncio.timeout(CONNECT_S):
        return await asyncio.open_connection(address, port, ssl=tls, server_hostname=name if tls is not None else None)


async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, there: Streams) -> None:
    """Let the browser's connection be one to `there`."""
    try:
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await relay(pass_on(reader, there[1]), pass_on(there[0], writer))
    finally:
        there[1].close()


async def answer(writer: asyncio.StreamWriter, status: str) -> None:
    """Answer with a status and nothing else."""
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()


async def relay(*ways: Coroutine[object, object, None]) -> None:
    """Run both ways of a connection until one of them ends."""
    running = {asyncio.ensure_future(way) for way in ways}
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in running:
            way.cancel()
        await asyncio.wait(running)


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Write what is read, until that ends or nothing comes for long."""
    with suppress(OSError, TimeoutError):
        while True:
            async with asyncio.timeout(_IDLE_S):
                data = await reader.read(_AT_ONCE)
            if not data:
                return
            writer.write(data)
            await writer.drain()
