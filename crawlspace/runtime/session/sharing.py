"""One worker of a shared crawl: results are written on a background thread, and the crawl ends for all workers together."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from scrapy.crawler import Crawler
from scrapy.utils.asyncio import create_looping_call

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.commits import OneByOne
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import RunCounters
from crawlspace.crawl.sinks.deliveries import Deliveries
from crawlspace.distributed.background import MAX_WAIT_WHEN_DONE_S, MAX_WAIT_WHEN_STOPPED_S, ServerThread
from crawlspace.distributed.prefetch import HEARTBEAT_S, OtherRequests, Prefetch
from crawlspace.distributed.start_key import StartKey, admitted
from crawlspace.errors import CrawlspaceError, StoreAway, StoreError, StoreFull
from crawlspace.frontier.frontier import Frontier
from crawlspace.index.outbox import Drain, Drained
from crawlspace.model import NewUrl, UrlState
from crawlspace.runtime.components.scrapy_internals import wake
from crawlspace.state.changes import Effects
from crawlspace.state.redis.workers import AcquiredSite, workers
from crawlspace.state.site_health import NEW_SITE

if TYPE_CHECKING:
    from crawlspace.distributed.shared_store import SharedStore

logger = logging.getLogger(__name__)

TICK_S = 0.1
FEED_S = 1.0
"""Seconds between two reads of the start-URL key."""
FULL = 128
"""Outcomes in one transaction; when four times as many wait, nothing more is fetched for now."""


class SharedCrawl(Protocol):
    """The session of the crawl that is shared; `error` is why it has to stop."""

    engine: Engine
    collection: Collection
    clock: Clock
    deliveries: Deliveries
    progress: RunCounters
    error: CrawlspaceError | None

    def fail(self, error: CrawlspaceError, crawler: Crawler) -> None: ...


class Sharing:
    """The part of one worker in a shared crawl, from the time when the crawl runs."""

    def __init__(
        self,
        session: SharedCrawl,
        shared: SharedStore,
        background: ServerThread,
        crawler: Crawler,
        settings: Mapping[str, object],
        *,
        others: OtherRequests,
    ) -> None:
        """On the crawl's thread, with its loop running."""
        self._session = session
        self._engine = session.engine
        self._shared = shared
        self._background = background
        self._crawler = crawler
        self._began_at = monotonic()
        self._has_logged_index = False
        self._start_key = StartKey(shared.store.server.client, session.collection.name, settings)
        self._feeds = False
        self._next_feed = 0.0
        self._has_looked = False
        """The start-URL key was found empty since nothing was left to do."""
        self.others = 0
        """Workers that continue when this one has ended."""
        self._sends: dict[str, bool] = {}
        self._places = {drain.sink: drain.place for drain in session.deliveries.drains}
        background.begin(self._failed)
        self._prefetch = Prefetch(
            self,
            shared.view.sites,
            shared.worker,
            background,
            others=others,
            join_again=shared.join_again,
            clock=session.clock,
            lease_s=session.collection.lease_s,
            max_sites=session.collection.max_sites,
        )
        self._loop = create_looping_call(self._tick)
        self._loop.start(TICK_S, now=True)

    # --- for the scheduler and the download handler ----------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether no worker has anything left to do in this run."""
        return self._prefetch.is_over and self._has_looked and not self._feeds

    def may_fetch(self) -> bool:
        """Whether more may be fetched now: not while too much is unrecorded, or other workers may own the sites of this one."""
        return not (self._prefetch.may_be_expired or self._engine.uncommitted >= 4 * FULL)

    def refill(self) -> None:
        """Have more URLs leased ahead of need, where buffers ran empty."""
        self._prefetch.refill()

    def owned_for_s(self, site: str) -> float:
        """Return for how many seconds the site is this worker's for certain. It may have been cut off, or suspended, since a URL was leased."""
        return self._prefetch.owned_for_s(site)

    def incarnation(self) -> int:
        """Return how often this worker has expired."""
        return self._prefetch.incarnation

    # --- for Prefetch ------------------------------------------------------------------------------------------------

    @property
    def frontier(self) -> Frontier:
        return self._engine.frontier

    def is_idle(self) -> bool:
        return self._engine.is_idle()

    def leased_again(self, state: UrlState) -> bool:
        return self._engine.leased_again(state)

    def site_acquired(self, one: AcquiredSite) -> None:
        if one.known is not None:
            self._shared.view.learn(one.site, one.known)
            self._engine.site_acquired(one.site, one.known.health or NEW_SITE, one.known.unreachable)

    def store_changed(self) -> None:
        self._engine.forget_known()

    def wake(self) -> None:
        wake(self._crawler)

    def report(self) -> str:
        progress = self._session.progress
        ran_s = round(monotonic() - self._began_at, 1)
        return json.dumps(
            {"ran_s": ran_s, "fetched": progress.fetched, "errors": progress.errors, "documents": progress.documents}
        )

    def deletions(self) -> int:
        return self._engine.deleted

    # --- recording ---------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Write the outcomes so far on the background thread; if a batch is being written, they follow it."""
        if not self._engine.begin_commit():
            return

        def done(effects: Effects | None) -> None:
            if effects is None:
                self._write_singly(self._engine.one_by_one(), None, done)
                return
            try:
                self._engine.end_commit(effects)
            except CrawlspaceError as error:
                self._session.fail(error, self._crawler)
                return
            if self._engine.uncommitted >= FULL:
                self.commit()
            self.wake()

        self._background.do(self._engine.write, done)

    def hurry(self) -> None:
        """Wait for an unreachable server only a little longer from now on, because the crawl ends."""
        self._background.hurry(MAX_WAIT_WHEN_DONE_S if self.is_over else MAX_WAIT_WHEN_STOPPED_S)
        self._shared.store.server.tries_again = self._background.tries_again

    def in_background(self, job: Callable[[], None], done: Callable[[None], None]) -> None:
        """Run a call of the server on the background thread, then `done` on the crawl's."""
        self._background.do(job, done)

    def settle(self) -> None:
        """Wait until all that was taken is recorded. At the end, when nothing else runs."""
        self.hurry()
        while self._engine.uncommitted or self._engine.is_writing:
            self.commit()
            self._background.settle()
            if self._session.error is not None:
                return

    def drain_once(self, drain: Drain) -> Drained | None:
        """Send a sink one batch, if this is the worker that sends; return None if nothing was to be sent. May run in another thread."""
        try:
            batch = drain.take() if self.is_sender(drain) else ()
            return drain.settle(drain.deliver(batch)) if batch else None
        except (StoreAway, StoreFull):
            return None  # logged elsewhere; the orders wait

    def is_sender(self, drain: Drain) -> bool:
        """Return whether this is the worker that sends a sink its orders; it becomes that where there is none. May run in another thread."""
        own = self._places[drain.sink]
        try:
            drains, place = self._shared.worker.drains(drain.sink, own)
        except (StoreAway, StoreFull):
            return False
        self._sends[drain.sink] = drains
        if not drains:
            drain.leave_to_others()
        if not drains and place != own and not self._has_logged_index:
            self._has_logged_index = True
            logger.info("the index is at %s: a worker there sends it what this one finds", place)
        return drains

    def fill(self, drain: Drain, step: Callable[[], bool]) -> bool:
        """Order some of the documents that a sink lacks, if this is the worker that sends; return whether there are more."""
        with suppress(StoreAway, StoreFull):  # logged elsewhere; how far it is stands in the store
            return self._sends.get(drain.sink, False) and step()
        return False

    def drop_excess(self, drain: Drain) -> None:
        """Drop the pushes for a sink that does not answer this worker, where too many wait: also those that other workers have ordered."""
        with suppress(StoreAway, StoreFull):
            self._session.deliveries.drop_excess(drain)

    def is_rest_sent(self, drain: Drain, waited_s: float) -> bool:
        """Whether a sink has all orders, or another worker, which has reported within `waited_s`, is sending the rest.

        One that does not report may have died, and this worker then has to send. May run in another thread.
        """
        worker = self._shared.worker
        try:
            if not self._shared.store.backlog(drain.sink) or drain.is_unavailable:
                return True
            sender = worker.sender(drain.sink)
        except (StoreAway, StoreFull):
            return True
        return sender is None or sender[0] == worker.name or sender[1] < waited_s

    def close(self) -> None:
        """Record the remaining outcomes and release all owned sites."""
        if self._loop.running:
            self._loop.stop()
        if self._session.error is None:
            self.settle()
            self._engine.leave_sites()
        self._prefetch.close()
        self._background.finish()
        if self._session.error is None:
            self._engine.keep_learned(is_last=True)
            self.others = sum(other.unseen_s < 2 * HEARTBEAT_S for other in workers(self._shared.store))

    def _failed(self, error: BaseException) -> None:
        """Stop the crawl."""
        if isinstance(error, CrawlspaceError):
            self._session.fail(error, self._crawler)
            return
        logger.error("the store failed", exc_info=error)
        fault = f"the store failed, through a fault of ours ({type(error).__name__}: {error})"
        self._session.fail(StoreError(f"{fault}: the log has the details, please report it"), self._crawler)

    def _write_singly(self, one_by_one: OneByOne, before: Effects | Exception | None, done: Callable[[Effects], None]) -> None:
        """Write change by change, each on the background thread: calls of a worker are made one after the other."""
        try:
            changes = next(one_by_one) if before is None else one_by_one.send(before)
        except StopIteration as end:
            done(end.value)
        except Exception as error:  # noqa: BLE001 - not even the failure of one can be recorded
            self._failed(error)
        else:
            self._background.do(
                lambda: self._engine.write_changes(changes), lambda effects: self._write_singly(one_by_one, effects, done)
            )

    def _tick(self) -> None:
        if self._session.error is None:
            self._feed()
            self._prefetch.tick()
            cluster = self._prefetch.cluster
            if cluster is not None:
                waiting = dict(zip(self._shared.store.server.sinks, cluster.waiting, strict=False))
                self._engine.note_others(waiting=waiting, deleted=cluster.deleted)

    def _feed(self) -> None:
        """Enter the URLs that were added to the start-URL key."""
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
                    self.wake()
                return
            new = admitted(messages, self._engine, key=key.key)
            self._background.do(lambda: enter(new, messages), entered)

        def enter(new: list[NewUrl], messages: list[bytes]) -> None:
            self._shared.store.discover(new, now=self._engine.now())
            key.remove(messages)

        def entered(_: None) -> None:
            self._feeds = False
            self._prefetch.expect_more()

        self._background.do(key.read, read)
