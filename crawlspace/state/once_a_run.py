"""Each URL is fetched once in a run that ends: what was fetched in it is not due again in it, however short its interval.

But for its retries, what a person asks for, and what has to be fetched again to be right (`at_once`), as when its depth or the metadata it
inherits changed after its last fetch. The stores apply `is_for_next_run` to known URLs whose time has come; those that it holds of they set
aside, so that none is looked at twice, until the next run begins.
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


class RunStart:
    """The run of this process. It begins when it is made; one that never ends has no beginning."""

    def __init__(self, store: RunStore, clock: Clock, *, continuous: bool) -> None:
        self._store = store
        self._clock = clock
        self._began = None if continuous else int(clock.now())
        store.begin_run(self._began)

    @property
    def ends(self) -> bool:
        return self._began is not None

    def look_at_clock(self) -> None:
        """Have the run begin no later than now: when the clock was set back, what is fetched from now on counts as fetched in it, too."""
        if self._began is not None and (now := int(self._clock.now())) < self._began:
            self._began = now
            self._store.begin_run(now, goes_on=True)
