"""Cycles: every known URL is fetched once in a fixed period, instead of after its own interval (CRAWLSPACE_REFRESH_CYCLE).

A cycle begins in many short steps, because there may be millions of URLs: at a start one after the other, in a continuous crawl
one at intervals, while pages are fetched. It has begun after the last step. After a kill in between, it begins again; if another
worker has begun it meanwhile, that one is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from msgspec import structs

from crawlspace.asked import Asked
from crawlspace.clock import Clock
from crawlspace.config.collection import Collection, RefreshMode
from crawlspace.crawl.rule_changes.generation import begin_generation
from crawlspace.crawl.timed.steps import Steps, TimedStep
from crawlspace.model import Queue, Source, State, UrlState
from crawlspace.state.changes import Change
from crawlspace.state.metadata import get_integer
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.store import Store

BEGAN = "cycle_began"
"""Meta: when the present cycle began."""
_LOOKED_AT = 2_000
_REVISED = 250
"""Rows written one by one in one step."""
_STARTS = 100
"""Start URLs looked up in one step."""


class Cycles:
    """Begins cycles. Without CRAWLSPACE_REFRESH_CYCLE there are none, and the collection's policy applies."""

    def __init__(self, collection: Collection, store: Store, clock: Clock) -> None:
        self._collection = collection
        self._store = store
        self._clock = clock
        self._began = get_integer(store, BEGAN)
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
        return self._steps.are_left

    def start(self, *, has_work: bool) -> None:
        """Begin a cycle at a start, if it is due. `has_work`: the last one is not complete."""
        if self._may_begin(lambda: not has_work):
            for _ in self._all_steps():
                pass

    def go_on(self, *, is_idle: Callable[[], bool]) -> TimedStep | None:
        """Make a step in a continuous crawl, if there is one; return its effects."""
        if not self._steps.are_left and self._may_begin(is_idle):
            self._steps.begin(self._all_steps(fetched_meanwhile=True))
        return self._steps.next()

    def _may_begin(self, is_idle: Callable[[], bool]) -> bool:
        return self.is_time() and (self._collection.refresh_mode is not RefreshMode.SOFT or is_idle())

    def _all_steps(self, *, fetched_meanwhile: bool = False) -> Iterator[TimedStep]:
        """Make every known URL due; the rest depends on the mode."""
        if self._has_begun_elsewhere():
            yield TimedStep(is_turn=True, enters_starts=True)
            return
        was_set_back = self._began is not None and self._clock.now() < self._began
        mode = self._collection.refresh_mode
        forgets = mode is RefreshMode.SCRATCH and self._began is not None
        if forgets:
            begin_generation(self._store)  # so that forgotten URLs are found again, also if this is never finished
            yield from self._forget_pending()
            begin_generation(self._store)  # pages fetched by others meanwhile may link to URLs forgotten afterwards
        now = int(self._clock.now())
        yield TimedStep(is_turn=True, enters_starts=True)
        if fetched_meanwhile:  # later fetches are recognised by their second
            while int(self._clock.now()) == now:
                yield TimedStep()
        if mode in (RefreshMode.SCRATCH, RefreshMode.PRIORITIZED):
            yield from self._put_starts_first(now)
        fetched_by = now if fetched_meanwhile and not was_set_back else None
        after = 0
        # Another worker's cycle may have begun before a URL was forgotten here that it had found.
        while forgets or not self._has_begun_elsewhere():
            step = self._store.hasten(now, after=after, fetched_by=fetched_by)
            after = step.last
            if not after:
                self._store.set_meta(BEGAN, str(now))
                self._began = now
            yield TimedStep(is_turn=not after, due=step.due)
            if not after:
                return
        yield TimedStep(is_turn=True)

    def _has_begun_elsewhere(self) -> bool:
        """Return whether another worker has begun the cycle."""
        began = get_integer(self._store, BEGAN)
        if began is None or began == self._began:
            return False
        self._began = began
        return not self.is_time()

    def _forget_pending(self) -> Iterator[TimedStep]:
        now, last = int(self._clock.now()), 0
        while page := self._store.scan(last, _LOOKED_AT):
            ids = [known.id for known in page if known.state == State.PENDING]
            for first in range(0, len(ids), _REVISED):
                self._store.revise(ids[first : first + _REVISED], _forgotten, now=now)
                yield TimedStep()
            last = page[-1].id
            yield TimedStep()

    def _put_starts_first(self, now: int) -> Iterator[TimedStep]:
        all_starts = self._collection.start_urls
        for first in range(0, len(all_starts), _STARTS):
            starts = all_starts[first : first + _STARTS]
            states = [state for start in starts if (state := self._store.get(start.url.text)) is not None]
            self._store.revise([state.id for state in states], lambda state: _first(state, now), now=now)
            yield TimedStep(due=sorted({(state.site, Queue(Source.USER, state.shift), now) for state in states}))


def _first(state: UrlState, now: int) -> Change | None:
    if state.next_fetch is None or state.lease_until is not None:
        return None
    return Change(structs.replace(state, asked=Asked.BY_PERSON, next_fetch=min(state.next_fetch, now)))


def _forgotten(state: UrlState) -> Change | None:
    return Change(state, forget=True) if state.state is State.PENDING else None
