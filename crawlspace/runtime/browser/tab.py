"""One tab of the browser, in which pages are rendered one after the other."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

from playwright.async_api import Error as PlaywrightError

from crawlspace.printable import printable
from crawlspace.runtime.browser.dom import SCRIPT
from crawlspace.runtime.browser.loads import Loads
from crawlspace.runtime.download.errors import BrowserCrashedError, NotRenderedError

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page


class Answers(Protocol):
    """Answers what a page asks for."""

    async def answer(self, route: Any, page: str, loads: Loads) -> None:
        """Answer a request of a page, whatever comes of it."""

    async def may_connect(self, url: str, page: str, loads: Loads) -> bool:
        """Return whether a page may connect to a WebSocket; then it can."""


MOST_PAGES = 50
"""Of one tab."""
MOST_RELOADS = 3
"""How often a page may load itself anew."""
_ANY = re.compile("")
_SETTLED_MS = 2_000
"""The longest that a page is waited for which keeps changing."""
_READ_S, _LAST_READ_S = 10.0, 8.0
"""The longest that reading the DOM may take, and that of a page which has had all its time."""
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class PageJob:
    """A page to be rendered, as it was fetched."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes
    timeout_s: float
    wait_for: str = ""
    """A CSS selector of what shows that the page is complete."""
    cookies: Sequence[dict[str, Any]] = field(default=(), repr=False)
    stays: bool = False
    """It leads to another page by itself, in a way that plain HTML has: that is not followed."""


@dataclass(frozen=True, slots=True)
class Dom:
    """A rendered page."""

    html: str
    base: str
    """What its links are relative to, where that is not its URL."""
    url: str
    """Its address as its scripts have left it."""
    moved_to: str = ""
    """Where its scripts have led instead; the rest is empty then."""
    is_complete: bool = True
    """It came to rest in time."""


class Tab:
    """Renders one page at a time."""

    def __init__(self, context: BrowserContext, page: Page, answers: Answers) -> None:
        self._context = context
        self._page = page
        self._answers = answers
        self._job: PageJob | None = None
        self._loads = Loads()
        self._served = 0
        self._moved_to = ""
        self._has_crashed = False
        self._over = asyncio.Event()
        """The tab has crashed, or the page has led elsewhere."""
        self.pages = 0
        self.is_usable = True

    @classmethod
    async def open(cls, browser: Browser, answers: Answers, *, user_agent: str) -> Self:
        """Open a tab. Raises playwright's Error."""
        context = await browser.new_context(
            user_agent=user_agent, service_workers="block", accept_downloads=False, viewport={"width": 1280, "height": 1024}
        )
        page = await context.new_page()
        tab = cls(context, page, answers)
        await context.route("**/*", tab._asked)
        await context.route_web_socket(_ANY, tab._connects)
        page.on("crash", lambda _: tab.crashed())
        page.on("close", lambda _: tab.crashed())
        context.on("page", lambda other: asyncio.ensure_future(_closed(other)))  # a pop-up
        return tab

    async def render(self, job: PageJob, loads: Loads) -> Dom:
        """Return a page after its scripts have run. Raises NotRenderedError; the tab may not be usable after that."""
        self._job, self._loads, self._served, self._moved_to = job, loads, 0, ""
        self.pages += 1
        self.is_usable = False
        over = asyncio.ensure_future(self._over.wait())
        work = asyncio.ensure_future(self._shown(job, loads))
        try:
            done, _ = await asyncio.wait({over, work}, timeout=job.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if self._moved_to:
                self.is_usable = True
                return Dom("", "", "", moved_to=self._moved_to)
            if self._has_crashed:
                raise BrowserCrashedError
            if work in done:
                work.result()
            dom = await self._dom(is_complete=bool(done))
            self.is_usable = work in done
            return dom
        except PlaywrightError as error:
            raise (BrowserCrashedError() if self._has_crashed else NotRenderedError(_first_line(error))) from error
        finally:
            loads.is_over = True
            self._job = None
            self._over.clear()
            for one in (over, work):
                one.cancel()
            await asyncio.wait({over, work})

    def crashed(self) -> None:
        """The process of the tab has ended."""
        self._has_crashed, self.is_usable = True, False
        self._over.set()

    async def close(self) -> None:
        """Close it; what does not end by itself ends with the browser."""
        self.is_usable = False
        with suppress(PlaywrightError, TimeoutError):
            async with asyncio.timeout(_END_S):
                await self._context.close()

    async def _shown(self, job: PageJob, loads: Loads) -> None:
        """Wait until the page is complete."""
        await self._context.clear_cookies()
        if job.cookies:
            loads.has_cookies = True
            await self._context.add_cookies(list(job.cookies))
        loads.has_cookies = loads.has_cookies or any(name.lower() == "set-cookie" for name in job.headers)
        await self._page.goto(job.url, wait_until="domcontentloaded", timeout=job.timeout_s * 1000)
        if job.wait_for:
            await self._page.wait_for_selector(job.wait_for, state="attached", timeout=job.timeout_s * 1000)
        else:
            await loads.idle()

    async def _dom(self, *, is_complete: bool) -> Dom:
        try:
            async with asyncio.timeout(_READ_S if is_complete else _LAST_READ_S):
                found = await self._read(_SETTLED_MS if is_complete else 0)
        except TimeoutError as error:
            raise NotRenderedError("its scripts never come to an end") from error
        base = str(found["base"]) if not found["has_base"] else ""
        return Dom(str(found["html"]), base, str(found["url"]), is_complete=is_complete)

    async def _read(self, longest_ms: int) -> dict[str, Any]:
        for _ in range(MOST_RELOADS):
            with suppress(PlaywrightError):  # the page has just loaded itself anew
                return dict(await self._page.evaluate(SCRIPT, longest_ms))
        return dict(await self._page.evaluate(SCRIPT, longest_ms))

    async def _asked(self, route: Any) -> None:
        """Answer a request of the tab: the page itself with what was fetched, the rest as far as it may be loaded."""
        job, loads = self._job, self._loads
        request = route.request
        with suppress(PlaywrightError):
            if job is None:
                await route.abort("aborted")
            elif _is_page(request, self._page):
                await self._page_asked(route, job)
            else:
                await self._answers.answer(route, job.url, loads)

    async def _connects(self, socket: Any) -> None:
        """The page would connect to a WebSocket."""
        job = self._job
        with suppress(PlaywrightError):
            if job is not None and await self._answers.may_connect(socket.url, job.url, self._loads):
                socket.connect_to_server()
            else:
                await socket.close()

    async def _page_asked(self, route: Any, job: PageJob) -> None:
        url = route.request.url.partition("#")[0]
        self._served += 1
        if self._served == 1 or (
            url == job.url.partition("#")[0] and route.request.method == "GET" and self._served <= MOST_RELOADS
        ):
            await route.fulfill(status=job.status, headers=job.headers, body=job.body)
            return
        if not job.stays:
            self._moved_to = "" if url == job.url.partition("#")[0] else url
            self._over.set()
        await route.abort("aborted")


def _is_page(request: Any, page: Page) -> bool:
    """Whether a request is for the page of the tab itself, and not for a frame in it."""
    try:
        return bool(request.is_navigation_request() and request.frame == page.main_frame)
    except PlaywrightError:
        return False  # of a worker


async def _closed(page: Page) -> None:
    with suppress(PlaywrightError):
        await page.close()


def _first_line(error: PlaywrightError) -> str:
    return printable(str(error).partition("\n")[0])[:300]
