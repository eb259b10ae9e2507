"""Write outcomes to archive and store, many in one transaction: one batch is collected while the previous one is written.

Each response becomes records of the archive, and the transaction that records its outcome stores their location.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
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
from crawlspace.state.changes import NOWHERE, Change, Effects, Fetch
from crawlspace.state.site_health import Health
from crawlspace.state.store import ArchiveStore, LeaseStore, RunStore
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.status import LINKS_ONLY, Status

logger = logging.getLogger(__name__)

OneByOne = Generator[Sequence[Change], Effects | Exception, Effects]
"""Yields changes to be recorded, and must be sent the result of each `Commits.record`; returns the effects of all."""
MAX_WAIT_S = 0.05
"""For the records of a transaction, which take a tenth of a millisecond each. A crawl continues without those that take longer."""


class RecordStore(Protocol):
    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects: ...
    def lost_links(self, ids: Collection[int]) -> set[int]: ...


class PageStore(RecordStore, RobotsStore, RunStore, Protocol):
    """The part of a store that does not wait for the server where several workers share the crawl."""

    def health(self, site: str) -> Health: ...
    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None: ...
    def version(self) -> int: ...


class SharedLeases(LeaseStore, OtherWorkers, Protocol):
    """The sites of one worker."""


class WorkerView(PageStore, Protocol):
    """The store as one of several workers uses it."""

    @property
    def sites(self) -> SharedLeases: ...


@dataclass(slots=True)
class CommitBatch:
    """The changes of one transaction."""

    changes: list[Change] = field(default_factory=list)
    unchanged: list[int] = field(default_factory=list)
    """Ids of pages whose links don't change."""
    archived: list[tuple[Change, Ticket]] = field(default_factory=list)
    """Changes with the records that must be written before them."""
    health: Mapping[str, Health] = field(default_factory=dict)

    def discovered(self) -> Iterator[NewUrl]:
        """Yield the URLs that its changes have discovered."""
        return chain.from_iterable(change.discovered for change in self.changes)


class EventLog(Protocol):
    def note(self, changes: Sequence[Change]) -> None:
        """Write the events of changes that are recorded next. Raises RunFileError."""

    def take_back(self) -> None:
        """Remove the events of the last call, because its changes could not be recorded."""


class Commits:
    """Collects outcomes in `batch`, while at most one other batch is being written."""

    def __init__(
        self, store: RecordStore, clock: Clock, archiving: Archiving | None = None, events: EventLog | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._events = events
        self._archiving = archiving
        self.batch = CommitBatch()
        self._writing: CommitBatch | None = None

    def archive_moves(self) -> None:
        """Note that archived records move to other URLs from now on."""
        if self._archiving is not None:
            self._archiving.archive_moves = True

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    @property
    def is_archived(self) -> bool:
        """Whether the archive has all records of the batch that is being written."""
        return all(ticket.is_written for _, ticket in self._being_written.archived)

    @property
    def has_unwritten(self) -> bool:
        """Whether changes are not written yet."""
        return bool(self.batch.changes) or self._writing is not None

    def uncommitted(self, url: str) -> UrlState | None:
        """Return the unwritten state of a URL, gone if it will be forgotten; None without one."""
        for batch in (self.batch, self._writing):
            for change in reversed(batch.changes if batch is not None else ()):
                if change.state.url == url:
                    gone = structs.replace(change.state, state=State.GONE, checksum=None, indexed=False)
                    return gone if change.forget else change.state
        return None

    def add(self, change: Change, outcome: Outcome, before: UrlState) -> None:
        """Add the change that an outcome makes to a URL."""
        shows_document = outcome.kind is OutcomeKind.DOCUMENT or outcome.kind is OutcomeKind.UNCHANGED
        change.before, change.fetch = before, Fetch(shows_document, outcome.took_s, outcome.body_bytes)
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
        """Write the batch in one transaction; log a fault in a change and return None. Raises StoreError, ArchiveError.

        Uses only store, archive and events, so it can run in another thread."""
        batch = self._being_written
        if self._archiving is not None:
            self._archiving.set_locations(batch.archived)
        try:
            if batch.unchanged:
                lost = self._store.lost_links(batch.unchanged)
                for change in batch.changes:
                    if change.state.id in lost:
                        change.state.rules = 0  # unconditional GET next time, to find forgotten links again
            return self._record(batch.changes, batch.health)
        except CrawlspaceError:
            raise
        except Exception:
            logger.exception("a document could not be stored; the outcomes of its transaction are recorded one by one")
            return None

    def write_one_by_one(self, one_by_one: OneByOne) -> Effects:
        """Write the batch change by change. Raises StoreError."""
        try:
            changes = next(one_by_one)
            while True:
                changes = one_by_one.send(self.record(changes))
        except StopIteration as end:
            effects: Effects = end.value
            return effects

    def record(self, changes: Sequence[Change]) -> Effects | Exception:
        """Record changes; return the error where a fault in them breaks it. Raises StoreError."""
        try:
            effects = self._record(changes, self._being_written.health)
            self._being_written.health = {}
            return effects
        except CrawlspaceError:
            raise
        except Exception as error:  # noqa: BLE001 - logged by the caller; a fault in one change must not stop the others
            return error

    def _record(self, changes: Sequence[Change], health: Mapping[str, Health] | None = None) -> Effects:
        """Write events and changes; no events stay of changes that are not recorded, except where the process is killed in between."""
        if self._events is None:
            return self._store.record(changes, now=int(self._clock.now()), health=health)
        self._events.note(changes)
        try:
            return self._store.record(changes, now=int(self._clock.now()), health=health)
        except Exception:
            self._events.take_back()
            raise

    def one_by_one(self, broken: Callable[[UrlState, Outcome], UrlState]) -> OneByOne:
        """Record the batch change by change; replace one that fails by the state that `broken` returns for an unexpected error, given the
        state before.

        Raises the error if that also fails.
        """
        batch, total, lost_ids = self._being_written, Effects(), set[int]()
        for number, change in enumerate(batch.changes):
            if change.forget and change.state.held is Held.FOLDED:
                continue  # the change that it belongs to may have failed; the next start decides
            if change.together_with in lost_ids:
                continue  # its own next fetch decides
            effects = yield [change]
            if isinstance(effects, Exception):
                lost_ids.add(change.state.id)
                lost = Outcome(change.state.id, change.state.url, OutcomeKind.FAILED, Status.UNEXPECTED, host_failure=True)
                fetch = None if change.fetch is None else change.fetch._replace(shows_document=False)
                batch.changes[number] = Change(broken(change.before or change.state, lost), before=change.before, fetch=fetch)
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

    def merge_back(self) -> Mapping[str, Health]:
        """Merge the batch that could not be written into the one being collected. Return its health, which was not written."""
        batch = self._being_written
        batch.changes += self.batch.changes
        batch.unchanged += self.batch.unchanged
        batch.archived += self.batch.archived
        health, batch.health = batch.health, {}
        self._writing, self.batch = None, batch
        return health

    def end(self) -> CommitBatch:
        """End the batch that was written, and return it."""
        batch, self._writing = self._being_written, None
        return batch

    @property
    def _being_written(self) -> CommitBatch:
        assert self._writing is not None
        return self._writing


class ArchiveLimit(Protocol):
    """Compacts an archive while it is written."""

    def keep(self, files: Sequence[Path]) -> None:
        """Compact it in the background. All records in these files are recorded in the store, or never will be."""

    def close(self) -> None: ...


class Archiving:
    """Writes the archive of one crawl to a folder. Raises ArchiveError."""

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
        """Close files that a killed crawl has left."""
        self._folder = folder
        self._store = store
        self._limit = limit
        self.archive_moves = False
        """Whether records move to other URLs in this crawl: the archive is compacted at its end then."""
        self._closed = -1
        self._unrecorded: set[Ticket] = set()
        self._located: list[Ticket] = []
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
        """Start writing the response of an outcome; return the ticket to wait for. None: there is nothing to archive."""
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
        """Start writing what was added, and wait for a moment, which is usually enough."""
        self._writer.begin(patience_s=MAX_WAIT_S)

    def set_locations(self, tickets: Sequence[tuple[Change, Ticket]]) -> None:
        """Wait until all of them are written, and set the locations of new records in the changes. Raises ArchiveError."""
        if self._limit is not None and not self.archive_moves:
            self._keep_limit(self._limit, tickets)
        self._writer.wait([ticket for _, ticket in tickets])
        for change, ticket in tickets:
            if ticket.location is not None and ticket.moves:
                change.archived = place_of(self._number(ticket.location.file), ticket.location.offset)
            elif ticket.is_outdated:
                drop_archived(change)

    def close(self) -> None:
        """Close the file. Raises ArchiveError."""
        try:
            if self._limit is not None:
                self._limit.close()
            self._writer.close()
        finally:
            self._reader.close()

    def _keep_limit(self, limit: ArchiveLimit, tickets: Sequence[tuple[Change, Ticket]]) -> None:
        """Compact whenever a file is full. Before a transaction: records of earlier ones are in the store."""
        self._unrecorded.difference_update(self._located)
        self._located = [ticket for _, ticket in tickets]
        if self._closed == self._writer.closed:
            return
        self._closed = self._writer.closed
        self._reader.files.update(self._store.archive_files())  # with those that compaction has made
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
    """Return whether the archived location of a URL moves to this response: an indexed document stays accessible until it leaves."""
    if outcome.kind is OutcomeKind.UNCHANGED:
        return False
    return after.checksum is None or (outcome.kind is OutcomeKind.DOCUMENT and after.held is None and not outcome.doubted)


def without_record(change: Change, outcome: Outcome) -> None:
    """Drop the archived location of a URL whose response is not archived, if that response replaces the page.

    Otherwise a document would be rebuilt from an outdated response. The same holds for a 304 with robots directives that don't apply now: the
    archived response may lack them, and with other settings they apply.
    """
    was_read = outcome.kind is OutcomeKind.DOCUMENT or (outcome.kind is OutcomeKind.EXCLUDED and outcome.status in LINKS_ONLY)
    if outcome.restricts_others:
        drop_archived(change)
    elif was_read and is_moved(change.state, outcome):
        change.archived = NOWHERE


def drop_archived(change: Change) -> None:
    """Drop the archived location of a page, and make its next fetch unconditional."""
    change.archived, change.state.rules = NOWHERE, 0
