"""Work that depends on the time, besides each URL's own interval: cycles, schedules, and corrections of the times that are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.timed.clock_changes import ClockWatch
from crawlspace.crawl.timed.cycles import Cycles
from crawlspace.crawl.timed.schedule import ScheduledRefresh
from crawlspace.crawl.timed.smart_refresh import SmartRefresh
from crawlspace.crawl.timed.steps import TimedStep
from crawlspace.model import UrlState
from crawlspace.state.changes import Change
from crawlspace.state.recrawl import RecrawlPolicy, retry_wait
from crawlspace.state.store import Store


class PassingTime:
    """Completes work that is due at a start; in a crawl it continues in steps."""

    def __init__(self, collection: Collection, store: Store, clock: Clock) -> None:
        refresh = collection.refresh
        longest_s = max(collection.policy.refresh_max_s, 0 if refresh.cycle is None else 2 * refresh.cycle.longest_s)
        longest_retry_s = retry_wait(max(1, collection.policy.retry_times), retry_after_s=None, policy=collection.policy)
        self._continuous = collection.continuous
        self._watch = ClockWatch(store, clock, longest_s=longest_s)
        self.hastened = self._watch.start(longest_retry_s=longest_retry_s)
        """Number of URLs made due earlier, because the clock was set back or the longest interval was reduced."""
        counts = store.counts()
        self.retries_until = clock.now() + longest_retry_s if counts.retrying else 0.0
        """Time until which retries of earlier runs are outstanding."""
        self._cycles = Cycles(collection, store, clock)
        self._cycles.start(has_work=counts.has_work)
        self._smart = SmartRefresh(store, clock, counts=refresh.age_counts, longest_s=longest_s)
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
        """Whether there are steps after which more may be due in this run."""
        return self._smart.has_steps or self._schedule.has_steps

    def drop(self, state: UrlState, changes: list[Change]) -> bool:
        """Pass over a leased URL that is not due any more; return whether it is such a one."""
        return self._smart.drop(state, changes)

    def go_on(self, *, is_idle: Callable[[], bool]) -> Iterator[TimedStep]:
        """Make a part of the work that is due, and yield its effects."""
        step = self._cycles.go_on(is_idle=is_idle) if self._continuous else None
        for one in (step, self._smart.go_on(), self._schedule.go_on()):
            if one is not None:
                yield one
        if due := self._watch.glance():
            yield TimedStep(due=due)

    def end(self) -> None:
        """Check the clock at the end of a crawl."""
        self._watch.look()
