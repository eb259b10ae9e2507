"""Outcomes on their way into the store, many to a transaction: those still gathered, and those being written meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from crawlspace.errors import CrawlspaceError
from crawlspace.model import NewUrl, Outcome, OutcomeKind, Status, UrlState
from crawlspace.state.site_health import Health
from crawlspace.state.store import Change, Effects, Store

Singly = Generator[Sequence[Change], Effects | Exception, Effects]
"""Yields changes to be recorded, and is to be sent what came of it (see `recorded`); returns what came of all."""


def recorded(store: Store, changes: Sequence[Change], *, now: int) -> Effects | Exception:
    """Record changes; return what is wrong with them where that breaks it. Raises StoreError."""
    try:
        return store.record(changes, now=now)
    except CrawlspaceError:
        raise
    except Exception as error:  # noqa: BLE001 - logged by the caller; whatever is wrong with one must not stop the others
        return error


def all_recorded(singly: Singly, store: Store, *, now: int) -> Effects:
    """Record them one after the other. Raises StoreError."""
    try:
        changes = next(singly)
        while True:
            changes = singly.send(recorded(store, changes, now=now))
    except StopIteration as end:
        effects: Effects = end.value
        return effects


@dataclass(slots=True)
class Batch:
    """What is made lasting in one transaction."""

    changes: list[Change] = field(default_factory=list)
    new: list[NewUrl] = field(default_factory=list)
    unchanged: list[int] = field(default_factory=list)
    """Ids of pages whose links stay as they were."""
    health: Mapping[str, Health] = field(default_factory=dict)


class Commits:
    """`batch` is what is being gathered. One batch at a time is written."""

    def __init__(self) -> None:
        self.batch = Batch()
        self._writing: Batch | None = None

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    @property
    def waits(self) -> bool:
        """Something is not lasting yet."""
        return bool(self.batch.changes) or self._writing is not None

    def begin(self, health: Callable[[], Mapping[str, Health]]) -> bool:
        """Set apart what has been gathered. False where that is nothing, or something is being written."""
        if self._writing is not None or not self.batch.changes:
            return False
        self._writing, self.batch = self.batch, Batch()
        self._writing.health = health()
        return True

    def write(self, store: Store, *, now: int) -> Effects:
        """Write what was set apart. Raises StoreError."""
        batch = self._set_apart
        if batch.unchanged:
            lost = store.lost_links(batch.unchanged)
            for change in batch.changes:
                if change.state.id in lost:
                    change.state.rules = 0  # asked for whole next time, so that what was forgotten meanwhile is found again
        return store.record(batch.changes, now=now, health=batch.health)

    def singly(self, broken: Callable[[UrlState, Outcome], UrlState]) -> Singly:
        """Go through what was set apart, change by change; for one that breaks, what `broken` makes of an unexpected error.

        Raises what breaks that as well.
        """
        batch, total = self._set_apart, Effects()
        for number, change in enumerate(batch.changes):
            effects = yield [change]
            if isinstance(effects, Exception):
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
        """Put what was set apart back before what has been gathered since. Returns its health, which is not written."""
        batch = self._set_apart
        batch.changes += self.batch.changes
        batch.new += self.batch.new
        batch.unchanged += self.batch.unchanged
        health, batch.health = batch.health, {}
        self._writing, self.batch = None, batch
        return health

    def end(self) -> Batch:
        """What was set apart is lasting; return it."""
        batch, self._writing = self._set_apart, None
        return batch

    @property
    def _set_apart(self) -> Batch:
        assert self._writing is not None
        return self._writing
