"""Outcomes that are written to the store, many in one transaction: those being gathered, and those being written meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import structs

from crawlspace.archive.writer import Ticket
from crawlspace.clock import Clock
from crawlspace.crawl.archiving import Archiving, without_record
from crawlspace.errors import CrawlspaceError
from crawlspace.model import Held, NewUrl, Outcome, OutcomeKind, State, Status, UrlState
from crawlspace.state.changes import Change, Effects
from crawlspace.state.site_health import Health


class RecordStore(Protocol):
    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects: ...
    def lost_links(self, ids: Collection[int]) -> set[int]: ...


logger = logging.getLogger(__name__)

Singly = Generator[Sequence[Change], Effects | Exception, Effects]
"""Yields changes to be recorded, and must be sent the result of each `Commits.record`; returns the effects of all."""


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
        """Places of the archive go over to other URLs from now on."""
        if self._archiving is not None:
            self._archiving.places_move = True

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    @property
    def is_archived(self) -> bool:
        """The archive has all records of what is being written."""
        return all(ticket.is_written for _, ticket in self._being_written.archived)

    @property
    def waits(self) -> bool:
        """Something is not written yet."""
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
