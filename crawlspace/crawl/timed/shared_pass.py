"""One pass over all known URLs in short steps, of which one worker makes each, however many share the store.

The position is kept in the store, so that another worker, or the next start, goes on where one was killed. Each step may be made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.crawl.timed.steps import TimedStep
from crawlspace.state.hastening import Hastened

_TURN_S = 15
"""For so long a worker makes the steps alone; then any may take over."""
_LOOK_EVERY_S = 1.0
"""Interval in which the others look whether the pass is over."""


class PassStore(Protocol):
    def get_meta(self, name: str) -> str | None: ...
    def set_meta(self, name: str, value: str) -> None: ...
    def claim(self, name: str, *, seconds: int) -> bool: ...


class SharedPass:
    """A pass that is to be made while the value `name` of the store begins with `what`; behind that stands the last id it has come to."""

    def __init__(self, store: PassStore, clock: Clock, name: str) -> None:
        self._store = store
        self._clock = clock
        self._name = name
        self._asked_for: int | None = None
        self._has_turn = False

    def begin(self, what: str) -> None:
        """Note that the pass is to be made from the beginning."""
        self._store.set_meta(self._name, f"{what} 0")

    def what(self) -> str | None:
        """Return what the pass is for that is to be made; None if there is none."""
        what, _, after = (self._store.get_meta(self._name) or "").rpartition(" ")
        return what if what and after.isdigit() else None

    def steps(self, what: str, change: Callable[[int], Hastened], *, done: str) -> Iterator[TimedStep]:
        """Make the steps that are this worker's; `change` makes the one behind an id, `done` is the value afterwards."""
        while (after := self._position(what)) is not None:
            if not self._takes_turn():
                looked_at = self._clock.monotonic()
                while self._clock.monotonic() - looked_at < _LOOK_EVERY_S:
                    yield TimedStep()
                continue
            step = change(after)
            self._store.set_meta(self._name, f"{what} {step.last}" if step.last else done)
            yield TimedStep(due=step.due)

    def _position(self, what: str) -> int | None:
        found, _, after = (self._store.get_meta(self._name) or "").rpartition(" ")
        return int(after) if found == what and after.isdigit() else None

    def _takes_turn(self) -> bool:
        turn = int(self._clock.now()) // _TURN_S
        if turn != self._asked_for:
            self._asked_for, self._has_turn = turn, self._store.claim(f"{self._name} {turn}", seconds=2 * _TURN_S)
        return self._has_turn
