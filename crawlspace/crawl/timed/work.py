"""Work that depends on the time, besides each URL's own interval: cycles, and corrections after the clock was set back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.timed.clock_changes import ClockWatch
from crawlspace.crawl.timed.cycles import Cycles, TimedStep
from crawlspace.state.recrawl import RecrawlPolicy, retry_wait
from crawlspace.state.store import Store


class PassingTime:
    """Completes work that is due at a start; in a crawl it continues in steps."""

    def __init__(self, collection: Collection, store: Store, clock: Clock) -> None:
        longest_s = max(collection.policy.refresh_max_s, 2 * collection.refresh_cycle_s)
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

    def policy(self) -> RecrawlPolicy:
        """Return the policy of the present cycle."""
        return self._cycles.policy()

    @property
    def has_steps(self) -> bool:
        """Whether steps remain."""
        return self._cycles.has_steps or self._watch.has_steps

    def go_on(self, *, is_idle: Callable[[], bool]) -> Iterator[TimedStep]:
        """Make a part of the work that is due, and yield its effects."""
        step = self._cycles.go_on(is_idle=is_idle) if self._continuous else None
        if step is not None:
            yield step
        if due := self._watch.glance():
            yield TimedStep(due=due)

    def end(self) -> None:
        """Check the clock at the end of a crawl."""
        self._watch.look()
