"""The messages to and from a process that reads files (see `framing`)."""

from __future__ import annotations

from msgspec import Struct, msgpack

from crawlspace.content.documents.contents import FileContents, FileLimits

HELLO = b"\1"
"""Sent by a process that is ready."""
MAX_ANSWER = 256 * 1024 * 1024
"""Bytes of an answer; the text alone may have 16 MB."""


class FileJob(Struct, frozen=True):
    """A file to read, by its path or, if it is small, its bytes."""

    declared: str | None
    path: str = ""
    data: bytes = b""
    converter: str = ""
    """A command, or the URL of a Tika server; empty: one of our readers."""
    folder: str = ""
    """An empty folder for the files of a converter, which the crawl removes afterwards."""
    timeout_s: float = 30.0
    limits: FileLimits = FileLimits()


_JOBS = msgpack.Decoder(FileJob)
_CONTENTS = msgpack.Decoder(FileContents)


def job_of(body: bytes) -> FileJob:
    """Return the job in a message."""
    return _JOBS.decode(body)


def contents_of(body: bytes) -> FileContents:
    """Return the contents in an answer. Raises msgspec.DecodeError for anything else, as of a process that ran out of memory."""
    return _CONTENTS.decode(body)
