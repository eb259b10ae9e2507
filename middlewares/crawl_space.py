"""Holds the crawl space where Scrapy sends a request and where a response begins.

What the frontier hands out has been checked a moment before; this is for requests that come another way, and for the type of a document,
which is known only from its headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import IgnoreRequest, NotConfigured, StopDownload

from crawlspace.decision import Reason
from crawlspace.frontier.robots.cache import Answer
from crawlspace.runtime.download.headers import declared_type
from crawlspace.runtime.requests import ROBOTS, STATE, LeasedRequest

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Headers

    from crawlspace.rules.space import CrawlSpace


class CrawlSpaceGuard:
    """Refuses requests outside the crawl space, and stops a download whose headers name a type that is not taken."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CrawlSpaceGuard:
        if getattr(crawler.spider, "session", None) is None:
            raise NotConfigured
        guard = cls(crawler)
        crawler.signals.connect(guard.headers_received, signal=signals.headers_received)
        return guard

    def process_request(self, request: Request) -> None:
        """Raise IgnoreRequest for a request outside the space."""
        if isinstance(request, LeasedRequest):
            return
        url, decision = self._space.decide(request.url)
        if not decision.admitted:
            raise IgnoreRequest(f"{decision.reason.sentence} ({decision.rule})" if decision.rule else decision.reason.sentence)
        session = self._crawler.spider.session  # type: ignore[union-attr]
        if session.collection.robots_obey and url is not None and not request.meta.get("dont_obey_robotstxt"):
            answer = session.engine.robots.ask(url.text, site=url.site)
            if answer is not Answer.ALLOWED:
                unknown = "robots.txt of its site has not been read yet"
                raise IgnoreRequest(Reason.ROBOTS.sentence if answer is Answer.FORBIDDEN else unknown)

    def headers_received(self, headers: Headers, body_length: int, request: Request, spider: Spider) -> None:
        """Stop before the body where the header decides; the spider sees the response without a body and refuses it."""
        if STATE not in request.meta or ROBOTS in request.meta:
            return
        if not self._space.at_headers(declared_type(headers)).admitted:
            raise StopDownload(fail=False)

    @property
    def _space(self) -> CrawlSpace:
        space: CrawlSpace = self._crawler.spider.session.space  # type: ignore[union-attr]
        return space
