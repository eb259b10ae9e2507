"""Sites behind a log-in form, crawled with the middleware and the sessions of the real crawler.

Spec 20: whether a session is alive is found out by a page that it has shown before. Where that page is shown, a 401 or 403 is the answer of its own
page alone (docs/logins.md: a redirect to the log-in makes it a 616 then, and its document stays). A log-in page is never indexed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from scrapy import Request
from scrapy.http import HtmlResponse, Response

from crawlspace.clock import FakeClock
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import FetchPage
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.runtime.access.login_kinds import LogIn, LogInFailedError
from crawlspace.runtime.access.middleware import SiteAccessMiddleware
from crawlspace.runtime.components.requests import STATE, LeasedRequest
from crawlspace.runtime.http.errors import LoggedOutError, NotSent
from crawlspace.status import Status
from crawlspace.urls import join
from tests.histories.reading import body_of, headers_of
from tests.histories.web import Answer, Login, Page, Site, Web, host_of, path_of

_MOST_TRIES = 10
_MOST_ENDS = 3
"""Sessions that end in one crawl: log-ins are bounded (20 an hour)."""
_CLAIM_S = 30.0


def put_behind(site: Site, chance: random.Random) -> None:
    """Put a site behind a log-in."""
    site.login = Login(chance.choice(("redirect", "redirect", "401", "403", "form")), chance.choice(("", "", "not-for-you")))


def change(web: Web, chance: random.Random) -> str:
    """Forbid pages of a site with a log-in to the crawler, show them to everybody, or end its session."""
    site = chance.choice([one for one in web.sites.values() if one.login is not None])
    pages = [one for one in web.pages_of(site) if path_of(one.url)[1] in "pq" and not one.failure and not one.locked]
    if chance.random() < 0.2 or not pages:
        end_session(site)
        return f"the session at {site.host} has ended"
    changed = chance.sample(pages, min(len(pages), chance.randint(1, 3)))
    return "; ".join(filter(None, (_changed(page, chance) for page in changed)))


def end_session(site: Site) -> None:
    assert site.login is not None
    site.login.token += 1


def _changed(page: Page, chance: random.Random) -> str:
    if page.is_forbidden:
        page.is_forbidden = False
        return f"{page.url} is shown again"
    if page.status in (401, 403):
        page.status = 200
        return f"{page.url} does not answer {page.status} any more"
    if page.status != 200:
        return ""
    what = chance.random()
    if what < 0.25:
        page.is_public = not page.is_public
        return f"{page.url} is {'shown to everybody' if page.is_public else 'for users'}"
    if what < 0.6:
        page.status = chance.choice((401, 403))
        return f"{page.url} answers {page.status}, though somebody is logged in"
    page.is_forbidden, page.links = True, []
    return f"{page.url} leads to the log-in, though somebody is logged in"


class LoggingIn:
    """Log-ins of one process: the middleware, and requests in flight."""

    def __init__(self, engine: Engine, web: Web, clock: FakeClock, chance: random.Random) -> None:
        logins = engine.logins
        self._web, self._chance, self._left = web, chance, _MOST_ENDS
        starts = [start.url.text for start in engine.collection.start_urls]
        self._middleware = SiteAccessMiddleware(
            logins,
            log_in=lambda access: LogIn(access, self._send, logins.places(access)).session(),
            download=self._download,
            unknown=lambda access, url: [one for one in (*starts, join(url, "/")) if logins.is_of(one, access)],
            sleep=self._wait,
        )
        self._clock = clock
        self._sent: dict[int, Request | Exception] = {}

    def send(self, fetch: FetchPage) -> None:
        """Send the request for a page, after logging in if there is no session."""
        request: Request = LeasedRequest(fetch.state.url, meta={STATE: fetch.state})
        self._sent[fetch.state.id] = self._carried(request)

    def end_sessions(self, url: str) -> None:
        """End the session of a site now and then."""
        site = self._web.sites.get(host_of(url))
        if site is not None and site.login is not None and self._left and self._chance.random() < 0.03:
            self._left -= 1
            end_session(site)

    def answer(self, fetch: FetchPage, ask: Callable[[str], Answer]) -> Answer | Outcome | None:
        """Return the answer to a request, or what it ends in where it is not shown; None where it was not sent."""
        state, sent = fetch.state, self._sent.pop(fetch.state.id)
        for _ in range(_MOST_TRIES):
            if isinstance(sent, NotSent):
                return None
            if isinstance(sent, LoggedOutError):
                return _logged_out(fetch, sent)
            assert isinstance(sent, Request)
            answer = ask(_session(sent))
            if answer.failure:
                return answer
            try:
                found = _finished(self._middleware.process_response(sent, response_of(sent, answer)))
            except (NotSent, LoggedOutError) as error:
                sent = error
                continue
            if isinstance(found, Response):
                return answer
            sent = self._carried(found)
        raise AssertionError(f"{state.url} is requested again and again")

    async def _send(self, request: Request) -> Response:
        """Send a request of a log-in."""
        answer = self._web.answer(request.url, session=_session(request), logs_in=request.method == "POST", is_of_page=False)
        if answer.failure:
            raise LogInFailedError(answer.failure, refused=False)
        return response_of(request, answer)

    async def _wait(self, _: float) -> None:
        """Wait for a process that was killed while it logged in."""
        self._clock.advance(_CLAIM_S)

    def _carried(self, request: Request) -> Request | Exception:
        try:
            _finished(self._middleware.process_request(request))
        except (NotSent, LoggedOutError) as error:
            return error
        return request

    async def _download(self, request: Request) -> Response:
        carrying = self._middleware.process_request(request)
        if carrying is not None:
            await carrying
        answer = self._web.answer(request.url, session=_session(request), is_of_page=False)
        if answer.failure:
            raise OSError(answer.failure)
        found = self._middleware.process_response(request, response_of(request, answer))
        found = await found if isinstance(found, Coroutine) else found
        assert isinstance(found, Response)
        return found


def response_of(request: Request, answer: Answer) -> HtmlResponse:
    return HtmlResponse(request.url, status=answer.status, headers=headers_of(answer), body=body_of(answer), request=request)


def _logged_out(fetch: FetchPage, error: LoggedOutError) -> Outcome:
    outcome = Outcome(fetch.state.id, fetch.state.url, OutcomeKind.FAILED, Status.LOGGED_OUT, detail=str(error))
    outcome.retry_after_s = 0.0 if error.may_be_shown else None
    return outcome


def _session(request: Request) -> str:
    """Return the session that a request carries."""
    cookies = (request.headers.get(b"Cookie") or b"").decode().split("; ")
    return next((one.partition("=")[2] for one in cookies if one.startswith("session=")), "")


def _finished(found: Any) -> Any:
    async def awaited() -> Any:
        return await found

    return asyncio.run(awaited()) if asyncio.iscoroutine(found) else found
