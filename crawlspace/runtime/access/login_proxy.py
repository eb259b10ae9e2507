"""The proxy of a browser that logs in: it listens on the loopback and connects to the hosts of the log-in only.

A person has named these hosts, so address rules do not apply to them. What is refused or cannot be reached has no answer: the browser would
show one as if it were the site's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from crawlspace.index.json_client import unreachable
from crawlspace.runtime.browser.loopback_proxy import CONNECT_S, LoopbackProxy, Streams, answer, connected, pass_on, relay, tunnel

_AT_ONCE = 64 * 1024
_OF_THE_CONNECTION = frozenset({"connection", "proxy-connection", "proxy-authorization", "keep-alive"})


class LoginProxy(LoopbackProxy):
    """Serves the browser of one log-in."""

    def __init__(self, allows: Callable[[str, int], bool], *, allows_http: bool = False) -> None:
        """`allows` returns whether a host and port may be connected to; `allows_http`: by plain http, too."""
        super().__init__()
        self._allows = allows
        self._allows_http = allows_http
        self.unreachable: dict[str, str] = {}
        """Hosts that could not be connected to, and why."""

    async def serve(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect to a host of the log-in, for a tunnel or for one request by plain http."""
        line, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        method, target, _ = line.split(" ", 2)
        if method == "CONNECT":
            parts = urlsplit(f"//{target}")
            if (there := await self._connected(parts.hostname, parts.port)) is None:
                await answer(writer, "403 Forbidden")
            else:
                await tunnel(reader, writer, there)
            return
        parts = urlsplit(target)
        if parts.scheme != "http" or not self._allows_http:
            return
        if (there := await self._connected(parts.hostname, parts.port or 80)) is not None:
            try:
                there[1].write(_origin_form(method, target, fields))
                await relay(_send_body(_length(fields), reader, there[1]), pass_on(there[0], writer))
            finally:
                there[1].close()

    async def _connected(self, host: str | None, port: int | None) -> Streams | None:
        """Return a connection to a host; None where that is not allowed, or fails."""
        if not host or not port or not self._allows(host, port):
            return None
        try:
            return await connected(host, port)
        except TimeoutError:
            self.unreachable[host] = f"it has not answered within {CONNECT_S:g} s"
        except OSError as error:
            self.unreachable[host] = unreachable(error)
        return None


def _origin_form(method: str, target: str, fields: list[str]) -> bytes:
    """Return the head of a request as its server gets it (RFC 9112, 3.2.1), which is the only one of its connection."""
    path = target.split("/", 3)[3] if target.count("/") > 2 else ""
    kept = [field for field in fields if field.partition(":")[0].lower() not in _OF_THE_CONNECTION]
    return "\r\n".join([f"{method} /{path} HTTP/1.1", *kept, "Connection: close", "", ""]).encode("latin-1")


def _length(fields: list[str]) -> int:
    """Return the length of the body of a request. Raises ValueError where it has none but a body, as no browser sends it."""
    given = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    if "transfer-encoding" in given:
        raise ValueError("a request without a length")
    return int(given.get("content-length", "0"))


async def _send_body(length: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on the body of a request; end with what comes after it, which may be for another host."""
    with suppress(OSError):
        while length > 0 and (data := await reader.read(min(length, _AT_ONCE))):
            length -= len(data)
            writer.write(data)
            await writer.drain()
        await reader.read(1)
