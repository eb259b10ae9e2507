"""Logging in with a browser that is started for that, and ended after it; the cookies it has then are the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from playwright.async_api import Error as PlaywrightError

from crawlspace.config.secrets import read_secret
from crawlspace.runtime.access.addresses import elsewhere, port_of, shown
from crawlspace.runtime.access.browser_cookies import cookies_of_entry
from crawlspace.runtime.access.jar import SessionCookies
from crawlspace.runtime.access.log_in import LoggedIn, LogInFailedError
from crawlspace.runtime.browser.login_pages import LoginPages
from crawlspace.runtime.browser.login_proxy import LoginProxy
from crawlspace.runtime.browser.process import BrowserError, BrowserProcess
from crawlspace.text import quoted

if TYPE_CHECKING:
    from crawlspace.config.logins.browser import BrowserStep
    from crawlspace.config.rendering import BrowserSettings
    from crawlspace.config.session_login import SessionLogin
    from crawlspace.config.site_access import SiteAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserLogIn:
    """One attempt."""

    access: SiteAccess
    settings: BrowserSettings
    allows: Callable[[str, int], bool]
    """Whether the browser may connect to a host and port."""
    is_of_entry: Callable[[str], bool]
    """Whether a host is one of the entry, whose cookies are kept."""
    tell: Callable[[str], object]
    """Called with each step, without secrets."""
    user_agent: str
    verify: bool
    """Certificates of servers."""

    async def session(self) -> LoggedIn:
        """Return the session. Raises LogInFailedError, and SettingError for a secret that cannot be read."""
        login = self.access.session
        assert login is not None
        steps = [self._with_secrets(number, step) for number, step in enumerate(login.browser_steps)]
        proxy = LoginProxy(self._allows, allows_http=self.access.carries("http"))
        try:
            process = await BrowserProcess.start(self.settings, proxy=await proxy.start())
            try:
                return await self._logged_in(process.browser, proxy, login, steps)
            finally:
                await process.close()
        except BrowserError as error:
            raise LogInFailedError(str(error), refused=False) from error
        except PlaywrightError:  # its message may have what was filled in
            raise LogInFailedError("the browser has ended", refused=False) from None
        finally:
            await proxy.close()

    async def _logged_in(self, browser: Any, proxy: LoginProxy, login: SessionLogin, steps: list[BrowserStep]) -> LoggedIn:
        context = await browser.new_context(
            user_agent=self.user_agent,
            extra_http_headers=self._headers(login),
            ignore_https_errors=not self.verify,
            service_workers="block",
            accept_downloads=False,
            viewport={"width": 1280, "height": 1024},
        )
        pages = LoginPages(context, login, why_not=self._why_not, unreachable=proxy.unreachable, tell=self.tell)
        browser.on("disconnected", lambda _: pages.end("the browser has ended"))
        await pages.run(steps)
        kept = cookies_of_entry(await context.cookies(), self.access, self._is_own)
        if not kept:
            raise LogInFailedError(
                f"{pages.place} is shown after the log-in, and no cookie was set for the hosts of the entry: a session that a site keeps"
                " otherwise, as in the storage of the page, cannot be carried",
                refused=True,
            )
        cookies = SessionCookies()
        cookies.load_kept(kept)
        return LoggedIn(cookies.dumped())

    def _with_secrets(self, number: int, step: BrowserStep) -> BrowserStep:
        where = f"{self.access.where}['login']['steps'][{number}]['fill']"
        return replace(step, fill={name: read_secret(f"{where}[{quoted(name)}]", value) for name, value in step.fill.items()})

    def _headers(self, login: SessionLogin) -> Mapping[str, str]:
        """Return the headers of the entry, where the browser sends them to no host but those they are for."""
        assert login.url is not None
        headers = self.access.headers()
        if headers and (login.hosts or not self._is_own(login.url.host)):
            self.tell(f"without {', '.join(headers)}: the log-in leads to hosts that are none of the entry")
            return {}
        return headers

    def _allows(self, host: str, port: int) -> bool:
        return self.allows(_as_in_url(host), port)

    def _is_own(self, host: str) -> bool:
        return self.is_of_entry(_as_in_url(host))

    def _why_not(self, url: str) -> str:
        """Return why the browser may not load a URL; empty where it may."""
        parts = urlsplit(url)
        if not self.access.carries(parts.scheme):
            return f"it leads to {shown(url)}: a log-in goes over https only, unless the entry has allow_plain_http"
        return "" if self._allows(parts.hostname or "", port_of(url)) else elsewhere(url)


def _as_in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
