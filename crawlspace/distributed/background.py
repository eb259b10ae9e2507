"""Run the calls of a server on a background thread: sequentially, and repeated until the server answers."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from time import monotonic
from typing import TypeVar

from crawlspace.errors import StoreAway, StoreFull

logger = logging.getLogger(__name__)

T = TypeVar("T")

PAUSE_S = 1.0
MAX_WAIT_WHEN_STOPPED_S = 10.0
"""Seconds that a crawl waits for an unreachable server when a person stops it."""
MAX_WAIT_WHEN_DONE_S = 60.0
"""Seconds that it waits when it is complete: longer than a failover usually takes."""


class ServerThread:
    """Waits for a server that is unreachable or full: nothing is lost, and the crawl pauses when no URLs are buffered any more."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "redis")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._done: deque[Callable[[], None]] = deque()
        self._ends = threading.Event()
        self._patience_s = 0.0
        self._ends_since = 0.0
        self._has_given_up = False
        self._failure: StoreAway | StoreFull | None = None
        """Why the last call failed, if it did."""
        self._failed: Callable[[BaseException], None] | None = None

    def begin(self, failed: Callable[[BaseException], None]) -> None:
        """Let the running event loop take results from now on; `failed` is called with each permanent error.

        Before, `settle` takes the results and raises the errors.
        """
        self._loop = asyncio.get_running_loop()
        self._failed = failed

    def do(self, job: Callable[[], T], done: Callable[[T], None] | None = None) -> None:
        """Run a job after all others; `done` is called with its result on the crawl's thread."""
        future = self._executor.submit(self._persistently, job)
        future.add_done_callback(partial(self._is_done, done))

    def hurry(self, patience_s: float = MAX_WAIT_WHEN_STOPPED_S) -> None:
        """Limit the wait for an unreachable server to `patience_s` from now on, because the crawl ends."""
        if not self._ends.is_set():
            self._patience_s, self._ends_since = patience_s, monotonic()
            self._ends.set()

    def tries_again(self, began: float) -> bool:
        """Wait for a moment, and return whether to repeat a call that began at `began` on the crawl's thread: see `RedisServer.tries_again`.

        After too long an outage, no call is repeated any more.
        """
        if self._has_given_up or not self._ends.is_set():
            return False
        self._has_given_up = monotonic() - max(began, self._ends_since) >= self._patience_s
        if not self._has_given_up:
            threading.Event().wait(PAUSE_S / 4)
        return not self._has_given_up

    def finish(self) -> None:
        """Wait for all jobs, including those that follow from their results, and end the thread."""
        self.hurry()
        while True:
            waiting = self._executor.submit(lambda: None)
            waiting.result()
            if not self._done:
                break
            self._take_results()
        self._executor.shutdown()

    def settle(self) -> None:
        """Wait for all jobs so far and take their results. On the crawl's thread, when it may block."""
        self._executor.submit(lambda: None).result()
        self._take_results()

    def _persistently(self, job: Callable[[], T]) -> T:
        while True:
            if isinstance(self._failure, StoreAway) and self._is_patience_over:
                raise self._failure  # each further call would wait as long
            try:
                result = job()
            except (StoreAway, StoreFull) as error:
                before, self._failure = self._failure, error
                if self._is_patience_over:
                    raise
                if before is None:
                    logger.warning("%s; the crawl waits and continues by itself, nothing is lost", error)
                if self._ends.is_set():
                    threading.Event().wait(PAUSE_S / 4)
                else:
                    self._ends.wait(PAUSE_S)
            else:
                if self._failure is not None:
                    self._failure = None
                    logger.warning("Redis answers again, the crawl continues")
                return result

    @property
    def _is_patience_over(self) -> bool:
        return self._ends.is_set() and monotonic() - self._ends_since >= self._patience_s

    def _is_done(self, done: Callable[[T], None] | None, future: Future[T]) -> None:
        error = future.exception()
        if error is not None:
            self._done.append(partial(self._fail, error))
        elif done is not None:
            self._done.append(lambda: done(future.result()))
        else:
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take_results)

    def _take_results(self) -> None:
        while self._done:
            self._done.popleft()()

    def _fail(self, error: BaseException) -> None:
        if self._failed is None:
            raise error
        self._failed(error)
