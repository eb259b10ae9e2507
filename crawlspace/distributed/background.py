"""Runs what waits for a server behind the crawl: in a thread of its own, one call after the other, and again until the server answers."""

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
PATIENCE_AT_THE_END_S = 10.0
"""So long a crawl that ends waits for a server that is away."""


class ServerThread:
    """A server that is away, or full, is waited for: nothing is lost, and the crawl stands still when it has nothing left to ask."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "redis")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._done: deque[Callable[[], None]] = deque()
        self._ends = threading.Event()
        self._patient_until = 0.0
        self._away: StoreAway | StoreFull | None = None
        """Why the last call failed, if it did."""
        self.failed: Callable[[BaseException], None] = self._raise
        """Told of what goes wrong for good."""

    def begin(self, failed: Callable[[BaseException], None]) -> None:
        """From now on what comes of calls is taken in by the running event loop."""
        self._loop = asyncio.get_running_loop()
        self.failed = failed

    def do(self, job: Callable[[], T], done: Callable[[T], None] | None = None) -> None:
        """Run a job after all others; `done` is called with what it returns, on the crawl's thread."""
        future = self._executor.submit(self._persistently, job)
        future.add_done_callback(partial(self._is_done, done))

    def hurry(self) -> None:
        """The crawl ends: from now on a server that is away is not waited for much longer."""
        if not self._ends.is_set():
            self._patient_until = monotonic() + PATIENCE_AT_THE_END_S
            self._ends.set()

    def finish(self) -> None:
        """Wait for all that is under way, and take in what comes of it."""
        self.hurry()
        while True:
            waiting = self._executor.submit(lambda: None)
            waiting.result()
            if not self._done:
                break
            self._take_in()
        self._executor.shutdown()

    def settle(self) -> None:
        """Wait for all jobs so far, and take in what comes of them. On the crawl's thread, where that may wait."""
        self._executor.submit(lambda: None).result()
        self._take_in()

    def _persistently(self, job: Callable[[], T]) -> T:
        while True:
            if isinstance(self._away, StoreAway) and self._is_patience_over:
                raise self._away  # each further call would wait as long again
            try:
                result = job()
            except (StoreAway, StoreFull) as error:
                before, self._away = self._away, error
                if self._is_patience_over:
                    raise
                if before is None:
                    logger.warning("%s; the crawl waits and goes on by itself, nothing is lost", error)
                if self._ends.is_set():
                    threading.Event().wait(PAUSE_S / 4)
                else:
                    self._ends.wait(PAUSE_S)
            else:
                if self._away is not None:
                    self._away = None
                    logger.warning("Redis answers again, the crawl goes on")
                return result

    @property
    def _is_patience_over(self) -> bool:
        return self._ends.is_set() and monotonic() >= self._patient_until

    def _is_done(self, done: Callable[[T], None] | None, future: Future[T]) -> None:
        error = future.exception()
        if error is not None:
            self._done.append(lambda: self.failed(error))
        elif done is not None:
            self._done.append(lambda: done(future.result()))
        else:
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take_in)

    def _take_in(self) -> None:
        while self._done:
            self._done.popleft()()

    @staticmethod
    def _raise(error: BaseException) -> None:
        raise error
