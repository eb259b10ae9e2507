"""Follows the redirects of a robots.txt, which Scrapy's own middleware is not there to do. What it forbids is decided before a request is made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from crawlspace.frontier.robots import MAX_REDIRECTS
from crawlspace.runtime.requests import ROBOTS, robots_request

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class RobotsTxt:
    """Up to five redirects of a robots.txt are followed, to other hosts of the crawl space too; more, or one to elsewhere, count as no limits (RFC 9309, 2.3.1.2)."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsTxt:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Request | Response:
        fetch = request.meta.get(ROBOTS)
        if fetch is None or not 300 <= response.status < 400:
            return response
        location = response.headers.get(b"Location")
        if location is None or fetch.redirects >= MAX_REDIRECTS:
            return response.replace(status=404)
        space = self._crawler.spider.session.space  # type: ignore[union-attr]
        target, decision = space.decide(location.decode("utf-8", "replace"), base=request.url)
        if target is None or not decision.admitted:
            return response.replace(status=404)
        following = replace(fetch, url=target.text, redirects=fetch.redirects + 1)
        return robots_request(following, callback=request.callback, errback=request.errback)
