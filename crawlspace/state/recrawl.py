"""When a URL is fetched again: pure functions of its history and the policy. None means never."""

from __future__ import annotations

from dataclasses import dataclass
from math import ldexp


@dataclass(frozen=True, slots=True)
class RecrawlPolicy:
    """Bounds of the refresh interval and the retries within a run; all in seconds."""

    refresh_min_s: int
    refresh_max_s: int
    retry_times: int
    """Tries after the first one, within one run (Scrapy's RETRY_TIMES)."""
    retry_wait_s: float
    """Wait before the first retry; each further one waits twice as long."""
    max_temporary_errors: int
    """Runs in a row that ended in a temporary error before a URL is given up."""
    retry_after_max_s: float = 3600.0
    """The longest Retry-After that is believed."""


def first_interval(policy: RecrawlPolicy) -> int:
    """The mean of the two bounds."""
    return (policy.refresh_min_s + policy.refresh_max_s) // 2


def next_interval(interval_s: int | None, *, changed: bool, policy: RecrawlPolicy) -> int:
    """Half the interval when the page has changed, one and a half times when not, within the bounds."""
    if interval_s is None:
        return first_interval(policy)
    wanted = interval_s // 2 if changed else interval_s * 3 // 2
    return max(policy.refresh_min_s, min(policy.refresh_max_s, wanted))


def retry_wait(retries: int, *, retry_after_s: float | None, policy: RecrawlPolicy) -> int:
    """Seconds before try number `retries` after the first: growing, and never less than the host asked for."""
    wait = min(ldexp(policy.retry_wait_s, min(retries - 1, 60)), policy.retry_after_max_s)
    if retry_after_s is not None:
        wait = max(wait, min(retry_after_s, policy.retry_after_max_s))
    return max(1, round(wait))
