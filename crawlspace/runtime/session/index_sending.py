"""Sends what the outbox holds to the sinks while the crawl runs.

Sending runs in a thread, so that neither a slow index nor a large batch holds up the crawl; the store is touched only here, in the loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy.crawler import Crawler
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread

from crawlspace.config.sinks import EMBEDDED
from crawlspace.errors import CrawlspaceError
from crawlspace.index.outbox import Drain
from crawlspace.runtime.components.scrapy_internals import run_soon
from crawlspace.text import counted, verb

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session
    from crawlspace.runtime.session.sharing import Sharing

logger = logging.getLogger(__name__)

PERIOD_S = 0.5
BATCH = 200


class IndexSender:
    """Sends orders in batches: at once when a batch is full, else every half second; all of them at the end."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._loop: Any = None
        self._idle: dict[str, asyncio.Event] = {}
        """By sink: set while nothing is being sent to it."""
        self._checked: set[str] = set()
        """Sinks that were checked for the mark of the last batch."""
        self._closing = False

    def start(self) -> None:
        """Start sending. Without effect where no collection is crawled, as in scrapy shell."""
        if self._session is not None:
            for drain in self._session.deliveries.drains:
                self._idle[drain.sink] = asyncio.Event()
                self._idle[drain.sink].set()
            self._loop = create_looping_call(self._tick)
            self._loop.start(PERIOD_S, now=False)

    async def finish(self) -> None:
        """Send the rest: what is recorded by now, and what the sinks lack. Warn of what could not be sent."""
        self._closing = True  # for a tick that is scheduled and has not begun yet
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        session = self._session
        if session is None:
            return
        if session.shared is not None and session.error is None:
            session.shared.hurry()
        for idle in self._idle.values():  # after a fault, too: what is being sent uses the files that are closed next
            await idle.wait()
        if session.error is not None:
            return
        session.commit(self._crawler)  # pipelines are closed last first: the outcomes of the end are not recorded yet
        if session.shared is not None:
            session.shared.settle()
        try:
            session.engine.finish_moving()
        except CrawlspaceError as fault:
            session.fail(fault, self._crawler)
            return
        session.end_run(self._crawler)
        drains = session.deliveries.drains
        fills = (
            session.engine.is_done()
        )  # else the next crawl does; what is to be fetched for one sink does not keep others waiting
        for error in await asyncio.gather(*(self._send_rest(drain, fills=fills) for drain in drains), return_exceptions=True):
            if isinstance(error, CrawlspaceError):
                session.fail(error, self._crawler)
            elif error is not None:
                raise error
        if session.shared is not None or session.error is not None:
            return  # the summary shows the rest
        for drain in drains:
            left = session.deliveries.waiting(drain.sink)
            if left:
                name = "the index" if drain.sink == EMBEDDED else f"the sink {drain.sink}"
                logger.warning(
                    "%s for %s could not be sent; %s kept and sent at the next start",
                    counted(left, "order"),
                    name,
                    verb(left, "it is", "they are"),
                )

    @property
    def _session(self) -> Session | None:
        session: Session | None = getattr(self._crawler.spider, "session", None)  # other spiders, as in scrapy shell, have none
        return session

    def _tick(self) -> None:
        session = self._session
        if self._closing or session is None or session.error is not None:
            return
        for drain in session.deliveries.drains:
            if self._idle[drain.sink].is_set():
                self._idle[drain.sink].clear()
                run_soon(self._send_some(drain))
        try:
            session.end_day(self._crawler)
        except CrawlspaceError as error:
            session.fail(error, self._crawler)

    async def _send_some(self, drain: Drain) -> None:
        session = self._session
        assert session is not None
        try:
            await self._check_mark(drain)
            while not self._closing:
                has_more = session.fill(drain)
                if not await self._send_one(drain) or not (has_more or session.deliveries.waiting(drain.sink) >= BATCH):
                    break
        except CrawlspaceError as error:
            session.fail(error, self._crawler)
        finally:
            self._idle[drain.sink].set()

    async def _send_rest(self, drain: Drain, *, fills: bool) -> None:
        session = self._session
        assert session is not None
        await self._check_mark(drain)
        if fills and session.shared is not None:  # in a short crawl it is not known yet who sends
            await maybe_deferred_to_future(deferToThread(session.shared.is_sender, drain))
        while (fills and session.fill(drain)) or await self._send_one(drain):
            pass
        if session.shared is not None and session.shared.is_over:
            await self._see_rest_sent(session.shared, drain)

    async def _check_mark(self, drain: Drain) -> None:
        """Check once whether an index was restored from an older copy, even if this run has nothing to send to it."""
        session = self._session
        if session is None or drain.sink in self._checked:
            return
        self._checked.add(drain.sink)
        in_thread = session.shared is not None
        mark = await maybe_deferred_to_future(deferToThread(drain.mark_to_check)) if in_thread else drain.mark_to_check()
        if mark is not None:
            await maybe_deferred_to_future(deferToThread(drain.check_mark, mark))

    async def _see_rest_sent(self, shared: Sharing, drain: Drain) -> None:
        """Wait until a sink has all orders; if the worker that sends them has expired, send them here."""
        began = monotonic()
        while not await maybe_deferred_to_future(deferToThread(shared.is_rest_sent, drain, monotonic() - began)):
            await maybe_deferred_to_future(deferToThread(Event().wait, PERIOD_S))
            while await self._send_one(drain):
                pass

    async def _send_one(self, drain: Drain) -> bool:
        """Send one batch; False when there was none, or the sink does not answer."""
        session = self._session
        assert session is not None
        if session.shared is not None:
            if session.error is not None:
                return False
            drained = await maybe_deferred_to_future(deferToThread(session.shared.drain_once, drain))
            session.shared.drop_excess(drain)
            return drained is not None and drained.waiting_s is None
        batch = drain.take()
        if not batch:
            return False
        delivery = await maybe_deferred_to_future(deferToThread(drain.deliver, batch))
        if session.error is not None:
            return False
        return session.deliveries.settle(drain, delivery).waiting_s is None
