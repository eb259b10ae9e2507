"""A request and the response to it as they were sent, for the archive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HeaderLines = Sequence[tuple[bytes, Sequence[bytes]]]
"""Names, each with its values in the order they came."""


_READ_AT_ONCE = 256 * 1024


class BodyFile:
    """A large body, in a file of its own that is removed with this object."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        weakref.finalize(self, path.unlink, missing_ok=True)

    def parts(self) -> Iterator[bytes]:
        """Yield its bytes. Raises OSError."""
        with self.path.open("rb") as file:
            while part := file.read(_READ_AT_ONCE):
                yield part


@dataclass(frozen=True, slots=True)
class Exchange:
    """`body` is that of the response before it is decoded; times are seconds since 1970."""

    url: str
    method: str
    request_headers: HeaderLines
    status: int
    response_headers: HeaderLines
    body: bytes | BodyFile
    sent_at: float
    protocol: str = "HTTP/1.1"
    address: str | None = None
    """The IP address that answered."""
    dom: bytes | None = None
    """The HTML, in UTF-8, of the DOM of a page that was rendered."""
