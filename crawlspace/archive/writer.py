"""Writes records on a background thread, because compressing a page takes as long as reading it.

Whoever adds a fetch gets a ticket for it, and waits for many tickets at once before the places of their records are stored. A record that
is written has been given to the operating system: it outlives the process, and not a power failure, after which a place may lead
nowhere. Each process writes files of its own, and never goes on with one that it did not begin.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from crawlspace import private_files
from crawlspace.archive import records
from crawlspace.archive.files import ENDING, OPEN, lock, plain_name
from crawlspace.archive.records import Location, Original
from crawlspace.clock import Clock
from crawlspace.errors import ArchiveError
from crawlspace.exchange import Exchange
from crawlspace.model import Document

ROTATED_BYTES = 1 << 30
_WOKEN_AT = 8
"""So many fetches are gathered before the thread begins: each time it does, the crawl waits a little for Python's lock."""
_SOFTWARE = "crawlspace"


@dataclass(slots=True, eq=False)
class Ticket:
    """A fetch to be archived; `location` is where its records are, once it is written. None: those of `previous` stand for it."""

    exchange: Exchange
    document: Document | None = None
    previous: int | None = None
    """The place of the version before this one."""
    is_new: bool = True
    """Its records are kept even where the body is that of the version before, because the document is another one."""
    moves: bool = True
    """The URL has its place there from now on."""
    location: Location | None = None
    is_written: bool = False


class Originals(Protocol):
    """Finds the version before."""

    def location(self, place: int) -> Location | None: ...
    def original(self, place: int, url: str) -> Original | None: ...


class ArchiveWriter:
    """Writes the files of one process into `folder`."""

    def __init__(
        self,
        folder: Path,
        *,
        collection: str,
        clock: Clock,
        originals: Originals,
        rotated_bytes: int = ROTATED_BYTES,
    ) -> None:
        """Raises ArchiveError if nothing can be written to the folder."""
        self.folder = folder
        self._collection = collection
        self._clock = clock
        self._originals = originals
        self._rotated_bytes = rotated_bytes
        self._file: _File | None = None
        self._serial = 0
        began = datetime.fromtimestamp(clock.now(), UTC).strftime("%Y%m%d%H%M%S")
        self._stem = f"{plain_name(collection)}-{began}-{plain_name(socket.gethostname())}-{os.getpid()}"
        self._waiting: deque[Ticket] = deque()
        self._changed = threading.Condition()
        self._is_wanted = self._ends = False
        self._fault: BaseException | None = None
        self._try_folder()
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)
        self._thread.start()

    def add(self, ticket: Ticket) -> Ticket:
        """Have a fetch be written. On the thread of the crawl; returns at once."""
        self._waiting.append(ticket)
        if len(self._waiting) >= _WOKEN_AT:
            self.hurry()
        return ticket

    def wait(self, tickets: Sequence[Ticket]) -> None:
        """Return when all of them are written. Raises ArchiveError, and then none of those left will be."""
        if any(not ticket.is_written for ticket in tickets):
            self.hurry()
            with self._changed:
                self._changed.wait_for(lambda: self._fault is not None or all(ticket.is_written for ticket in tickets))
        if self._fault is not None:
            raise unwritable(self.folder, self._fault) from self._fault
        if self._file is not None and not self._file.is_in_place:
            raise ArchiveError(
                f"{self._file.path} was moved or removed while it was written; put it back and start again: what was fetched since the"
                " last transaction is fetched again"
            )

    def close(self) -> None:
        """Write what waits and close the file. Raises ArchiveError."""
        self._ends = True
        self.hurry()
        self._thread.join()
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError as error:
                self._fault = self._fault or error
        if self._fault is not None:
            raise unwritable(self.folder, self._fault) from self._fault

    def hurry(self) -> None:
        """Have what was added be written now. Returns at once."""
        with self._changed:
            self._is_wanted = True
            self._changed.notify_all()

    def _try_folder(self) -> None:
        try:
            private_files.make_folder(self.folder)
            tried = self.folder / f"{self._stem}.tried"
            os.close(os.open(tried, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            tried.unlink()
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_wanted)
                self._is_wanted = False
            ends = self._ends
            try:
                while self._waiting:
                    self._write([self._waiting.popleft() for _ in range(min(len(self._waiting), 4 * _WOKEN_AT))])
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                self._fault = error
            with self._changed:
                self._changed.notify_all()
            if ends or self._fault is not None:
                return

    def _write(self, tickets: list[Ticket]) -> None:
        """Write fetches with one call of the operating system a file."""
        file = self._writable()
        unwritten, size = [], 0
        for ticket in tickets:
            content, is_page = self._records_of(ticket)
            if is_page:
                ticket.location = Location(file.name, file.end + size)
            unwritten.append(content)
            size += len(content)
            if file.end + size >= self._rotated_bytes:
                file.write(b"".join(unwritten))
                unwritten, size = [], 0
                file = self._writable()
        file.write(b"".join(unwritten))
        with self._changed:
            for ticket in tickets:
                ticket.is_written = True
            self._changed.notify_all()

    def _records_of(self, ticket: Ticket) -> tuple[bytes, bool]:
        """Return the records of a fetch, and whether they are those of a page and no revisit."""
        exchange, originals = ticket.exchange, self._originals
        previous = None if ticket.previous is None else originals.location(ticket.previous)
        if exchange.status == 304:
            original = None if ticket.previous is None else originals.original(ticket.previous, exchange.url)
            return records.revisit(exchange, original, digest=None), False
        digest = records.digest_of(exchange.body)
        if ticket.previous is not None and not ticket.is_new:
            original = originals.original(ticket.previous, exchange.url)
            if original is not None and original.digest == digest:
                return records.revisit(exchange, original, digest=digest), False
        return records.page(exchange, ticket.document, digest=digest, previous=previous), True

    def _writable(self) -> _File:
        """Return the file to write to: the present one, or a new one where that is full."""
        if self._file is not None and self._file.end >= self._rotated_bytes:
            self._file.close()
            self._file = None
        if self._file is None:
            self._file = self._new_file()
        return self._file

    def _new_file(self) -> _File:
        while True:
            self._serial += 1
            name = f"{self._stem}-{self._serial:05d}{ENDING}"
            with suppress(FileExistsError):
                file = _File(self.folder, name)
                break
        file.write(records.info(file=name, software=_SOFTWARE, collection=self._collection, now=self._clock.now()))
        return file


class _File:
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
        with suppress(OSError):
            return self.path.stat().st_ino == self._inode
        return False

    def write(self, content: bytes) -> None:
        """Add whole records; a part of them is taken back where the disk is full."""
        left = memoryview(content)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, self.end)
            raise
        self.end += len(content)

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
