"""The archive as a crawl uses it: each response becomes records, and the transaction that records its outcome names their place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from crawlspace.archive.files import archive_files, close_abandoned
from crawlspace.archive.new_files import ROTATED_BYTES, unwritable
from crawlspace.archive.places import place_of
from crawlspace.archive.reader import ArchiveReader
from crawlspace.archive.writer import ArchiveWriter, Ticket
from crawlspace.clock import Clock
from crawlspace.model import LINKS_ONLY, Outcome, OutcomeKind, UrlState
from crawlspace.state.changes import NOWHERE, Change

PATIENCE_S = 0.05
"""For the records of a transaction, which take a tenth of a millisecond each. A crawl goes on without those that take longer."""


class ArchiveFiles(Protocol):
    def archive_files(self) -> dict[int, str]: ...
    def add_archive_file(self, name: str) -> int: ...


class ArchiveLimit(Protocol):
    """Keeps an archive small while it is written."""

    def keep(self, files: Sequence[Path]) -> None:
        """Look after it, in the background. Of these files all that was written has been recorded, or never will be."""

    def close(self) -> None: ...


class Archiving:
    """Writes the archive of one crawl to a folder. Raises ArchiveError, here and where it is said."""

    def __init__(
        self,
        folder: Path,
        store: ArchiveFiles,
        *,
        collection: str,
        clock: Clock,
        rotated_bytes: int = ROTATED_BYTES,
        limit: ArchiveLimit | None = None,
    ) -> None:
        """Files that a crawl has left behind when it was killed are closed."""
        self._folder = folder
        self._store = store
        self._limit = limit
        self.places_move = False
        """Whether places go over to other URLs in this crawl: the limit is kept at its end then."""
        self._closed = -1
        self._unrecorded: set[Ticket] = set()
        self._placed: list[Ticket] = []
        files = store.archive_files()
        self._numbers = {name: number for number, name in files.items()}
        self._reader = ArchiveReader(folder, files)
        self._writer = ArchiveWriter(
            folder, collection=collection, clock=clock, originals=self._reader, rotated_bytes=rotated_bytes
        )
        try:
            close_abandoned(folder)
        except OSError as error:
            raise unwritable(folder, error) from error

    def add(self, change: Change, outcome: Outcome, before: UrlState) -> Ticket | None:
        """Have the response of an outcome be written; return the ticket to wait for. None: there is nothing to archive."""
        if outcome.exchange is None:
            return None
        moves = is_moved(change.state, outcome)
        ticket = Ticket(
            outcome.exchange,
            outcome.document if moves else None,
            before.archived,
            is_new=change.document is not None,
            moves=moves,
            restricts_others=outcome.restricts_others,
        )
        if self._limit is not None:
            self._unrecorded.add(ticket)
        return self._writer.add(ticket)

    def begin(self) -> None:
        """Have what was added be written now, and wait for a moment, in which it usually is."""
        self._writer.begin(patience_s=PATIENCE_S)

    def place(self, tickets: Sequence[tuple[Change, Ticket]]) -> None:
        """Wait until all of them are written, and name the places of new records in the changes. Raises ArchiveError."""
        if self._limit is not None and not self.places_move:
            self._keep_limit(self._limit, tickets)
        self._writer.wait([ticket for _, ticket in tickets])
        for change, ticket in tickets:
            if ticket.location is not None and ticket.moves:
                change.archived = place_of(self._number(ticket.location.file), ticket.location.offset)
            elif ticket.is_outdated:
                drop_place(change)

    def close(self) -> None:
        """Close the file. Raises ArchiveError."""
        try:
            if self._limit is not None:
                self._limit.close()
            self._writer.close()
        finally:
            self._reader.close()

    def _keep_limit(self, limit: ArchiveLimit, tickets: Sequence[tuple[Change, Ticket]]) -> None:
        """Have the limit looked after whenever a file is full. Before a transaction: those of earlier ones are recorded."""
        self._unrecorded.difference_update(self._placed)
        self._placed = [ticket for _, ticket in tickets]
        if self._closed == self._writer.closed:
            return
        self._closed = self._writer.closed
        self._reader.files.update(self._store.archive_files())  # with those that were made to keep it
        closed = archive_files(self._folder)  # first: nothing is written to these any more
        written = {ticket.location.file for ticket in list(self._unrecorded) if ticket.location is not None}
        limit.keep([path for path in closed if path.name not in written])

    def _number(self, file: str) -> int:
        number = self._numbers.get(file)
        if number is None:
            number = self._numbers[file] = self._store.add_archive_file(file)
            self._reader.files[number] = file
        return number


def is_moved(after: UrlState, outcome: Outcome) -> bool:
    """Return whether the place of a URL moves to this response: a document that is in the index stays at hand until it leaves."""
    if outcome.kind is OutcomeKind.UNCHANGED:
        return False
    return after.checksum is None or (outcome.kind is OutcomeKind.DOCUMENT and after.held is None and not outcome.doubted)


def without_record(change: Change, outcome: Outcome) -> None:
    """Drop the place of a URL whose response is not archived, where that response stands for the page from now on.

    Else a document would be made anew, and sent, of what is not what the page has sent last. The same holds for a 304 with robots directives
    that don't apply now: nobody knows whether the archived response has them, and with other settings they apply.
    """
    was_read = outcome.kind is OutcomeKind.DOCUMENT or (outcome.kind is OutcomeKind.EXCLUDED and outcome.status in LINKS_ONLY)
    if outcome.restricts_others:
        drop_place(change)
    elif was_read and is_moved(change.state, outcome):
        change.archived = NOWHERE


def drop_place(change: Change) -> None:
    """Have nothing be made of the archived response of a page any more, and the next fetch be unconditional."""
    change.archived, change.state.rules = NOWHERE, 0
