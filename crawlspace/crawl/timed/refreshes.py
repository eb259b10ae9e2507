"""Refreshes of all known URLs: cycles, schedules, and smart refresh, by which URLs are due by age.

A cycle (CRAWLSPACE_REFRESH_CYCLE) fetches every known URL once in a fixed period, instead of after its own interval. It begins in many short
steps, because there may be millions of URLs: at a start one after the other, in a continuous crawl at intervals, while pages are fetched. It
has begun after the last step. After a kill in between, it begins again; if another worker has begun it meanwhile, that cycle is used.

A scheduled refresh puts all known URLs into source index, once, at each time of CRAWLSPACE_REFRESH_SCHEDULE. Missed times count as one, which
the next start makes up for. The first start with an expression does not: nothing was missed yet.

When smart refresh is turned off or on, the stored due times are changed in steps, while pages are fetched. Until that is done, URLs due by
age alone are skipped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import inf

from msgspec import structs

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection, RefreshMode
from crawlspace.crawl.conditional import begin_generation
from crawlspace.crawl.timed.steps import SharedPass, Steps, TimedStep
from crawlspace.cron import Cron
from crawlspace.model import Queue, Requester, Source, State, UrlState
from crawlspace.state.changes import Change
from crawlspace.state.due_times import CLOCKS_DIFFER_S, NOT_DUE_BY_AGE, DueChanges, is_due_by_age
from crawlspace.state.metadata import get_integer
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.store import Store

logger = logging.getLogger(__name__)

CYCLE_BEGAN = "cycle_began"
"""Meta: when the present cycle began."""
_SHORTEST_S = 60
"""The least time between the beginnings of two cycles, of which the second begins because nothing is left to do."""
_SCANNED_AT_ONCE = 2_000
_REVISED_AT_ONCE = 250
"""Rows written individually in one step."""
_STARTS_AT_ONCE = 100
"""Start URLs looked up in one step."""
SETTLED = "refresh_settled"
"""Meta: until when the times of the schedule have been processed, and the expression."""
RUNNING = "refresh_running"
"""Meta: when the running refresh began, and the last processed id; empty if there is none."""
_CLAIM = "refresh begins"
_CLAIM_S = 30
"""Longest time for which a worker killed while beginning blocks the others."""
AGE = "due_by_age"
"""Meta: ON or OFF; while that is being changed, the new value, and the last processed id."""
ON, OFF = "on", "off"


class Cycles:
    """Begins cycles. Without CRAWLSPACE_REFRESH_CYCLE there are none, and the collection's policy applies."""

    def __init__(self, collection: Collection, store: Store, clock: Clock) -> None:
        self._collection = collection
        self._store = store
        self._clock = clock
        self._began = get_integer(store, CYCLE_BEGAN)
        self._may_be_early = collection.refresh_when_idle and collection.refresh.cycle is not None
        self._next_of: tuple[int, int] | None = None
        self._steps: Steps[TimedStep] = Steps(clock)

    def policy(self) -> RecrawlPolicy:
        """Return the policy of the present cycle."""
        policy, times = self._collection.policy, self._collection.refresh.cycle
        if times is None or self._began is None:
            return policy
        return replace(policy, next_cycle=self._next(), cycle_s=times.next_after(self._next()) - self._next())

    def is_time(self) -> bool:
        """Return whether the next cycle is due."""
        if self._collection.refresh.cycle is None:
            return False
        return self._began is None or not self._began <= self._clock.now() < self._next()

    def _next(self) -> int:
        """Return when the cycle after the present one begins."""
        times, began = self._collection.refresh.cycle, self._began
        assert times is not None
        assert began is not None
        if self._next_of is None or self._next_of[0] != began:
            self._next_of = began, times.next_after(began)
        return self._next_of[1]

    @property
    def has_steps(self) -> bool:
        """Whether a cycle is beginning, with steps left."""
        return self._steps.has_remaining

    def start(self, *, has_work: bool) -> None:
        """Begin a cycle at a start, if it is due. `has_work`: the last one is not complete."""
        if self._may_begin(lambda: not has_work):
            for _ in self._all_steps():
                pass

    def resume(self, *, is_idle: Callable[[], bool]) -> TimedStep | None:
        """Make a step in a continuous crawl, if there is one; return its effects."""
        if not self._steps.has_remaining and self._may_begin(is_idle):
            self._steps.begin(self._all_steps(fetched_meanwhile=True))
        return self._steps.next()

    def _may_begin(self, is_idle: Callable[[], bool]) -> bool:
        if self.is_time():
            return self._collection.refresh_mode is not RefreshMode.SOFT or is_idle()
        return self._may_be_early and self._is_old_enough() and is_idle()

    def _is_old_enough(self) -> bool:
        """Return whether the present cycle began long enough ago to be followed by the next before its time."""
        return self._began is not None and self._clock.now() >= self._began + _SHORTEST_S

    def _all_steps(self, *, fetched_meanwhile: bool = False) -> Iterator[TimedStep]:
        """Make every known URL due; the rest depends on `fetched_meanwhile`."""
        if self._has_begun_elsewhere():
            yield TimedStep(begins_cycle=True, enters_starts=True)
            return
        was_set_back = self._began is not None and self._clock.now() < self._began
        mode = self._collection.refresh_mode
        forgets = mode is RefreshMode.SCRATCH and self._began is not None
        if forgets:
            begin_generation(self._store)  # so that forgotten URLs are found again, even if this is never finished
            yield from self._forget_pending()
            begin_generation(self._store)  # pages fetched by others meanwhile may link to URLs forgotten afterwards
        now = int(self._clock.now())
        yield TimedStep(begins_cycle=True, enters_starts=True)
        if fetched_meanwhile:  # later fetches are recognised by their second
            while int(self._clock.now()) == now:
                yield TimedStep()
        if mode in (RefreshMode.SCRATCH, RefreshMode.PRIORITIZED):
            yield from self._put_starts_first(now)
        fetched_by = now if fetched_meanwhile and not was_set_back else None
        after = 0
        # Another worker's cycle may have begun before this one forgot a URL that it had found.
        while forgets or not self._has_begun_elsewhere():
            step = self._store.make_due_by(now, after=after, fetched_by=fetched_by)
            after = step.last
            if not after:
                self._store.set_meta(CYCLE_BEGAN, str(now))
                self._began = now
            yield TimedStep(begins_cycle=not after, due=step.due)
            if not after:
                return
        yield TimedStep(begins_cycle=True)

    def _has_begun_elsewhere(self) -> bool:
        """Return whether another worker has begun the cycle."""
        began = get_integer(self._store, CYCLE_BEGAN)
        if began is None or began == self._began:
            return False
        self._began = began
        return not self.is_time()

    def _forget_pending(self) -> Iterator[TimedStep]:
        now, last = int(self._clock.now()), 0
        while page := self._store.scan(last, _SCANNED_AT_ONCE):
            ids = [known.id for known in page if known.state == State.PENDING]
            for first in range(0, len(ids), _REVISED_AT_ONCE):
                self._store.revise(ids[first : first + _REVISED_AT_ONCE], _forgotten, now=now)
                yield TimedStep()
            last = page[-1].id
            yield TimedStep()

    def _put_starts_first(self, now: int) -> Iterator[TimedStep]:
        all_starts = self._collection.start_urls
        for first in range(0, len(all_starts), _STARTS_AT_ONCE):
            starts = all_starts[first : first + _STARTS_AT_ONCE]
            states = [state for start in starts if (state := self._store.get(start.url.text)) is not None]
            self._store.revise([state.id for state in states], lambda state: _first(state, now), now=now)
            yield TimedStep(due=sorted({(state.site, Queue(Source.USER, state.shift), now) for state in states}))


def settled_until(value: str | None, cron: Cron, *, now: float) -> int | None:
    """Return until when the times of an expression were processed; None if it is new, or the clock was set back."""
    until, _, text = (value or "").partition(" ")
    return int(until) if until.isdigit() and text == cron.text and int(until) <= now + CLOCKS_DIFFER_S else None


class ScheduledRefresh:
    """Puts known URLs into source index in steps, at a start that comes after a time, and in a continuous crawl at each time."""

    def __init__(self, cron: Cron | None, store: Store, clock: Clock, *, continuous: bool) -> None:
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
        """Whether a refresh is running."""
        return self._steps.has_remaining

    def resume(self) -> TimedStep | None:
        """Make a step, if there is one."""
        if self._cron is not None and self._continuous and self._clock.now() >= self._next:
            self._begin(self._cron)
        return self._steps.next()

    def _begin(self, cron: Cron) -> None:
        """Begin a refresh, unless another worker has; then join that one."""
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
        if not self._steps.has_remaining and self._pass.what() is not None:
            self._steps.begin(self._all_steps())

    def _all_steps(self) -> Iterator[TimedStep]:
        while (what := self._pass.what()) is not None and what.isdigit():
            yield from self._pass.steps(what, partial(self._step, int(what)), done="")

    def _step(self, began: int, after: int) -> DueChanges:
        return self._store.schedule(
            int(self._clock.now()), fetched_by=began - 1, after=after
        )  # pages fetched in that second are new enough

    def _read_next(self, cron: Cron) -> float:
        """Return the first time that was not processed; the next one if the expression is new, or the clock was set back."""
        settled = settled_until(self._store.get_meta(SETTLED), cron, now=self._clock.now())
        return cron.next_after(self._settle(cron) if settled is None else settled) or inf

    def _settle(self, cron: Cron) -> int:
        now = int(self._clock.now())
        self._store.set_meta(SETTLED, f"{now} {cron.text}")
        return now

    def _end_for_good(self) -> None:
        """Forget the times, and an unfinished refresh, if there is no schedule any more."""
        for name in (RUNNING, SETTLED):
            if self._store.get_meta(name):
                self._store.set_meta(name, "")


class SmartRefresh:
    """Adapts the due times of known URLs to the setting."""

    def __init__(self, store: Store, clock: Clock, *, counts: bool, longest_s: int) -> None:
        self._store = store
        self._clock = clock
        self._counts = counts
        self._longest_s = longest_s
        self._steps: Steps[TimedStep] = Steps(clock)
        self._pass = SharedPass(store, clock, AGE)
        wanted = ON if counts else OFF
        if (store.get_meta(AGE) or ON) == wanted:
            return
        if self._pass.what() != wanted:
            self._pass.begin(wanted)
        self._steps.begin(self._pass.steps(wanted, self._step, done=wanted))

    @property
    def has_steps(self) -> bool:
        """Whether known URLs remain to be adapted."""
        return self._steps.has_remaining

    def resume(self) -> TimedStep | None:
        """Make a step, if there is one."""
        return self._steps.next()

    def drop(self, state: UrlState, changes: list[Change]) -> bool:
        """Skip a leased URL that is due by age alone, if smart refresh is off; return whether it was skipped."""
        if self._counts or not self._steps.has_remaining or not is_due_by_age(state) or state.next_fetch is None:
            return False
        changes.append(Change(structs.replace(state, next_fetch=state.next_fetch + NOT_DUE_BY_AGE)))
        return True

    def _step(self, after: int) -> DueChanges:
        return self._store.set_due_by_age(counts=self._counts, latest=int(self._clock.now()) + self._longest_s, after=after)


def _first(state: UrlState, now: int) -> Change | None:
    if state.next_fetch is None or state.lease_until is not None:
        return None
    return Change(structs.replace(state, requested_by=Requester.PERSON, next_fetch=min(state.next_fetch, now)))


def _forgotten(state: UrlState) -> Change | None:
    return Change(state, forget=True) if state.state is State.PENDING else None
