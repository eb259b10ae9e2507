"""The files of an archive: their names, the lock of the one that is being written, and the end of one whose writer was killed.

A file is called `….warc.gz.open` until its writer has closed it, and its writer holds a lock on it meanwhile. So tools that look for
`*.warc.gz` find whole files only, and a start tells the files of a crawl that was killed from those of one that runs.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where no two processes write to one folder anyway: the store is locked
    fcntl = None  # type: ignore[assignment]

ENDING = ".warc.gz"
OPEN = ".open"
_READ_BYTES, _INFLATED_BYTES = 1 << 18, 1 << 20


def archive_files(folder: Path) -> list[Path]:
    """Return the closed files, the oldest first."""
    with suppress(FileNotFoundError):
        return sorted(path for path in folder.iterdir() if path.name.endswith(ENDING))
    return []


def open_files(folder: Path) -> list[Path]:
    """Return the files that are being written, or whose writer was killed."""
    with suppress(FileNotFoundError):
        return sorted(path for path in folder.iterdir() if path.name.endswith(ENDING + OPEN))
    return []


def size_of(folder: Path) -> int:
    """Return the bytes of all files of an archive."""
    size = 0
    for path in (*archive_files(folder), *open_files(folder)):
        with suppress(FileNotFoundError):  # it was closed, or made smaller, between two looks
            size += path.stat().st_size
    return size


def find(folder: Path, name: str) -> Path | None:
    """Return the file of that name, wherever it stands; None if it is not here, or the name is none of an archive."""
    if not name.endswith(ENDING) or "/" in name or "\0" in name:
        return None
    final, open_one = folder / name, folder / (name + OPEN)
    return next((path for path in (final, open_one, final) if path.is_file()), None)  # it may be closed between two looks


def plain_name(text: str) -> str:
    """Return a text as part of a file name."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text)[:60]


def lock(fd: int) -> bool:
    """Lock a file that is open, for this process; return False if another one has it."""
    if fcntl is not None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def close_abandoned(folder: Path) -> list[Path]:
    """Cut the files of writers that were killed behind their last whole record, and close them; return these. Raises OSError."""
    return [closed for path in open_files(folder) if (closed := _close_abandoned(path)) is not None]


def _close_abandoned(path: Path) -> Path | None:
    with suppress(FileNotFoundError), path.open("r+b") as file:
        if not lock(file.fileno()):
            return None
        end = max(ends_of_records(file), default=0)
        if end == 0:
            path.unlink()
            return None
        file.truncate(end)
        os.fsync(file.fileno())
        return path.rename(path.with_name(path.name.removesuffix(OPEN)))
    return None


def ends_of_records(file: BinaryIO) -> Iterator[int]:
    """Yield the offset behind each whole record, from the beginning; stops at what is none."""
    at, unread = 0, b""
    member = zlib.decompressobj(zlib.MAX_WBITS | 16)
    while data := unread or file.read(_READ_BYTES):
        try:
            part = member.decompress(data, _INFLATED_BYTES)  # no member is ever inflated as a whole
            while member.unconsumed_tail or len(part) == _INFLATED_BYTES:
                part = member.decompress(member.unconsumed_tail, _INFLATED_BYTES)
        except zlib.error:
            return
        unread = member.unused_data
        at += len(data) - len(unread)
        if member.eof:
            yield at
            member = zlib.decompressobj(zlib.MAX_WBITS | 16)
