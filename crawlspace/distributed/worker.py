"""The store of a worker: the collection's in Redis, but that the crawl never waits for it on the path of a page.

What the frontier asks comes from the `Supply`; what is only to be noted is written behind the crawl. What is asked seldom, or before the
crawl begins, is asked of the server at once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex

import redis

from crawlspace.cache import Recent, RecentByWeight
from crawlspace.clock import Clock
from crawlspace.crawl.outcomes import OutcomePolicy
from crawlspace.distributed.prefetch import Background, Prefetch
from crawlspace.errors import StoreError
from crawlspace.frontier.frontier import Frontier
from crawlspace.model import Queue, Source, UrlState
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import AcquiredSite, Worker
from crawlspace.state.site_health import NEW_SITE, Health
from crawlspace.state.store import Change, Effects, RobotsEntry, Site
from crawlspace.state.unreachable import UnreachableSite

BORN = "born"
"""Tells a collection from one that was made anew after the server had lost it."""
_SITES = 20_000
_ROBOTS_CHARACTERS = 8_000_000


@dataclass(slots=True)
class _Known:
    """What is known of a site that is held."""

    health: Health
    schemes: set[str]
    """Those of which the server has, or will have, a robots.txt."""


def _weight(_: object, entry: RobotsEntry) -> int:
    return 200 + len(entry.body)


class SharedStore(RedisStore):
    """The store of one worker. Until `begin` it is as any other; from then on it may be used on the crawl's thread."""

    def __init__(
        self,
        client: redis.Redis,
        collection: str,
        *,
        sinks: Sequence[str],
        background: Background,
        clock: Clock,
        lease_s: int,
        timeout_s: float,
        sources: Iterable[Source] = tuple(Source),
        most_sites: int | None = None,
    ) -> None:
        super().__init__(client, collection, sinks=sinks, crawls=True)
        self.worker = Worker(self, timeout_s=timeout_s, sources=sources)
        self.background = background
        self.prefetch = Prefetch(
            self.worker,
            background,
            clock=clock,
            lease_s=lease_s,
            most_sites=most_sites,
            come_back=self._come_back,
        )
        self._known: Recent[str, _Known] = Recent(_SITES)
        self._robots: RecentByWeight[tuple[str, str], RobotsEntry] = RecentByWeight(_ROBOTS_CHARACTERS, _weight)
        self._written: tuple[Sequence[Change], int] | None = None
        self._refused: deque[Mapping[str, int]] = deque()
        """Links refused, by reason: counted with the outcomes that are recorded next, which saves a call."""
        self._counting: Counter[str] = Counter()
        """Those that go with the call that is under way."""
        born = self.get_meta(BORN)
        self.is_new = born is None and not self.scan(0, 1)
        """The server knew nothing of the collection."""
        self._born = born or token_hex(8)
        self._shares = False

    def keep(self) -> None:
        """Have the server know of the collection from now on."""
        self.set_meta(BORN, self._born)

    def begin(
        self,
        frontier: Frontier,
        outcome_policy: OutcomePolicy,
        *,
        changed: Callable[[], None],
        wake: Callable[[], None],
        unreachable: Callable[[str, UnreachableSite | None], None],
    ) -> None:
        """Supply a crawl from now on; see Supply.begin. `unreachable` is called with each site that is taken and its row, if it has one."""

        def arrived(one: AcquiredSite) -> None:
            if one.known is None:
                return
            health = one.known.health or NEW_SITE
            self._known.put(one.site, _Known(health, {entry.scheme for entry in one.known.robots}))
            outcome_policy.know(one.site, health)
            unreachable(one.site, one.known.unreachable)
            for entry in one.known.robots:
                self._robots.put((entry.site, entry.scheme), entry)

        self._shares = True
        self.prefetch.begin(frontier, arrived=arrived, changed=changed, wake=wake)

    # the frontier's queue
    def sites(self) -> Iterator[Site]:
        return self.prefetch.sites()

    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]:
        return self.prefetch.lease(site, limit, now=now, until=until, queue=queue)

    def release(self, ids: Iterable[int]) -> None:
        self.prefetch.release(ids)

    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
        return self.prefetch.reclaim(now=now, keep=keep)

    def begin_run(self, at: int | None, *, goes_on: bool = False) -> None:
        """The run of all workers; the first of them has restored what was set aside."""
        self.background.do(lambda: self.worker.begin_run(at)) if self._shares else self.worker.begin_run(at)

    def due(self, site: str) -> list[tuple[Queue, int]]:
        return self.prefetch.due(site)

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        self.prefetch.wait_site(site, until, wait_s=wait_s)

    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None:
        self.background.do(lambda: self.worker.set_unreachable(site, row))

    def give_up(self, site: str) -> None:
        self.prefetch.give_up(site)

    def resume(self, site: str) -> None:
        self.prefetch.resume(site)

    # results
    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        """Record what this worker holds. The same list again is the same call again, for its answer may have been lost."""
        if self._written is None or self._written[0] is not changes:
            self._written = changes, self.worker.next_number()
            self._gather_refused()
        for site, how in (health or {}).items():
            if (known := self._known.get(site)) is not None:
                known.health = how
        effects = self.worker.record(changes, now=now, health=health, refused=self._counting, number=self._written[1])
        self._counting = Counter()
        return effects

    def health(self, site: str) -> Health:
        known = self._known.get(site)
        return super().health(site) if known is None else known.health

    def version(self) -> int:
        """Always the same: what others do arrives with the sites."""
        return 0

    # robots.txt
    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        entry = self._robots.get((site, scheme))
        if entry is None:
            known = self._known.get(site)
            if known is None or scheme in known.schemes:
                entry = super().robots(site, scheme)
        return entry

    def save_robots(self, entry: RobotsEntry) -> None:
        self._robots.put((entry.site, entry.scheme), entry)
        if (known := self._known.get(entry.site)) is not None:
            known.schemes.add(entry.scheme)
        self.background.do(lambda: self.worker.save_robots(entry))

    # refusals
    def count_refusals(self, by_reason: Mapping[str, int]) -> None:
        if self._shares:
            self._refused.append(dict(by_reason))
        else:
            super().count_refusals(by_reason)

    def count_the_rest(self) -> None:
        """Count the links refused that no outcome follows. Behind the crawl, at its end."""

        def count() -> None:
            self._gather_refused()
            super(SharedStore, self).count_refusals(self._counting)
            self._counting = Counter()

        self.background.do(count)

    def _gather_refused(self) -> None:
        while self._refused:
            self._counting.update(self._refused.popleft())

    def _come_back(self) -> None:
        if self.get_meta(BORN) != self._born:
            raise StoreError(
                "Redis has lost this collection, as when it is restarted without having kept anything: nothing is deleted from the index;"
                " put a copy of its data back, or move the index away too and crawl anew"
            )
        self.worker.begin_again()
