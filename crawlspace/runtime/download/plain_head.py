"""The head of an answer as most servers send it, read in one go.

Twisted reads a head line by line, which takes longer than all else with an answer. What is in any way unusual is none of it here, and is
left to Twisted: what this returns must be what Twisted and Scrapy make of the same bytes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

MOST_BYTES = 16 * 1024
MOST_LINES = 100
LONGEST_NAME = 60
"""Of the names of headers that are remembered."""
NO_BODY = 304
"""The one status without a body that is read here: the answer to a request for a known page."""
_LENGTH, _CONNECTION, _KEEP_ALIVE = b"Content-Length", b"Connection", b"Keep-Alive"
_UNUSUAL = frozenset({b"Te", b"Trailers", b"Transfer-Encoding", b"Upgrade", b"Proxy-Connection"})
"""With these the connection, or the body, may be another than it seems."""
_LONGEST_LENGTH = 9
"""Digits of a Content-Length."""


class PlainHead(NamedTuple):
    """`size` is that of the head, in bytes, `length` that of the body after it. `headers` are as Scrapy has them."""

    status: int
    headers: dict[bytes, list[bytes]]
    size: int
    length: int


def plain_head(data: bytes) -> PlainHead | None:
    """Return the head with which an answer to a GET begins; None unless all of it is there, and is as usual."""
    end = data.find(b"\r\n\r\n", 0, MOST_BYTES)
    if end < 0 or not data.startswith(b"HTTP/1.1 "):
        return None
    first, *lines = data[:end].split(b"\r\n")
    if not len(lines) == data.count(b"\n", 0, end) == data.count(b"\r", 0, end) or len(lines) > MOST_LINES:
        return None
    status = _status(first[9:13])
    if status is None:
        return None
    headers: dict[bytes, list[bytes]] = {_LENGTH: []}
    length = -1
    for line in lines:
        raw, colon, rest = line.partition(b":")
        name, value = _name(raw), rest.strip()
        if name is None or not colon:
            return None
        if name is _LENGTH:
            if length >= 0 or not value.isdigit() or len(value) > _LONGEST_LENGTH:
                return None
            length = int(value)
        elif name is _CONNECTION:
            if value.lower() != b"keep-alive":
                return None
        elif name is not _KEEP_ALIVE:
            values = headers.get(name)
            if values is None:
                headers[name] = [value]
            else:
                values.append(value)
    if status == NO_BODY:
        length = 0
    if length < 0:
        return None
    headers[_LENGTH].append(b"%d" % length)
    return PlainHead(status, headers, end + 4, length)


@lru_cache(500)
def _status(code: bytes) -> int | None:
    """Return the status from what follows the version; None for interim answers, and those that have no body."""
    digits, after = code[:3], code[3:]
    if len(digits) < 3 or not digits.isdigit() or after not in (b"", b" "):
        return None
    status = int(digits)
    return status if status >= 200 and status != 204 else None


def _name(raw: bytes) -> bytes | None:
    """Return the name of a header in Scrapy's spelling; None if its line is unusual."""
    return _usual_name(raw) if len(raw) <= LONGEST_NAME else None


@lru_cache(2_000)
def _usual_name(raw: bytes) -> bytes | None:
    name = raw.title()
    for special in (_LENGTH, _CONNECTION, _KEEP_ALIVE):
        if name == special:
            return special  # that very object, to be compared by identity
    return None if name in _UNUSUAL or not _TOKEN.fullmatch(raw) else name


_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""What the name of a header may be (RFC 9110 section 5.6.2)."""
