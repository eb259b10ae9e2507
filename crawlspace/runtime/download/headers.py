"""Headers of Scrapy as text."""

from __future__ import annotations

from functools import lru_cache

from scrapy.http import Headers

from crawlspace.content_type import declared


def header_values(headers: Headers, name: str) -> list[str]:
    """Return all values of a header, as they were sent."""
    values: list[bytes] | None = dict.get(headers, _key(name))  # the mapping itself would make the key anew each time
    return [value.decode("latin-1") for value in values] if values else []


def declared_type(headers: Headers) -> str | None:
    """Return the Content-Type as `content_type.essence` reads it; None where there is none."""
    return declared(header_values(headers, "Content-Type"))


@lru_cache(100)
def _key(name: str) -> bytes:
    return Headers().normkey(name)
