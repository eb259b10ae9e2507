"""Turns smart refresh off and on for the URLs that are known: whether they are due by their age.

What is stored is changed in steps, while pages are fetched. Until it is, a URL that would be fetched for its age alone is passed over.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import structs

from crawlspace.clock import Clock
from crawlspace.crawl.timed.shared_pass import PassStore, SharedPass
from crawlspace.crawl.timed.steps import Steps, TimedStep
from crawlspace.model import UrlState
from crawlspace.state.by_age import NOT_BY_AGE, is_by_age
from crawlspace.state.changes import Change
from crawlspace.state.hastening import Hastened

AGE = "age_counts"
"""Meta: ON or OFF; while that is being changed, what it will be, and the last id that this has come to."""
ON, OFF = "on", "off"


class AgeStore(PassStore, Protocol):
    def set_age_counts(self, *, counts: bool, latest: int, after: int = 0) -> Hastened: ...


class SmartRefresh:
    """Brings the known URLs in line with the setting."""

    def __init__(self, store: AgeStore, clock: Clock, *, counts: bool, longest_s: int) -> None:
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
        """Whether some known URLs are not in line yet."""
        return self._steps.are_left

    def go_on(self) -> TimedStep | None:
        """Make a step, if there is one."""
        return self._steps.next()

    def drop(self, state: UrlState, changes: list[Change]) -> bool:
        """Have a leased URL not be due by its age, if it is only due by that and nothing is any more; return whether it was."""
        if self._counts or not self._steps.are_left or not is_by_age(state) or state.next_fetch is None:
            return False
        changes.append(Change(structs.replace(state, next_fetch=state.next_fetch + NOT_BY_AGE)))
        return True

    def _step(self, after: int) -> Hastened:
        return self._store.set_age_counts(counts=self._counts, latest=int(self._clock.now()) + self._longest_s, after=after)
