"""Follows the redirects of a robots.txt. What it forbids is decided before a request is made."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from crawlspace.frontier.robots.cache import MAX_REDIRECTS
from crawlspace.runtime.http.headers import location_of
from crawlspace.runtime.requests import ROBOTS, robots_request
from crawlspace.runtime.rule_middleware import may_redirect_robots_txt
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, join, parse

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlspace.crawl.run import FetchRobots
    from crawlspace.rules.space import CrawlSpace
    from crawlspace.urls import Url

logger = logging.getLogger(__name__)


class BaseRobotsTxt:
    """Up to five redirects of a robots.txt are followed: within its host, and to hosts that the crawl space may reach.

    More, or one to elsewhere, count as no limits (RFC 9309, 2.3.1.2). A 304 and a redirect that names no place on the web are no
    answer to the request: they stay as they are, and the site waits.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Request | Response:
        fetch = request.meta.get(ROBOTS)
        if fetch is None:
            return response
        if not 100 <= response.status < 600:  # to be taken for a server error (RFC 9110, 15), and never for a code of our own
            logger.info("%s came with the status %.20s, which HTTP has not: taken for 500", request.url, response.status)
            return response.replace(status=500)
        if not 300 <= response.status < 400 or response.status == 304:
            return response
        location = location_of(response.headers.get(b"Location"))
        target = self._target(location, request.url) if location else None
        if target is None or target.scheme not in DEFAULT_PORTS:
            return response
        if fetch.redirects >= MAX_REDIRECTS or not self._may_ask(target, fetch):
            return response.replace(status=404)
        following = replace(fetch, url=target.text, redirects=fetch.redirects + 1)
        return robots_request(following, callback=request.callback, errback=request.errback)

    def _target(self, location: str, base: str) -> Url | None:
        """Return the URL of a redirect, None if it is malformed. URL options concern pages: a robots.txt is where its server has it."""
        try:
            return parse(join(base, location))
        except MalformedUrl:
            return None

    def _may_ask(self, target: Url, fetch: FetchRobots) -> bool:
        return may_redirect_robots_txt(self._space, target, (parse(fetch.url).host, fetch.site.rpartition(":")[0]))

    @property
    def _space(self) -> CrawlSpace:
        space: CrawlSpace = self._crawler.spider.session.space  # type: ignore[union-attr]
        return space
