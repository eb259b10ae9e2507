"""Sends the requests of log-ins as those of pages are sent: through the same proxies, with the same certificates and address rules.

A person names the hosts of a log-in. So they may have an address of a private network, unless an address rule forbids it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.exceptions import CannotResolveHostError, DownloadTimeoutError
from scrapy.http import Response
from scrapy.responsetypes import responsetypes

from crawlspace.access.login_states import entry_hosts_of
from crawlspace.access.sessions import LONGEST_LOGIN_S
from crawlspace.config.access import SiteAccess
from crawlspace.config.proxies import Proxies
from crawlspace.config.sites import SiteTable
from crawlspace.decision import Decision, Reason
from crawlspace.runtime.access.login_kinds import Allows, LoggedIn, LogIn, LogInFailedError, LogInStoppedError, Report
from crawlspace.runtime.access.pages import host_shown
from crawlspace.runtime.components.requests import set_proxy
from crawlspace.runtime.http.client import HttpClient
from crawlspace.runtime.http.errors import LoggedOutError, ProxyFailed
from crawlspace.runtime.http.failures import UNEXPECTED, detail_of, meaning_of
from crawlspace.runtime.http.proxies import answered_by_proxy
from crawlspace.runtime.http.resolver import Guard, GuardedResolver, LoopNames
from crawlspace.runtime.http.tls import TlsOptions
from crawlspace.settings import BrowserSettings
from crawlspace.text import printable
from crawlspace.urls import MalformedUrl, parse

if TYPE_CHECKING:
    from crawlspace.runtime.http.transfer import AnswerHead

MOST_BYTES = 4 << 20
"""Of an answer; the rest is not read."""
TIMEOUT_S = 60
_STOP_CHECK_S = 0.5


def guard_of_logins(at_connect: Guard) -> Guard:
    """Return the check of addresses that log-ins may connect to, by that of pages."""

    def check(host: str, port: int, address: str) -> Decision:
        decision = at_connect(host, port, address)
        is_internal = decision.reason is Reason.PRIVATE_ADDRESS and decision.lacks_domain_rule
        return Decision(Reason.ADMITTED, None, decision.trace) if is_internal else decision

    return check


@dataclass(frozen=True, slots=True)
class LoginClient:
    """Client for the requests of log-ins."""

    user_agent: str
    sites: SiteTable
    """Has the certificates of connections."""
    proxies: Proxies
    tls: TlsOptions = field(default_factory=TlsOptions)
    guard: Guard | None = None
    """Returns whether an address may be connected to; None: any may."""
    timeout_s: float = TIMEOUT_S
    """Of one request."""
    browser: BrowserSettings | None = None
    """Of log-ins in the browser."""

    async def log_in(
        self,
        access: SiteAccess,
        allows: Allows,
        report: Report = lambda _: None,
        *,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> LoggedIn:
        """Return a new session. Raises LogInFailedError, SettingError, and LogInStoppedError soon after `is_stopping`."""
        login = asyncio.ensure_future(self._log_in(access, allows, report))
        while not (await asyncio.wait({login}, timeout=_STOP_CHECK_S))[0]:
            if is_stopping():
                login.cancel()
                await asyncio.wait({login})
                raise LogInStoppedError
        return login.result()

    async def get(self, request: Request) -> Response:
        """Return the answer to one request. Raises LogInFailedError where there is none."""
        async with self._client() as client:
            return await self._send(client, request)

    async def _log_in(self, access: SiteAccess, allows: Allows, report: Report) -> LoggedIn:
        try:
            async with asyncio.timeout(LONGEST_LOGIN_S), self._client() as client:
                if access.kind == "browser":
                    return await self._in_browser(access, allows, report)
                return await LogIn(access, lambda request: self._send(client, request), allows, report).session()
        except TimeoutError as error:
            raise LogInFailedError(f"it has not ended within {LONGEST_LOGIN_S} s", refused=False) from error

    async def _in_browser(self, access: SiteAccess, allows: Allows, report: Report) -> LoggedIn:
        from crawlspace.runtime.access.browser import BrowserLogIn  # noqa: PLC0415 - it needs the extra

        assert self.browser is not None
        is_of_entry = entry_hosts_of(self.sites, access)
        agent = next((one.user_agent for one in self.sites.settings if one.access is access and one.user_agent), self.user_agent)
        return await BrowserLogIn(access, self.browser, allows, is_of_entry, report, agent, self.tls.verifies).session()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[HttpClient]:
        client = HttpClient(self.tls, tls_of=lambda host, port: self.sites.of(host, port).tls, decodes=True)
        try:
            yield client
        finally:
            client.close()

    async def _send(self, client: HttpClient, request: Request) -> Response:
        """Return the answer to a request. Raises LogInFailedError where there is none."""
        try:
            url = parse(request.url)
        except MalformedUrl as error:
            raise LogInFailedError(f"{_origin(request)} cannot be reached: its address is not valid", refused=False) from error
        entry = self.sites.of(url.host, url.port).access
        if entry is not None and entry.carries(url.scheme):
            for name, value in entry.headers().items():
                request.headers.setdefault(name, value)
        request.headers.setdefault(b"User-Agent", self.sites.of(url.host, url.port).user_agent or self.user_agent)
        proxy = self.proxies.of(url.scheme, url.host, url.port)
        if proxy is not None:
            address = self.proxies.address(proxy)
            set_proxy(request, address.url, address.authorization, where=proxy.where)
        resolver = GuardedResolver(LoopNames(timeout_s=self.timeout_s))
        if self.guard is not None:
            resolver.add(self.guard)
        body = _Body()
        try:
            got = await client.fetch(request, body, resolver, timeout_s=self.timeout_s)
        except (ProxyFailed, LoggedOutError) as error:
            is_refused = isinstance(error, LoggedOutError) and not error.is_passing
            raise LogInFailedError(str(error), refused=is_refused) from None  # its cause may have the log-in
        except DownloadTimeoutError as error:
            raise LogInFailedError(f"{_origin(request)} has not answered within {self.timeout_s:g} s", refused=False) from error
        except Exception as error:
            is_refused = resolver.why_refused(url.host.strip("[]"), url.port) is not None
            raise LogInFailedError(
                f"{_origin(request)} cannot be reached: {_why(error, is_refused=is_refused)}", refused=False
            ) from error
        headers = got.head.headers
        headers.pop(b"Content-Encoding", None)  # it is decoded
        kind = responsetypes.from_args(headers=headers, url=request.url, body=body.content)
        response: Response = kind(request.url, status=got.head.status, headers=headers, body=body.content, request=request)
        if proxy is not None and (failed := answered_by_proxy(request, response)) is not None:
            raise LogInFailedError(str(failed), refused=False)
        return response


class _Body:
    """Takes the first bytes of a body."""

    def __init__(self) -> None:
        self.content = b""

    def begin(self, head: AnswerHead) -> bool:
        return True

    def write(self, data: bytes) -> bool:
        self.content += data[: MOST_BYTES - len(self.content)]
        return len(self.content) < MOST_BYTES


def _origin(request: Request) -> str:
    return f"{urlsplit(request.url).scheme}://{host_shown(request.url)}"


def _why(error: Exception, *, is_refused: bool) -> str:
    """Return why a host cannot be reached. Raises the error itself where it is no failure of a download."""
    if isinstance(error, CannotResolveHostError):
        return "an address rule forbids it" if is_refused else "its name cannot be resolved"
    if isinstance(error, OSError):
        return str(error.strerror or error)
    meaning = meaning_of(error, url="", resolver=None)
    if meaning is UNEXPECTED:
        raise error
    return printable(detail_of(error, meaning.status))
