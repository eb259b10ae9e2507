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

from crawlspace.runtime.browser.loopback_proxy import LoopbackProxy, Streams, answer, connected, tunnel

Addresses = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host that may be connected to at a port."""


class ForwardProxy(LoopbackProxy):
    """Serves the browser that renders pages."""

    def __init__(self, addresses: Addresses) -> None:
        super().__init__()
        self._addresses = addresses
        self._announced: Counter[str] = Counter()

    def announce(self, url: str) -> None:
        """Let one connection be made to the place of a WebSocket that was judged, by its URL."""
        parts = urlsplit(url)
        self._announced[f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'wss' else 80)}"] += 1

    async def serve(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect to a place that was announced; refuse anything else."""
        method, target, _ = head.partition(b"\r\n")[0].decode("latin-1").split(" ", 2)
        parts = urlsplit(f"//{target}")
        host, port = parts.hostname, parts.port
        if method != "CONNECT" or not host or not port or not self._is_announced(f"{host}:{port}"):
            await answer(writer, "403 Forbidden")
            return
        there = await self._connected(host, port)
        if there is None:
            await answer(writer, "502 Bad Gateway")
            return
        await tunnel(reader, writer, there)

    def _is_announced(self, place: str) -> bool:
        """Return whether a connection may be made to a place, once."""
        is_announced = self._announced[place] > 0
        self._announced[place] -= is_announced
        self._announced = +self._announced  # without what has come to nothing
        return is_announced

    async def _connected(self, host: str, port: int) -> Streams | None:
        """Connect to the first address of a host that answers."""
        for address in await self._addresses(host, port):
            with suppress(OSError, TimeoutError):
                return await connected(address, port)
        return None
