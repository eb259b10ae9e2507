"""Time as a value passed to constructors, so that tests need no sleeping."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

# Python's own monotonic clock stops while the machine is suspended (Linux: CLOCK_MONOTONIC, and macOS); CLOCK_BOOTTIME does not.
_clock = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
_elapsed = time.monotonic if _clock is None else partial(time.clock_gettime, _clock)


class Clock(Protocol):
    def now(self) -> float:
        """Return seconds since 1970, UTC. Stored times are of this clock."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for waits. Time in suspension counts where the platform can measure it."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return _elapsed()


def iso(at: float) -> str:
    """Return a time such as 2025-06-15T14:26:40Z."""
    return f"{datetime.fromtimestamp(int(at), UTC):%Y-%m-%dT%H:%M:%SZ}"


def local_time(at: float) -> str:
    """Return a time for people, in the time zone of this machine: 2025-06-15 16:26."""
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}"


class FakeClock:
    """A clock that moves only when a test moves it."""

    def __init__(self, now: float = 1_750_000_000.0) -> None:
        self._now = now
        self._monotonic = 1000.0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def set(self, now: float) -> None:
        """Set the time of day, as a user may; no time passes."""
        self._now = now

    def advance(self, seconds: float) -> None:
        self._now += seconds
        self._monotonic += seconds
