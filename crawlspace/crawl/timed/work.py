"""Work that depends on the time, besides each URL's own interval: cycles, schedules, what sitemaps say, and corrections of the stored due times.

Where the clock was set back, or the longest interval reduced, URLs are made due within that interval from now. A robots.txt that was read
later than now is read again: once that time has come, it would count as new. The times of fetches before that are wrong, too, so that no sitemap
spares a page that has not been fetched since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.conditional import begin_generation
from crawlspace.crawl.run import RunCounters
from crawlspace.crawl.timed.lastmod import ALL, LastModified
from crawlspace.crawl.timed.refreshes import Cycles, ScheduledRefresh, SmartRefresh
from crawlspace.crawl.timed.steps import Steps, TimedStep
from crawlspace.model import UrlState
from crawlspace.state.changes import Change
from crawlspace.state.due_times import NOT_DUE_BY_AGE, DueChanges
from crawlspace.state.metadata import get_integer
from crawlspace.state.recrawl import RecrawlPolicy, retry_wait
from crawlspace.state.store import Store

SEEN_AT = "seen_at"
"""Meta: the clock at the last check."""
LONGEST = "longest_interval"
"""Meta: the longest interval at the last check, in seconds."""
_SET_BACK_S = 60
"""Minimal difference of a clock that was set back; time servers cause smaller ones."""
_CHECK_EVERY_S = 300.0


class PassingTime:
    """Completes work that is due at a start; in a crawl it continues in steps."""

    def __init__(self, collection: Collection, store: Store, clock: Clock, *, progress: RunCounters) -> None:
        refresh = collection.refresh
        longest_s = max(
            collection.policy.refresh_max_s,
            collection.sites.longest_refresh_s,
            0 if refresh.cycle is None else 2 * refresh.cycle.longest_s,
        )
        longest_retry_s = retry_wait(max(1, collection.policy.retry_times), retry_after_s=None, policy=collection.policy)
        self._continuous = collection.continuous
        self._watch = ClockWatch(store, clock, longest_s=longest_s)
        self.due_earlier = self._watch.start(longest_retry_s=longest_retry_s)
        """Number of URLs made due earlier, because the clock was set back or the longest interval was reduced."""
        counts = store.counts()
        self.retries_until = clock.now() + longest_retry_s if counts.retrying else 0.0
        """Time until which retries of earlier runs are outstanding."""
        self._cycles = Cycles(collection, store, clock)
        self._cycles.start(has_work=counts.has_work)
        self._smart = SmartRefresh(store, clock, counts=refresh.has_due_times, longest_s=longest_s)
        self.lastmod = LastModified(store, clock, fresh_s=collection.policy.sitemap_refresh_s or 0, progress=progress)
        self._schedule = ScheduledRefresh(refresh.schedule, store, clock, continuous=collection.continuous)

    def policy(self) -> RecrawlPolicy:
        """Return the policy of the present cycle."""
        return self._cycles.policy()

    @property
    def has_steps(self) -> bool:
        """Whether steps remain."""
        return self._cycles.has_steps or self._watch.has_steps or self.has_more_to_fetch

    @property
    def has_more_to_fetch(self) -> bool:
        """Whether steps remain after which more may be due in this run."""
        return self._smart.has_steps or self._schedule.has_steps or self.lastmod.has_steps

    def drop(self, state: UrlState, changes: list[Change]) -> bool:
        """Skip a leased URL that is not due any more; return whether it was skipped."""
        return self._smart.drop(state, changes)

    def resume(self, *, is_idle: Callable[[], bool]) -> Iterator[TimedStep]:
        """Do a part of the due work, and yield its effects."""
        step = self._cycles.resume(is_idle=is_idle) if self._continuous else None
        for one in (step, self._smart.resume(), self._schedule.resume(), self.lastmod.resume(), self._watch.step()):
            if one is not None:
                yield one

    def end(self) -> None:
        """Check the clock at the end of a crawl."""
        self._watch.check()


class ClockWatch:
    """Checks the clock at a start, every few minutes of a crawl, and at its end."""

    def __init__(self, store: Store, clock: Clock, *, longest_s: int) -> None:
        self._store = store
        self._clock = clock
        self._longest_s = longest_s
        self._checked_at = clock.monotonic()
        self._was_set_back = False
        self._steps: Steps[DueChanges] = Steps(clock)

    def start(self, *, longest_retry_s: int) -> int:
        """Make the first check, and make the retries of earlier runs due within the longest wait for a retry.

        A longer wait that a site requested (Retry-After) is stored with the site.
        """
        if self._store.counts().retrying:
            self._store.make_retries_due_by(int(self._clock.now()) + longest_retry_s)
        return self.check()

    def check(self) -> int:
        """Make URLs due within the longest interval from now, if the clock or the setting was reduced; return their number."""
        return sum(step.number for step in self._all_steps())

    @property
    def has_steps(self) -> bool:
        """Whether steps of the last check remain."""
        return self._steps.has_remaining

    def step(self) -> TimedStep | None:
        """Check if the last check is long ago, and make one step; return its effects."""
        if not self._steps.has_remaining and self._clock.monotonic() - self._checked_at >= _CHECK_EVERY_S:
            self._steps.begin(self._all_steps())
        step = self._steps.next()
        return None if step is None else TimedStep(begins_cycle=self._was_set_back, due=step.due)

    def _all_steps(self) -> Iterator[DueChanges]:
        now = int(self._clock.now())
        seen_at, longest = get_integer(self._store, SEEN_AT), get_integer(self._store, LONGEST)
        set_back = self._was_set_back = seen_at is not None and now < seen_at - _SET_BACK_S
        shortened = longest is not None and self._longest_s < longest
        if set_back:
            self._store.forget_robots(read_after=now)
            if self._store.get_meta(ALL):
                begin_generation(self._store)
        has_more, after = set_back or shortened, 0
        while has_more:
            step = self._store.make_due_by(now + self._longest_s, after=after, until=NOT_DUE_BY_AGE)
            after = step.last
            has_more = after > 0
            yield step
        if longest != self._longest_s:
            self._store.set_meta(LONGEST, str(self._longest_s))
        self._store.set_meta(SEEN_AT, str(now))
        self._checked_at = self._clock.monotonic()
