"""Sets the log-in and the headers that CRAWLSPACE_SITES has for a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.exceptions import NotConfigured

from crawlspace.runtime.requests import STATE
from crawlspace.urls import MalformedUrl, parse

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawlspace.crawl.logins import Logins


class BaseSiteAccess:
    """For pages, robots.txt and requests of a spider's own. A redirect makes a request of its own, so that its target's host counts."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        session = getattr(crawler.spider, "session", None)
        if session is None or not session.engine.logins:
            raise NotConfigured
        return cls(session.engine.logins)

    def process_request(self, request: Request) -> None:
        state = request.meta.get(STATE)
        if state is not None and request.url == state.url:
            site, scheme = state.site, state.url.partition(":")[0]
        else:
            try:
                url = parse(request.url)
            except MalformedUrl:
                return
            site, scheme = url.site, url.scheme
        for name, value in self._logins.headers(site, scheme=scheme).items():
            request.headers.setdefault(name, value)
