"""The sessions that the requests of a crawl carry: whether one is alive, and who logs in where there is none."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic

from scrapy import Request
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from crawlspace.access.login_states import Logins
from crawlspace.access.sessions import Carried, CheckPage, Sessions
from crawlspace.config.access import SiteAccess
from crawlspace.errors import SettingError
from crawlspace.runtime.access.cookies import SessionCookies
from crawlspace.runtime.access.login_kinds import LoggedIn, LogInFailedError, LogInStoppedError
from crawlspace.runtime.access.pages import LoggedOut
from crawlspace.runtime.components.requests import CHECK, SLOT
from crawlspace.runtime.http.errors import LoggedOutError, NotSent
from crawlspace.text import printable

logger = logging.getLogger(__name__)

Download = Callable[[Request], Awaitable["Response"]]
"""Sends a request through all middlewares; raises where there is no answer."""
_RECHECK_S, _RECHECKS = 0.5, 600
"""Of a session that another worker is about to renew."""
_MOST_PAGES = 3
"""Pages that are tried to find out whether a session is alive."""
_HIDDEN = range(300, 500)
"""Statuses of a page that a session shows, where they are the answer without one: they keep it from who is not logged in."""


class Renewal:
    """Logs in when there is no session, once for all requests that wait for it."""

    def __init__(
        self,
        logins: Logins,
        log_in: Callable[[SiteAccess], Awaitable[LoggedIn]],
        *,
        is_stopping: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`log_in` raises LogInFailedError, LogInStoppedError and SettingError."""
        self._logins, self._sessions = logins, logins.sessions
        self._log_in, self._is_stopping, self._sleep = log_in, is_stopping, sleep
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._cookies: dict[str, tuple[int, SessionCookies]] = {}

    def cookies(self, access: SiteAccess, carried: Carried) -> SessionCookies:
        """Return the jar of a session, which changes with the answers to its requests."""
        number, cookies = self._cookies.get(access.pattern, (0, None))
        if cookies is None or number != carried.number:
            cookies = SessionCookies(carried.content)
            self._cookies[access.pattern] = carried.number, cookies
        return cookies

    async def session(self, access: SiteAccess, site: str) -> Carried:
        """Return a session, after logging in if there is none. Raises NotSent where that fails for now, and LoggedOutError for good."""
        for _ in range(_RECHECKS):
            async with self._locks[access.pattern]:
                if (carried := self._sessions.current(access)) is not None:
                    return carried
                if self._logins.is_paused(site):
                    raise LoggedOutError(f"nobody can log in to {site}")
                if self._logins.wait_s(site) or self._is_stopping():
                    raise NotSent
                await self._renew(access, site)
        raise NotSent

    async def _renew(self, access: SiteAccess, site: str) -> None:
        sessions, logins = self._sessions, self._logins
        if sessions.reload(access):
            return
        if not sessions.claim(access):  # another worker logs in
            await self._sleep(_RECHECK_S)
            return
        try:
            if sessions.reload(access) or logins.is_refused_by_now(site):  # by another worker, meanwhile
                return
            if (wait_s := sessions.next_login_in(access)) > 0:
                logins.note_too_many(site, wait_s)
                return
            found = await self._log_in(access)
            landed = found.landed if logins.is_of(found.landed, access) else ""
            sessions.add(access, found.content, lasts_s=found.lasts_s, landed=landed)
            logins.note_success(site)
            logger.info("logged in by %s: %s", access.where, access.sentence)
        except LogInStoppedError:
            logger.info("the log-in of %s was ended, because the crawl ends", access.where)
        except LogInFailedError as error:
            (logins.note_refused if error.refused else logins.note_failure)(site, printable(str(error)))
        except SettingError as error:
            logins.note_refused(site, printable(str(error)))
        except Exception as error:
            logger.exception("the log-in of %s has failed, through a fault of ours: please report it", access.where)
            logins.note_failure(site, printable(f"{type(error).__name__}: {error}"))
        finally:
            sessions.release(access)


@dataclass(slots=True)
class _Checked:
    """A session that was checked: when its page was requested, and whether it is alive; None: not known."""

    number: int
    at: float
    is_alive: bool | None


@dataclass(slots=True, eq=False)
class SessionCheck:
    """Finds out whether a session is alive, by a page that is shown with it and not without.

    One answer is for all requests of an entry that were sent before the page was requested.
    """

    sessions: Sessions
    signs: dict[str, LoggedOut]
    """By entry."""
    download: Download
    unknown: Callable[[SiteAccess, str], Iterable[str]] = lambda *_: ()
    """Returns pages of an entry to be tried where none is known, for a URL: start URLs, and the home page of its site."""
    _locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _checked: dict[str, _Checked] = field(default_factory=dict)

    async def is_alive(self, access: SiteAccess, number: int, *, url: str, sent: float) -> bool | None:
        """Return whether a session is alive with which a request for `url` was sent at that time; None: there is no page to see it by."""
        async with self._locks[access.pattern]:
            last = self._checked.get(access.pattern)
            if last is not None and last.number == number and last.at > sent:
                return last.is_alive
            if not self.sessions.is_current(access, number):
                return None
            checked = _Checked(number, monotonic(), None)
            checked.is_alive = await self._check(access, number, url)
            self._checked[access.pattern] = checked
            return checked.is_alive

    async def _check(self, access: SiteAccess, number: int, url: str) -> bool | None:
        pages = [page for page in self._pages(access, url) if page.url != url]
        for page in pages[:_MOST_PAGES]:
            if not page.is_private and not await self._is_private(access, page.url):
                continue
            is_shown = await self._is_shown(access, page.url, number)
            if is_shown:
                self.sessions.note_shown(access, page.url, number, url=page.url)
                return True
            if is_shown is None:  # it has gone, say
                self.sessions.drop_page(access, page.url)
            elif page.session == number or page.is_named:
                return False
            else:  # it may not be for this user any more
                self.sessions.note_logged_out(access, page.url)
        return None

    def _pages(self, access: SiteAccess, of_url: str) -> list[CheckPage]:
        known = self.sessions.pages_to_check(access)
        urls = {page.url for page in known}
        return known + [
            CheckPage(url)
            for url in dict.fromkeys(self.unknown(access, of_url))
            if url not in urls and not self.sessions.is_public(access, url)
        ]

    async def _is_private(self, access: SiteAccess, url: str) -> bool:
        """Return whether a page is not shown to who is not logged in."""
        response = await self._fetch(url, 0)
        if response is None or response.status >= 500 or response.status == 429:
            self.sessions.drop_page(access, url)
            return False
        is_private = response.status in _HIDDEN or bool(self.signs[access.pattern].sign(response))
        self.sessions.note_page(access, url, is_private=is_private)
        return is_private

    async def _is_shown(self, access: SiteAccess, url: str, number: int) -> bool | None:
        """Return whether a page is shown with a session; None where its answer has another reason."""
        response = await self._fetch(url, number)
        if response is None:
            return None
        if self.signs[access.pattern].sign(response):
            return False
        return True if 200 <= response.status < 300 else None

    async def _fetch(self, url: str, number: int) -> Response | None:
        meta = {CHECK: number, "download_slot": SLOT, "dont_obey_robotstxt": True}
        for _ in range(2):  # a kept connection may have been closed
            try:
                return await self.download(Request(url, callback=NO_CALLBACK, dont_filter=True, meta=dict(meta)))
            except Exception as error:  # noqa: BLE001 - whatever a download raises
                logger.debug("%s tells nothing about the session: %s", url, error)
        return None
