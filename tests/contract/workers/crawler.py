"""A worker whose calls of the server are made when a test says so, and steps of workers: joining, taking sites, expiring."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from crawlspace.clock import FakeClock
from crawlspace.distributed.prefetch import OtherRequests, Prefetch
from crawlspace.distributed.shared_store import SharedStore
from crawlspace.frontier.frontier import Frontier
from crawlspace.model import UrlState
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Acquired, AcquiredSite, Worker
from crawlspace.state.unreachable import UnreachableSite
from tests.contract.conftest import NOW, SINKS, short
from tests.servers import another_client
from tests.site_delays import FixedDelays

PAGES = 40


class Calls:
    """Calls of the server, each made when it is its turn."""

    def __init__(self) -> None:
        self._jobs: deque[tuple[Callable[[], Any], Callable[[Any], None] | None]] = deque()

    def begin(self, failed: Callable[[BaseException], None]) -> None: ...
    def settle(self) -> None: ...
    def hurry(self) -> None: ...
    def finish(self) -> None: ...

    def do(self, job: Callable[[], Any], done: Callable[[Any], None] | None = None) -> None:
        self._jobs.append((job, done))

    def make(self) -> None:
        while self._jobs:
            job, done = self._jobs.popleft()
            found = job()
            if done is not None:
                done(found)


class NoOtherRequests:
    """Other requests of a worker, which a test may replace."""

    def __init__(self) -> None:
        self.requests: OtherRequests | None = None

    def waiting(self) -> Collection[str]:
        return self.requests.waiting() if self.requests else ()

    def is_requesting(self, site: str) -> bool:
        return False

    def begin(self, site: str) -> None:
        if self.requests:
            self.requests.begin(site)

    def has_requested(self, site: str) -> bool:
        return self.requests is not None and self.requests.has_requested(site)


class Crawler:
    """One worker, which asks two pages of a site at once and keeps no delay."""

    def __init__(self, clock: FakeClock, *, timeout_s: float = 10**6) -> None:
        self.clock = clock
        self.calls = Calls()
        self.shared = SharedStore.open(another_client(), "shared", sinks=SINKS, background=self.calls, timeout_s=timeout_s)
        self.store, self.view, self.sites = self.shared.store, self.shared.view, self.shared.view.sites
        assert self.shared.worker.begin("rules") is None
        self.shared.worker.ready()
        self.frontier = Frontier(self.sites, clock=clock, site_delays=FixedDelays(0.0, 2), lease_s=600, others=self.sites)
        self.others = NoOtherRequests()
        self.prefetch = Prefetch(
            self,
            self.sites,
            self.shared.worker,
            self.calls,
            others=self.others,
            join_again=self.shared.join_again,
            clock=clock,
            lease_s=600,
        )
        self.in_flight: list[UrlState] = []
        self.unreachable: dict[str, UnreachableSite | None] = {}
        """What was known of the sites when they came."""
        self.changes = 0
        """How often the store may have come to know less."""

    def is_idle(self) -> bool:
        return True

    def leased_again(self, state: UrlState) -> bool:
        return state.id in {one.id for one in self.in_flight}

    def site_acquired(self, one: AcquiredSite) -> None:
        if one.known is not None:
            self.view.learn(one.site, one.known)
            self.unreachable[one.site] = one.known.unreachable

    def store_changed(self) -> None:
        self.changes += 1

    def wake(self) -> None: ...

    def report(self) -> str:
        return ""

    def deletions(self) -> int:
        return 0

    def tick(self) -> None:
        self.prefetch.tick()
        self.calls.make()

    def ask(self, most: int = 1000) -> list[str]:
        """Begin what may be asked now; return the sites."""
        began: list[str] = []
        while len(began) < most and (state := self.frontier.next()) is not None:
            self.in_flight.append(state)
            began.append(state.site.partition(".")[0])
        return began

    def not_sent(self) -> None:
        """None of the URLs in flight was requested after all, as for Engine.not_sent."""
        began, self.in_flight = self.in_flight, []
        for state in began:
            self.sites.release([state.id])
            self.frontier.recorded([state.id])
            self.frontier.finished(state)
            self.frontier.discovered([(state.site, state.queue)])

    def answered(self, *hosts: str) -> None:
        """What is under way at these hosts is over, and nothing follows it."""
        for state in [state for state in self.in_flight if state.site.partition(".")[0] in hosts]:
            self.in_flight.remove(state)
            self.frontier.finished(state)


LONG_S = 1000


def joined(store: RedisStore, rules: str = "r1", **given: object) -> Worker:
    worker = Worker(store, timeout_s=LONG_S, **given)  # type: ignore[arg-type]
    assert worker.begin(rules) is None
    worker.ready()
    return worker


def take(worker: Worker, new: int = 10, limit: int = 10, *, number: int | None = None, **refill: int) -> dict[str, list[str]]:
    return urls_of(
        worker.take(
            refill={f"{host}.example:80": many for host, many in refill.items()},
            new=new,
            limit=limit,
            now=NOW,
            until=NOW + 300,
            number=number,
        )
    )


def urls_of(taken: Acquired) -> dict[str, list[str]]:
    return {one.site.removesuffix(".example:80"): [short(state.url) for state in one.states] for one in taken.sites}


def expire(store: RedisStore, *dead: Worker) -> None:
    """Have workers be found dead by one that has just come."""
    for worker in dead:
        store.server.command("ZADD", "workers", 0, worker.name)


SITES = [f"{letter}.example/{number}" for letter in "abcd" for number in range(3)]
