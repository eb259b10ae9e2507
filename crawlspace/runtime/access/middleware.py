"""Set the log-in and the headers of CRAWLSPACE_SITES for a site, and detect logged-out pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from http import HTTPStatus
from itertools import islice
from time import monotonic
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response, TextResponse

from crawlspace.access.digest import Challenge, DigestLogin
from crawlspace.access.login_states import Logins
from crawlspace.access.sessions import Carried, NextStep
from crawlspace.cache import Recent
from crawlspace.config.access import SiteAccess
from crawlspace.frontier.robots import RobotsVerdict
from crawlspace.runtime.access.client import LoginClient, guard_of_logins
from crawlspace.runtime.access.login_kinds import LoggedIn, carry_session
from crawlspace.runtime.access.pages import LoggedOut
from crawlspace.runtime.access.renewal import Download, Renewal, SessionCheck
from crawlspace.runtime.components.requests import (
    CARRIED,
    CHECK,
    EXCHANGE,
    NEGOTIATE,
    NONCE,
    OWN,
    RESOURCE,
    ROBOTS,
    SESSION,
    STALE,
    STATE,
    OfPage,
    drop_access,
    request_id,
    set_access,
    site_of,
)
from crawlspace.runtime.http.errors import LoggedOutError, NotSent
from crawlspace.runtime.http.tls import TlsOptions
from crawlspace.urls import Url, join, parse

SITES = 10_000
MOST_STARTS = 3
"""Start URLs that are tried where no page is known by which a session shows that it is alive."""
ANONYMOUS = 0
"""The value of CHECK for a request without a session."""


async def _not_in_a_crawl(_: object) -> Any:
    """Raise NotSent, because there is no crawl that could send a request."""
    raise NotSent


class SiteAccessMiddleware:
    """For pages, robots.txt and requests of a spider's own. A redirect makes a request of its own, so that its target's host counts."""

    def __init__(
        self,
        logins: Logins,
        *,
        log_in: Callable[[SiteAccess], Awaitable[LoggedIn]] = _not_in_a_crawl,
        download: Download = _not_in_a_crawl,
        unknown: Callable[[SiteAccess, str], Iterable[str]] = lambda *_: (),
        is_stopping: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`download` sends a request through all middlewares; `unknown` is that of `SessionCheck`."""
        self._logins = logins
        self._is_stopping = is_stopping
        self._digests: Recent[str, DigestLogin] = Recent(SITES)
        self._challenges: Recent[tuple[str, int | str], tuple[Challenge, bool]] = Recent(SITES)
        """What requests are made once more to answer, by site and what they are for, and whether they have answered one before."""
        self._signs = {one.pattern: LoggedOut(one.session) for one in logins.accesses if one.session is not None}
        self._renewal = Renewal(logins, log_in, is_stopping=is_stopping, sleep=sleep)
        self._check = SessionCheck(logins.sessions, self._signs, download, unknown)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        session = getattr(crawler.spider, "session", None)
        if session is None or not session.logins:
            raise NotConfigured

        collection, logins = session.collection, session.logins
        tls, guard = TlsOptions.from_settings(crawler.settings), guard_of_logins(session.space.at_connect)
        client = LoginClient(collection.user_agent, logins.sites, collection.proxies, tls, guard, browser=collection.browser)

        def is_stopping() -> bool:
            return not crawler.crawling

        async def log_in(access: SiteAccess) -> LoggedIn:
            return await client.log_in(access, logins.places(access), is_stopping=is_stopping)

        async def download(request: Request) -> Response:
            assert crawler.engine is not None
            if (found := site_of(request)) is not None:
                session.engine.note_request(found[0])
            return await crawler.engine.download_async(request)

        def may_start(url: Url, access: SiteAccess) -> bool:
            if logins.sites.of(url.host, url.port).access is not access or not access.carries(url.scheme):
                return False
            return not collection.robots_obey or session.robots.check(url.text, site=url.site) is RobotsVerdict.ALLOWED

        def unknown(access: SiteAccess, of_url: str) -> Iterable[str]:
            yield from islice((start.url.text for start in collection.start_urls if may_start(start.url, access)), MOST_STARTS)
            home = parse(join(of_url, "/"))
            if may_start(home, access):
                yield home.text

        return cls(logins, log_in=log_in, download=download, unknown=unknown, is_stopping=is_stopping)

    def process_request(self, request: Request) -> Coroutine[Any, Any, None] | None:
        """Set what the request carries; where it needs a session that is not there, it waits for one."""
        drop_access(request)
        found = site_of(request)
        if found is None:
            return None
        site, scheme = found
        if RESOURCE in request.meta and not self._may_carry(request.meta[RESOURCE], site):
            return None
        headers = {
            name: value for name, value in self._logins.headers(site, scheme=scheme).items() if name not in request.headers
        }
        if headers:
            request.headers.update(headers)
            set_access(request, headers)
        access = self._logins.access(site)
        if access is not None and access.is_asked_for and access.carries(scheme):
            self._prove(request, self._digest(access, site), site)
        if access is not None and access.kind == "negotiate" and access.carries(scheme):
            request.meta[NEGOTIATE] = True
        if access is None or access.session is None or not access.carries(scheme):
            return None
        if request.meta.get(CHECK) == ANONYMOUS:
            request.meta["dont_merge_cookies"] = True
            return None
        carried = self._logins.sessions.current(access)
        if CHECK in request.meta and (carried is None or carried.number != request.meta[CHECK]):
            raise NotSent
        if carried is None:
            return self._wait(request, access, site)
        self._carry(request, access, carried)
        return None

    def process_response(
        self, request: Request, response: Response
    ) -> Request | Response | Coroutine[Any, Any, Request | Response]:
        """Check whether a response looks logged out. If the session has ended, the request is repeated."""
        if response.status == HTTPStatus.UNAUTHORIZED or NONCE in request.meta:
            challenged = self._challenged(request, response)
            if challenged is not None:
                return challenged
        sent = request.meta.get(SESSION)
        if sent is None:
            return response
        pattern, number, _ = sent
        access = self._logins.entry(pattern)
        sign = self._signs[pattern].sign(response)
        if sign and CHECK not in request.meta:
            return self._looks_logged_out(request, response, access, sign)
        if not sign:
            self._shown(request, response, access, number)
            if CHECK not in request.meta:
                is_page = STATE in request.meta and response.status == HTTPStatus.OK and isinstance(response, TextResponse)
                self._logins.sessions.note_shown(access, request_id(request), number, url=request.url if is_page else "")
        return response

    async def _looks_logged_out(self, request: Request, response: Response, access: SiteAccess, sign: str) -> Request | Response:
        """Return the request once more where its session has ended, and the response where it is its page's own answer."""
        pattern, number, sent_at = request.meta[SESSION]
        sessions, page = self._logins.sessions, request_id(request)
        if self._signs[pattern].is_login_address(request.url) and (
            sessions.is_shown(access, number) or sessions.has_tried(access, page)
        ):
            raise LoggedOutError(f"{request.url} is the page of the log-in")
        is_alive = await self._check.is_alive(access, number, url=request.url, sent=sent_at)
        if is_alive is None and self._is_stopping():
            raise NotSent
        what_follows = sessions.next_step(access, page, number, is_alive=is_alive)
        if what_follows is NextStep.AGAIN:
            return _again(request)
        if ROBOTS in request.meta:  # it may be so for everybody; where it is none, as one that is not there (RFC 9309, 2.3.1.3)
            return response if response.status >= 400 else response.replace(status=404)
        site = site_of(request)
        if what_follows is NextStep.REFUSED and site is not None:
            self._logins.note_refused(site[0], f"{request.url} shows {sign} after two log-ins in a row")
        if what_follows is NextStep.OWN and (response.status >= 400 or OWN in request.meta):
            return response
        raise LoggedOutError(f"{request.url} shows {sign}", may_be_shown=what_follows is NextStep.LATER)

    def _may_carry(self, of_page: OfPage, site: str) -> bool:
        """Return whether what a page in the browser loads from a site may carry the log-in of that.

        That is so where the page has the same log-in, and the document that asks, which may be that of a frame, is of the very origin.
        """
        access = self._logins.access(site)
        return of_page.is_own and access is not None and access is self._logins.access(parse(of_page.url).site)

    def _challenged(self, request: Request, response: Response) -> Request | None:
        """Return the request that answers the challenge of a site with a digest log-in; None without one, or if it was answered already."""
        found = site_of(request)
        access = None if found is None else self._logins.access(found[0])
        if found is None or access is None or not access.is_asked_for or not access.carries(found[1]):
            return None
        answered = request.meta.get(NONCE, "")
        digest = self._digest(access, found[0])
        if response.status != HTTPStatus.UNAUTHORIZED:
            digest.taken(answered)
            return None
        challenges = [value.decode("latin-1") for value in response.headers.getlist(b"WWW-Authenticate")]
        challenge = digest.take(challenges, answered=answered, is_last=request.meta.get(STALE, False))
        if challenge is None:
            return None
        self._challenges.put((found[0], request_id(request)), (challenge, bool(answered)))
        return _again(request)

    def _digest(self, access: SiteAccess, site: str) -> DigestLogin:
        digest = self._digests.get(site)
        if digest is None:
            digest = DigestLogin(access.user, access.password(), takes_basic=access.kind == "auto")
            self._digests.put(site, digest)
        return digest

    def _prove(self, request: Request, digest: DigestLogin, site: str) -> None:
        challenge, is_stale = self._challenges.get((site, request_id(request))) or (digest.known, False)
        self._challenges.drop((site, request_id(request)))
        if challenge:
            request.meta[STALE] = is_stale
            request.headers["Authorization"] = digest.authorization(request.method, request.url, challenge)
            request.meta[NONCE] = challenge["nonce"]
            set_access(request, [*request.meta.get(CARRIED, ()), "Authorization"])

    async def _wait(self, request: Request, access: SiteAccess, site: str) -> None:
        self._carry(request, access, await self._renewal.session(access, site))

    def _carry(self, request: Request, access: SiteAccess, carried: Carried) -> None:
        has_token = access.session is not None and access.session.has_token
        of_browser = request.headers.get(b"Cookie") if RESOURCE in request.meta else None
        header = carry_session(request, access, carried.content, None if has_token else self._renewal.cookies(access, carried))
        if of_browser and not has_token:
            request.headers[b"Cookie"] = _with_others(request.headers.get(b"Cookie") or b"", of_browser)
        request.meta[SESSION] = access.pattern, carried.number, monotonic()
        set_access(request, [*request.meta.get(CARRIED, ()), header])

    def _shown(self, request: Request, response: Response, access: SiteAccess, number: int) -> None:
        """Keep the cookies that a page has set."""
        carried = self._logins.sessions.current(access)
        if access.session is None or access.session.has_token or carried is None or carried.number != number:
            return
        cookies = self._renewal.cookies(access, carried)
        if cookies.take_from(response, request):
            self._logins.sessions.update(access, cookies.dumped())


def _with_others(header: bytes, others: bytes) -> bytes:
    """Return a Cookie header with those cookies of another one whose names it has not: what scripts of the page have set, say."""
    pairs = [pair.strip() for pair in header.split(b";") if pair.strip()]
    names = {pair.partition(b"=")[0] for pair in pairs}
    more = [pair.strip() for pair in others.split(b";") if pair.strip()]
    return b"; ".join([*pairs, *(pair for pair in more if pair.partition(b"=")[0] not in names)])


def _again(request: Request) -> Request:
    again = request.copy()
    again.meta.pop(EXCHANGE, None)
    again.dont_filter = True
    return again
