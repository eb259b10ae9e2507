"""What is different about a crawl that others take part in: what is recorded is written behind the crawl, and the end is known to all."""

from __future__ import annotations

import json
import logging
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.utils.asyncio import create_looping_call

from crawlspace.crawl.batch import recorded
from crawlspace.distributed.prefetch import HEARTBEAT_S
from crawlspace.distributed.start_key import StartKey, admitted
from crawlspace.errors import CrawlspaceError, StoreAway, StoreError, StoreFull
from crawlspace.runtime.stores import index_place
from crawlspace.state.redis.workers import workers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy.crawler import Crawler

    from crawlspace.config.collection import Collection
    from crawlspace.crawl.batch import Singly
    from crawlspace.crawl.engine import Engine
    from crawlspace.distributed.owned_sites import Needs
    from crawlspace.distributed.worker import SharedStore
    from crawlspace.index.outbox import Drained
    from crawlspace.model import NewUrl
    from crawlspace.state.store import Effects

logger = logging.getLogger(__name__)

TICK_S = 0.1
FEED_S = 1.0
"""Between two looks for start URLs that are fed."""
FULL = 128
"""Outcomes that are written at once; four times as many that wait, and nothing more is fetched for now."""


class SharedCrawl(Protocol):
    """The crawl that is shared, as it is here: `error` is why it has to stop."""

    engine: Engine
    collection: Collection
    error: CrawlspaceError | None

    def fail(self, error: CrawlspaceError, crawler: Crawler) -> None: ...


class Sharing:
    """One worker's part in a shared crawl."""

    def __init__(self, session: SharedCrawl, store: SharedStore, settings: Mapping[str, object]) -> None:
        self._session = session
        self._engine = session.engine
        self._store = store
        self._background = store.background
        self._prefetch = store.prefetch
        self._loop: Any = None
        self._began = False
        self._began_at = 0.0
        self._told_of_index = False
        self._start_key = StartKey(store.scripts.client, session.collection.name, settings)
        self._feeds = False
        self._next_feed = 0.0
        self._has_looked = False
        """Since nothing was left to do, nothing was found that has been fed."""
        self.others = 0
        """Workers that go on when this one has ended."""
        self._place = index_place(session.collection.index_file)

    @property
    def is_over(self) -> bool:
        """Nothing is left to do in this run, for any worker."""
        return self._prefetch.is_over and self._has_looked and not self._feeds

    @property
    def waits(self) -> bool:
        """Nothing more is to be fetched for now: so much is not recorded yet, or others may have been given the sites that are held here."""
        return self._prefetch.may_be_expired or self._engine.uncommitted >= 4 * FULL

    def holds_for_s(self, site: str) -> float:
        """For so many seconds yet the site is this worker's for certain. It may have been cut off, or suspended, since it handed out a URL."""
        return self._prefetch.holds_for_s(site)

    def incarnation(self) -> int:
        """How often this worker was taken for dead."""
        return self._prefetch.incarnation

    def holds(self, site: str) -> bool:
        """Whether a request may be made to a site of which no URL was handed out."""
        return self._prefetch.holds(site)

    def need(self, needs: Needs) -> None:
        """See to it that sites that are needed for such requests are held here."""
        self._prefetch.needs = needs

    def begin(self, crawler: Crawler, wake: Any) -> None:
        """Take part from now on. On the crawl's thread, with its loop running."""

        def changed() -> None:
            self._engine.discovery.forget_known()

        self._wake, self._crawler = wake, crawler
        self._background.begin(self._failed)
        engine = self._engine
        know = engine.site_failures.know
        self._store.begin(engine.frontier, engine.outcome_policy, changed=changed, wake=wake, unreachable=know)
        self._prefetch.told = self._told
        self._prefetch.is_idle = self._engine.is_idle
        self._prefetch.is_in_flight = self._engine.is_awaited
        self._prefetch.deleted = lambda: self._engine.outcome_policy.deleted
        self._began, self._began_at = True, monotonic()
        self._loop = create_looping_call(self._tick)
        self._loop.start(TICK_S, now=True)

    def commit(self, crawler: Crawler) -> None:
        """Have what was taken so far be written; unless that is being done, and then it follows."""
        if not self._engine.begin_commit():
            return

        def done(effects: Effects | None) -> None:
            if effects is None:
                self._write_singly(self._engine.singly(), None, done)
                return
            try:
                self._engine.end_commit(effects)
            except CrawlspaceError as error:
                self._session.fail(error, crawler)
                return
            if self._engine.uncommitted >= FULL:
                self.commit(crawler)
            self._wake()

        self._background.do(self._write, done)

    def hurry(self) -> None:
        """The crawl ends: a server that is away is not waited for much longer."""
        self._background.hurry()

    def settle(self, crawler: Crawler) -> None:
        """Wait until all that was taken is recorded. At the end, when nothing else goes on."""
        self.hurry()
        while self._engine.uncommitted or self._engine.is_committing:
            self.commit(crawler)
            self._background.settle()
            if self._session.error is not None:
                return

    def drain_once(self) -> Drained | None:
        """Send the index one batch, where that is this worker's affair. None: nothing was to be sent. Touches no other part, so it can run in another thread."""
        drain = self._engine.drain
        try:
            drains, place = self._store.worker.drains(drain.sink, self._place)
            if not drains:
                if place != self._place and not self._told_of_index:
                    self._told_of_index = True
                    logger.info("the index is at %s: a worker there sends it what this one finds", place)
                return None
            batch = drain.take()
            return drain.settle(drain.deliver(batch)) if batch else None
        except (StoreAway, StoreFull):
            return None  # said elsewhere; the orders wait

    def is_rest_sent(self, waited_s: float) -> bool:
        """Whether there is nothing more to wait for: the index has all, or another worker, heard of during that time, is sending it the rest.

        One that is silent may be dead, and then its part is to be taken over. Touches no other part, so it can run in another thread.
        """
        drain, worker = self._engine.drain, self._store.worker
        try:
            if not self._store.backlog(drain.sink):
                return True
            sender = worker.sender(drain.sink)
        except (StoreAway, StoreFull):
            return True
        return sender is None or sender[0] == worker.name or sender[1] < waited_s

    def close(self) -> None:
        """Record what is left and give back what is held."""
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        if self._session.error is None and self._began:
            self.settle(self._crawler)
            self._store.count_the_rest()
            self._engine.site_failures.end()
            self._engine.frontier.close()
        self._prefetch.close()
        self._background.finish()
        if self._session.error is None:
            self.others = sum(other.unseen_s < 2 * HEARTBEAT_S for other in workers(self._store))

    def _failed(self, error: BaseException) -> None:
        """Stop the crawl."""
        if isinstance(error, CrawlspaceError):
            self._session.fail(error, self._crawler)
            return
        logger.error("the store failed", exc_info=error)
        fault = f"the store failed, through a fault of ours ({type(error).__name__}: {error})"
        self._session.fail(StoreError(f"{fault}: the log tells more, please report it"), self._crawler)

    def _write(self) -> Effects | None:
        try:
            return self._engine.write_commit()
        except CrawlspaceError:
            raise
        except Exception:
            logger.exception("a document could not be stored; the outcomes of its transaction are recorded one by one")
            return None

    def _write_singly(self, singly: Singly, before: Effects | Exception | None, done: Callable[[Effects], None]) -> None:
        """Write change by change, each behind the crawl like all else: calls of a worker come one after the other."""
        try:
            changes = next(singly) if before is None else singly.send(before)
        except StopIteration as end:
            done(end.value)
        except Exception as error:  # noqa: BLE001 - not even the word that one has failed can be written
            self._failed(error)
        else:
            now = int(self._engine.clock.now())
            self._background.do(
                lambda: recorded(self._store, changes, now=now), lambda effects: self._write_singly(singly, effects, done)
            )

    def _tick(self) -> None:
        if self._session.error is None:
            self._feed()
            self._prefetch.tick()
            cluster = self._prefetch.cluster
            if cluster is not None:
                self._engine.backlog = cluster.backlog
                self._engine.outcome_policy.deleted_elsewhere = cluster.deleted

    def _feed(self) -> None:
        """Enter what has been fed."""
        is_over = self._prefetch.is_over
        self._has_looked = self._has_looked and is_over
        if self._feeds or (monotonic() < self._next_feed and (self._has_looked or not is_over)):
            return
        key = self._start_key
        self._feeds = True

        def read(messages: list[bytes]) -> None:
            self._next_feed = monotonic() + (0.0 if messages else FEED_S)
            if not messages:
                self._feeds = False
                if is_over and not self._has_looked:
                    self._has_looked = True
                    self._wake()
                return
            new = admitted(messages, self._engine.admission, key=key.key)
            self._background.do(lambda: enter(new, messages), entered)

        def enter(new: list[NewUrl], messages: list[bytes]) -> None:
            self._store.discover(new, now=int(self._engine.clock.now()))
            key.remove(messages)

        def entered(_: None) -> None:
            self._feeds = self._prefetch.is_over = False  # there may be more to do; the next beat tells

        self._background.do(key.read, read)

    def _told(self) -> str:
        progress = self._engine.progress
        ran_s = round(monotonic() - self._began_at, 1)
        return json.dumps(
            {"ran_s": ran_s, "fetched": progress.fetched, "errors": progress.errors, "documents": progress.documents}
        )
