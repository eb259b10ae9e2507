"""Has pages rendered in a browser where their content needs it: the HTML that was fetched becomes the page of a tab, its DOM the response.

Next to the download of all components that see pages, so that for them a rendered page is one as any other: whether it shows a log-in, say.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from crawlspace.config.access import SessionLogin
from crawlspace.content.charset import charset_parameter
from crawlspace.content.links import with_queries_in
from crawlspace.content.mime import HTML_TYPES
from crawlspace.content.page import Page
from crawlspace.crawl.rendering import Rendering
from crawlspace.decision import Render
from crawlspace.runtime.components.archived_responses import with_dom
from crawlspace.runtime.components.requests import CONTENTS, EXCHANGE, FILE, STATE
from crawlspace.runtime.components.rule_middleware import document_type
from crawlspace.runtime.components.scrapy_internals import STOPPED
from crawlspace.runtime.http.errors import NotRenderedError, NotSent
from crawlspace.runtime.http.headers import declared_type
from crawlspace.state.render_learning import RenderDecision, Rendered

if TYPE_CHECKING:
    from crawlspace.runtime.browser.crawl_browser import CrawlBrowser
    from crawlspace.runtime.browser.resources import Loads
    from crawlspace.runtime.browser.tab import Dom
    from crawlspace.runtime.session.session import Session


class RenderingMiddleware:
    """For the pages of a collection. Others, as in scrapy shell, come as they were sent."""

    def __init__(self, session: Session, rendering: Rendering, browser: CrawlBrowser) -> None:
        content = session.collection.content
        self._session = session
        self._rendering = rendering
        self._browser = browser
        self._reader = content.page_reader()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        session = getattr(crawler.spider, "session", None)
        rendering = None if session is None else session.rendering
        if session is None or rendering is None or not crawler.crawling:
            raise NotConfigured
        from crawlspace.runtime.browser.crawl_browser import CrawlBrowser  # noqa: PLC0415 - it needs the extra

        browser = CrawlBrowser(session, crawler)
        middleware = cls(session, rendering, browser)
        crawler.signals.connect(browser.close, signal=signals.spider_closed)
        return middleware

    def process_request(self, request: Request) -> None:
        """Raise NotRenderedError for a page that would be fetched without a browser to render it."""
        state = request.meta.get(STATE)
        if state is not None and self._browser.is_away and self._rendering.mode(state.url) is Render.ALWAYS:
            raise NotRenderedError(f"there is no browser at present: {self._browser.why_away}")

    def process_response(self, request: Request, response: Response) -> Response | Coroutine[Any, Any, Response]:
        """Return the response, with the page as the browser shows it where it is to be rendered."""
        state = request.meta.get(STATE)
        if state is None or response.status != HTTPStatus.OK or not self._is_html(request, response):
            return response
        plain = self._read(response, state.url)
        decide = self._rendering.decide(state.url, needs_browser=plain.may_need_browser)
        return response if decide is RenderDecision.NO else self._rendered(request, response, plain, decide)

    def _is_html(self, request: Request, response: Response) -> bool:
        body = request.meta.get(FILE)
        if (body is not None and body.path is not None) or CONTENTS in request.meta:
            return False
        if STOPPED in response.flags or b"Location" in response.headers:
            return False
        site = request.meta[STATE].site
        mime, decision = document_type(self._session.space, declared_type(response.headers), response.body, site=site)
        return decision.admitted and mime in HTML_TYPES

    def _read(self, response: Response, url: str) -> Page:
        declared = declared_type(response.headers)
        charset = None if declared is None else charset_parameter(declared)
        return self._reader.read(response.body, url=url, mime="text/html", charset=charset)

    async def _rendered(self, request: Request, response: Response, plain: Page, decide: RenderDecision) -> Response:
        url = request.meta[STATE].url
        records: list[Loads] = []
        try:
            dom = await self._browser.render(request, response, records, stays=plain.meta_refresh is not None)
            return self._taken(request, response, dom, plain, records)
        except NotSent:
            self._rendering.skipped(url)
            raise
        except NotRenderedError as error:
            self._rendering.failed(url, str(error))
            if decide is RenderDecision.CHECK:
                return response
            raise

    def _taken(self, request: Request, response: Response, dom: Dom, plain: Page, records: list[Loads]) -> Response:
        """Return the response with the DOM. Raises NotRenderedError where that lacks what could not be loaded."""
        url = request.meta[STATE].url
        loads = records[-1]
        moved_to = dom.moved_to or self._login_shown(request, dom.url)
        if moved_to:
            self._rendering.skipped(url)
            headers = response.headers.copy()
            headers[b"Location"] = moved_to
            # As a redirect, which shows whether it is one to the log-in.
            status = HTTPStatus.FOUND if self._session_login(request) is not None else response.status
            return response.replace(headers=headers, status=int(status))
        html = with_queries_in(with_base(dom.html, dom.base if dom.base != url else ""), plain.charset)
        body = html.encode("utf-8", "replace")
        if 0 < request.meta.get("download_maxsize", self._browser.most_bytes) < len(body):
            raise NotRenderedError(f"its DOM has {len(body)} bytes, more than DOWNLOAD_MAXSIZE")
        shown = with_dom(response, body)
        if "#" in url:  # the route, which a response from a server lacks
            shown = shown.replace(url=url)
        page = self._read(shown, url)
        if page.may_need_browser and (loads.failed or not dom.is_complete):
            raise NotRenderedError(loads.failed or f"it shows nothing within {self._browser.timeout_s:g} s")
        self._rendering.rendered(
            url,
            Rendered(
                words_before=len(plain.text.split()),
                words_after=len(page.text.split()),
                links_before=len(plain.hrefs),
                links_after=len(page.hrefs),
                seconds=monotonic() - records[0].began,
                requests=sum(one.requests for one in records),
                refused=loads.refused,
            ),
        )
        exchange = request.meta.get(EXCHANGE)
        if exchange is not None:
            request.meta[EXCHANGE] = replace(exchange, dom=body)
        return shown

    def _login_shown(self, request: Request, url: str) -> str:
        """Return the address that a page's scripts have left it at, if that is the one of its log-in."""
        login = self._session_login(request)
        if login is None or url == request.url:
            return ""
        from crawlspace.runtime.access.pages import LoggedOut  # noqa: PLC0415 - half a second, which only log-ins with sessions need

        return url if LoggedOut(login).is_login_address(url) and not LoggedOut(login).is_login_address(request.url) else ""

    def _session_login(self, request: Request) -> SessionLogin | None:
        access = self._session.logins.access(request.meta[STATE].site)
        return None if access is None else access.session


def with_base(html: str, base: str) -> str:
    """Return HTML whose links are relative to a URL, if one is given."""
    if not base:
        return html
    head = html.lower().find("<head>")
    at = 0 if head < 0 else head + len("<head>")
    escaped = base.replace("&", "&amp;").replace('"', "&quot;")
    return f'{html[:at]}<base href="{escaped}">{html[at:]}'
