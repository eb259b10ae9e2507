"""A site's robots.txt, fetched or not, as the engine takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from crawlspace.errors import CrawlspaceError
from crawlspace.printable import printable
from crawlspace.runtime.access.digest import schemes
from crawlspace.runtime.http.errors import LoggedOutError
from crawlspace.runtime.http.failures import detail_of
from crawlspace.runtime.http.retry_after import retry_after_of
from crawlspace.runtime.other_requests.robots import robots_body
from crawlspace.runtime.requests import ROBOTS
from crawlspace.runtime.spiders.failures import has_another_turn, meaning_of_failure
from crawlspace.state.lifecycle import MOST_DETAIL

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from crawlspace.crawl.run import FetchRobots
    from crawlspace.runtime.session import Session

Stop = Callable[[CrawlspaceError], None]
"""Ends the crawl because of an error."""


def take_robots_txt(response: Response, session: Session, *, stop: Stop) -> None:
    """Give the engine a robots.txt that has come, after its redirects (the robots middleware follows them)."""
    fetch = response.request.meta[ROBOTS]  # type: ignore[union-attr]
    is_own = fetch.target_site == fetch.site
    if is_own and session.logins.is_refusal(fetch.site, response.status, response.body):
        offered = schemes(response.headers.getlist(b"WWW-Authenticate"))
        session.engine.refuse_login(fetch, session.logins.refusal(fetch.site, fetch.url, response.status, offered))
        return
    body = robots_body(response)
    wait_s = retry_after_of(response, now=session.clock.now())
    _take(session, stop, fetch, status=response.status, body=body, wait_s=wait_s)


def take_robots_failure(failure: Failure, session: Session, *, stop: Stop) -> None:
    """Report a robots.txt that could not be fetched. A host that does not exist, or may not be connected to, has none to obey."""
    request = failure.request  # type: ignore[attr-defined]
    fetch = request.meta[ROBOTS]
    if has_another_turn(failure, session):
        session.engine.robots_not_sent(fetch)  # it comes again with the site's next turn
        return
    if isinstance(failure.value, LoggedOutError):
        session.engine.pause_login(fetch, printable(str(failure.value)))
        return
    meaning = meaning_of_failure(failure, session, url=request.url)
    assert failure.value is not None
    detail = printable(detail_of(failure.value, meaning.status), most=MOST_DETAIL)
    _take(session, stop, fetch, status=int(meaning.status), body="", detail=detail)


def _take(
    session: Session, stop: Stop, fetch: FetchRobots, *, status: int, body: str, wait_s: float | None = None, detail: str = ""
) -> None:
    if session.error is not None:
        return
    try:
        session.engine.robots_read(fetch, status=status, body=body, retry_after_s=wait_s, detail=detail)
    except CrawlspaceError as error:
        stop(error)
