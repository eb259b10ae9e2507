"""A request and the response to it as they were sent, for the archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HeaderLines = Sequence[tuple[bytes, Sequence[bytes]]]
"""Names, each with its values in the order they came."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """`body` is that of the response before it is decoded; times are seconds since 1970."""

    url: str
    method: str
    request_headers: HeaderLines
    status: int
    response_headers: HeaderLines
    body: bytes
    sent_at: float
    protocol: str = "HTTP/1.1"
    address: str | None = None
    """The IP address that answered."""
