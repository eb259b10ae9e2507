"""Known URLs that are due only because of their age, and what is stored where none is (CRAWLSPACE_SMART_REFRESH = False).

Such a URL keeps its time, moved so far ahead that it never comes: the queues compare one number, as ever. What is due for another reason has
a time without that: an error that is tried again, a change of the rules, a person or a schedule that asks for it.
"""

from __future__ import annotations

from crawlspace.model import State, UrlState

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
