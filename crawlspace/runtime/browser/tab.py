"""One tab of the browser, for one page: with a context of its own, so that no page finds anything of an earlier one."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from playwright.async_api import Browser, BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from crawlspace.runtime.browser.process import DRIVER_ERRORS, without_complaint
from crawlspace.runtime.browser.resources import MOST_REQUESTS, Loads
from crawlspace.runtime.http.errors import BrowserCrashedError, NotRenderedError
from crawlspace.text import printable

if TYPE_CHECKING:
    from crawlspace.runtime.browser.forward_proxy import ForwardProxy

logger = logging.getLogger(__name__)

_INTERCEPTED = ("Document", "Image", "Media", "Font", "Ping")
"""Kinds of requests that are decided on in the browser: the page itself, and what shows nothing to read. All else goes to the proxy."""
MOST_RELOADS = 3
"""Number of times a page may reload itself."""
_SETTLED_MS = 2_000
"""The longest that a page is waited for which keeps changing."""
_READ_S, _LAST_READ_S = 10.0, 8.0
"""The longest that reading the DOM may take, and that of a page which has had all its time."""
_END_S = 5.0
_BUSY_S = 10.0
"""The longest that the scripts of a page and of its workers are waited for which are busy."""


@dataclass(frozen=True, slots=True)
class PageJob:
    """A page to be rendered, as it was fetched."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes
    timeout_s: float
    user_agent: str
    wait_for: str = ""
    """A CSS selector of what shows that the page is complete."""
    cookies: Sequence[Any] = field(default=(), repr=False)
    """As Playwright sets them."""
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
    """Renders one page."""

    def __init__(
        self, context: BrowserContext, page: Page, devtools: CDPSession, proxy: ForwardProxy, job: PageJob, loads: Loads
    ) -> None:
        self._context = context
        self._page = page
        self._devtools = devtools
        self._proxy = proxy
        self._job = job
        self._loads = loads
        self._main_frame = ""
        self._served = 0
        self._moved_to = ""
        self._has_crashed = False
        self._over = asyncio.Event()
        """The tab has crashed, or the page has led elsewhere."""

    @classmethod
    async def open(cls, browser: Browser, proxy: ForwardProxy, job: PageJob, loads: Loads) -> Self:
        """Open a tab, whose only way out is `proxy`. Raises playwright's Error."""
        async with AsyncExitStack() as undone:
            undone.push_async_callback(proxy.close)
            context = await browser.new_context(
                user_agent=job.user_agent,
                proxy={"server": await proxy.start(), "bypass": "<-loopback>"},
                service_workers="block",
                accept_downloads=False,
                viewport={"width": 1280, "height": 1024},
            )
            undone.push_async_callback(_closed, context)
            page = await context.new_page()
            tab = cls(context, page, await context.new_cdp_session(page), proxy, job, loads)
            await tab._prepare()
            undone.pop_all()
            return tab

    async def _prepare(self) -> None:
        self._page.on("crash", lambda _: self.crashed())
        self._page.on("close", lambda _: self.crashed())
        self._context.on("page", lambda other: asyncio.ensure_future(_closed(other)))  # a pop-up
        self._context.on("request", lambda _: self._loads.browser_begins())
        self._context.on("requestfinished", lambda _: self._loads.browser_ends())
        self._context.on("requestfailed", lambda _: self._loads.browser_ends())
        self._main_frame = (await self._devtools.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        self._devtools.on("Fetch.requestPaused", self._paused)
        await self._devtools.send("Fetch.enable", {"patterns": [{"resourceType": kind} for kind in _INTERCEPTED]})
        await self._add_cookies()

    async def _add_cookies(self) -> None:
        """Have the browser begin with the cookies of the page, but for those that it doesn't accept."""
        cookies = list(self._job.cookies)
        try:
            if cookies:
                await self._context.add_cookies(cookies)
        except PlaywrightError:
            for cookie in cookies:
                with suppress(PlaywrightError):
                    await self._context.add_cookies([cookie])

    async def render(self) -> Dom:
        """Return the page after its scripts have run. Raises NotRenderedError."""
        job, loads = self._job, self._loads
        over, too_many = asyncio.ensure_future(self._over.wait()), asyncio.ensure_future(loads.too_many.wait())
        work = without_complaint(self._shown(job, loads))
        try:
            ends: set[asyncio.Future[Any]] = {over, too_many, work}
            done, _ = await asyncio.wait(ends, timeout=job.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if self._moved_to:
                return Dom("", "", "", moved_to=self._moved_to)
            if self._has_crashed:
                raise BrowserCrashedError
            if work in done:
                work.result()
            elif too_many in done:
                loads.finish()
                logger.warning(
                    "%s is ended, because it makes more than %d requests in the browser", printable(job.url), MOST_REQUESTS
                )
            return await self._dom(is_complete=bool(done) and too_many not in done)
        except PlaywrightError as error:
            raise (BrowserCrashedError() if self._has_crashed else NotRenderedError(_first_line(error))) from error
        finally:
            loads.finish()
            for one in (over, too_many):
                one.cancel()

    def crashed(self) -> None:
        """The process of the tab has ended."""
        self._has_crashed = True
        self._over.set()

    async def close(self) -> None:
        """Close it; what does not end by itself ends with the browser."""
        with suppress(*DRIVER_ERRORS, TimeoutError):
            async with asyncio.timeout(_END_S):
                await asyncio.shield(without_complaint(self._context.close()))
        await self._proxy.close()

    async def _shown(self, job: PageJob, loads: Loads) -> None:
        """Wait until the page is complete."""
        await self._page.goto(job.url, wait_until="domcontentloaded", timeout=job.timeout_s * 1000)
        if job.wait_for:
            await self._page.wait_for_selector(job.wait_for, state="attached", timeout=job.timeout_s * 1000)
            return
        known = -1
        while known != loads.known and not loads.is_over:
            await loads.idle()
            known = loads.known
            await self._scripts_have_run()

    async def _scripts_have_run(self) -> None:
        """Wait until the scripts of the page and of its workers have run what is due, _BUSY_S at most.

        What they request in it is known by then: a worker may take a while to begin, and requests nothing before.
        """
        with suppress(PlaywrightError, TimeoutError):
            async with asyncio.timeout(_BUSY_S):
                for one in (self._page, *self._page.workers):
                    await asyncio.shield(without_complaint(one.evaluate(_NEXT_TASK)))

    async def _dom(self, *, is_complete: bool) -> Dom:
        try:
            async with asyncio.timeout(_READ_S if is_complete else _LAST_READ_S):
                found = await asyncio.shield(without_complaint(self._read(_SETTLED_MS if is_complete else 0)))
        except TimeoutError as error:
            raise NotRenderedError("its scripts never come to an end") from error
        base = str(found["base"]) if not found["has_base"] else ""
        return Dom(str(found["html"]), base, str(found["url"]), is_complete=is_complete)

    async def _read(self, longest_ms: int) -> dict[str, Any]:
        for _ in range(MOST_RELOADS):
            with suppress(PlaywrightError):  # the page has just reloaded itself
                return dict(await self._page.evaluate(SCRIPT, longest_ms))
        return dict(await self._page.evaluate(SCRIPT, longest_ms))

    def _paused(self, event: dict[str, Any]) -> None:
        without_complaint(self._decide(event))

    async def _decide(self, event: dict[str, Any]) -> None:
        """Give the browser the page itself, as it was fetched; let documents of frames be requested, and nothing else."""
        request, paused = event["request"], event["requestId"]
        with suppress(PlaywrightError):  # the page has gone on, or the browser has ended
            if event["resourceType"] != "Document":
                await self._devtools.send("Fetch.failRequest", {"requestId": paused, "errorReason": "BlockedByClient"})
            elif event["frameId"] != self._main_frame:
                await self._devtools.send("Fetch.continueRequest", {"requestId": paused})
            elif self._is_job(request["url"], request["method"]):
                await self._devtools.send("Fetch.fulfillRequest", {"requestId": paused, **_fulfilled(self._job)})
            else:
                await self._devtools.send("Fetch.failRequest", {"requestId": paused, "errorReason": "Aborted"})

    def _is_job(self, url: str, method: str) -> bool:
        """Return whether the tab is to show the page that it is for; note where it is led instead."""
        url, own = url.partition("#")[0], self._job.url.partition("#")[0]
        self._served += 1
        if self._served == 1 or (url == own and method == "GET" and self._served <= MOST_RELOADS):
            return True
        if not self._job.stays:
            self._moved_to = "" if url == own else url
            self._over.set()
        return False


def _fulfilled(job: PageJob) -> dict[str, Any]:
    """Return a page as the answer to a request that the browser has paused."""
    headers = [{"name": name, "value": value} for name, values in job.headers.items() for value in values.split("\n")]
    return {"responseCode": job.status, "responseHeaders": headers, "body": base64.b64encode(job.body).decode()}


async def _closed(opened: Page | BrowserContext) -> None:
    with suppress(*DRIVER_ERRORS):
        await opened.close()


def _first_line(error: PlaywrightError) -> str:
    return printable(str(error).partition("\n")[0])[:300]


# --- dom -----------------------------------------------------------------------------------------------------------


_NEXT_TASK = "() => new Promise((resolve) => setTimeout(resolve, 0))"
"""Ends once the scripts have run what was due before it."""
SCRIPT = """async (longest) => {
  const end = Date.now() + longest;
  await new Promise((resolve) => {
    let timer = setTimeout(resolve, 100);
    const observer = new MutationObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(resolve, Date.now() < end ? 100 : 0);
    });
    observer.observe(document, {subtree: true, childList: true, characterData: true});
  });
  const inert = document.implementation.createHTMLDocument('');
  const shown = (node) => {
    const copy = inert.importNode(node, true);
    const of = document.createTreeWalker(node, 1), to = inert.createTreeWalker(copy, 1);
    const hosts = [];
    do {
      if (of.currentNode.shadowRoot) hosts.push([of.currentNode.shadowRoot, to.currentNode]);
    } while (of.nextNode() && to.nextNode());
    for (const [root, host] of hosts) {
      const part = inert.createElement('div');
      for (const child of root.childNodes) part.append(child.nodeType === 1 ? shown(child) : inert.importNode(child, true));
      host.prepend(part);
    }
    return copy;
  };
  const root = document.documentElement;
  const found = root ? shown(root).outerHTML : '';
  return {html: '<!DOCTYPE html>' + found, base: document.baseURI, url: location.href, has_base: !!document.querySelector('base[href]')};
}"""
"""Waits until nothing has changed for a moment, `longest` ms at most; then copies the page into a document without scripts, what is in
open shadow roots before what is in their hosts."""
