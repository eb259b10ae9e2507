"""Answers byte by byte, for `tests.sites`."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from dataclasses import dataclass
from typing import Any

from scrapy.utils import _compression

from tests.http import Connection, Reply, Request
from tests.sites import binary

LIBRARIES: Any = _compression
"""Where Scrapy has its libraries for Brotli and Zstandard."""
OK = b"HTTP/1.1 200 OK\r\n"
HTML = b"Content-Type: text/html\r\n"
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Raw:
    """Sends these bytes and closes; with `endless`, sends that again and again first, until the client has enough.

    `every_s`: seconds before each repetition. `stays_open`: waits at the end until the client closes.
    """

    start: bytes
    endless: bytes = b""
    every_s: float = 0.0
    stays_open: bool = False

    async def send(self, request: Request, connection: Connection) -> None:
        await connection.write(self.start)
        while self.endless:
            await asyncio.sleep(self.every_s)
            await connection.write(self.endless)
        if self.stays_open:
            await connection.reader.read()
        raise ConnectionAbortedError


def headers(*lines: bytes, body: bytes = b"<title>Page</title><p>words") -> Raw:
    """A whole page with these headers beside its own."""
    own = HTML if not any(line.lower().startswith(b"content-type") for line in lines) else b""
    length = b"Content-Length: %d\r\n" % len(body)
    return Raw(OK + own + length + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body)


def without_length(*lines: bytes, body: bytes = b"") -> Raw:
    """A page whose headers say themselves how long it is."""
    return Raw(OK + HTML + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body)


def chunked(body: bytes, *, endless: bytes = b"", every_s: float = 0.0) -> Raw:
    return Raw(OK + HTML + b"Transfer-Encoding: chunked\r\n\r\n" + body, endless, every_s)


def folded(name: bytes, size: int) -> bytes:
    """A header with a value of so many bytes, on lines of one kilobyte."""
    return name + b": " + b"\r\n ".join([b"a" * 1_000] * (size // 1_000))


def encoded(body: bytes, *encodings: str) -> Reply:
    return binary(body, "text/html", headers={"Content-Encoding": ", ".join(encodings)})


def bomb(encoding: str, size: int = 24 * MEGABYTE) -> Reply:
    """A page of so many spaces that travels as little."""
    page = b" " * size
    packed = {
        "gzip": lambda: gzip.compress(page, 9),
        "deflate": lambda: zlib.compress(page, 9),
        "br": lambda: LIBRARIES.brotli.compress(page, quality=5),
        "zstd": lambda: LIBRARIES.zstd.compress(page),
    }[encoding]
    return encoded(packed(), encoding)
