"""What Scrapy does with the answers to requests of a spider's own before its callback: redirects are followed, failures tried again.

For pages the engine does both, through the stored state, so Scrapy's middlewares for it are not in the chain.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.http import Response
from scrapy.settings.default_settings import RETRY_HTTP_CODES

from crawlspace.printable import printable
from crawlspace.runtime.http.retry_after import retry_after_of
from crawlspace.urls import parse

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawlspace.runtime.session import Session

logger = logging.getLogger(__name__)


class OwnAnswers:
    """Returns the request that follows an answer or a failure, if one does."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        settings = crawler.settings
        self._session = session
        self._redirects = RedirectMiddleware(settings) if settings.getbool("REDIRECT_ENABLED") else None
        self._retries = RetryMiddleware(settings) if settings.getbool("RETRY_ENABLED") else None
        if self._retries is not None and settings["RETRY_HTTP_CODES"] is None:  # which stands for the errors of pages
            self._retries.retry_http_codes = set(RETRY_HTTP_CODES)
        for one in (self._redirects, self._retries):
            if one is not None:
                one.crawler = crawler
        self._warns_of_cookies = not settings.getbool("COOKIES_ENABLED")

    def after_response(self, request: Request, response: Response) -> Response | Request:
        """Return the answer, or the request that follows it. Raises IgnoreRequest after too many redirects."""
        if self._warns_of_cookies and request.method == "POST" and b"Set-Cookie" in response.headers:
            self._warns_of_cookies = False  # once
            logger.warning(
                "the answer to a form sets a cookie, as that of a log-in does, and it is not kept, because COOKIES_ENABLED is False: %s",
                printable(request.url),
            )
        wait_s = retry_after_of(response, now=self._session.clock.now()) if response.status in (429, 503) else None
        if wait_s:
            longest_s = self._session.engine.policy.retry_after_max_s
            self._session.engine.wait_for_site(parse(request.url).site, min(wait_s, longest_s))
        following: Response | Request = response
        if self._redirects is not None:
            following = self._redirects.process_response(request, response)
        if isinstance(following, Response) and self._retries is not None:
            following = self._retries.process_response(request, following)
        return following

    def after_exception(self, request: Request, exception: Exception) -> Request | None:
        """Return the request once more, if it is to be tried again."""
        if self._retries is None:
            return None
        following = self._retries.process_exception(request, exception)
        assert not isinstance(following, Response)
        return following
