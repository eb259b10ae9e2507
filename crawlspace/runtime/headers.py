"""Headers of Scrapy as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlspace.content_type import declared

if TYPE_CHECKING:
    from scrapy.http import Headers


def header_values(headers: Headers, name: str) -> list[str]:
    """Return all values of a header, as they were sent."""
    return [value.decode("latin-1") for value in headers.getlist(name)]


def declared_type(headers: Headers) -> str | None:
    """Return the Content-Type as `content_type.essence` reads it; None where there is none."""
    return declared(header_values(headers, "Content-Type"))
