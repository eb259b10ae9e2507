"""Compute when a URL is fetched again, as pure functions of its history and the policy. None means never."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ldexp

from crawlspace.model import UrlState
from crawlspace.state.due_times import NOT_DUE_BY_AGE
from crawlspace.state.error_policy import ErrorRules


@dataclass(frozen=True, slots=True)
class RefreshBounds:
    """Bounds of the refresh intervals of a site, in seconds."""

    min_s: int
    max_s: int


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
    """The longest Retry-After that is obeyed."""
    error_rules: ErrorRules = field(default_factory=ErrorRules)
    retry_codes: frozenset[int] | None = None
    """The HTTP codes that are retried within a run (Scrapy's RETRY_HTTP_CODES); None: temporary errors, and those that may be the host's."""
    host_fetches: int = 20
    """The number of last fetches of a site that show whether the site itself fails."""
    host_failed_percent: int = 50
    """The percentage of failures among the site's last fetches from which a failure counts as the site's."""
    next_cycle: int | None = None
    """Time of the next cycle, if URLs are fetched once a cycle instead of after their own intervals."""
    start_refresh_s: int | None = None
    """The interval of start URLs; None: as that of other pages."""
    sitemap_refresh_s: int | None = None
    """The interval of sitemaps and feeds; None: as that of other pages."""
    cycle_s: int = 0
    """The length of a cycle."""
    due_by_age: bool = True
    """Pages are due again after their interval, or in the next cycle. Otherwise only what failed is (CRAWLSPACE_SMART_REFRESH = False)."""

    bounds_of: Callable[[str], RefreshBounds | None] | None = None
    """Returns the bounds of a site that has its own; None: no site has."""

    def of(self, site: str) -> RecrawlPolicy:
        """Return the policy for the URLs of a site: one with bounds of its own has its intervals in cycles, too."""
        bounds = None if self.bounds_of is None else self.bounds_of(site)
        if bounds is None:
            return self

        def within(interval_s: int | None) -> int | None:
            return None if interval_s is None else max(bounds.min_s, min(bounds.max_s, interval_s))

        return replace(
            self,
            refresh_min_s=bounds.min_s,
            refresh_max_s=bounds.max_s,
            start_refresh_s=within(self.start_refresh_s),
            sitemap_refresh_s=within(self.sitemap_refresh_s),
            next_cycle=None,
            bounds_of=None,
        )

    def most_errors(self, status: int) -> int | None:
        """Return the maximal number of runs in a row that end in a temporary error with a status; None: any number."""
        rule = self.error_rules.of(status)
        if rule is None:
            return self.max_temporary_errors
        return None if rule.keep else rule.after


def first_interval(policy: RecrawlPolicy) -> int:
    """Return the mean of the two bounds."""
    return (policy.refresh_min_s + policy.refresh_max_s) // 2


def next_interval(interval_s: int | None, *, changed: bool, policy: RecrawlPolicy) -> int:
    """Return half the interval when the page has changed, one and a half times when not, within the bounds."""
    if interval_s is None:
        return first_interval(policy)
    wanted = interval_s // 2 if changed else interval_s * 3 // 2
    return max(policy.refresh_min_s, min(policy.refresh_max_s, wanted))


def interval_of(state: UrlState, *, changed: bool, policy: RecrawlPolicy) -> int:
    """Return the interval of a URL after a finished round: a start URL may have its own."""
    if state.depth == 0 and policy.start_refresh_s is not None:
        return policy.start_refresh_s
    return next_interval(state.interval_s, changed=changed, policy=policy)


def next_fetch(now: int, interval_s: int, policy: RecrawlPolicy) -> int:
    """Return when a URL is due after a round that ended now: after its interval.

    With cycles, the start of a cycle makes it due; this is the time at which it would be due otherwise.
    """
    return now + interval_s if policy.next_cycle is None else max(now, policy.next_cycle) + policy.cycle_s


def next_refresh(now: int, interval_s: int, policy: RecrawlPolicy) -> int:
    """Return when a page is due by age, after a round that ended now without an error."""
    due = next_fetch(now, interval_s, policy)
    return due if policy.due_by_age else due + NOT_DUE_BY_AGE


def error_wait(errors: int, *, interval_s: int, policy: RecrawlPolicy) -> int:
    """Return the seconds until the refresh after `errors` failed rounds in a row: growing, from the shortest interval to its own."""
    return min(interval_s, round(ldexp(policy.refresh_min_s, min(max(errors, 1) - 1, 60))))


def retry_wait(retries: int, *, retry_after_s: float | None, policy: RecrawlPolicy) -> int:
    """Return the seconds before retry number `retries`: growing, and never less than the host requested."""
    wait = min(ldexp(policy.retry_wait_s, min(retries - 1, 60)), policy.retry_after_max_s)
    if retry_after_s is not None:
        wait = max(wait, min(retry_after_s, policy.retry_after_max_s))
    return max(1, round(wait))


def site_wait(retries: int, retry_after_s: float | None, *, policy: RecrawlPolicy) -> float:
    """Return the seconds for which a site is paused at its request: its Retry-After, else as before a retry."""
    if retry_after_s is None:
        return retry_wait(retries + 1, retry_after_s=None, policy=policy)
    return min(retry_after_s, policy.retry_after_max_s)
