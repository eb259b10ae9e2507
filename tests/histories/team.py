"""A crawl by several workers over Redis, in one process: scheduled at random, killed between any two calls of the server, and replaced.

Calls of the server are made at random moments, in order, as by the thread of a real worker. Now and then an answer
is lost, and the call is made again.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection as Configured
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.rule_changes.rediscovery import SpiderCode
from crawlspace.crawl.run import FetchPage, FetchRobots
from crawlspace.crawl.sinks.backfill import Backfill
from crawlspace.crawl.startup import Startup, build_space, open_engine, rules_of
from crawlspace.distributed.prefetch import Prefetch
from crawlspace.distributed.shared_store import SharedStore
from crawlspace.frontier.frontier import Frontier
from crawlspace.index.outbox import Drain
from crawlspace.index.sink import Sink
from crawlspace.model import UrlState
from crawlspace.state.changes import Effects
from crawlspace.state.redis.keys import Key
from crawlspace.state.redis.workers import AcquiredSite
from crawlspace.state.site_health import NEW_SITE
from tests.histories.configuration import Configuration
from tests.histories.depths import end_run_checked
from tests.histories.driver import NAME, SimulatedCrawler
from tests.histories.fate import Countdown, Failing, Fate, Killed, Run, Stuck, errors_into, kill_between_calls
from tests.histories.sinks import SEARCH, fill
from tests.servers import client_of_pool

_ROUNDS = 60_000
_PLACE = "here"
_PLACES = {EMBEDDED: _PLACE, SEARCH: ""}


class Calls:
    """Calls of the server that wait to be made."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.jobs: deque[tuple[Callable[[], Any], Callable[[Any], None] | None]] = deque()

    def begin(self, failed: Callable[[BaseException], None]) -> None: ...
    def settle(self) -> None: ...
    def hurry(self) -> None: ...
    def finish(self) -> None: ...

    def do(self, job: Callable[[], Any], done: Callable[[Any], None] | None = None) -> None:
        self.jobs.append((job, done))

    def make(self, most: int) -> bool:
        """Make some of them. Returns whether there were any."""
        made = False
        while self.jobs and most > 0:
            made, most = True, most - 1
            job, done = self.jobs.popleft()
            found = job()
            if self._chance.random() < 0.05:
                found = job()  # the first answer was lost
            if done is not None:
                done(found)
        return made


@dataclass(eq=False)
class Member:
    shared: SharedStore
    engine: Engine
    calls: Calls
    startup: Startup
    width: int
    commits: float
    clock: Clock
    filling: Backfill | None = None
    in_flight: list[FetchPage | FetchRobots] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = self.shared.store
        self.prefetch = Prefetch(
            self,
            self.shared.view.sites,
            self.shared.worker,
            self.calls,
            others=self,
            join_again=self.shared.join_again,
            clock=self.clock,
            lease_s=self.engine.collection.lease_s,
            max_sites=self.engine.collection.max_sites,
        )

    @property
    def is_done(self) -> bool:
        return self.engine.is_done() and self.prefetch.is_over

    @property
    def frontier(self) -> Frontier:
        return self.engine.frontier

    def is_idle(self) -> bool:
        return self.engine.is_idle()

    def leased_again(self, state: UrlState) -> bool:
        return self.engine.leased_again(state)

    def site_acquired(self, one: AcquiredSite) -> None:
        if one.known is not None:
            self.shared.view.learn(one.site, one.known)
            self.engine.site_acquired(one.site, one.known.health or NEW_SITE, one.known.unreachable)

    def store_changed(self) -> None:
        self.engine.forget_known()

    def wake(self) -> None: ...

    def report(self) -> str:
        return ""

    def deletions(self) -> int:
        return self.engine.deleted

    def waiting(self) -> Collection[str]:
        return ()

    def is_requesting(self, site: str) -> bool:
        return False

    def begin(self, site: str) -> None: ...

    def has_requested(self, site: str) -> bool:
        return False

    def commit(self) -> None:
        if self.engine.begin_commit():
            self.calls.do(self.engine.write, self._end_commit)

    def _end_commit(self, effects: Effects | None) -> None:
        assert effects is not None, "a batch could not be stored"
        self.engine.end_commit(effects)

    def drain(self) -> bool:
        sent = [self._send(drain) for drain in self.engine.deliveries.drains]
        return any(sent)

    def _send(self, drain: Drain) -> bool:
        drains, _ = self.shared.worker.drains(drain.sink, _PLACES[drain.sink])
        if not drains:
            drain.leave_to_others()
            return False
        fills = fill(drain, self.filling)
        batch = drain.take()
        return drain.settle(drain.deliver(batch)).waiting_s is None if batch else fills

    def finish(self) -> None:
        """Record all outcomes that were taken."""
        while self.engine.uncommitted or self.engine.is_writing:
            self.commit()
            self.calls.make(1000)


class Team:
    """The workers of one crawl."""

    def __init__(self, crawler: SimulatedTeam, collection: Configured, sinks: Sequence[Sink], fate: Fate) -> None:
        self._crawler = crawler
        self._chance = crawler.chance
        self._collection = collection
        self._sinks = sinks
        self._fate = fate
        self._countdown = Countdown(fate.kill_after)
        self.members: list[Member] = []

    def join(self) -> bool:
        try:
            self.members.append(self._crawler.joined(self._collection, self._sinks, self._countdown))
        except Killed:
            self._countdown = Countdown(None)
            return False
        return True

    def work(self, run: Run) -> str:
        """Work until all is done. Return how it ended."""
        chance, fate, clock = self._chance, self._fate, self._crawler.clock
        midway = chance.randint(1, 100) if fate.midway is not None else -1
        began, idle = clock.now(), 0
        for step in range(_ROUNDS):
            if fate.stop_after is not None and step >= 3 * fate.stop_after:
                return self._end(run, "stopped")
            if step == midway and fate.midway is not None:
                run.changes.append(fate.midway())
            if all(member.is_done for member in self.members):
                return self._end(run, "finished")
            member = chance.choice(self.members)
            try:
                idle = 0 if self._crawler.act(member, run) else idle + 1
            except Killed:
                if not self._killed(member):
                    return "killed"
            if idle > 6 * len(self.members):
                idle = 0
                wait = self._wait()
                if self._collection.continuous and clock.now() + wait > began + fate.continues_for:
                    return self._end(run, "finished")
                clock.advance(wait)
        cluster = [member.prefetch.cluster for member in self.members]
        raise Stuck(f"the crawl does not end: {self.members[0].store.counts()} {cluster}")

    def _wait(self) -> float:
        """Return how long it takes until a request may be due, or a result may arrive."""
        if any(member.engine.has_steps for member in self.members):
            return 1.0  # some steps at once
        arounds = [member.prefetch.cluster for member in self.members]
        if self._collection.continuous and all(cluster is not None and cluster.is_nothing_left for cluster in arounds):
            due = self.members[0].store.server.client.zrange(f"{{{NAME}}}:later", 0, 0, withscores=True)
            return max(0.5, float(due[0][1]) / 1000 - self._crawler.clock.now()) if due else 1000.0
        client, now = self.members[0].store.server.client, self._crawler.clock.now()
        rests = [rest for at in client.hvals(f"{{{NAME}}}:wait") if (rest := int(at.split()[0]) - now) > 0]
        if rests and not client.exists(f"{{{NAME}}}:owner"):
            return min(rests)  # all pending URLs are at sites that are paused until then
        waits = [wait for member in self.members if (wait := member.engine.wake_in()) is not None]
        if self._chance.random() < 0.7:
            return max(0.05, min([0.5, *waits]))
        return max(0.5, min(waits, default=0.5))

    def _killed(self, member: Member) -> bool:
        """Remove a dead worker, and mostly replace it. Return whether there is one left."""
        self.members.remove(member)
        expire(member.shared)
        self._countdown = Countdown(self._chance.randint(10, 300) if self._chance.random() < 0.5 else None)
        for other in self.members:
            kill_between_calls(other.store, self._countdown)
        if self._chance.random() < (0.7 if self.members else 0.5):
            self.join()
        return bool(self.members)

    def _end(self, run: Run, how: str) -> str:
        try:
            for member in self.members:
                member.finish()
            if how == "finished":
                self._settle(run)
            for member in self.members:
                while member.drain():
                    pass
            for member in self.members:
                member.engine.frontier.close()
                member.prefetch.close()
                member.calls.make(10_000)
                member.store.close()
        except Killed:
            return "killed"
        return how

    def _settle(self, run: Run) -> None:
        first = self.members[0]
        first.store.server.client.delete(f"{{{NAME}}}:{Key.SETTLING}")  # of one that was killed: it is waited for ten minutes
        with first.shared.store.settling() as is_this:
            assert is_this
            end_run_checked(first.engine, run)


def expire(shared: SharedStore) -> None:
    """Let a worker expire."""
    shared.store.server.client.zadd(f"{{{NAME}}}:workers", {shared.worker.name: 0}, xx=True)
    shared.store.close()


class SimulatedTeam(SimulatedCrawler):
    """The machines that crawl together; `kill_after` kills one worker after another."""

    @property
    def chance(self) -> random.Random:
        return self._chance

    def crawl(self, configuration: Configuration, fate: Fate) -> Run:
        collection = self.configured(configuration)
        run = Run()
        sink = self._open_sink()
        with errors_into(run.errors):
            try:
                self._crawl(collection, [Failing(sink, fate.index_fails, self._chance), *self.more_sinks(fate)], fate, run)
            except Exception as error:
                run.ended = "broken"
                run.errors.append(f"{type(error).__name__}: {error}")
                logging.getLogger(__name__).debug("broken", exc_info=True)
            finally:
                sink.close()
                if self.search is not None:
                    self.search.end()
        return run

    def _crawl(self, collection: Configured, sinks: Sequence[Sink], fate: Fate, run: Run) -> None:
        team = Team(self, collection, sinks, fate)
        try:
            self._work(team, collection, run)
        finally:
            for member in team.members:
                expire(member.shared)

    def _work(self, team: Team, collection: Configured, run: Run) -> None:
        with self.store() as store:
            indexed = store.counts().indexed
        run.deletion_limit_by_rules = max(collection.max_deletions, indexed * collection.max_deletions_percent // 100)
        if not team.join():
            run.ended = "killed"
            return
        plan = team.members[0].startup.plan
        if plan is not None:
            run.held_for_rules = plan.held
            run.deletions = plan.deletions - plan.held
        with self.store() as store:
            indexed = store.counts().indexed
        most = max(collection.max_deletions, indexed * collection.max_deletions_percent // 100)
        run.deletion_limit = 3 * most  # each of them hears late of the deletions of the others
        for _ in range(self._chance.choice((0, 1, 2))):
            team.join()
        began = self.clock.now()
        run.ended = team.work(run)
        run.moved_away = 10**6  # not known of members that were killed: what the web leads to bounds it
        run.lasted = run.stalled = self.clock.now() - began

    def joined(self, collection: Configured, sinks: Sequence[Sink], countdown: Countdown) -> Member:
        calls = Calls(self._chance)
        sources = [source for source, weight in collection.weights.items() if weight]
        shared = SharedStore.open(client_of_pool(), NAME, sinks=self.sinks, background=calls, timeout_s=10**6, sources=sources)
        store, worker = shared.store, shared.worker
        store.server.now_ms = lambda: 10**9 * 10 + int(self.clock.monotonic() * 1000)
        kill_between_calls(store, countdown)
        try:
            busy = worker.begin(rules_of(collection, build_space(collection)), index=(EMBEDDED, _PLACE))
            if busy is not None:  # killed before it was ready
                store.server.client.zadd(f"{{{NAME}}}:workers", {busy: 0})
                assert worker.begin(rules_of(collection, build_space(collection)), index=(EMBEDDED, _PLACE)) is None
            shared.mark.save()
            startup = open_engine(
                collection, store=store, sinks=sinks, clock=self.clock, worker=shared.view, spider=SpiderCode(str(self.spider))
            )
            worker.ready()
        except Killed:
            expire(shared)
            raise
        width, commits = self._chance.choice((1, 3, 8)), self._chance.choice((0.03, 0.2, 1.0))
        filling = self.search.filling_of(store, startup.engine, None) if self.search is not None and len(sinks) > 1 else None
        return Member(shared, startup.engine, calls, startup, width, commits, self.clock, filling)

    def act(self, member: Member, run: Run) -> bool:
        """Take one step of a worker. Return whether it had anything to do."""
        chance, engine = self._chance, member.engine
        member.prefetch.tick()
        made = member.calls.make(chance.choice((0, 1, 1, 5)))
        cluster = member.prefetch.cluster
        if cluster is not None:
            engine.note_others(waiting=dict(zip(self.sinks, cluster.waiting, strict=True)), deleted=cluster.deleted)
        fetch = engine.next_fetch() if len(member.in_flight) < member.width else None
        member.prefetch.refill()
        if fetch is not None:
            member.in_flight.append(fetch)
            self.send(engine, fetch)
            return True
        if member.in_flight:
            self._answer(engine, member.in_flight.pop(chance.randrange(len(member.in_flight))), run)
            if chance.random() < member.commits:
                member.commit()
            return True
        member.commit()
        return (chance.random() < 0.2 and member.drain()) or bool(member.calls.jobs) or made
