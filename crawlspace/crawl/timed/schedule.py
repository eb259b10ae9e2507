"""A scheduled refresh: at each time of CRAWLSPACE_REFRESH_SCHEDULE all known URLs are put into source index, once.

Times that were missed count as one, which a start makes up for. The first start with an expression does not: nothing was missed yet.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from math import inf
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.crawl.timed.shared_pass import PassStore, SharedPass
from crawlspace.crawl.timed.steps import Steps, TimedStep
from crawlspace.cron import Cron
from crawlspace.state.hastening import CLOCKS_DIFFER_S, Hastened

logger = logging.getLogger(__name__)

SETTLED = "refresh_settled"
"""Meta: until when no time of the schedule is left to be followed, and the expression."""
RUNNING = "refresh_running"
"""Meta: when the refresh that is being made began, and the last id that it has come to; empty if there is none."""
_CLAIM = "refresh begins"
_CLAIM_S = 30
"""A worker that was killed while it began keeps the others from it for so long at most."""


class ScheduleStore(PassStore, Protocol):
    def end_claim(self, name: str) -> None: ...
    def one_transaction(self) -> AbstractContextManager[None]: ...
    def schedule(self, at: int, *, fetched_by: int, after: int = 0) -> Hastened: ...


def settled_until(value: str | None, cron: Cron, *, now: float) -> int | None:
    """Return until when the times of an expression were followed; None where it is new, or the clock was set back."""
    until, _, text = (value or "").partition(" ")
    return int(until) if until.isdigit() and text == cron.text and int(until) <= now + CLOCKS_DIFFER_S else None


class ScheduledRefresh:
    """Puts known URLs into source index in steps, at a start that comes after a time, and in a continuous crawl at each time."""

    def __init__(self, cron: Cron | None, store: ScheduleStore, clock: Clock, *, continuous: bool) -> None:
        self._cron = cron
        self._store = store
        self._clock = clock
        self._continuous = continuous
        self._pass = SharedPass(store, clock, RUNNING)
        self._steps: Steps[TimedStep] = Steps(clock)
        self._next = inf
        if cron is None:
            self._end_for_good()
            return
        self._next = self._read_next(cron)
        if self._next <= clock.now():
            self._begin(cron)
        elif self._pass.what() is not None:
            self._steps.begin(self._all_steps())

    @property
    def has_steps(self) -> bool:
        """Whether a refresh is being made."""
        return self._steps.are_left

    def go_on(self) -> TimedStep | None:
        """Make a step, if there is one."""
        if self._cron is not None and self._continuous and self._clock.now() >= self._next:
            self._begin(self._cron)
        return self._steps.next()

    def _begin(self, cron: Cron) -> None:
        """Begin a refresh, unless another worker does, or has done it; then help it."""
        claim = f"{_CLAIM} {int(self._clock.now()) // _CLAIM_S}"
        if not self._store.claim(claim, seconds=_CLAIM_S):
            return
        try:
            self._next, now = self._read_next(cron), int(self._clock.now())
            if self._next <= now:
                with self._store.one_transaction():
                    self._pass.begin(str(now))
                    self._settle(cron)
                self._next = cron.next_after(now) or inf
                logger.info("A scheduled refresh begins: all known URLs are put into source index")
        finally:
            self._store.end_claim(claim)
        if not self._steps.are_left and self._pass.what() is not None:
            self._steps.begin(self._all_steps())

    def _all_steps(self) -> Iterator[TimedStep]:
        while (what := self._pass.what()) is not None and what.isdigit():
            yield from self._pass.steps(what, partial(self._step, int(what)), done="")

    def _step(self, began: int, after: int) -> Hastened:
        return self._store.schedule(
            int(self._clock.now()), fetched_by=began - 1, after=after
        )  # what was fetched in that second is new enough

    def _read_next(self, cron: Cron) -> float:
        """Return the first time that is not followed yet; none is where the expression is new, or the clock was set back."""
        settled = settled_until(self._store.get_meta(SETTLED), cron, now=self._clock.now())
        return cron.next_after(self._settle(cron) if settled is None else settled) or inf

    def _settle(self, cron: Cron) -> int:
        now = int(self._clock.now())
        self._store.set_meta(SETTLED, f"{now} {cron.text}")
        return now

    def _end_for_good(self) -> None:
        """Forget the times, and a refresh that was not finished, where there is no schedule any more."""
        for name in (RUNNING, SETTLED):
            if self._store.get_meta(name):
                self._store.set_meta(name, "")
