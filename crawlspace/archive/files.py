"""The files of an archive: names, locks, files of killed writers, new files, and archive offsets.

A file is called `….warc.gz.open` until its writer has closed it, and its writer holds a lock on it meanwhile. So tools that look for
`*.warc.gz` find complete files only, and a start tells the files of a crawl that was killed from those of one that runs. Each new file is
written by one process from its beginning to its end.
"""

from __future__ import annotations

import os
import re
import socket
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from crawlspace import private_files
from crawlspace.archive import records
from crawlspace.clock import Clock
from crawlspace.errors import ArchiveError

try:
    import fcntl
except ImportError:  # Windows, where no two processes write to one folder: the store is locked
    fcntl = None  # type: ignore[assignment]

ENDING = ".warc.gz"
OPEN = ".open"
_OFFSET_BITS = 32
"""A record begins below 2 GiB, above the size at which files are rotated; both parts are a number below 2^53, which Lua can represent."""
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
        with suppress(FileNotFoundError):  # it was closed or compacted meanwhile
            size += path.stat().st_size
    return size


def find(folder: Path, name: str) -> Path | None:
    """Return the file of that name, closed or open; None if it does not exist, or the name is not that of an archive file."""
    if not name.endswith(ENDING) or "/" in name or "\0" in name:
        return None
    final, open_one = folder / name, folder / (name + OPEN)
    return next((path for path in (final, open_one, final) if path.is_file()), None)  # it may be closed meanwhile


def plain_name(text: str) -> str:
    """Return a text as part of a file name."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text)[:60]


def lock(fd: int) -> bool:
    """Lock an open file for this process; return False if another one holds the lock."""
    if fcntl is not None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def close_abandoned(folder: Path) -> list[Path]:
    """Cut the files of killed writers after their last complete record, close them, and return them. Raises OSError."""
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
    """Yield the offset after each complete record, from the beginning; stop at anything else."""
    at, unread = 0, b""
    member = zlib.decompressobj(zlib.MAX_WBITS | 16)
    while data := unread or file.read(_READ_BYTES):
        try:
            part = member.decompress(data, _INFLATED_BYTES)  # no member is ever inflated as a whole
            # At the end of a member zlib leaves what follows it in `unconsumed_tail` too.
            while not member.eof and (member.unconsumed_tail or len(part) == _INFLATED_BYTES):
                part = member.decompress(member.unconsumed_tail, _INFLATED_BYTES)
        except zlib.error:
            return
        unread = member.unused_data
        at += len(data) - len(unread)
        if member.eof:
            yield at
            member = zlib.decompressobj(zlib.MAX_WBITS | 16)


ROTATED_BYTES = 1 << 30
_FILES, _SMALLEST_BYTES = 8, 100_000
"""Number of files of a full archive, if files of the usual size would be too large for its limit, and the smallest size."""
_SOFTWARE = "crawlspace"


class FileSeries:
    """The files of this process, one after the other; their names have collection, time, host, process and number."""

    def __init__(self, folder: Path, *, collection: str, clock: Clock, rotated_bytes: int = ROTATED_BYTES) -> None:
        """`rotated_bytes`: the size at which a file is full. Raises ArchiveError if nothing can be written to the folder."""
        self.current: NewFile | None = None
        self.closed: list[Path] = []
        self.folder = folder
        self._collection = collection
        self._clock = clock
        self._rotated_bytes = rotated_bytes
        self._serial = 0
        began = datetime.fromtimestamp(clock.now(), UTC).strftime("%Y%m%d%H%M%S")
        self._stem = f"{plain_name(collection)}-{began}{_writer()}"
        try:
            private_files.make_folder(folder)
            tried = folder / f"{self._stem}.tried"
            os.close(os.open(tried, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            tried.unlink()
        except OSError as error:
            raise unwritable(folder, error) from error

    def writable(self) -> NewFile:
        """Return the file to write to: the current one, or a new one if that is full. Raises OSError."""
        if self.current is not None and self.current.end >= self._rotated_bytes:
            self.close()
        if self.current is None:
            self.current = self._begin()
        return self.current

    def close(self) -> None:
        """Close the current file, if any. Raises OSError."""
        if self.current is not None:
            file, self.current = self.current, None
            file.close()
            self.closed.append(self.folder / file.name)

    def _begin(self) -> NewFile:
        while True:
            self._serial += 1
            name = f"{self._stem}-{self._serial:05d}{ENDING}"
            with suppress(FileExistsError):
                file = NewFile(self.folder, name)
                break
        file.write([records.info(file=name, software=_SOFTWARE, collection=self._collection, now=self._clock.now())])
        return file


def rotated_bytes(most: int | None) -> int:
    """Return the size at which a file is full, in an archive with this limit: only full files are compacted."""
    return ROTATED_BYTES if most is None else min(ROTATED_BYTES, max(_SMALLEST_BYTES, most // _FILES))


def is_from_here(name: str) -> bool:
    """Return whether a file was written by this process, or by an earlier one with its number on this host."""
    return f"{_writer()}-" in name


def _writer() -> str:
    return f"-{plain_name(socket.gethostname())}-{os.getpid()}"


class NewFile:
    """A file that only this process writes. Raises OSError."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.path = folder / (name + OPEN)
        self.end = 0
        if (folder / name).exists():
            raise FileExistsError(name)
        self._fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        lock(self._fd)
        self._inode = os.fstat(self._fd).st_ino

    @property
    def is_in_place(self) -> bool:
        """Whether the file still has its name, or the one after closing."""
        for path in (self.path, self.path.with_name(self.name), self.path):  # it may be closed meanwhile
            with suppress(OSError):
                return path.stat().st_ino == self._inode
        return False

    def flush(self) -> None:
        """Wait until all writes are on the disk."""
        os.fsync(self._fd)

    def write(self, parts: Iterable[bytes]) -> None:
        """Add complete records, in parts of any size; all are removed again if the disk is full."""
        end = self.end
        try:
            for part in parts:
                left = memoryview(part)
                while left:
                    left = left[os.write(self._fd, left) :]
                end += len(part)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, self.end)
                os.lseek(self._fd, self.end, os.SEEK_SET)
            raise
        self.end = end

    def close(self) -> None:
        try:
            os.fsync(self._fd)
            self.path.rename(self.path.with_name(self.name))
        finally:
            os.close(self._fd)


def unwritable(folder: Path, error: BaseException) -> ArchiveError:
    """Return the error for an archive that cannot be written."""
    if not isinstance(error, OSError):
        return ArchiveError(
            f"the archive in {folder} could not be written, through a fault of ours ({type(error).__name__}: {error}): please report it;"
            " CRAWLSPACE_ARCHIVE = False crawls without it"
        )
    return ArchiveError(
        f"the archive cannot be written to {folder} ({error.strerror or error}): free space there, correct its permissions, or set"
        " CRAWLSPACE_ARCHIVE_DIR to another folder (CRAWLSPACE_ARCHIVE = False crawls without an archive); nothing that was recorded is lost"
    )


def place_of(number: int, offset: int) -> int:
    """Return file number and offset of a record as one integer, which the store keeps for each URL."""
    return number << _OFFSET_BITS | offset


def file_and_offset(place: int) -> tuple[int, int]:
    """Return the parts of an integer of `place_of`."""
    return place >> _OFFSET_BITS, place & ((1 << _OFFSET_BITS) - 1)
