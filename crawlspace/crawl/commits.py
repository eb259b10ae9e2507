"""Write outcomes to archive and store, many in one transaction: one batch is collected while the one before is written.

Each response becomes records of the archive, and the transaction that records its outcome names their place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from msgspec import structs

from crawlspace.archive.files import ROTATED_BYTES, archive_files, close_abandoned, place_of, unwritable
from crawlspace.archive.reader import ArchiveReader
from crawlspace.archive.writer import ArchiveWriter, Ticket
from crawlspace.clock import Clock
from crawlspace.errors import CrawlspaceError
from crawlspace.frontier.frontier import OtherWorkers
from crawlspace.frontier.robots import RobotsStore
from crawlspace.model import Held, NewUrl, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import NOWHERE, Change, Effects
from crawlspace.state.site_health import Health
from crawlspace.state.store import ArchiveStore, LeaseStore, RunStore
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.status import LINKS_ONLY, Status

logger = logging.getLogger(__name__)

Singly = Generator[Sequence[Change], Effects | Exception, Effects]
"""Yields changes to be recorded, and must be sent the result of each `Commits.record`; returns the effects of all."""
PATIENCE_S = 0.05
"""For the records of a transaction, which take a tenth of a millisecond each. A crawl goes on without those that take longer."""


class RecordStore(Protocol):
    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects: ...
    def lost_links(self, ids: Collection[int]) -> set[int]: ...


class PageStore(RecordStore, RobotsStore, RunStore, Protocol):
    """What does not wait for the server where several workers share the crawl."""

    def health(self, site: str) -> Health: ...
    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None: ...
    def version(self) -> int: ...


class SharedLeases(LeaseStore, OtherWorkers, Protocol):
    """The sites of one worker."""


class WorkerView(PageStore, Protocol):
    """How one of several workers uses the store."""

    @property
    def sites(self) -> SharedLeases: ...


@dataclass(slots=True)
class CommitBatch:
    """The changes of one transaction."""

    changes: list[Change] = field(default_factory=list)
    new: list[NewUrl] = field(default_factory=list)
    unchanged: list[int] = field(default_factory=list)
    """Ids of pages whose links don't change."""
    archived: list[tuple[Change, Ticket]] = field(default_factory=list)
    """Changes with the records that are to be written before them."""
    health: Mapping[str, Health] = field(default_factory=dict)


class Commits:
    """`batch` is being collected. One batch at a time is being written."""

    def __init__(self, store: RecordStore, clock: Clock, archiving: Archiving | None = None) -> None:
        self._store = store
        self._clock = clock
        self._archiving = archiving
        self.batch = CommitBatch()
        self._writing: CommitBatch | None = None

    def places_move(self) -> None:
        """Note that places of the archive go over to other URLs from now on."""
        if self._archiving is not None:
            self._archiving.places_move = True

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    @property
    def is_archived(self) -> bool:
        """Whether the archive has all records of what is being written."""
        return all(ticket.is_written for _, ticket in self._being_written.archived)

    @property
    def waits(self) -> bool:
        """Whether something is not written yet."""
        return bool(self.batch.changes) or self._writing is not None

    def uncommitted(self, url: str) -> UrlState | None:
        """Return the state of a URL that is not written yet, as gone if it is to be forgotten; None: there is none."""
        for batch in (self.batch, self._writing):
            for change in reversed(batch.changes if batch is not None else ()):
                if change.state.url == url:
                    gone = structs.replace(change.state, state=State.GONE, checksum=None, indexed=False)
                    return gone if change.forget else change.state
        return None

    def add(self, change: Change, outcome: Outcome, before: UrlState) -> None:
        """Take the change that an outcome makes to a URL."""
        self.batch.changes.append(change)
        if outcome.kind is OutcomeKind.UNCHANGED:
            self.batch.unchanged.append(before.id)
        ticket = None if self._archiving is None else self._archiving.add(change, outcome, before)
        if ticket is None:
            without_record(change, outcome)
        else:
            self.batch.archived.append((change, ticket))

    def begin(self, health: Callable[[], Mapping[str, Health]]) -> bool:
        """Start writing the collected batch. False if it is empty, or another one is being written."""
        if self._writing is not None or not self.batch.changes:
            return False
        self._writing, self.batch = self.batch, CommitBatch()
        self._writing.health = health()
        if self._archiving is not None:
            self._archiving.begin()
        return True

    def write(self) -> Effects | None:
        """Write what was set apart, in one transaction; log a fault in a change and return None. Raises StoreError, ArchiveError.

        Touches nothing but store and archive, so it can run in another thread."""
        batch = self._being_written
        if self._archiving is not None:
            self._archiving.place(batch.archived)
        try:
            if batch.unchanged:
                lost = self._store.lost_links(batch.unchanged)
                for change in batch.changes:
                    if change.state.id in lost:
                        change.state.rules = 0  # unconditional GET next time, to find links forgotten meanwhile
            return self._store.record(batch.changes, now=int(self._clock.now()), health=batch.health)
        except CrawlspaceError:
            raise
        except Exception:
            logger.exception("a document could not be stored; the outcomes of its transaction are recorded one by one")
            return None

    def write_singly(self, singly: Singly) -> Effects:
        """Write what was set apart, change by change. Raises StoreError."""
        try:
            changes = next(singly)
            while True:
                changes = singly.send(self.record(changes))
        except StopIteration as end:
            effects: Effects = end.value
            return effects

    def record(self, changes: Sequence[Change]) -> Effects | Exception:
        """Record changes; return the error where a fault in them breaks it. Raises StoreError."""
        try:
            return self._store.record(changes, now=int(self._clock.now()))
        except CrawlspaceError:
            raise
        except Exception as error:  # noqa: BLE001 - logged by the caller; a fault in one change must not stop the others
            return error

    def singly(self, broken: Callable[[UrlState, Outcome], UrlState]) -> Singly:
        """Record the batch change by change; replace one that fails by what `broken` makes of an unexpected error.

        Raises the error if that fails, too.
        """
        batch, total, lost_ids = self._being_written, Effects(), set[int]()
        for number, change in enumerate(batch.changes):
            if change.forget and change.state.held is Held.FOLDED:
                continue  # what it was to be recorded with may have failed; the next start decides
            if change.together_with in lost_ids:
                continue  # its own next fetch decides
            effects = yield [change]
            if isinstance(effects, Exception):
                lost_ids.add(change.state.id)
                lost = Outcome(change.state.id, change.state.url, OutcomeKind.FAILED, Status.UNEXPECTED, host_failure=True)
                batch.changes[number] = Change(broken(change.state, lost))
                effects = yield [batch.changes[number]]
                if isinstance(effects, Exception):
                    raise effects
            total.discovered += effects.discovered
            total.pushes += effects.pushes
            total.deletes += effects.deletes
            total.displaced += effects.displaced
            total.lowered += effects.lowered
            total.due += effects.due
            for site, count in effects.pending_sites.items():
                total.pending_sites[site] = total.pending_sites.get(site, 0) + count
        return total

    def give_up(self) -> Mapping[str, Health]:
        """Put the batch back before what was collected since. Returns its health, which was not written."""
        batch = self._being_written
        batch.changes += self.batch.changes
        batch.new += self.batch.new
        batch.unchanged += self.batch.unchanged
        batch.archived += self.batch.archived
        health, batch.health = batch.health, {}
        self._writing, self.batch = None, batch
        return health

    def end(self) -> CommitBatch:
        """Return what was set apart: it is written."""
        batch, self._writing = self._being_written, None
        return batch

    @property
    def _being_written(self) -> CommitBatch:
        assert self._writing is not None
        return self._writing


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
        store: ArchiveStore,
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

    Else a document would be rebuilt, and sent, of what is not what the page has sent last. The same holds for a 304 with robots directives
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
