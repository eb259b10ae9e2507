"""New files of an archive, each written by one process from its beginning to its end."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from crawlspace import private_files
from crawlspace.archive import records
from crawlspace.archive.files import ENDING, OPEN, lock, plain_name
from crawlspace.clock import Clock
from crawlspace.errors import ArchiveError

ROTATED_BYTES = 1 << 30
_FILES, _SMALLEST_BYTES = 8, 100_000
"""As many make up a full archive, where those of the usual size would be too large for its limit."""
_SOFTWARE = "crawlspace"


class FileSeries:
    """Names and begins the files of this process: by collection, time, machine, process and number."""

    def __init__(self, folder: Path, *, collection: str, clock: Clock) -> None:
        """Raises ArchiveError if nothing can be written to the folder."""
        self.folder = folder
        self._collection = collection
        self._clock = clock
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

    def begin(self) -> NewFile:
        """Begin the next file. Raises OSError."""
        while True:
            self._serial += 1
            name = f"{self._stem}-{self._serial:05d}{ENDING}"
            with suppress(FileExistsError):
                file = NewFile(self.folder, name)
                break
        file.write([records.info(file=name, software=_SOFTWARE, collection=self._collection, now=self._clock.now())])
        return file


def rotated_bytes(most: int | None) -> int:
    """Return the size at which a file is full, in an archive that is to have no more bytes than that: only full ones are made smaller."""
    return ROTATED_BYTES if most is None else min(ROTATED_BYTES, max(_SMALLEST_BYTES, most // _FILES))


def is_from_here(name: str) -> bool:
    """Return whether a file was written by this process, or by an earlier one of its number on this machine."""
    return f"{_writer()}-" in name


def _writer() -> str:
    return f"-{plain_name(socket.gethostname())}-{os.getpid()}"


class NewFile:
    """A file that this process alone writes to. Raises OSError."""

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
        """Whether it still has its name, or the one that it gets when it is closed."""
        for path in (self.path, self.path.with_name(self.name), self.path):  # it may be closed between two looks
            with suppress(OSError):
                return path.stat().st_ino == self._inode
        return False

    def flush(self) -> None:
        """Have the disk keep what was written."""
        os.fsync(self._fd)

    def write(self, parts: Iterable[bytes]) -> None:
        """Add whole records, in parts of any size; all are taken back where the disk is full."""
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
