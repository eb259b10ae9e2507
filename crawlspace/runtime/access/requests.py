"""Sends the requests of a log-in. A person names its hosts, so address rules do not apply to them; their proxies do."""

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
from crawlspace.runtime.http.proxies import is_of_proxy, refusal

if TYPE_CHECKING:
    from scrapy import Request

    from crawlspace.config.proxies.choice import Proxy, ProxyAddress
    from crawlspace.config.proxies.table import Proxies
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
    proxies: Proxies
    verify: bool = True
    """Certificates of servers."""
    timeout_s: float = TIMEOUT_S
    """Of one request."""
    browser: BrowserSettings | None = None
    """Of log-ins in the browser."""

    def log_in(
        self,
        access: SiteAccess,
        allows: Callable[[str, int], bool],
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

    async def _logged_in(self, access: SiteAccess, allows: Callable[[str, int], bool], tell: Callable[[str], object]) -> LoggedIn:
        try:
            async with asyncio.timeout(LONGEST_LOGIN_S), self._session() as session:
                if access.session is not None and access.session.kind == "browser":
                    return await self._in_browser(access, allows, tell)
                return await LogIn(access, lambda request: self._send(session, request), allows, tell).session()
        except TimeoutError as error:
            raise LogInFailedError(f"it has not ended within {LONGEST_LOGIN_S} s", refused=False) from error

    async def _in_browser(
        self, access: SiteAccess, allows: Callable[[str, int], bool], tell: Callable[[str], object]
    ) -> LoggedIn:
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
            timeout=aiohttp.ClientTimeout(total=self.timeout_s),
            headers={"User-Agent": self.user_agent},
        )

    def _proxy(self, url: URL) -> tuple[Proxy, ProxyAddress] | None:
        host = url.raw_host or ""
        proxy = self.proxies.of(url.scheme, f"[{host}]" if ":" in host else host, url.port or 0)
        return None if proxy is None else (proxy, self.proxies.address(proxy))

    def _tls(self, url: URL, proxy: ProxyAddress | None) -> ssl.SSLContext | bool:
        """Return what TLS connections are made with, to the site and to a proxy that speaks TLS: there is one parameter for both."""
        tls = self.sites.of(url.host or "", url.port or 0).tls
        of_proxy = self.sites.of(proxy.host, proxy.port).tls if proxy is not None and proxy.scheme == "https" else None
        if of_proxy is None or of_proxy.ca_file is None or not self.verify:
            return self.verify if tls is None else tls.context(verify=self.verify)
        context = ssl.create_default_context() if tls is None else tls.context()
        context.load_verify_locations(of_proxy.ca_file)
        return context

    async def _send(self, session: aiohttp.ClientSession, request: Request) -> Response:
        url = URL(request.url, encoded=True)
        entry = self.sites.of(url.host or "", url.port or 0).access
        if entry is not None and entry.carries(url.scheme):
            for name, value in entry.headers().items():
                request.headers.setdefault(name, value)
        found = self._proxy(url)
        address = None if found is None else found[1]
        headers = {to_unicode(name): to_unicode(request.headers.get(name) or b"", "latin-1") for name in request.headers}
        try:
            async with session.request(
                request.method,
                url,
                data=request.body or None,
                headers=headers,
                allow_redirects=False,
                ssl=self._tls(url, address),
                proxy=None if address is None else address.url,
                proxy_auth=aiohttp.BasicAuth.decode(address.authorization)
                if address is not None and address.authorization
                else None,
            ) as answer:
                if found is not None and url.scheme == "http" and is_of_proxy(answer.status, answer.headers):
                    raise LogInFailedError(_refusal(found, answer.status, request), refused=False)
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
        except aiohttp.ClientHttpProxyError as error:
            assert found is not None
            raise LogInFailedError(_refusal(found, error.status, request), refused=False) from None  # its headers have the log-in
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if found is not None and isinstance(error, aiohttp.ClientProxyConnectionError):
                why = f"the proxy {found[1].url} cannot be reached ({unreachable(error)}): start it, or correct {found[0].where}"
                raise LogInFailedError(why, refused=False) from None
            raise LogInFailedError(f"{_place(request)} cannot be reached: {_why(error)}", refused=False) from error


def _why(error: Exception) -> str:
    """Return why there is no answer. The texts of some errors have the address, whose query may have a password."""
    if isinstance(error, aiohttp.ClientResponseError):
        return printable(error.message)
    return "its address is not valid" if isinstance(error, ValueError) else unreachable(error)


def _refusal(found: tuple[Proxy, ProxyAddress], status: int, request: Request) -> str:
    return refusal(status, proxy=found[1].url, where=found[0].where, site=_place(request))


def _place(request: Request) -> str:
    return printable(str(URL(request.url, encoded=True).origin()))
