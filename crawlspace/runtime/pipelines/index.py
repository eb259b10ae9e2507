"""Drains the outbox into the index while the crawl goes on.

Sending runs in a thread, so that neither a slow index nor a large batch holds up the crawl; the store is touched only here, in the loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread

from crawlspace.errors import CrawlspaceError
from crawlspace.runtime.scrapy_internals import run_soon

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawlspace.runtime.session import Session
    from crawlspace.runtime.sharing import Sharing

logger = logging.getLogger(__name__)

PERIOD_S = 0.5
BATCH = 200


class BaseDrainIndex:
    """Sends what the outbox holds, in batches: at once when a batch is full, else every half second; all of it at the end."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._loop: Any = None
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        """Nothing is being sent."""
        self._closing = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def open_spider(self) -> None:
        if self._session is not None:
            self._loop = create_looping_call(lambda: run_soon(self._tick()))
            self._loop.start(PERIOD_S, now=False)

    def process_item(self, item: Any) -> Any:
        return item

    async def close_spider(self) -> None:
        self._closing = True  # for a tick that is scheduled and has not begun yet
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        session = self._session
        if session is None:
            return
        if session.shared is not None and session.error is None:
            session.shared.hurry()
        await self._is_idle.wait()  # after a fault, too: what is being sent uses the files that are closed next
        if session.error is not None:
            return
        session.commit(self._crawler)  # pipelines are closed last first: the outcomes of the end are not recorded yet
        if session.shared is not None:
            session.shared.settle()
        session.end_run(self._crawler)
        try:
            while await self._send_one():
                pass
            if session.shared is not None and session.shared.is_over:
                await self._see_rest_sent(session.shared)
        except CrawlspaceError as error:
            session.fail(error, self._crawler)
        left = session.engine.backlog if session.shared is None else 0  # other workers send, too; the summary shows what is left
        if left and session.error is None:
            logger.warning("%d index orders could not be sent; they are kept and sent at the next start", left)

    @property
    def _session(self) -> Session | None:
        session: Session | None = getattr(self._crawler.spider, "session", None)  # other spiders, as in scrapy shell, have none
        return session

    async def _tick(self) -> None:
        session = self._session
        if not self._is_idle.is_set() or self._closing or session is None or session.error is not None:
            return
        self._is_idle.clear()
        try:
            while await self._send_one() and session.engine.backlog >= BATCH:
                pass
            session.end_day(self._crawler)
        except CrawlspaceError as error:
            session.fail(error, self._crawler)
        finally:
            self._is_idle.set()

    async def _see_rest_sent(self, shared: Sharing) -> None:
        """Wait until the index has all orders, whoever sends them; where that worker has expired, send them in its place."""
        began = monotonic()
        while not await maybe_deferred_to_future(deferToThread(shared.is_rest_sent, monotonic() - began)):
            await maybe_deferred_to_future(deferToThread(Event().wait, PERIOD_S))
            while await self._send_one():
                pass

    async def _send_one(self) -> bool:
        """Send one batch; False when there was none, or the index does not answer."""
        session = self._session
        assert session is not None
        if session.shared is not None:
            if session.error is not None:
                return False
            drained = await maybe_deferred_to_future(deferToThread(session.shared.drain_once))
            return drained is not None and drained.waiting_s is None
        drain = session.engine.drain
        batch = drain.take()
        if not batch:
            return False
        delivery = await maybe_deferred_to_future(deferToThread(drain.deliver, batch))
        if session.error is not None:
            return False
        return session.engine.settle(delivery).waiting_s is None
