"""Cycles: everything known is fetched once every so often, instead of each page after an interval of its own (CRAWLSPACE_REFRESH_CYCLE)."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from msgspec import structs

from crawlspace.clock import Clock
from crawlspace.config import Collection, RefreshMode
from crawlspace.generation import begin_generation
from crawlspace.model import State, UrlState
from crawlspace.state.meta import get_integer
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.store import Change, Store

BEGAN = "cycle_began"
"""Meta: when the present cycle began."""
_BATCH = 2_000


class Cycles:
    """Begins cycles. Without CRAWLSPACE_REFRESH_CYCLE there are none, and the policy is the collection's own."""

    def __init__(self, collection: Collection, store: Store, clock: Clock) -> None:
        self._collection = collection
        self._store = store
        self._clock = clock
        self._began = get_integer(store, BEGAN)

    def policy(self) -> RecrawlPolicy:
        """The policy as it is in the present cycle."""
        policy = self._collection.policy
        cycle_s = self._collection.refresh_cycle_s
        if not cycle_s or self._began is None:
            return policy
        return replace(policy, next_cycle=self._began + cycle_s, cycle_s=cycle_s)

    def is_time(self) -> bool:
        """Whether the time for the next cycle has come."""
        cycle_s = self._collection.refresh_cycle_s
        return cycle_s > 0 and (self._began is None or not 0 <= self._clock.now() - self._began < cycle_s)

    @property
    def waits_for_the_end(self) -> bool:
        """The next cycle begins only once the last one is worked off."""
        return self._collection.refresh_mode is RefreshMode.SOFT

    def begin(self) -> None:
        """Have everything known fetched again; what else happens is the mode's matter. Killed half-way, it begins once more.

        Where another worker has begun it meanwhile, that is it.
        """
        began = get_integer(self._store, BEGAN)
        if began is not None and began != self._began:
            self._began = began
            if not self.is_time():
                return
        now = int(self._clock.now())
        mode = self._collection.refresh_mode
        if mode is RefreshMode.SCRATCH and self._began is not None:
            # Unconditionally, so that what is forgotten here is found again.
            begin_generation(self._store)
            self._forget_pending(now)
        self._store.hasten(now)
        if mode in (RefreshMode.SCRATCH, RefreshMode.PRIORITIZED):
            starts = [self._store.get(start.url.text) for start in self._collection.start_urls]
            self._store.revise([state.id for state in starts if state is not None], _first, now=now)
        self._store.set_meta(BEGAN, str(now))
        self._began = now

    def _forget_pending(self, now: int) -> None:
        pending = self._store.urls(state=State.PENDING)  # read in pages
        while ids := [state.id for state in islice(pending, _BATCH)]:
            self._store.revise(ids, _forgotten, now=now)


def _first(state: UrlState) -> Change | None:
    return Change(structs.replace(state, asked=True)) if state.next_fetch is not None else None


def _forgotten(state: UrlState) -> Change | None:
    return Change(state, forget=True) if state.state is State.PENDING else None
