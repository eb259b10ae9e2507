"""The store of a collection in Redis as used by one of its workers: without waiting for the server at each page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex

import redis

from crawlspace.cache import Recent, RecentByWeight
from crawlspace.distributed.owned_sites import Background, OwnedSites
from crawlspace.errors import StoreError
from crawlspace.model import Source
from crawlspace.state.changes import Change, Effects
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import SiteKnowledge, Worker
from crawlspace.state.site_health import NEW_SITE, Health
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import RobotsEntry

MAX_SITES = 20_000
MAX_ROBOTS_CHARACTERS = 8_000_000


@dataclass(slots=True)
class _CachedSite:
    health: Health
    schemes: set[str]
    """The schemes for which the server has a robots.txt, or will have it."""


class WorkerStore:
    """The store as one worker of a running crawl uses it for each page.

    The state of owned sites is cached; writes that need no reply are made on a background thread. Everything else is read from the store
    itself.
    """

    def __init__(self, store: RedisStore, worker: Worker, background: Background) -> None:
        self.store = store
        self.worker = worker
        self.sites = OwnedSites(worker, background)
        self._background = background
        self._known: Recent[str, _CachedSite] = Recent(MAX_SITES)
        self._robots: RecentByWeight[tuple[str, str], RobotsEntry] = RecentByWeight(MAX_ROBOTS_CHARACTERS, _weight)
        self._written: tuple[Sequence[Change], int] | None = None
        """The changes of the last call of `record`, and the number of that call."""

    def learn(self, site: str, known: SiteKnowledge) -> None:
        """Cache the state of an acquired site."""
        self._known.put(site, _CachedSite(known.health or NEW_SITE, {entry.scheme for entry in known.robots}))
        for entry in known.robots:
            self._robots.put((entry.site, entry.scheme), entry)

    def begin_run(self, at: int | None, *, resumes: bool = False) -> None:
        """Begin the run of all workers; the first of them has released the URLs that an earlier run deferred."""
        if resumes:
            self._background.do(lambda: self.worker.begin_run(at))
        else:
            self.worker.begin_run(at)

    def version(self) -> int:
        """Return always the same: writes of other workers become known with the sites."""
        return 0

    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        """Record changes of URLs that this worker has leased.

        Passing the same list again repeats the same call, because the reply to the first one may have been lost.
        """
        if self._written is None or self._written[0] is not changes:
            self._written = changes, self.worker.next_number()
        for site, of_site in (health or {}).items():
            if (known := self._known.get(site)) is not None:
                known.health = of_site
        return self.worker.record(changes, now=now, health=health, number=self._written[1])

    def lost_links(self, ids: Collection[int]) -> set[int]:
        return self.store.lost_links(ids)

    def health(self, site: str) -> Health:
        known = self._known.get(site)
        return self.store.health(site) if known is None else known.health

    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None:
        self._background.do(lambda: self.worker.set_unreachable(site, row))

    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        entry = self._robots.get((site, scheme))
        if entry is None:
            known = self._known.get(site)
            if known is None or scheme in known.schemes:
                entry = self.store.robots(site, scheme)
        return entry

    def save_robots(self, entry: RobotsEntry) -> None:
        self._robots.put((entry.site, entry.scheme), entry)
        if (known := self._known.get(entry.site)) is not None:
            known.schemes.add(entry.scheme)
        self._background.do(lambda: self.worker.save_robots(entry))


def _weight(_: object, entry: RobotsEntry) -> int:
    return 200 + len(entry.body)


_MARK = "born"


class CollectionMark:
    """Detects that a server has lost a collection, as after a restart without persistence, by a random value that is stored with the collection."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        stored = store.get_meta(_MARK)
        self.is_new = stored is None and not store.scan(0, 1)
        """Whether the server had no data of the collection."""
        self._value = stored or token_hex(8)

    def save(self) -> None:
        self._store.set_meta(_MARK, self._value)

    def check(self) -> None:
        """Raise StoreError if the server has lost the collection since."""
        if self._store.get_meta(_MARK) != self._value:
            raise StoreError(
                "Redis has lost this collection, as after a restart without persistence: nothing is deleted from the index;"
                " put a copy of its data back, or move the index away too and crawl again"
            )


@dataclass(frozen=True, slots=True)
class SharedStore:
    store: RedisStore
    worker: Worker
    view: WorkerStore
    """The store as the running crawl uses it."""
    mark: CollectionMark

    @classmethod
    def open(
        cls,
        client: redis.Redis,
        collection: str,
        *,
        sinks: Sequence[str],
        background: Background,
        timeout_s: float,
        sources: Iterable[Source] = tuple(Source),
    ) -> SharedStore:
        """`sources` are those that are not paused; a worker that does not report for `timeout_s` expires. Raises StoreError."""
        store = RedisStore(client, collection, sinks=sinks, crawls=True)
        worker = Worker(store, timeout_s=timeout_s, sources=sources)
        return cls(store, worker, WorkerStore(store, worker, background), CollectionMark(store))

    def join_again(self) -> None:
        """Join the other workers after this one expired. Raises StoreError if the server has lost the collection."""
        self.mark.check()
        self.worker.begin_again()
