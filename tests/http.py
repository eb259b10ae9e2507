"""HTTP as the server of the tests speaks it: a request as it came in, a connection, and the head of a reply."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import responses
from typing import Protocol

TOLD: int | None = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None
LAST_DATA = slice(52, 56)
"""Where tcpi_last_data_recv stands in the struct tcp_info of linux/tcp.h: milliseconds since data came in."""


SAME_TIME_S = 0.001
"""Two readings of the clock that are no further apart are taken for one."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came in; `path` holds the query string, and the names of `headers` are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float
    """Monotonic seconds: when its last bytes came to the machine (on Linux; elsewhere, when this process has read them)."""


class Reply(Protocol):
    """What a site holds for a path."""

    async def send(self, request: Request, connection: Connection) -> None:
        """Answer the request; raise ConnectionError where the connection is not to be used again."""


class Connection:
    """One client's connection, from the server's end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._raw: socket.socket = writer.get_extra_info("socket")

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def received_at(self) -> float:
        """When the last data came in, in monotonic seconds, to the tick of the system's clock (1 to 10 ms); now, where the system does not tell (only Linux)."""
        if TOLD is None:
            return time.monotonic()
        while True:
            before = time.monotonic()
            received = self._raw.getsockopt(socket.IPPROTO_TCP, TOLD, LAST_DATA.stop)
            if time.monotonic() - before < SAME_TIME_S:  # else another process ran meanwhile
                return before - int.from_bytes(received[LAST_DATA], sys.byteorder) / 1000

    def reset(self) -> None:
        """Close so that the client sees a reset and not an orderly end."""
        with suppress(OSError):
            self._raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


async def read_request(connection: Connection) -> Request | None:
    """The next request of a connection; None when the client has closed it."""
    start = await connection.reader.read(1)
    if not start:
        return None
    if (
        start == b"\x16"
    ):  # a TLS handshake: as other servers do, answer in plain text, which the client takes for a failed handshake
        await connection.write(head_of(400, {"Connection": "close"}))
        raise ConnectionAbortedError
    head = start + await connection.reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _version = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await connection.reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body, connection.received_at())


def head_of(code: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {int(code)} {responses.get(code, 'Unknown')}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def names_same_version(asked: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Whether a conditional request names the version there is; an ETag outranks a date, as in RFC 9110 section 13.2.2."""
    if "if-none-match" in asked:
        return "etag" in given and given["etag"] in [tag.strip() for tag in asked["if-none-match"].split(",")]
    return "last-modified" in given and asked.get("if-modified-since") == given["last-modified"]
