"""Headers of Scrapy as text."""

from __future__ import annotations

import re
from functools import lru_cache

from scrapy.http import Headers

from crawlspace.document import declared

_NOT_ASCII = re.compile(rb"[\x80-\xff]")


def header_values(headers: Headers, name: str) -> list[str]:
    """Return all values of a header, as they were sent."""
    values: list[bytes] | None = dict.get(headers, _key(name))  # the mapping itself would make the key again each time
    return [value.decode("latin-1") for value in values] if values else []


def declared_type(headers: Headers) -> str | None:
    """Return the Content-Type as `content_type.essence` reads it; None where there is none."""
    return declared(header_values(headers, "Content-Type"))


def location_of(value: bytes | None) -> str:
    """Return what a Location header leads to; empty for none. Where it is no UTF-8, each byte beyond ASCII is percent-encoded.

    The server knows these bytes again; decoded as another encoding, or replaced, they would be another URL.
    """
    stripped = (value or b"").strip()
    try:
        return stripped.decode()
    except UnicodeDecodeError:
        return _NOT_ASCII.sub(lambda byte: b"%%%02X" % ord(byte[0]), stripped).decode("ascii")


@lru_cache(100)
def _key(name: str) -> bytes:
    return Headers().normkey(name)
