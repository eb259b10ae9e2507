"""Writes records on a background thread, so that a slow disk or a large body does not hold up the crawl.

The thread and the crawl would get in each other's way through Python's lock, which compressing gives away twice a page: the crawl then
loses more time than the records of its pages take. So the thread begins only when it is asked to, with many fetches, and who asks
waits for a moment.

Whoever adds a fetch gets a ticket for it, and waits for many tickets at once before the places of their records are stored. A record that
is written has been given to the operating system: it outlives the process, and not a power failure, after which a place may lead
nowhere. Each process writes files of its own, and never goes on with one that it did not begin.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from crawlspace.archive import records
from crawlspace.archive.files import ROTATED_BYTES, FileSeries, NewFile, place_of, unwritable
from crawlspace.archive.reader import ArchiveReader
from crawlspace.archive.records import Location, Original
from crawlspace.clock import Clock
from crawlspace.document import Document
from crawlspace.errors import ArchiveError
from crawlspace.outcome import BodyFile, Exchange

_MOST_AT_ONCE = 64
"""Fetches that are written with one call of the operating system."""


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
    restricts_others: bool = False
    """As in the outcome of the fetch."""
    location: Location | None = None
    is_outdated: bool = False
    """The version before has other robots directives than a 304 about it, so it is not what the page has sent last."""
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
        self._series = FileSeries(folder, collection=collection, clock=clock)
        self._originals = originals
        self._rotated_bytes = rotated_bytes
        self._file: NewFile | None = None
        self.closed = 0
        """Files that have become full."""
        self._waiting: deque[Ticket] = deque()
        self._added = self._written = 0
        self._changed = threading.Condition()
        self._is_wanted = self._ends = False
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)
        self._thread.start()

    def add(self, ticket: Ticket) -> Ticket:
        """Have a fetch be written by the next `begin`. On the thread of the crawl."""
        self._waiting.append(ticket)
        self._added += 1
        return ticket

    def begin(self, *, patience_s: float) -> None:
        """Have what was added be written now, and wait that long at most."""
        with self._changed:
            self._is_wanted = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._fault is not None or self._written == self._added, patience_s)

    def wait(self, tickets: Sequence[Ticket]) -> None:
        """Return when all of them are written. Raises ArchiveError, and then none of those left will be."""
        if any(not ticket.is_written for ticket in tickets):
            self.begin(patience_s=0)
            with self._changed:
                self._changed.wait_for(lambda: self._fault is not None or all(ticket.is_written for ticket in tickets))
        if self._fault is not None:
            raise unwritable(self._series.folder, self._fault) from self._fault
        if self._file is not None and not self._file.is_in_place:
            raise ArchiveError(
                f"{self._file.path} was moved or removed while it was written; put it back and start again: what was fetched since the"
                " last transaction is fetched again"
            )

    def close(self) -> None:
        """Write what waits and close the file. Raises ArchiveError."""
        self._ends = True
        self.begin(patience_s=0)
        self._thread.join()
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError as error:
                self._fault = self._fault or error
        if self._fault is not None:
            raise unwritable(self._series.folder, self._fault) from self._fault

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_wanted)
                self._is_wanted = False
            ends = self._ends
            try:
                while self._waiting:
                    self._write([self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_AT_ONCE))])
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                self._fault = error
            with self._changed:
                self._changed.notify_all()
            if ends or self._fault is not None:
                return

    def _write(self, tickets: list[Ticket]) -> None:
        """Write fetches with one call of the operating system a file, but for those with a large body."""
        file = self._writable()
        unwritten: list[bytes] = []
        size = 0
        for ticket in tickets:
            parts, is_page = self._records_of(ticket)
            if is_page:
                ticket.location = Location(file.name, file.end + size)
            if isinstance(ticket.exchange.body, BodyFile):
                file.write([b"".join(unwritten)])
                file.write(parts)
                unwritten, size = [], 0
            else:
                unwritten.append(b"".join(parts))
                size += len(unwritten[-1])
            if file.end + size >= self._rotated_bytes:
                file.write([b"".join(unwritten)])
                unwritten, size = [], 0
                file = self._writable()
        file.write([b"".join(unwritten)])
        with self._changed:
            for ticket in tickets:
                ticket.is_written = True
            self._written += len(tickets)
            self._changed.notify_all()

    def _records_of(self, ticket: Ticket) -> tuple[Iterable[bytes], bool]:
        """Return the records of a fetch, and whether they are those of a page and no revisit."""
        exchange, originals = ticket.exchange, self._originals
        previous = None if ticket.previous is None else originals.location(ticket.previous)
        if exchange.status == 304:
            original = None if ticket.previous is None else originals.original(ticket.previous, exchange.url)
            ticket.is_outdated = ticket.restricts_others and not _has_directives_of(original, exchange)
            return [records.revisit(exchange, original, digest=None)], False
        digest = records.digest_of(exchange.body)
        dom = None if exchange.dom is None else records.digest_of(exchange.dom)
        if ticket.previous is not None and not ticket.is_new:
            original = originals.original(ticket.previous, exchange.url)
            if (
                original is not None
                and original.digest == digest
                and (_is_as_before(original, exchange, dom) or not ticket.moves)
            ):
                return [records.revisit(exchange, original, digest=digest, dom=None if dom == original.dom else dom)], False
        return records.page(exchange, ticket.document, digest=digest, previous=previous, dom=dom), True

    def _writable(self) -> NewFile:
        """Return the file to write to: the present one, or a new one where that is full."""
        if self._file is not None and self._file.end >= self._rotated_bytes:
            self._file.close()
            self._file = None
            self.closed += 1
        if self._file is None:
            self._file = self._series.begin()
        return self._file


def _is_as_before(original: Original, exchange: Exchange, dom: str | None) -> bool:
    """Return whether document and links of a response with the body of an earlier one are made of the same."""
    return original.dom == dom and original.shape == records.shape_of(records.response_head(exchange))


def _has_directives_of(original: Original | None, exchange: Exchange) -> bool:
    """Return whether a 304 has the robots directives of the response that it is about."""
    now = records.robots_tags(records.shape_of(records.response_head(exchange)))
    return original is not None and records.robots_tags(original.shape) == now


# --- new documents -------------------------------------------------------------------------------------------------


class ArchiveFileNames(Protocol):
    def add_archive_file(self, name: str) -> int: ...


class NewDocuments:
    """Writes files of this process into the folder of an archive. Raises ArchiveError."""

    def __init__(self, folder: Path, store: ArchiveFileNames, reader: ArchiveReader, *, collection: str, clock: Clock) -> None:
        self._folder = folder
        self._store = store
        self._reader = reader
        self._collection = collection
        self._clock = clock
        self._series: FileSeries | None = None
        self._file: NewFile | None = None
        self._number = 0

    def add(self, record: bytes, response: Location, url: str) -> int:
        """Write the record of a document and those of its response, and return their place."""
        try:
            file = self._writable()
            place = place_of(self._number, file.end)
            file.write([record, *self._reader.raw_fetch(response, url)])
        except OSError as error:
            raise unwritable(self._folder, error) from error
        return place

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError as error:
                raise unwritable(self._folder, error) from error

    def _writable(self) -> NewFile:
        if self._file is not None and self._file.end >= ROTATED_BYTES:
            self.close()
        if self._file is None:
            if self._series is None:
                self._series = FileSeries(self._folder, collection=self._collection, clock=self._clock)
            self._file = self._series.begin()
            self._number = self._store.add_archive_file(self._file.name)
        return self._file
