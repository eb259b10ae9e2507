"""Sends the requests of a log-in. A person names its hosts, so address rules do not apply to them; the proxies of the environment do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.utils.python import to_unicode
from yarl import URL

from crawlspace.crawl.access.sessions import LONGEST_LOGIN_S
from crawlspace.crawl.logins import entry_hosts_of
from crawlspace.index.json_client import unreachable
from crawlspace.printable import printable
from crawlspace.runtime.access.log_in import LoggedIn, LogIn, LogInFailedError, LogInStoppedError

if TYPE_CHECKING:
    from scrapy import Request

    from crawlspace.config.rendering import BrowserSettings
    from crawlspace.config.site_access import SiteAccess
    from crawlspace.config.sites import SiteTable

MOST_BYTES = 4 << 20
TIMEOUT_S = 60
_LOOK_EVERY_S = 0.5
"""Whether the crawl ends."""
_HTML = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True, slots=True)
class LoginRequests:
    """How the requests of log-ins are sent."""

    user_agent: str
    sites: SiteTable
    """Has the certificates of connections."""
    verify: bool = True
    """Certificates of servers."""
    timeout_s: float = TIMEOUT_S
    """Of one request."""
    browser: BrowserSettings | None = None
    """Of log-ins in the browser."""

    def log_in(
        self,
        access: SiteAccess,
        allows: Callable[[str], bool],
        tell: Callable[[str], object] = lambda _: None,
        *,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> LoggedIn:
        """Log in, on the thread of the caller. Raises LogInFailedError, SettingError, and LogInStoppedError soon after `is_stopping`."""

        async def logged_in() -> LoggedIn:
            login = asyncio.ensure_future(self._logged_in(access, allows, tell))
            while not (await asyncio.wait({login}, timeout=_LOOK_EVERY_S))[0]:
                if is_stopping():
                    login.cancel()
                    await asyncio.wait({login})
                    raise LogInStoppedError
            return login.result()

        return asyncio.run(logged_in())

    def get(self, request: Request) -> Response:
        """Return the answer to one request. Raises LogInFailedError where there is none."""
        return asyncio.run(self._got(request))

    async def _logged_in(self, access: SiteAccess, allows: Callable[[str], bool], tell: Callable[[str], object]) -> LoggedIn:
        try:
            async with asyncio.timeout(LONGEST_LOGIN_S), self._session() as session:
                if access.session is not None and access.session.kind == "browser":
                    return await self._in_browser(access, allows, tell)
                return await LogIn(access, lambda request: self._send(session, request), allows, tell).session()
        except TimeoutError as error:
            raise LogInFailedError(f"it has not ended within {LONGEST_LOGIN_S} s", refused=False) from error

    async def _in_browser(self, access: SiteAccess, allows: Callable[[str], bool], tell: Callable[[str], object]) -> LoggedIn:
        from crawlspace.runtime.browser.log_in import BrowserLogIn  # noqa: PLC0415 - it needs the extra

        assert self.browser is not None
        return await BrowserLogIn(
            access=access,
            settings=self.browser,
            allows=allows,
            is_of_entry=entry_hosts_of(self.sites, access),
            tell=tell,
            user_agent=self.user_agent,
            verify=self.verify,
        ).session()

    async def _got(self, request: Request) -> Response:
        async with self._session() as session:
            return await self._send(session, request)

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=True,
            timeout=aiohttp.ClientTimeout(total=self.timeout_s),
            headers={"User-Agent": self.user_agent},
        )

    def _tls(self, url: URL) -> ssl.SSLContext | bool:
        tls = self.sites.of(url.host or "", url.port or 0).tls
        return self.verify if tls is None else tls.context(verify=self.verify)

    async def _send(self, session: aiohttp.ClientSession, request: Request) -> Response:
        url = URL(request.url, encoded=True)
        entry = self.sites.of(url.host or "", url.port or 0).access
        if entry is not None and entry.carries(url.scheme):
            for name, value in entry.headers().items():
                request.headers.setdefault(name, value)
        headers = {to_unicode(name): to_unicode(request.headers.get(name) or b"", "latin-1") for name in request.headers}
        try:
            async with session.request(
                request.method,
                url,
                data=request.body or None,
                headers=headers,
                allow_redirects=False,
                ssl=self._tls(url),
            ) as answer:
                body = await answer.content.read(MOST_BYTES) if request.method != "HEAD" else b""
                while len(body) < MOST_BYTES and (more := await answer.content.read(MOST_BYTES - len(body))):
                    body += more
                got: dict[str, list[str]] = {}
                for name, value in answer.headers.items():
                    got.setdefault(name, []).append(value)
                kind = answer.content_type if "Content-Type" in answer.headers else ""
                made = HtmlResponse if kind in _HTML else TextResponse if kind.startswith("text/") or "json" in kind else Response
                got.pop("Content-Encoding", None)  # it is decoded
                return made(request.url, status=answer.status, headers=got, body=body, request=request)
        except TimeoutError as error:
            raise LogInFailedError(f"{_place(request)} has not answered within {self.timeout_s:g} s", refused=False) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise LogInFailedError(f"{_place(request)} cannot be reached: {_why(error)}", refused=False) from error


def _why(error: Exception) -> str:
    """Return why there is no answer. The texts of some errors have the address, whose query may have a password."""
    if isinstance(error, aiohttp.ClientResponseError):
        return printable(error.message)
    return "its address is not valid" if isinstance(error, ValueError) else unreachable(error)


def _place(request: Request) -> str:
    return printable(str(URL(request.url, encoded=True).origin()))
