"""Background work in many short steps, made at intervals so that pages are fetched in between.

Where several workers share a store, one of them makes each step of a pass over all known URLs. The position of the pass is kept in the
store, so that another worker, or the next start, continues where one was killed. Each step may be made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from crawlspace.clock import Clock
from crawlspace.state.due_times import Due, DueChanges
from crawlspace.state.store import MetaStore

STEP_EVERY_S = 0.1
"""Interval of the steps."""
T = TypeVar("T")
_CLAIM_S = 15
"""Time for which one worker makes the steps alone; then any may take over."""
_CHECK_EVERY_S = 1.0
"""Interval in which the others check whether the pass is over."""


@dataclass(frozen=True, slots=True)
class TimedStep:
    """The effects of a step on the crawl."""

    begins_cycle: bool = False
    """Policy and generation may have changed, and URLs may have been forgotten."""
    enters_starts: bool = False
    """The start URLs must be inserted again, because some may have been forgotten."""
    due: Sequence[Due] = ()
    """Queues in which known URLs are due at another time."""


class Steps(Generic[T]):
    """At most one task in steps; each step returns its effects."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: Iterator[T] | None = None
        self._made_at = -inf

    @property
    def has_remaining(self) -> bool:
        """Whether steps remain."""
        return self._left is not None

    def begin(self, steps: Iterator[T]) -> None:
        """Start these steps; remaining ones are dropped."""
        self._left = steps

    def next(self) -> T | None:
        """Make a step, if one remains and the last was long enough ago; None if none was made."""
        now = self._clock.monotonic()
        if self._left is None or now - self._made_at < STEP_EVERY_S:
            return None
        self._made_at = now
        step = next(self._left, None)
        if step is None:
            self._left = None
        return step


class SharedPass:
    """A pass over all URLs, pending while the value `name` of the store begins with `what`; the last processed id follows."""

    def __init__(self, store: MetaStore, clock: Clock, name: str) -> None:
        self._store = store
        self._clock = clock
        self._name = name
        self._claimed_period: int | None = None
        self._has_claim = False

    def begin(self, what: str) -> None:
        """Note that the pass must start from the beginning."""
        self._store.set_meta(self._name, f"{what} 0")

    def what(self) -> str | None:
        """Return the purpose of the pending pass; None without one."""
        what, _, after = (self._store.get_meta(self._name) or "").rpartition(" ")
        return what if what and after.isdigit() else None

    def steps(self, what: str, change: Callable[[int], DueChanges], *, done: str) -> Iterator[TimedStep]:
        """Make the steps of this worker; `change` makes the one after an id, `done` is the value afterwards."""
        while (after := self._position(what)) is not None:
            if not self._may_step():
                looked_at = self._clock.monotonic()
                while self._clock.monotonic() - looked_at < _CHECK_EVERY_S:
                    yield TimedStep()
                continue
            step = change(after)
            self._store.set_meta(self._name, f"{what} {step.last}" if step.last else done)
            yield TimedStep(due=step.due)

    def _position(self, what: str) -> int | None:
        found, _, after = (self._store.get_meta(self._name) or "").rpartition(" ")
        return int(after) if found == what and after.isdigit() else None

    def _may_step(self) -> bool:
        period = int(self._clock.now()) // _CLAIM_S
        if period != self._claimed_period:
            self._claimed_period, self._has_claim = period, self._store.claim(f"{self._name} {period}", seconds=2 * _CLAIM_S)
        return self._has_claim
