"""Makes known URLs due sooner, in steps: each call changes, and reads, a bounded number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from crawlspace.model import Queue, State, UrlState

AT_ONCE = 500
"""Rows that a call changes at most."""
LOOKED_AT = 10_000
"""Rows that a call looks at, at most."""


Due = tuple[str, Queue, int]
"""A site, a queue, and when something there is due."""


class Hastened(NamedTuple):
    """What one call did. `last` is the id of the last URL that was read; 0 where none follows it."""

    number: int
    last: int
    due: Sequence[Due]
    """The sites and queues of those that are due sooner, each once, and the time."""


class HasteningStore(Protocol):
    def hasten(self, latest: int, *, after: int = 0, limit: int = AT_ONCE, fetched_by: int | None = None) -> Hastened: ...


def hasten_all(store: HasteningStore, latest: int) -> int:
    """Make every known URL that is due later than `latest` due then, in many transactions; return their number."""
    total, after, has_more = 0, 0, True
    while has_more:
        number, after, _ = store.hasten(latest, after=after)
        total, has_more = total + number, after > 0
    return total


def hasten_some(rows: Iterable[UrlState], latest: int, *, limit: int, fetched_by: int | None) -> Hastened:
    """Do it to some rows in order of their ids."""
    found: list[UrlState] = []
    last = 0
    for row in rows:
        if len(found) == limit:
            return hastened(limit, last, ((row.site, row.queue) for row in found), latest)
        last = row.id
        is_late = row.state is not State.PENDING and row.next_fetch is not None and row.next_fetch > latest
        if is_late and (fetched_by is None or row.fetched_at is None or row.fetched_at <= fetched_by):
            row.next_fetch = latest
            found.append(row)
    return hastened(len(found), 0, ((row.site, row.queue) for row in found), latest)


def hastened(number: int, last: int, places: Iterable[tuple[str, Queue]], latest: int) -> Hastened:
    """Return the result of a call that changed so many URLs at these sites and queues."""
    return Hastened(number, last, [(*place, latest) for place in sorted(set(places))])
