"""Orphans are deleted after some runs, if CRAWLSPACE_ORPHANS says so; too many at once are held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import structs

from crawlspace.model import OUT_OF_SPACE, Held, UrlState
from crawlspace.state.changes import Change, Effects
from crawlspace.state.deletion_limit import DeletionLimit
from crawlspace.state.depths import UrlDepth
from crawlspace.state.views import Counts

HELD_AS_ORPHAN = 1
"""As `held_mark` beside `Held.MANY`: the deletion is held because no way leads to the URL, and no longer than that."""
BATCH = 500
"""URLs changed in one transaction."""


class OrphanStore(Protocol):
    def orphans(self) -> list[UrlDepth]: ...
    def get_by_id(self, id: int) -> UrlState | None: ...
    def counts(self) -> Counts: ...
    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects: ...


@dataclass(slots=True)
class DeletedOrphans:
    """What became of them: documents deleted, documents whose deletion is held, and URLs forgotten."""

    deletes: int = 0
    held: int = 0
    forgotten: int = 0
    pushes: int = 0


def delete_orphans(
    store: OrphanStore, *, after: int, run: int, deletion_limit: DeletionLimit, deleted: int, now: int
) -> DeletedOrphans:
    """Forget the URLs that have been orphans for that many runs, with their documents; or hold the deletions, all if they are too many.

    `run` is the number of the run that ends, `deleted` how many documents it has deleted before. What is held, or outside the crawl
    space, stays as it is.
    """
    found = DeletedOrphans()
    due = [one.id for one in store.orphans() if one.orphaned is not None and run - one.orphaned + 1 >= after]
    states = [state for id in due if (state := store.get_by_id(id)) is not None and _may_be_deleted(state)]
    indexed = sum(state.indexed for state in states)
    too_many = not deletion_limit.allows(indexed + deleted, indexed=store.counts().indexed + deleted)

    def change(state: UrlState) -> Change | None:
        if not _may_be_deleted(state):
            return None
        if too_many and state.indexed:
            found.held += 1
            return Change(structs.replace(state, held=Held.MANY, held_mark=HELD_AS_ORPHAN), keep_in_index=True)
        found.forgotten += 1
        return Change(state, forget=True)

    for first in range(0, len(states), BATCH):
        effects = store.revise([state.id for state in states[first : first + BATCH]], change, now=now)
        found.deletes += effects.deletes
        found.pushes += effects.pushes
    return found


def release_linked(store: OrphanStore, ids: Sequence[int], *, now: int) -> None:
    """Drop the held deletions of orphans that a way leads to again. What is held for another reason stays held."""

    def change(state: UrlState) -> Change | None:
        if state.held is not Held.MANY or state.held_mark != HELD_AS_ORPHAN or state.lease_until is not None:
            return None
        return Change(structs.replace(state, held=None, held_mark=0), keep_in_index=True)

    if store.counts().held:
        for first in range(0, len(ids), BATCH):
            store.revise(ids[first : first + BATCH], change, now=now)


def _may_be_deleted(state: UrlState) -> bool:
    return state.orphaned is not None and state.held is None and state.lease_until is None and state.status not in OUT_OF_SPACE
