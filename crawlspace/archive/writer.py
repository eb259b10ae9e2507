"""Writes records on a background thread, so that a slow disk or a large body does not delay the crawl.

Thread and crawl would slow each other down by Python's lock, which compressing releases twice a page: the crawl then loses more time than the
records of its pages take. So the thread runs only on request, for many fetches at once, and the caller waits for a moment.

Each added fetch has a ticket, and many tickets are awaited at once before the archive offsets of their records are stored. A written record
has been given to the operating system: it survives the process, but not a power failure, after which an archive offset may lead nowhere.
Each process writes its own files, and never continues one that it did not begin.
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
    """A fetch to be archived; `location` is that of its records, once they are written. None: those of `previous` represent it."""

    exchange: Exchange
    document: Document | None = None
    previous: int | None = None
    """The archive offset of the version before this one."""
    is_new: bool = True
    """Its records are written even if the body is unchanged, because the document is another one."""
    moves: bool = True
    """The URL gets the archive offset of these records."""
    restricts_others: bool = False
    """As in the outcome of the fetch."""
    location: Location | None = None
    is_outdated: bool = False
    """The version before has other robots directives than a 304 about it, so the page has changed since."""
    is_written: bool = False


class ArchiveWriter:
    """Writes the files of one process into `folder`."""

    def __init__(
        self,
        folder: Path,
        *,
        collection: str,
        clock: Clock,
        originals: ArchiveReader,
        rotated_bytes: int = ROTATED_BYTES,
    ) -> None:
        """Raises ArchiveError if nothing can be written to the folder."""
        self._series = FileSeries(folder, collection=collection, clock=clock, rotated_bytes=rotated_bytes)
        self._originals = originals
        self._rotated_bytes = rotated_bytes
        self._waiting: deque[Ticket] = deque()
        self._added = self._written = 0
        self._changed = threading.Condition()
        self._is_wanted = self._ends = False
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)
        self._thread.start()

    @property
    def closed(self) -> int:
        """Number of full files."""
        return len(self._series.closed)

    def add(self, ticket: Ticket) -> Ticket:
        """Let the next `begin` write a fetch. On the thread of the crawl."""
        self._waiting.append(ticket)
        self._added += 1
        return ticket

    def begin(self, *, patience_s: float) -> None:
        """Write added records, and wait for `patience_s` at most."""
        with self._changed:
            self._is_wanted = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._fault is not None or self._written == self._added, patience_s)

    def wait(self, tickets: Sequence[Ticket]) -> None:
        """Wait until all tickets are written. Raises ArchiveError, and then no further ones will be."""
        if any(not ticket.is_written for ticket in tickets):
            self.begin(patience_s=0)
            with self._changed:
                self._changed.wait_for(lambda: self._fault is not None or all(ticket.is_written for ticket in tickets))
        if self._fault is not None:
            raise unwritable(self._series.folder, self._fault) from self._fault
        file = self._series.current
        if file is not None and not file.is_in_place:
            raise ArchiveError(
                f"{file.path} was moved or removed while it was written; put it back and start again: what was fetched since the"
                " last transaction is fetched again"
            )

    def close(self) -> None:
        """Write all that was added and close the file. Raises ArchiveError."""
        self._ends = True
        self.begin(patience_s=0)
        self._thread.join()
        try:
            self._series.close()
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
        """Write fetches with one call of the operating system for each file, except those with a large body."""
        file = self._series.writable()
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
                file = self._series.writable()
        file.write([b"".join(unwritten)])
        with self._changed:
            for ticket in tickets:
                ticket.is_written = True
            self._written += len(tickets)
            self._changed.notify_all()

    def _records_of(self, ticket: Ticket) -> tuple[Iterable[bytes], bool]:
        """Return the records of a fetch, and whether they are those of a page, and not of a revisit."""
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


def _is_as_before(original: Original, exchange: Exchange, dom: str | None) -> bool:
    """Return whether a response with an unchanged body has the same document and links."""
    return original.dom == dom and original.shape == records.shape_of(records.response_head(exchange))


def _has_directives_of(original: Original | None, exchange: Exchange) -> bool:
    """Return whether a 304 has the robots directives of the response that it refers to."""
    now = records.robots_tags(records.shape_of(records.response_head(exchange)))
    return original is not None and records.robots_tags(original.shape) == now


class ArchiveFileNames(Protocol):
    def add_archive_file(self, name: str) -> int: ...


class NewDocuments:
    """Writes documents that were extracted again, each with a copy of the records of its response. Raises ArchiveError.

    An archive offset leads to a document and the response that follows it; so the response is copied, and the older one is superseded.
    """

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
        """Write the record of a document and those of its response, and return their archive offset."""
        if self._series is None:
            self._series = FileSeries(self._folder, collection=self._collection, clock=self._clock)
        try:
            file = self._series.writable()
            if file is not self._file:
                self._file, self._number = file, self._store.add_archive_file(file.name)
            place = place_of(self._number, file.end)
            file.write([record, *self._reader.raw_fetch(response, url)])
        except OSError as error:
            raise unwritable(self._folder, error) from error
        return place

    def close(self) -> None:
        try:
            if self._series is not None:
                self._series.close()
        except OSError as error:
            raise unwritable(self._folder, error) from error
