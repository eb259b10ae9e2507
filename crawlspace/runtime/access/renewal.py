"""The sessions that the requests of a crawl carry: whoever needs one that is not there waits while one of them logs in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from crawlspace.errors import SettingError
from crawlspace.printable import printable
from crawlspace.runtime.access.jar import SessionCookies
from crawlspace.runtime.access.log_in import LoggedIn, LogInFailedError, LogInStoppedError
from crawlspace.runtime.access.requests import LoginRequests
from crawlspace.runtime.http.errors import LoggedOutError, NotAsked

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlspace.access.logins import Logins
    from crawlspace.access.sessions import Carried
    from crawlspace.config.site_access import SiteAccess

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.5
_PATIENCE = 600
"""Looks at what another worker does that logs in."""


class Renewal:
    """Logs in when there is no session, once for all requests that wait for it."""

    def __init__(self, logins: Logins, sending: LoginRequests, *, is_stopping: Callable[[], bool]) -> None:
        self._logins = logins
        self._is_stopping = is_stopping
        self._sessions = logins.sessions
        self._sending = sending
        self._waiting: dict[str, list[Deferred[None]]] = {}
        self._cookies: dict[str, tuple[int, SessionCookies]] = {}

    def cookies(self, access: SiteAccess, carried: Carried) -> SessionCookies:
        """Return the jar of a session, which changes with the answers to its requests."""
        number, cookies = self._cookies.get(access.pattern, (0, None))
        if cookies is None or number != carried.number:
            cookies = SessionCookies(carried.content)
            self._cookies[access.pattern] = carried.number, cookies
        return cookies

    async def session(self, access: SiteAccess, site: str) -> Carried:
        """Return a session, after logging in if there is none. Raises NotAsked where that fails for now, and LoggedOutError for good."""
        for _ in range(_PATIENCE):
            carried = self._sessions.current(access)
            if carried is not None:
                return carried
            if self._logins.is_paused(site):
                raise LoggedOutError(f"nobody can log in to {site}")
            if self._logins.wait_s(site) or self._is_stopping():
                raise NotAsked
            waiting = self._waiting.get(access.pattern)
            if waiting is not None:
                turn: Deferred[None] = Deferred()
                waiting.append(turn)
                await maybe_deferred_to_future(turn)
                continue
            self._waiting[access.pattern] = []
            try:
                await self._renewed(access, site)
            finally:
                for turn in self._waiting.pop(access.pattern):
                    turn.callback(None)
        raise NotAsked

    async def _renewed(self, access: SiteAccess, site: str) -> None:
        if self._sessions.reload(access):
            return
        if not self._sessions.begin(access):  # another worker logs in
            await maybe_deferred_to_future(_after(_LOOK_EVERY_S))
            return
        try:
            if self._sessions.reload(access) or self._logins.is_refused_by_now(site):  # it has meanwhile
                return
            if (wait_s := self._sessions.next_login_in(access)) > 0:
                self._logins.too_often(site, wait_s)
                return
            found = await maybe_deferred_to_future(deferToThread(self._log_in, access))
            landed = found.landed if self._logins.is_of(found.landed, access) else ""
            self._sessions.took(access, found.content, lasts_s=found.lasts_s, landed=landed)
            self._logins.took(site)
            logger.info("logged in by %s: %s", access.where, access.sentence)
        except LogInStoppedError:
            logger.info("the log-in of %s was ended, because the crawl ends", access.where)
        except LogInFailedError as error:
            (self._logins.refused if error.refused else self._logins.failed)(site, printable(str(error)))
        except SettingError as error:
            self._logins.refused(site, printable(str(error)))
        except Exception as error:
            logger.exception("the log-in of %s has failed, through a fault of ours: please report it", access.where)
            self._logins.failed(site, printable(f"{type(error).__name__}: {error}"))
        finally:
            self._sessions.end(access)

    def _log_in(self, access: SiteAccess) -> LoggedIn:
        return self._sending.log_in(access, self._logins.places(access), is_stopping=self._is_stopping)


def _after(seconds: float) -> Deferred[None]:
    turn: Deferred[None] = Deferred()
    call_later(seconds, lambda: turn.callback(None))
    return turn
