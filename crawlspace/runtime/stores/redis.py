"""The store of a collection on a Redis server, opened beside the workers that crawl it, if any do."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from crawlspace.admin.url_changes import CRAWL_UPDATES_INDEX, deliver
from crawlspace.config.store_url import read_store_url
from crawlspace.crawl.engine import SINK
from crawlspace.distributed.connection import connected
from crawlspace.errors import StoreLocked
from crawlspace.parsing import duration
from crawlspace.plural import counted
from crawlspace.runtime.stores.index_place import index_place
from crawlspace.state.redis.keys import Key
from crawlspace.state.redis.scripts import redis_errors
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker, WorkerExpired, WorkerSeen, workers
from crawlspace.state.who_crawls import Crawler, Share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from crawlspace.clock import Clock


class RedisPlace:
    """A collection that the server does not know was never crawled."""

    is_shared = True

    def __init__(self, collection: str, settings: Mapping[str, object]) -> None:
        self._collection = collection
        self._settings = settings

    @contextmanager
    def reading(self) -> Iterator[OnServer | None]:
        with self.changing() as opened:
            yield opened

    @contextmanager
    def changing(self) -> Iterator[OnServer | None]:
        read_store_url(self._settings["CRAWLSPACE_STORE_URL"])
        timeout_s = duration("CRAWLSPACE_WORKER_TIMEOUT", self._settings["CRAWLSPACE_WORKER_TIMEOUT"], low=5)
        with closing(RedisStore(connected(self._settings), self._collection, sinks=(SINK,))) as store:
            yield OnServer(store, self._collection, timeout_s) if _is_known(store) else None


@dataclass(frozen=True, slots=True)
class OnServer:
    store: RedisStore
    collection: str
    timeout_s: float

    def crawlers(self) -> Sequence[Crawler]:
        now = self._now_ms() / 1000
        return [_crawler(one, now) for one in sorted(self._alive(), key=lambda one: (one.since, one.name))]

    def index_place(self) -> str:
        place = self.store.scripts.command("HGET", Key.INDEX, SINK)
        return "" if place is None else place.decode(errors="replace")

    def deliver(self, index_file: Path, clock: Clock) -> str:
        waiting = self.store.backlog(SINK)
        if not waiting:
            return ""
        drainer, place = (self.store.scripts.command("HGET", kind, SINK) for kind in (Key.DRAIN, Key.INDEX))
        if drainer is not None and any(one.name == drainer.decode(errors="replace") for one in self._alive()):
            return CRAWL_UPDATES_INDEX
        here = index_place(index_file)
        if place is None:
            return f"{counted(waiting, 'order waits', 'orders wait')} for the index until the next crawl"
        if (there := place.decode(errors="replace")) != here:
            return f"{counted(waiting, 'order waits', 'orders wait')} for the index, which is at {there}: the next crawl there sends them"

        return deliver(self.store, index_file, owner=self.collection, clock=clock, alone=lambda: self.alone(index_file))

    @contextmanager
    def alone(self, index_file: Path) -> Iterator[Callable[[], object]]:
        """Join the workers without crawling, as the one that sends."""
        sender = Worker(self.store, timeout_s=self.timeout_s)
        self.store.scripts.command("ZADD", Key.WORKERS, self._now_ms(), sender.name)
        try:
            sender.heartbeat()  # a sender that does not report any more expires
            if not sender.drains(SINK, index_place(index_file))[0]:
                raise StoreLocked(CRAWL_UPDATES_INDEX)
            yield sender.heartbeat
        except WorkerExpired as error:
            raise StoreLocked("sending took so long that another worker sends now") from error
        finally:
            sender.leave()

    def _alive(self) -> list[WorkerSeen]:
        return [one for one in workers(self.store) if one.unseen_s < self.timeout_s]

    def _now_ms(self) -> int:
        """The server's time, by which it measures."""
        with redis_errors():
            seconds, microseconds = self.store.scripts.client.time()
        return int(seconds) * 1000 + int(microseconds) // 1000


class _Report(msgspec.Struct):
    """What a worker reports with its heartbeat."""

    ran_s: float = 0.0
    """Since it was started: after it expired and joined again, the server knows it for a shorter time."""
    fetched: int = 0
    errors: int = 0
    documents: int = 0


def _is_known(store: RedisStore) -> bool:
    command = store.scripts.command
    return bool(command("EXISTS", Key.META) or command("HEXISTS", Key.COUNTERS, "urls"))


def _crawler(one: WorkerSeen, now: float) -> Crawler:
    try:
        report = msgspec.json.decode(one.report, type=_Report)
    except msgspec.MsgspecError:
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
