"""Background work in many short steps, made at intervals so that pages are fetched in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from crawlspace.clock import Clock
from crawlspace.state.hastening import Due

STEP_EVERY_S = 0.1
"""Interval of the steps."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TimedStep:
    """The effects of a step on the crawl."""

    is_turn: bool = False
    """Policy and generation may have changed, and URLs may have been forgotten."""
    enters_starts: bool = False
    """The start URLs must be inserted again, because some may have been forgotten."""
    due: Sequence[Due] = ()
    """Queues in which known URLs are due at another time."""


class Steps(Generic[T]):
    """At most one piece of work; each step returns its effects."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: Iterator[T] | None = None
        self._made_at = -inf

    @property
    def are_left(self) -> bool:
        """Whether steps remain."""
        return self._left is not None

    def begin(self, steps: Iterator[T]) -> None:
        """Start these steps, in place of others that remain."""
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
