"""The contents of a file, the limits of reading, and the reasons for a file without text."""

from __future__ import annotations

from enum import StrEnum
from typing import BinaryIO, Protocol

from msgspec import Struct

MAX_TITLE = 1_000
MAX_AUTHOR = 1_000
MAX_HREF = 8_000
BYTES_PER_CHARACTER = 4
"""Bytes of a text that are read for each character of the limit."""


class TextStatus(StrEnum):
    """The reason that a file has no text. The values are those of the field `text_status` of its document."""

    ENCRYPTED = "encrypted"
    DAMAGED = "damaged"
    NO_TEXT = "no text"
    TOO_LARGE = "too large"
    OVER_LIMITS = "over the limits"
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    NO_READER = "no reader"

    @property
    def sentence(self) -> str:
        """The meaning of the value, for users."""
        return _SENTENCES[self]


_SENTENCES = {
    TextStatus.ENCRYPTED: "it needs a password",
    TextStatus.DAMAGED: "it is empty, cut short, or not what its type says",
    TextStatus.NO_TEXT: "it has no text, as a scan",
    TextStatus.TOO_LARGE: "it is larger than CRAWLSPACE_FILE_MAXSIZE",
    TextStatus.OVER_LIMITS: "reading it would need too much memory, or it inflates to too much",
    TextStatus.TIMED_OUT: "reading it took longer than CRAWLSPACE_FILE_TIMEOUT",
    TextStatus.CRASHED: "the process that read it has crashed",
    TextStatus.NO_READER: "there is no reader and no converter for its type",
}


class UnreadableFile(Exception):
    """A file has no text for the index."""

    def __init__(self, status: TextStatus, detail: str = "") -> None:
        super().__init__(detail or status.sentence)
        self.status = status
        self.detail = detail


class FileLimits(Struct, frozen=True):
    """Limits of one file. Text and pages beyond them are left out; a file beyond another limit is unreadable."""

    max_text: int = 4 * 1024 * 1024
    """Characters."""
    max_pages: int = 10_000
    max_members: int = 20_000
    """Members of an archive."""
    max_inflated_bytes: int = 512 * 1024 * 1024
    """Of all members of an archive that are read."""
    max_links: int = 10_000


class FileContents(Struct):
    """The contents of a file. Times are in ISO 8601; missing values are empty."""

    kind: str
    """Its MIME type, by its bytes."""
    text: str = ""
    """Words separated by single spaces."""
    title: str = ""
    """Of the metadata, else of the first heading."""
    author: str = ""
    created: str = ""
    modified: str = ""
    language: str = ""
    """As declared by the file."""
    pages: int = 0
    """Pages of a PDF, slides, sheets; 0: unknown."""
    headings: tuple[str, ...] = ()
    hrefs: tuple[str, ...] = ()
    """Absolute hyperlinks, each once."""
    text_left_out: bool = False
    """There is more text, or there are more pages, than the limits allow."""
    status: TextStatus | None = None
    """The reason that it has no text."""
    detail: str = ""


class FileReader(Protocol):
    """Reads one format. Raises UnreadableFile, or any exception of its library for a damaged file."""

    def __call__(self, file: BinaryIO, contents: FileContents, limits: FileLimits) -> None:
        """Complete `contents`."""
