"""Time as a value that is handed in, so that tests need no sleeping."""

from __future__ import annotations

import time
from functools import partial
from typing import Protocol

# Python's own monotonic clock stands still while the machine is suspended: on Linux as CLOCK_MONOTONIC does there, on macOS by itself.
_clock = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
_elapsed = time.monotonic if _clock is None else partial(time.clock_gettime, _clock)


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970, UTC; what is stored."""

    def monotonic(self) -> float:
        """Seconds that never go back; what waits are measured with. They pass also while the machine is suspended, where it can tell."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return _elapsed()


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = 1_750_000_000.0) -> None:
        self._now = now
        self._monotonic = 1000.0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def set(self, now: float) -> None:
        """Set the time of day, as a person may; no time passes."""
        self._now = now

    def advance(self, seconds: float) -> None:
        self._now += seconds
        self._monotonic += seconds
