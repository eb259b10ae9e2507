"""The rules of a collection for requests that do not come from its frontier, such as those of another component."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from crawlspace.decision import Decision, Reason
from crawlspace.frontier.robots.cache import RobotsVerdict
from crawlspace.runtime.requests import ROBOTS, LeasedRequest
from crawlspace.runtime.rule_middleware import CheckedUrl, RequestRules

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawlspace.runtime.session import Session


class CollectionRules(RequestRules):
    """Leased requests pass: the frontier has checked them. CRAWLSPACE_MAX_URLS_PER_HOST counts known URLs, so it is checked there."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        super().__init__(session.space, crawler)
        self._session = session

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CollectionRules:
        """Return the rules of the collection being crawled. Raises NotConfigured for other spiders, as in scrapy shell."""
        session = getattr(crawler.spider, "session", None)
        if session is None:
            raise NotConfigured
        return cls(session, crawler)

    def count(self, reason: Reason) -> None:
        self._session.engine.discovery.refused[reason] += 1

    def is_leased(self, request: Request) -> bool:
        return isinstance(request, LeasedRequest)

    def is_robots_txt(self, request: Request) -> bool:
        return ROBOTS in request.meta

    def robots_refusal(self, request: Request) -> str | None:
        """Return why robots.txt refuses a request. It applies also to one that is exempt from the rules."""
        if not self._session.collection.robots_obey or request.meta.get("dont_obey_robotstxt"):
            return None
        checked = self.check(request.url)
        if checked.url is None:
            return checked.decision.reason.sentence
        answer = self._session.engine.robots.ask(checked.url.text, site=checked.url.site)
        if answer is RobotsVerdict.FORBIDDEN:
            return self.refuse(request, Decision(Reason.ROBOTS, None, ()))
        return None if answer is RobotsVerdict.ALLOWED else "robots.txt of its site has not been read yet"

    def why_unreachable(self, checked: CheckedUrl) -> Decision | None:
        resolver = self._session.resolver()
        if resolver is None or checked.url is None:
            return None
        return resolver.why_refused(checked.url.host.strip("[]"), checked.url.port)
