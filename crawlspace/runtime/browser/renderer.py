"""Renders pages: some at a time, in a browser that is replaced before it needs too much memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING

from crawlspace.runtime.browser.process import DRIVER_ERRORS, BrowserError, BrowserProcess
from crawlspace.runtime.browser.tab import Dom, PageJob, Tab
from crawlspace.runtime.http.errors import BrowserCrashedError, NotRenderedError, NotSent
from crawlspace.settings import BrowserSettings

if TYPE_CHECKING:
    from crawlspace.runtime.browser.forward_proxy import ForwardProxy
    from crawlspace.runtime.browser.resources import Loads

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.2
"""At the memory of the browser."""
NEARLY = 0.8
"""The part of its memory limit at which a browser gets no more pages, and is replaced when those that it has are rendered."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 30.0, 600.0
"""Between two attempts to start a browser."""
LONGEST_WAIT_S = 200.0
"""Longest wait for a slot, so that no lease ends meanwhile."""
TRIES = 2
"""Of a page on which the browser crashed: it may have been another page's doing."""


class Renderer:
    """Has at most one browser at a time, which is started when it is needed."""

    def __init__(
        self,
        settings: BrowserSettings,
        *,
        start: Callable[[], Awaitable[BrowserProcess]],
        proxy_of: Callable[[str, Loads], ForwardProxy],
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """`start` starts a browser, or raises BrowserError; `proxy_of` returns the only way out of the tab of a page."""
        self._settings = settings
        self._start_browser = start
        self._proxy_of = proxy_of
        self._is_stopping = is_stopping
        self._semaphore = asyncio.Semaphore(settings.pages)
        self._process: BrowserProcess | None = None
        self._starting = asyncio.Lock()
        self._working = 0
        self._none_working = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._is_full = False
        """The browser is about to need too much memory."""
        self._failures = 0
        self._pause_until = 0.0
        self.why_away = ""
        """Why there is no browser; empty while there is one, or may be."""
        self.replaced = 0
        self.most_memory = 0

    @property
    def is_away(self) -> bool:
        """Whether no browser can be started at present, so that no page need be fetched for it."""
        return bool(self.why_away) and monotonic() < self._pause_until

    async def render(self, job: PageJob, loads: Callable[[], Loads]) -> Dom:
        """Return a rendered page; `loads` makes the record of each attempt. Raises NotRenderedError, and NotSent if it got no slot."""
        try:
            async with asyncio.timeout(LONGEST_WAIT_S):
                await self._semaphore.acquire()
        except TimeoutError:
            raise NotSent from None
        try:
            for last in (*[False] * (TRIES - 1), True):
                try:
                    return await self._rendered(job, loads())
                except NotRenderedError as error:
                    if self._is_stopping():
                        raise NotSent from None
                    if last or (self._runs and not isinstance(error, BrowserCrashedError)):
                        raise
            raise AssertionError
        finally:
            self._semaphore.release()

    async def close(self) -> None:
        """End the browser."""
        if self._watch is not None:
            self._watch.cancel()
        await self._end()

    @property
    def _runs(self) -> bool:
        return self._process is not None and self._process.is_running

    async def _rendered(self, job: PageJob, loads: Loads) -> Dom:
        """Render a page in a tab of its own. Raises NotRenderedError."""
        async with self._starting:
            process = await self._running()
            self._working += 1
            self._none_working.clear()
            process.pages += 1
        try:
            tab = await Tab.open(process.browser, self._proxy_of(job.url, loads), job, loads)
            try:
                return await tab.render()
            finally:
                await tab.close()
        except DRIVER_ERRORS as error:
            if isinstance(error, RuntimeError):
                process.kill()
            raise NotRenderedError("the browser has ended") from error
        finally:
            self._working -= 1
            if not self._working:
                self._none_working.set()

    async def _running(self) -> BrowserProcess:
        """Return the browser; another one in place of one that has ended, has rendered enough, or is about to need too much memory."""
        process = self._process
        if process is not None and (not self._runs or self._is_full or process.pages >= self._settings.max_pages):
            if self._runs and self._working:
                await self._none_working.wait()
            await self._end()
            self.replaced += 1
            process = None
        return process or await self._start()

    async def _start(self) -> BrowserProcess:
        if self.is_away:
            raise NotRenderedError(f"there is no browser at present: {self.why_away}")
        try:
            self._process = await self._start_browser()
        except BrowserError as error:
            self.why_away = str(error)
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**self._failures)
            self._failures += 1
            self._pause_until = monotonic() + pause_s
            logger.error("pages that need a browser wait, others are crawled: %s; it is tried again in %d s", error, pause_s)  # noqa: TRY400
            raise NotRenderedError(f"there is no browser at present: {error}") from error
        self.why_away, self._failures, self._is_full = "", 0, False
        self._watch = asyncio.ensure_future(self._watched(self._process))
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    async def _watched(self, process: BrowserProcess) -> None:
        """Look after the memory of a browser as long as it runs."""
        limit = self._settings.memory_bytes
        while process is self._process and process.is_running:
            used = await asyncio.to_thread(process.memory)
            self.most_memory = max(self.most_memory, used)
            if process is self._process and used > limit * NEARLY:
                self._is_full = True
            if used > limit:
                logger.warning(
                    "the browser is ended, because it needs %d MiB, more than CRAWLSPACE_BROWSER_MEMORY allows", used >> 20
                )
                process.kill()
                return
            await asyncio.sleep(LOOK_EVERY_S)
