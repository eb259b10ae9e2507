"""The robots.txt of sites to which only requests for no page lead, such as images on another host: it is read when it is needed.

The frontier reads that of a site before the site's first page; these sites may have none.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK

from crawlspace.cache import Recent
from crawlspace.crawl.run import FetchRobots
from crawlspace.model import Status
from crawlspace.printable import printable
from crawlspace.runtime.http.failures import meaning_of
from crawlspace.runtime.requests import robots_request

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlspace.runtime.session import Session
    from crawlspace.urls import Url

logger = logging.getLogger(__name__)

AGAIN_S = 60.0
"""Seconds after which a robots.txt that could not be read is requested again."""
REMEMBERED = 1_000


class RobotsUnavailable(IgnoreRequest):
    """A request is not sent, because the robots.txt of its site cannot be read."""

    def __init__(self) -> None:
        super().__init__("robots.txt of its site cannot be read at present")


class OtherRobots:
    """Reads each robots.txt once, however many requests wait for it."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        self._session = session
        self._crawler = crawler
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._failed_at: Recent[str, float] = Recent(REMEMBERED)

    async def read(self, url: Url) -> None:
        """Have the robots.txt of a URL read. Raises RobotsUnavailable where that fails."""
        fetch = FetchRobots.at(url.text, site=url.site)
        place = fetch.url
        if not self._has_failed(place):
            task = self._reading.get(place)
            if task is None:
                task = self._reading[place] = asyncio.ensure_future(self._fetch(fetch))
                task.add_done_callback(lambda _: self._reading.pop(place))
            await asyncio.shield(task)
        if self._has_failed(place):
            raise RobotsUnavailable

    def _has_failed(self, place: str) -> bool:
        failed_at = self._failed_at.get(place)
        return failed_at is not None and monotonic() - failed_at < AGAIN_S

    async def _fetch(self, fetch: FetchRobots) -> None:
        robots = self._session.robots
        assert self._crawler.engine is not None
        self._session.engine.note_request(fetch.site)
        try:
            response = await self._crawler.engine.download_async(robots_request(fetch, callback=NO_CALLBACK, errback=None))
        except Exception as error:  # noqa: BLE001 - whatever a download raises
            meaning = meaning_of(error, url=fetch.url, resolver=self._session.resolver())
            if meaning.status in (Status.NO_SUCH_HOST, Status.EXCLUDED):
                robots.pass_over(fetch.site, fetch.scheme)  # the request itself fails for that
                return
            why = printable(str(error))
        else:
            if robots.save(fetch.site, fetch.scheme, status=response.status, body=robots_body(response)):
                return
            why = f"status {response.status}"
        self._failed_at.put(fetch.url, monotonic())
        logger.warning("%s cannot be read (%s): requests to its site for files or data are left out for now", fetch.url, why)


def robots_body(response: Response) -> str:
    """Return the text of an answer to a request for robots.txt; empty where that is an error."""
    return response.body.decode("utf-8-sig", "replace") if 200 <= response.status < 300 else ""
