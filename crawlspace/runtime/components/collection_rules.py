"""The rules of a collection for requests that do not come from its frontier, such as those of another component."""

from __future__ import annotations

from collections.abc import Awaitable, Collection
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from crawlspace.decision import Decision, Reason
from crawlspace.frontier.robots import RobotsVerdict
from crawlspace.runtime.components.own_requests import OwnAnswers
from crawlspace.runtime.components.requests import OWN, RESOURCE, ROBOTS, STATE, LeasedRequest, OfPage
from crawlspace.runtime.components.robots import OtherRobots
from crawlspace.runtime.components.rule_middleware import CheckedUrl, RequestRules, refusal
from crawlspace.state.site_pauses import pause_of

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

CHECKS_OF_A_RESOURCE = frozenset({Reason.SCHEME, Reason.DOMAIN, Reason.CHECK_FAILED})
"""The checks of a file or image that a page needs. It is no page, so limits and rules for pages do not apply."""

CHECKS_OF_A_NAMED_HOST = CHECKS_OF_A_RESOURCE - {Reason.DOMAIN}
"""The checks of what a page in the browser loads from a host in `render_hosts`."""

CHECKS_OF_WHAT_IS_READ = frozenset({Reason.PREFIX, Reason.ACTIONS})
"""Further checks of what a script of another origin can read, so that no page reads what the rules forbid."""

CHECKS_OF_OWN_REQUESTS = CHECKS_OF_A_RESOURCE | {Reason.URL_LENGTH, Reason.PREFIX, Reason.ACTIONS}
"""The checks of a request of a spider's own: the rules that a person wrote, and not the limits of pages."""


def checks_of_a_resource(of_page: OfPage) -> frozenset[Reason]:
    """Return the checks of a resource that a page in the browser loads."""
    checks = CHECKS_OF_A_NAMED_HOST if of_page.is_named else CHECKS_OF_A_RESOURCE
    return checks | CHECKS_OF_WHAT_IS_READ if of_page.may_be_read_elsewhere else checks


class CollectionRules(RequestRules):
    """The rules of a collection. Leased requests pass, because the frontier has checked them, CRAWLSPACE_MAX_URLS_PER_HOST included."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        super().__init__(session.space, crawler)
        self._session = session
        self._other_robots = OtherRobots(session, crawler)
        self._answers = OwnAnswers(session, crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CollectionRules:
        """Return the rules of the collection being crawled. Raises NotConfigured for other spiders, as in scrapy shell."""
        session = getattr(crawler.spider, "session", None)
        if session is None:
            raise NotConfigured
        return cls(session, crawler)

    def count(self, reason: Reason) -> None:
        self._session.engine.count_refused({reason: 1})

    def is_leased(self, request: Request) -> bool:
        return isinstance(request, LeasedRequest)

    def is_robots_txt(self, request: Request) -> bool:
        return ROBOTS in request.meta

    def checks_for(self, request: Request) -> Collection[Reason] | None:
        if OWN in request.meta:
            return CHECKS_OF_OWN_REQUESTS
        of_page = request.meta.get(RESOURCE)
        if of_page is not None:
            return checks_of_a_resource(of_page)
        return CHECKS_OF_A_RESOURCE if request.callback is NO_CALLBACK and not self.is_leased(request) else None

    def takes(self, request: Request, declared: str | None) -> bool:
        """Return whether the body of a response is wanted: also one of a type that is not taken, if it may be a sitemap."""
        return super().takes(request, declared) or (
            self.is_leased(request) and self._session.sitemaps.may_be(request.meta[STATE], declared)
        )

    def refuse(self, request: Request, decision: Decision, *, checked: CheckedUrl | None = None) -> str:
        """Count and log a refusal; that of a resource of a page in the browser is reported with the page."""
        if RESOURCE in request.meta:
            return refusal(decision)
        return super().refuse(request, decision, checked=checked)

    def after_response(self, request: Request, response: Response) -> Response | Request:
        return self._answers.after_response(request, response) if OWN in request.meta else response

    def after_exception(self, request: Request, exception: Exception) -> Request | None:
        return self._answers.after_exception(request, exception) if OWN in request.meta else None

    def before(self, request: Request, checked: CheckedUrl) -> Awaitable[None] | None:
        """Fetch the robots.txt of a site that has no page yet. Raises IgnoreRequest if a person has paused the site."""
        paused = None if checked.url is None else pause_of(self._session.frontier.pauses, checked.url.site)
        if paused is not None:
            raise IgnoreRequest(f"{paused.pattern} is {paused.pause.sentence}")
        if not self._obeys_robots(request) or checked.url is None:
            return None
        if self._session.robots.check(checked.url.text, site=checked.url.site) is not RobotsVerdict.UNKNOWN:
            return None
        return self._other_robots.read(checked.url)

    def _obeys_robots(self, request: Request) -> bool:
        return self._session.collection.robots_obey and not request.meta.get("dont_obey_robotstxt")

    def robots_refusal(self, request: Request) -> str | None:
        """Return why robots.txt refuses a request. It applies also to one that is exempt from the rules."""
        if not self._obeys_robots(request):
            return None
        checked = self.check(request.url)
        if checked.url is None:
            return checked.decision.reason.sentence
        answer = self._session.robots.check(checked.url.text, site=checked.url.site)
        if answer is RobotsVerdict.FORBIDDEN:
            return self.refuse(request, Decision(Reason.ROBOTS, None, ()))
        return None

    def why_unreachable(self, checked: CheckedUrl) -> Decision | None:
        resolver = self._session.resolver()
        if resolver is None or checked.url is None:
            return None
        return resolver.why_refused(checked.url.host.strip("[]"), checked.url.port)
