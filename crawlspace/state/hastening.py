"""Changes when known URLs are due, in steps: each call changes, and reads, a bounded number of rows.

The functions of rows are those of the memory store; SQLite and Redis do the same by statement and script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from crawlspace.asked import Asked
from crawlspace.model import Queue, State, UrlState
from crawlspace.state.by_age import NOT_BY_AGE, is_by_age

AT_ONCE = 500
"""Rows that a call changes at most."""
LOOKED_AT = 10_000
"""Rows that a call looks at, at most."""
CLOCKS_DIFFER_S = 60
"""By so much the clocks of workers may differ; what was fetched later than that was fetched before the clock was set back."""


Due = tuple[str, Queue, int]
"""A site, a queue, and when something there is due."""


class Hastened(NamedTuple):
    """What one call did. `last` is the id of the last URL that was read; 0 where none follows it."""

    number: int
    last: int
    due: Sequence[Due]
    """The sites and queues of those whose time changed, each once, and the first of the new times."""


class HasteningStore(Protocol):
    def hasten(
        self, latest: int, *, after: int = 0, limit: int = AT_ONCE, fetched_by: int | None = None, until: int | None = None
    ) -> Hastened: ...


def hasten_all(store: HasteningStore, latest: int) -> int:
    """Make every known URL that is due later than `latest` due then, in many transactions; return their number."""
    total, after, has_more = 0, 0, True
    while has_more:
        number, after, _ = store.hasten(latest, after=after)
        total, has_more = total + number, after > 0
    return total


def hasten_row(row: UrlState, latest: int, *, fetched_by: int | None, until: int | None) -> bool:
    """Make one URL due sooner; return whether that is a change. Of what is not known all is a change."""
    is_late = row.state is not State.PENDING and row.next_fetch is not None and row.next_fetch > latest
    if not is_late or not _was_fetched_by(row, fetched_by) or (until is not None and (row.next_fetch or 0) >= until):
        return False
    row.next_fetch = latest
    return True


def schedule_row(row: UrlState, at: int, *, fetched_by: int) -> bool:
    """Have one URL wait in source index; return whether that is a change."""
    is_wanted = row.state is not State.PENDING and row.next_fetch is not None and not (row.asked or row.retries)
    is_ahead = row.fetched_at is not None and row.fetched_at > at + CLOCKS_DIFFER_S
    if not is_wanted or not (is_ahead or _was_fetched_by(row, fetched_by)):
        return False
    row.asked, row.next_fetch = Asked.BY_SCHEDULE, at
    return True


def set_age_of_row(row: UrlState, latest: int, *, counts: bool) -> bool:
    """Have one URL be due by its age, or not; return whether that is a change."""
    if not counts and is_by_age(row) and row.next_fetch is not None:
        row.next_fetch += NOT_BY_AGE
        return True
    if counts and row.state is not State.PENDING and row.next_fetch is not None and row.next_fetch >= NOT_BY_AGE:
        row.next_fetch = min(row.next_fetch - NOT_BY_AGE, latest)
        return True
    return False


def _was_fetched_by(row: UrlState, time: int | None) -> bool:
    return time is None or row.fetched_at is None or row.fetched_at <= time


def change_some(rows: Iterable[UrlState], change: Callable[[UrlState], bool], *, limit: int) -> Hastened:
    """Change some rows, in order of their ids."""
    found: list[UrlState] = []
    last = 0
    for row in rows:
        if len(found) == limit:
            return hastened(limit, last, map(_place, found))
        last = row.id
        if change(row):
            found.append(row)
    return hastened(len(found), 0, map(_place, found))


def _place(row: UrlState) -> Due:
    assert row.next_fetch is not None
    return row.site, row.queue, row.next_fetch


def hastened(number: int, last: int, places: Iterable[Due]) -> Hastened:
    """Return the result of a call that changed so many URLs, which are now due at these places."""
    first: dict[tuple[str, Queue], int] = {}
    for site, queue, at in places:
        first[site, queue] = min(first.get((site, queue), at), at)
    return Hastened(number, last, [(*place, at) for place, at in sorted(first.items())])
