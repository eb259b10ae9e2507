"""When known URLs are due: once a run, by their age, and changes of many due times in steps.

**Once a run.** Each URL is fetched once in a run that ends: after its fetch it is not due again in this run, however short its interval.
Exceptions are retries, URLs that a person requested, and those that must be fetched again to be right (`at_once`), as when their depth or
inherited metadata changed after the last fetch. The stores apply `is_for_next_run` to known URLs whose time has come, and set those aside
for which it is true until the next run begins, so that none is read twice.

**By age.** Where no URL is due only because of its age (CRAWLSPACE_SMART_REFRESH = False), such a URL keeps its time, moved so far ahead that
it never comes: the queues compare one number, as ever. What is due for another reason has a time without that: an error that is tried again,
a change of the rules, a person or a schedule.

**In steps.** Each call of a store changes, and reads, a bounded number of rows. SQLite does it by statement (`sqlite/queue.py`) and Redis by
function (`lua/queue.lua`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crawlspace.model import Queue, State, UrlState


def is_for_next_run(row: UrlState, began: int | None) -> bool:
    """Return whether a known URL was fetched in the run that began at that time, and is only due again for its interval."""
    return (
        began is not None
        and row.fetched_at is not None
        and row.next_fetch is not None
        and not (row.retries or row.asked)
        and began <= row.fetched_at < row.next_fetch
    )


def at_once(now: int, fetched_at: int | None) -> int:
    """Return the `next_fetch` of a URL that has to be fetched again in the same run: no later than its last fetch."""
    return now if fetched_at is None else min(now, fetched_at)


def is_due_again(state: UrlState, now: int) -> bool:
    """Return whether a URL that has been fetched has such a time."""
    return state.next_fetch is not None and state.fetched_at is not None and state.next_fetch <= min(state.fetched_at, now)


NOT_BY_AGE = 1 << 36
"""Added to `next_fetch` where a URL is not due by its age; in seconds, 2,177 years."""


def is_by_age(row: UrlState) -> bool:
    """Return whether a known URL has a time that comes, and only because of its age.

    A page that failed is not: it is tried again. What is due for a change has no time after its last fetch (`at_once`).
    """
    return (
        row.state not in (State.PENDING, State.FAILED)
        and not (row.asked or row.retries)
        and row.next_fetch is not None
        and row.fetched_at is not None
        and row.fetched_at < row.next_fetch < NOT_BY_AGE
    )


def real_time(next_fetch: int | None) -> int | None:
    """Return when a URL is due; None where that is never, or not by its age."""
    return None if next_fetch is None or next_fetch >= NOT_BY_AGE else next_fetch


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


def hastened(number: int, last: int, places: Iterable[Due]) -> Hastened:
    """Return the result of a call that changed so many URLs, which are now due at these places."""
    first: dict[tuple[str, Queue], int] = {}
    for site, queue, at in places:
        first[site, queue] = min(first.get((site, queue), at), at)
    return Hastened(number, last, [(*place, at) for place, at in sorted(first.items())])
