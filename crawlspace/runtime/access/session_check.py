"""Finds out whether a session is alive: by a page that is shown with it, and is not shown to somebody who is not logged in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from crawlspace.access.sessions import CheckPage, Sessions
from crawlspace.runtime.components.requests import CHECK, SLOT

if TYPE_CHECKING:
    from scrapy.http import Response

    from crawlspace.config.site_access import SiteAccess
    from crawlspace.runtime.access.signs import LoggedOut

_MOST_PAGES = 3
"""Pages that are tried for one answer."""
_HIDDEN = range(300, 500)
"""Statuses of a page that a session shows, where they are the answer without one: they keep it from who is not logged in."""

logger = logging.getLogger(__name__)

Download = Callable[[Request], Awaitable["Response"]]


@dataclass(slots=True)
class _CheckResult:
    """What was found out of a session, and when its page was requested."""

    number: int
    at: float
    is_alive: bool | None


@dataclass(slots=True, eq=False)
class SessionCheck:
    """Answers for all requests of an entry that were sent before it has asked."""

    sessions: Sessions
    signs: dict[str, LoggedOut]
    """By entry."""
    download: Download
    """Sends a request through all middlewares; raises where there is no answer."""
    starts: Callable[[SiteAccess], Iterable[str]] = lambda _: ()
    """Returns start URLs of an entry, to be tried where no page is known."""
    _running: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    _found: dict[str, _CheckResult] = field(default_factory=dict)

    async def is_alive(self, access: SiteAccess, number: int, *, url: str, sent: float) -> bool | None:
        """Return whether a session is alive with which a request for `url` was sent at that time; None: there is no page to see it by."""
        while (running := self._running.get(access.pattern)) is not None:
            await asyncio.wait([running])
        found = self._found.get(access.pattern)
        if found is not None and found.number == number and found.at > sent:
            return found.is_alive
        if not self.sessions.is_current(access, number):
            return None
        running = self._running[access.pattern] = asyncio.get_running_loop().create_future()
        try:
            found = _CheckResult(number, monotonic(), None)
            found.is_alive = await self._ask(access, number, url)
            self._found[access.pattern] = found
        finally:
            del self._running[access.pattern]
            running.set_result(None)
        return found.is_alive

    async def _ask(self, access: SiteAccess, number: int, url: str) -> bool | None:
        pages = [page for page in self._pages(access) if page.url != url]
        for page in pages[:_MOST_PAGES]:
            if not page.is_private and not await self._is_private(access, page.url):
                continue
            is_shown = await self._is_shown(access, page.url, number)
            if is_shown:
                self.sessions.shown(access, page.url, number, url=page.url)
                return True
            if is_shown is None:  # it has gone, say
                self.sessions.drop_page(access, page.url)
            elif page.session == number or page.is_named:
                return False
            else:  # it may not be for this user any more
                self.sessions.looks_out(access, page.url)
        return None

    def _pages(self, access: SiteAccess) -> list[CheckPage]:
        known = self.sessions.pages_to_check(access)
        urls = {page.url for page in known}
        starts = [CheckPage(url) for url in self.starts(access) if url not in urls and not self.sessions.is_public(access, url)]
        return known + starts

    async def _is_private(self, access: SiteAccess, url: str) -> bool:
        """Return whether a page is not shown to who is not logged in."""
        response = await self._answer(url, 0)
        if response is None or response.status >= 500 or response.status == 429:
            self.sessions.drop_page(access, url)
            return False
        is_private = response.status in _HIDDEN or bool(self.signs[access.pattern].sign(response))
        self.sessions.note_page(access, url, is_private=is_private)
        return is_private

    async def _is_shown(self, access: SiteAccess, url: str, number: int) -> bool | None:
        """Return whether a page is shown with a session; None where its answer has another reason."""
        response = await self._answer(url, number)
        if response is None:
            return None
        if self.signs[access.pattern].sign(response):
            return False
        return True if 200 <= response.status < 300 else None

    async def _answer(self, url: str, number: int) -> Response | None:
        meta = {CHECK: number, "download_slot": SLOT, "dont_obey_robotstxt": True}
        for _ in range(2):  # a kept connection may have been closed
            try:
                return await self.download(Request(url, callback=NO_CALLBACK, dont_filter=True, meta=dict(meta)))
            except Exception as error:  # noqa: BLE001 - whatever a download raises
                logger.debug("%s tells nothing about the session: %s", url, error)
        return None
