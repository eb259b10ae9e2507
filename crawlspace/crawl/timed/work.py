"""What the time makes due besides each URL's own interval: cycles, and what follows from a clock that was set back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.timed.clock_changes import ClockWatch
from crawlspace.crawl.timed.cycles import Cycles, Step
from crawlspace.state.recrawl import RecrawlPolicy, retry_wait
from crawlspace.state.store import Store


class PassingTime:
    """All that was to be done before a start is done when it is made; in a crawl it goes on in steps."""

    def __init__(self, collection: Collection, store: Store, clock: Clock) -> None:
        longest_s = max(collection.policy.refresh_max_s, 2 * collection.refresh_cycle_s)
        longest_retry_s = retry_wait(max(1, collection.policy.retry_times), retry_after_s=None, policy=collection.policy)
        self._continuous = collection.continuous
        self._watch = ClockWatch(store, clock, longest_s=longest_s)
        self.hastened = self._watch.start(longest_retry_s=longest_retry_s)
        """URLs that were due too late, because the clock has been set back or the longest interval made shorter."""
        counts = store.counts()
        self.retries_until = clock.now() + longest_retry_s if counts.retrying else 0.0
        """Until when retries that an earlier run has left are outstanding."""
        self._cycles = Cycles(collection, store, clock)
        self._cycles.start(has_work=counts.has_work)

    def policy(self) -> RecrawlPolicy:
        """The policy as it is in the present cycle."""
        return self._cycles.policy()

    @property
    def has_steps(self) -> bool:
        """More is to be done before long."""
        return self._cycles.has_steps or self._watch.has_steps

    def go_on(self, *, is_idle: Callable[[], bool]) -> Iterator[Step]:
        """Do a part of what is to be done by now, and yield what has changed by that."""
        step = self._cycles.go_on(is_idle=is_idle) if self._continuous else None
        if step is not None:
            yield step
        if due := self._watch.glance():
            yield Step(due=due)

    def end(self) -> None:
        """At the end of a crawl: look at the clock once more."""
        self._watch.look()
