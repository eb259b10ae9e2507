"""Each URL is fetched once in a run that ends: after its fetch it is not due again in this run, however short its interval.

Exceptions are retries, URLs that a person asked for, and those that must be fetched again to be right (`at_once`), as when their depth or
inherited metadata changed after the last fetch. The stores apply `is_for_next_run` to known URLs whose time has come, and set those aside
for which it is true until the next run begins, so that none is read twice.
"""

from __future__ import annotations

from crawlspace.clock import Clock
from crawlspace.model import UrlState
from crawlspace.state.store import RunStore


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


class RunStart:
    """The run of this process. It begins when the object is made; a continuous crawl has no beginning."""

    def __init__(self, store: RunStore, clock: Clock, *, continuous: bool) -> None:
        self._store = store
        self._clock = clock
        self._began = None if continuous else int(clock.now())
        store.begin_run(self._began)

    @property
    def ends(self) -> bool:
        return self._began is not None

    def look_at_clock(self) -> None:
        """Move the beginning of the run back to now if the clock was set back, so that later fetches count as fetched in it."""
        if self._began is not None and (now := int(self._clock.now())) < self._began:
            self._began = now
            self._store.begin_run(now, goes_on=True)
