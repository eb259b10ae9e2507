"""Log-ins in a browser that is started for them, and ended after them; the cookies that it has then are the session.

No error of Playwright is shown or chained: its message contains the secrets that were filled in.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from msgspec import structs
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeoutError

from crawlspace.config.access import BrowserLogin, BrowserStep, SiteAccess
from crawlspace.config.secrets import read_secret
from crawlspace.runtime.access.cookies import SessionCookies, cookies_of_entry
from crawlspace.runtime.access.login_kinds import Allows, LoggedIn, LogInFailedError, Report, is_passing, why_not
from crawlspace.runtime.access.login_proxy import LoginProxy
from crawlspace.runtime.access.pages import shown
from crawlspace.runtime.browser.process import BrowserError, BrowserProcess
from crawlspace.runtime.browser.resources import Loads
from crawlspace.settings import BrowserSettings
from crawlspace.text import printable, quoted

STEP_S = 30.0
"""The longest that a step may take."""
_MAX_WAIT_S = 5.0
"""Time a page may look logged out after the last step: its scripts may be about to lead elsewhere."""
_LOOK_S = 5.0
_NOT_WAITED_FOR = frozenset({"eventsource", "websocket", "ping", "image", "media", "font", "texttrack", "manifest"})
_DATA = frozenset({"xhr", "fetch"})
_NET_ERROR = re.compile(r"net::(ERR_[A-Z0-9_]+)")
_ABORTED = "ERR_ABORTED"
"""The page itself has led elsewhere meanwhile."""
_MOST_HOSTS = 5


@dataclass(frozen=True, slots=True)
class BrowserLogIn:
    """Attempt at a log-in by a browser."""

    access: SiteAccess
    settings: BrowserSettings
    allows: Allows
    is_of_entry: Callable[[str], bool]
    """Whether a host is one of the entry, whose cookies are kept."""
    report: Report
    user_agent: str
    verify: bool
    """Certificates of servers."""

    async def session(self) -> LoggedIn:
        """Return the session. Raises LogInFailedError, and SettingError for a secret that cannot be read."""
        login = self.access.session
        assert isinstance(login, BrowserLogin)
        steps = [self._with_secrets(number, step) for number, step in enumerate(login.steps)]
        proxy = LoginProxy(lambda host, port: self.allows(_as_in_url(host), port), allows_http=self.access.carries("http"))
        try:
            process = await BrowserProcess.start(self.settings, proxy=await proxy.start())
            try:
                return await self._logged_in(process.browser, proxy, login, steps)
            finally:
                await process.close()
        except BrowserError as error:
            raise LogInFailedError(str(error), refused=False) from error
        except PlaywrightError:  # its message may contain secrets
            raise LogInFailedError("the browser has ended", refused=False) from None
        finally:
            await proxy.close()

    async def _logged_in(self, browser: Any, proxy: LoginProxy, login: BrowserLogin, steps: list[BrowserStep]) -> LoggedIn:
        context = await browser.new_context(
            user_agent=self.user_agent,
            extra_http_headers=self._headers(login),
            ignore_https_errors=not self.verify,
            service_workers="block",
            accept_downloads=False,
            viewport={"width": 1280, "height": 1024},
        )
        pages = LoginPages(
            context,
            login,
            why_not=lambda url: why_not(url, self.access, self.allows),
            unreachable=proxy.unreachable,
            report=self.report,
        )
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
        cookies.load(kept)
        return LoggedIn(cookies.dumped())

    def _with_secrets(self, number: int, step: BrowserStep) -> BrowserStep:
        where = f"{self.access.where}['login']['steps'][{number}]['fill']"
        return structs.replace(
            step, fill={name: read_secret(f"{where}[{quoted(name)}]", value) for name, value in step.fill.items()}
        )

    def _headers(self, login: BrowserLogin) -> Mapping[str, str]:
        assert login.url is not None
        headers = self.access.headers()
        if headers and (login.hosts or not self._is_own(login.url.host)):
            self.report(f"without {', '.join(headers)}: the log-in leads to hosts that are none of the entry")
            return {}
        return headers

    def _is_own(self, host: str) -> bool:
        return self.is_of_entry(_as_in_url(host))


def _as_in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


# --- the pages --------------------------------------------------------------------------------------------------------


class LoginPages:
    """One log-in. The page that was opened last, as a pop-up, is the one that a step is about, as long as it is open."""

    def __init__(
        self,
        context: Any,
        login: BrowserLogin,
        *,
        why_not: Callable[[str], str],
        unreachable: Mapping[str, str],
        report: Report,
    ) -> None:
        """`why_not` returns why a URL may not be loaded, `unreachable` has the hosts that cannot be reached, and why."""
        self._context = context
        self._login = login
        self._why_not = why_not
        self._unreachable = unreachable
        self._report = report
        self._over: asyncio.Future[LogInFailedError] = asyncio.get_running_loop().create_future()
        self._loads = Loads()
        self._waited_for: set[Any] = set()
        self._at = ""
        """The page that was requested last."""
        self._step = 0
        self._statuses: dict[Any, tuple[int, int]] = {}
        """With which each page was answered, and in which step."""
        self._failed = ""
        """Request of the last step that failed through no fault of the log-in, and why."""
        self._refused: list[str] = []
        """Hosts requested by the pages that don't belong to the log-in."""
        context.on("request", self._asked)
        context.on("response", self._answered)
        context.on("requestfinished", self._ended)
        context.on("requestfailed", self._request_failed)
        context.on("page", lambda page: page.on("crash", lambda _: self.end(f"the page at {self.place} has crashed")))

    @property
    def place(self) -> str:
        """The address of the page, for messages."""
        url = self._page.url if self._pages else ""
        return shown(url if url.startswith("http") else self._at)

    def end(self, why: str, *, refused: bool = False) -> None:
        """Have the log-in fail at once."""
        if not self._over.done():
            self._over.set_result(LogInFailedError(why, refused=refused))

    async def run(self, steps: Sequence[BrowserStep]) -> None:
        """Load the page of the log-in and do the steps. Raises LogInFailedError."""
        work = asyncio.ensure_future(self._run(steps))
        ends: set[asyncio.Future[Any]] = {work, self._over}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._over.done():
                raise self._over.result()
            work.result()
        finally:
            work.cancel()
            await asyncio.wait({work})
            _ = work.cancelled() or work.exception()  # so that asyncio does not log it

    @property
    def _pages(self) -> list[Any]:
        return [page for page in self._context.pages if not page.is_closed()]

    @property
    def _page(self) -> Any:
        return self._pages[-1]

    async def _run(self, steps: Sequence[BrowserStep]) -> None:
        url = self._login.url
        page = await self._context.new_page()
        try:
            await page.goto(url, wait_until="domcontentloaded", timeout=STEP_S * 1000)
        except PlaywrightError as error:
            raise self._passing(f"the page at {shown(self._at or url)} cannot be loaded: {self._why(error)}") from None
        await self._settled()
        for step in steps:
            self._check_answer()
            self._step += 1
            self._failed = ""
            await self._do(step, is_last=step is steps[-1])
        await self._look(steps)

    async def _do(self, step: BrowserStep, *, is_last: bool) -> None:
        end = monotonic() + STEP_S
        if step.fill:
            self._report(f"{'fill':<5}{', '.join(map(quoted, step.fill))}")
        for selector, text in step.fill.items():
            await self._act(selector, end, text)
        if step.click:
            self._report(f"{'click':<5} {quoted(step.click)}")
            await self._act(step.click, end)
        if step.wait_for:
            await self._wait_for(step.wait_for, end, is_last=is_last)
            self._report(f"{'found':<5} {quoted(step.wait_for)}")
        elif step.click:
            await self._settled()

    async def _act(self, selector: str, end: float, text: str | None = None) -> None:
        """Fill in the first thing shown that a selector finds, or click it if there is no text. Raises LogInFailedError."""
        while True:
            page, is_reached = self._page, False
            target = page.locator(f"css={selector} >> visible=true").first
            try:
                await target.wait_for(state="visible", timeout=_left_ms(end))
                is_reached = True
                await (target.click(timeout=_left_ms(end)) if text is None else target.fill(text, timeout=_left_ms(end)))
                return
            except PlaywrightError:
                if not page.is_closed() or not self._pages:
                    raise await self._missing(page, selector, "clicked" if text is None else "filled in") from None
            if is_reached and text is None:
                return  # that has closed a pop-up; one that closes by itself leads to the page below it

    async def _wait_for(self, selector: str, end: float, *, is_last: bool) -> None:
        while True:
            page = self._page
            try:
                await page.locator(f"css={selector}").first.wait_for(state="attached", timeout=_left_ms(end))
                return
            except PlaywrightError:
                if page.is_closed() and self._pages:
                    continue  # a pop-up has closed itself
                if is_last and not self._failed and (sign := await self._sign(is_found=False)):
                    raise self._logged_out(sign) from None
                raise await self._missing(page, selector, "") from None

    async def _missing(self, page: Any, selector: str, how: str) -> LogInFailedError:
        """Return what to raise where nothing can be done with what a selector finds."""
        if self._failed:
            return self._passing(self._failed)
        found = 0
        with suppress(PlaywrightError, TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                found = await page.locator(f"css={selector}").count()
        status, _ = self._statuses.get(page, (0, 0))
        at = f"the page at {self.place}" + (f" (status {status})" if status >= HTTPStatus.BAD_REQUEST else "")
        if not found:
            return LogInFailedError(f"{at} has nothing that {quoted(selector)} selects{self._refused_hosts}", refused=True)
        return LogInFailedError(
            f"{at} has what {quoted(selector)} selects, but it cannot be {how}: it is hidden, disabled, covered or of another kind"
            f"{self._refused_hosts}",
            refused=True,
        )

    async def _look(self, steps: Sequence[BrowserStep]) -> None:
        """See whether the last page looks logged out. Raises LogInFailedError."""
        end = monotonic() + _MAX_WAIT_S
        while True:
            self._check_answer()
            sign = await self._sign(is_found=bool(steps[-1].wait_for))
            if not sign:
                return
            if monotonic() > end:
                raise self._passing(self._failed) if self._failed else self._logged_out(sign)
            await self._settled(_MAX_WAIT_S)

    async def _sign(self, *, is_found: bool) -> str:
        """Return in a few words why the page looks logged out; empty if it does not. `is_found`: what the last step waits for is there."""
        page = self._page
        with suppress(PlaywrightError, TimeoutError):  # it has just led elsewhere
            async with asyncio.timeout(_LOOK_S):
                return await self._sign_of(page, is_found=is_found)
        return ""

    async def _sign_of(self, page: Any, *, is_found: bool) -> str:
        signs = self._login.logged_out
        status, at_step = self._statuses.get(page, (0, 0))
        if status in self._login.statuses and at_step == self._step:
            return f"status {status}"
        if signs.redirect and not is_found and page.url.startswith(signs.redirect):
            return f"the address {shown(page.url)}"
        if signs.text and signs.text in f"{await page.title()}\n{await page.inner_text('body')}":
            return f"the text {quoted(signs.text)}"
        if signs.selector and await _is_shown(page, signs.selector):
            return f"what {quoted(signs.selector)} selects"
        for step in self._login.steps:
            if step.fill and all([await _is_shown(page, selector) for selector in step.fill]):
                return "the form of the log-in"
        return ""

    async def _settled(self, longest_s: float = STEP_S) -> None:
        """Wait until the pages load nothing any more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self._loads.idle()

    def _check_answer(self) -> None:
        """Raise LogInFailedError where the page itself is an error of its server."""
        status, _ = self._statuses.get(self._page, (0, 0)) if self._pages else (0, 0)
        if is_passing(status):
            raise self._passing(f"{self.place} answers {status}")

    def _logged_out(self, sign: str) -> LogInFailedError:
        return LogInFailedError(
            f"{self.place} shows {sign} after the log-in: is it the right user and password?{self._refused_hosts}", refused=True
        )

    def _passing(self, why: str) -> LogInFailedError:
        return LogInFailedError(f"{why}{self._refused_hosts}", refused=False)

    @property
    def _refused_hosts(self) -> str:
        if not self._refused:
            return ""
        more = len(self._refused) - _MOST_HOSTS
        named = ", ".join(map(printable, self._refused[:_MOST_HOSTS])) + (f" and {more} more" if more > 0 else "")
        return f"; it was refused to load from {named}: name in 'hosts' what the log-in needs"

    def _why(self, error: PlaywrightError) -> str:
        """Return why a page is not there."""
        if isinstance(error, PlaywrightTimeoutError):
            return f"it has not answered within {STEP_S:g} s"
        return self._why_failed(str(error), self._at) or "it is nothing that a browser shows"

    def _why_failed(self, message: str, url: str) -> str:
        """Return why a request has failed; empty where it has not, or for an unknown reason."""
        found = _NET_ERROR.search(message)
        name = "" if found is None else found[1]
        if not name or name == _ABORTED:
            return ""
        if reason := self._unreachable.get(urlsplit(url).hostname or ""):
            return reason
        return f"its certificate cannot be trusted ({name})" if name.startswith("ERR_CERT") else name

    def _asked(self, request: Any) -> None:
        url = request.url
        if urlsplit(url).scheme not in {"http", "https"}:
            return
        is_page = _is_page(request)
        if is_page:
            self._at = url
        if why := self._why_not(url):
            host = urlsplit(url).hostname or ""
            if is_page:
                self.end(why, refused=True)
            elif host not in self._refused:
                self._refused.append(host)
        elif request.resource_type not in _NOT_WAITED_FOR:
            self._waited_for.add(request)
            self._loads.begin()

    def _answered(self, response: Any) -> None:
        request, status = response.request, response.status
        is_page = _is_page(request)
        if not is_page and not _sends(request):
            return
        location = response.headers.get("location", "") if 300 <= status < 400 else ""
        self._report(f"{request.method:<5}{shown(request.url)}  {status}" + (f" to {shown(location)}" if location else ""))
        if is_page and not location and (page := _page_of(request)) is not None:
            self._statuses[page] = status, self._step
        if is_passing(status):
            self._failed = f"{shown(request.url)} answers {status}"

    def _ended(self, request: Any) -> None:
        if request in self._waited_for:
            self._waited_for.discard(request)
            self._loads.end()

    def _request_failed(self, request: Any) -> None:
        self._ended(request)
        why = self._why_failed(f"{request.failure}", request.url)
        if why and (_is_page(request) or _sends(request)) and not self._why_not(request.url):
            self._failed = f"{shown(request.url)} cannot be loaded: {why}"


def _is_page(request: Any) -> bool:
    """Whether a request is for a page itself, and not for a frame in it."""
    try:
        return bool(request.is_navigation_request() and request.frame.parent_frame is None)
    except PlaywrightError:
        return bool(request.is_navigation_request())  # of a pop-up that is about to open


def _page_of(request: Any) -> Any:
    try:
        return request.frame.page
    except PlaywrightError:
        return None


def _sends(request: Any) -> bool:
    """Whether a script has sent something by a request."""
    return request.resource_type in _DATA and request.method not in {"GET", "HEAD", "OPTIONS"}


async def _is_shown(page: Any, selector: str) -> bool:
    return bool(await page.locator(f"css={selector} >> visible=true").count())


def _left_ms(end: float) -> float:
    return max(1.0, (end - monotonic()) * 1000)
