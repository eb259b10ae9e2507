"""Changes of URLs that were found at a smaller depth than before, if the link depth is limited."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import structs

from crawlspace.crawl.discovery import CandidateChecker
from crawlspace.model import OUT_OF_SPACE, Held, State, UrlState
from crawlspace.rules.limits import Limits
from crawlspace.state.changes import Change, Effects
from crawlspace.state.lifecycle import pending_again
from crawlspace.state.once_a_run import at_once


class States(Protocol):
    def get_by_id(self, id: int) -> UrlState | None: ...

    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects: ...


def fetch_again(
    lowered: Iterable[tuple[int, int, int]],
    store: States,
    *,
    discovery: CandidateChecker,
    limits: Limits,
    now: int,
    linked: bool = False,
) -> tuple[list[Change], Effects]:
    """Record and return the changes for URLs with a smaller depth, given as (id, old depth, new depth), and the effects.

    A page at the maximal depth is fetched again for its links, which were too deep before. A page that was too deep is crawled.
    `linked`: a way leads to all of them from a start URL, so that none is an orphan any more.
    """
    deepest = limits.max_link_depth
    changes: list[Change] = []
    if deepest is None:
        return changes, Effects()
    for id, before, _ in lowered:
        state = store.get_by_id(id)
        if state is None or before < deepest or state.lease_until is not None or state.held is Held.FOLDED:
            continue
        if state.status in OUT_OF_SPACE:
            if before > deepest and discovery.recheck(state).admitted:
                changes.append(Change(pending_again(state)))
        elif state.held is Held.RULES:  # whatever its state: it is never due while it is held
            if discovery.recheck(state).admitted:
                due = at_once(now, state.fetched_at)
                changes.append(Change(structs.replace(state, next_fetch=due, rules=0, held=None, held_mark=0)))
        elif state.state in (State.DONE, State.EXCLUDED):
            changes.append(Change(structs.replace(state, next_fetch=at_once(now, state.fetched_at), rules=0)))
    if linked:
        for change in changes:
            change.state.orphaned = None
    if not changes:
        return changes, Effects()
    by_id = {change.state.id: change for change in changes}
    return changes, store.revise(by_id, lambda state: by_id[state.id], now=now)
