"""When known URLs are due: once a run, by age, and changes of many due times in steps.

**Once a run.** Each URL is fetched once in a run that ends: after its fetch it is not due again in this run, however short its interval.
Exceptions are retries, URLs that a person requested, and those that must be fetched again to be right (`at_once`), as when their depth or
inherited metadata changed after the last fetch. The stores apply `is_for_next_run` to known URLs that are due, and defer those for which it
is true to the next run, so that none is read twice.

**By age.** Where no URL is due by age alone (CRAWLSPACE_SMART_REFRESH = False), such a URL keeps its due time, moved so far ahead that it is
never reached: the queues still compare one number. URLs due for another reason have an ordinary due time: retries, changes of the rules,
requests of a person or a schedule.

**In steps.** Each call of a store reads and changes a bounded number of rows. SQLite does it by statement (`sqlite/queue.py`) and Redis by
function (`lua/queue.lua`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crawlspace.model import Queue, State, UrlState


def is_for_next_run(row: UrlState, began: int | None) -> bool:
    """Return whether a known URL was fetched in the run that began at that time, and is due again only by its interval."""
    return (
        began is not None
        and row.fetched_at is not None
        and row.next_fetch is not None
        and not (row.retries or row.requested_by)
        and began <= row.fetched_at < row.next_fetch
    )


def at_once(now: int, fetched_at: int | None) -> int:
    """Return the `next_fetch` of a URL that has to be fetched again in the same run: no later than its last fetch."""
    return now if fetched_at is None else min(now, fetched_at)


def is_due_again(state: UrlState, now: int) -> bool:
    """Return whether a fetched URL is due again in the same run."""
    return state.next_fetch is not None and state.fetched_at is not None and state.next_fetch <= min(state.fetched_at, now)


NOT_DUE_BY_AGE = 1 << 36
"""Added to `next_fetch` where a URL is not due by age; in seconds, 2,177 years."""


def is_due_by_age(row: UrlState) -> bool:
    """Return whether a known URL will be due by age alone.

    A failed page is not: it is retried. A URL due because of a change has a due time no later than its last fetch (`at_once`).
    """
    return (
        row.state not in (State.PENDING, State.FAILED)
        and not (row.requested_by or row.retries)
        and row.next_fetch is not None
        and row.fetched_at is not None
        and row.fetched_at < row.next_fetch < NOT_DUE_BY_AGE
    )


def real_time(next_fetch: int | None) -> int | None:
    """Return when a URL is due; None if never, or not by age."""
    return None if next_fetch is None or next_fetch >= NOT_DUE_BY_AGE else next_fetch


AT_ONCE = 500
"""Maximal rows that a call changes."""
LOOKED_AT = 10_000
"""Maximal rows that a call reads."""
CLOCKS_DIFFER_S = 60
"""Tolerated difference of the workers' clocks; a later fetch was made before the clock was set back."""


Due = tuple[str, Queue, int]
"""A site, a queue, and when something there is due."""


class DueChanges(NamedTuple):
    """The result of one call. `last` is the id of the last URL read; 0 where none follows it."""

    number: int
    last: int
    due: Sequence[Due]
    """Sites and queues whose due times changed, each once with the earliest new time."""


def due_changes(number: int, last: int, queues: Iterable[Due]) -> DueChanges:
    """Return the result of a call that changed `number` URLs, which are now due in these queues."""
    first: dict[tuple[str, Queue], int] = {}
    for site, queue, at in queues:
        first[site, queue] = min(first.get((site, queue), at), at)
    return DueChanges(number, last, [(*name, at) for name, at in sorted(first.items())])
