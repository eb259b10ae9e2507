"""Work in many short steps, of which a crawl that goes on makes one now and then, so that pages are fetched between them."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Generic, TypeVar

from crawlspace.clock import Clock

STEP_EVERY_S = 0.1
"""So often a step is made."""

T = TypeVar("T")


class Steps(Generic[T]):
    """At most one piece of work; each step of it returns what it has changed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: Iterator[T] | None = None
        self._made_at = -inf

    @property
    def are_left(self) -> bool:
        """There may be more to do."""
        return self._left is not None

    def begin(self, steps: Iterator[T]) -> None:
        """Make these from now on, in place of what may be left of others."""
        self._left = steps

    def next(self) -> T | None:
        """Make one, if one is left and the last was long enough ago; None: none was made."""
        now = self._clock.monotonic()
        if self._left is None or now - self._made_at < STEP_EVERY_S:
            return None
        self._made_at = now
        step = next(self._left, None)
        if step is None:
            self._left = None
        return step
