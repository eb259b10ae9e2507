"""The store of a collection on a Redis server, opened for commands while workers may crawl it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from crawlspace.admin.delivery import CRAWL_UPDATES_INDEX, SentElsewhere, deliver
from crawlspace.clock import Clock
from crawlspace.config.secrets import read_store_url
from crawlspace.config.sinks import EMBEDDED, SinkSettings
from crawlspace.distributed.connection import connected, server_faults
from crawlspace.errors import StoreLocked
from crawlspace.parsing import duration
from crawlspace.runtime.session.sinks import give_orders_to
from crawlspace.state.redis.keys import Key
from crawlspace.state.redis.server import redis_errors
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker, WorkerExpired, WorkerSeen, workers
from crawlspace.state.views import Crawler, Share

if TYPE_CHECKING:
    from crawlspace.distributed.server_check import ServerFault


class RedisLocation:
    """The location of a store on a server."""

    is_shared = True

    def __init__(self, collection: str, settings: Mapping[str, object], sinks: SinkSettings) -> None:
        self._collection = collection
        self._sinks = sinks
        self._settings = settings

    @contextmanager
    def reading(self) -> Iterator[OnServer | None]:
        with self.changing() as opened:
            yield opened

    @contextmanager
    def changing(self) -> Iterator[OnServer | None]:
        with self._opened() as opened:
            is_known = _is_known(opened.store)
            if is_known:
                give_orders_to(opened.store, self._sinks)
            yield opened if is_known else None

    @contextmanager
    def filling(self) -> Iterator[OnServer]:
        with self._opened(fills=True) as opened:
            give_orders_to(opened.store, self._sinks)
            yield opened

    def faults(self) -> Sequence[ServerFault]:
        return server_faults(self._settings)

    @contextmanager
    def _opened(self, *, fills: bool = False) -> Iterator[OnServer]:
        read_store_url(self._settings["CRAWLSPACE_STORE_URL"])
        timeout_s = duration("CRAWLSPACE_WORKER_TIMEOUT", self._settings["CRAWLSPACE_WORKER_TIMEOUT"], low=5)
        with closing(RedisStore(connected(self._settings, fills=fills), self._collection, sinks=self._sinks.names)) as store:
            yield OnServer(store, self._collection, timeout_s)


@dataclass(frozen=True, slots=True)
class OnServer:
    store: RedisStore
    collection: str
    timeout_s: float

    def crawlers(self) -> Sequence[Crawler]:
        now = self._now_ms() / 1000
        return [_crawler(one, now) for one in sorted(self._alive(), key=lambda one: (one.since, one.name))]

    def stamp(self) -> str:
        numbers = self.store.server.command("HMGET", Key.COUNTERS, "writes", "edits")
        return " ".join((number or b"0").decode(errors="replace") for number in numbers)

    def index_place(self) -> str:
        place = self.store.server.command("HGET", Key.INDEX, EMBEDDED)
        return "" if place is None else place.decode(errors="replace")

    def deliver(self, sinks: SinkSettings, clock: Clock) -> str:
        return deliver(self.store, sinks, owner=self.collection, clock=clock, alone=self.alone)

    @contextmanager
    def alone(self, sink: str, place: str) -> Iterator[Callable[[], object]]:
        """Join the workers without crawling, as the sender."""
        drainer, there = (self.store.server.command("HGET", kind, sink) for kind in (Key.DRAIN, Key.INDEX))
        if drainer is not None and any(one.name == drainer.decode(errors="replace") for one in self._alive()):
            raise StoreLocked(CRAWL_UPDATES_INDEX)
        if there is None and place:
            raise SentElsewhere(" until the next crawl")
        if there is not None and (found := there.decode(errors="replace")) != place:
            raise SentElsewhere(f", which is at {found}: the next crawl there sends them")
        sender = Worker(self.store, timeout_s=self.timeout_s)
        self.store.server.command("ZADD", Key.WORKERS, self._now_ms(), sender.name)
        try:
            sender.heartbeat()  # a sender that does not report any more expires
            if not sender.drains(sink, place)[0]:
                raise StoreLocked(CRAWL_UPDATES_INDEX)
            yield sender.heartbeat
        except WorkerExpired as error:
            raise StoreLocked("sending took so long that another worker sends now") from error
        finally:
            sender.leave()

    def _alive(self) -> list[WorkerSeen]:
        return [one for one in workers(self.store) if one.unseen_s < self.timeout_s]

    def _now_ms(self) -> int:
        """Return the time of the server."""
        with redis_errors():
            seconds, microseconds = self.store.server.client.time()
        return int(seconds) * 1000 + int(microseconds) // 1000


class _Report(msgspec.Struct):
    """The report in a worker's heartbeat."""

    ran_s: float = 0.0
    """Since it was started: after it expired and joined again, the server knows it for a shorter time."""
    fetched: int = 0
    errors: int = 0
    documents: int = 0


def _is_known(store: RedisStore) -> bool:
    command = store.server.command
    return bool(command("EXISTS", Key.META) or command("HEXISTS", Key.COUNTERS, "urls"))


def _crawler(one: WorkerSeen, now: float) -> Crawler:
    try:
        report = msgspec.json.decode(one.report, type=_Report)
    except (msgspec.MsgspecError, RecursionError):
        report = _Report()  # none yet, or of another version
    ran_s = report.ran_s or now - one.unseen_s - one.since
    share = Share(
        host=one.host,
        unseen_s=one.unseen_s,
        sites=one.sites,
        urls=one.urls,
        fetched=report.fetched,
        errors=report.errors,
        documents=report.documents,
        per_second=report.fetched / max(ran_s, 1.0),
    )
    return Crawler(one.process, one.since, share)
