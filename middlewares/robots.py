"""Follows the redirects of a robots.txt, which Scrapy's own middleware is not there to do. What it forbids is decided before a request is made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from crawlspace.frontier.robots import MAX_REDIRECTS
from crawlspace.runtime.requests import ROBOTS, robots_request
from crawlspace.urls import MalformedUrl, join, parse

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class RobotsTxt:
    """Up to five redirects of a robots.txt are followed, to other hosts too; more, or one to nowhere, count as no limits (RFC 9309, 2.3.1.2)."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsTxt:
        return cls()

    def process_response(self, request: Request, response: Response) -> Request | Response:
        fetch = request.meta.get(ROBOTS)
        if fetch is None or not 300 <= response.status < 400:
            return response
        location = response.headers.get(b"Location")
        if location is None or fetch.redirects >= MAX_REDIRECTS:
            return response.replace(status=404)
        try:
            target = parse(join(request.url, location.decode("utf-8", "replace"))).text
        except MalformedUrl:
            return response.replace(status=404)
        following = replace(fetch, url=target, redirects=fetch.redirects + 1)
        return robots_request(following, callback=request.callback, errback=request.errback)
