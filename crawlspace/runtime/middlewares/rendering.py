"""Has pages rendered in a browser where their content needs it: the HTML that was fetched becomes the page of a tab, its DOM the response.

Next to the download of all components that see pages, so that for them a rendered page is one as any other: whether it shows a log-in, say.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured

from crawlspace.content.page import Page
from crawlspace.decision import Render
from crawlspace.runtime.archived_responses import with_dom
from crawlspace.runtime.download.errors import NotAsked, NotRenderedError
from crawlspace.runtime.download.headers import declared_type
from crawlspace.runtime.requests import CONDITIONAL, CONTENTS, EXCHANGE, FILE, RENDERED, STATE
from crawlspace.runtime.rule_middleware import document_type
from crawlspace.runtime.scrapy_internals import STOPPED
from crawlspace.runtime.spiders.responses import HTML_TYPES, PageReader
from crawlspace.state.render_learning import Rendered, Turn

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlspace.crawl.rendering import Rendering
    from crawlspace.runtime.browser.crawl_browser import CrawlBrowser
    from crawlspace.runtime.browser.loads import Loads
    from crawlspace.runtime.browser.tab import Dom
    from crawlspace.runtime.session import Session


class BaseRendering:
    """For the pages of a collection. Others, as in scrapy shell, come as they were sent."""

    def __init__(self, session: Session, rendering: Rendering, browser: CrawlBrowser) -> None:
        content = session.collection.content
        self._session = session
        self._rendering = rendering
        self._browser = browser
        self._reader = PageReader(content.link_tags, content.max_links)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        session = getattr(crawler.spider, "session", None)
        rendering = None if session is None else session.engine.rendering
        if session is None or rendering is None or not crawler.crawling:
            raise NotConfigured
        from crawlspace.runtime.browser.crawl_browser import CrawlBrowser  # noqa: PLC0415 - it needs the extra

        browser = CrawlBrowser(session, crawler)
        middleware = cls(session, rendering, browser)
        crawler.signals.connect(browser.close, signal=signals.spider_closed)
        return middleware

    def process_request(self, request: Request) -> None:
        """Ask for a page whole where unchanged HTML does not mean an unchanged page. Raises NotRenderedError while there is no browser."""
        state = request.meta.get(STATE)
        if state is None:
            return
        if request.meta.get(CONDITIONAL) and not self._rendering.is_conditional(state.url):
            del request.meta[CONDITIONAL]
            for name in (b"If-None-Match", b"If-Modified-Since"):
                request.headers.pop(name, None)
        if self._browser.is_away and self._rendering.mode(state.url) is Render.ALWAYS:
            raise NotRenderedError(f"there is no browser at present: {self._browser.why_away}")

    def process_response(self, request: Request, response: Response) -> Response | Coroutine[Any, Any, Response]:
        """Return the response, with the page as the browser shows it where it is to be rendered."""
        state = request.meta.get(STATE)
        if state is None or response.status != HTTPStatus.OK or not self._is_html(request, response):
            return response
        plain = self._read(response, state.url)
        turn = self._rendering.turn(state.url, needs_browser=plain.may_need_browser)
        return response if turn is Turn.NO else self._rendered(request, response, plain, turn)

    def _is_html(self, request: Request, response: Response) -> bool:
        body = request.meta.get(FILE)
        if (body is not None and body.path is not None) or CONTENTS in request.meta:
            return False
        if STOPPED in response.flags or b"Location" in response.headers:
            return False
        mime, decision = document_type(self._session.space, declared_type(response.headers), response.body)
        return decision.admitted and mime in HTML_TYPES

    def _read(self, response: Response, url: str) -> Page:
        return self._reader.read(response, mime="text/html", declared=declared_type(response.headers), url=url)

    async def _rendered(self, request: Request, response: Response, plain: Page, turn: Turn) -> Response:
        url, began = request.meta[STATE].url, monotonic()
        records: list[Loads] = []
        try:
            dom = await self._browser.render(request, response, records, stays=plain.meta_refresh is not None)
            return self._taken(request, response, dom, plain, seconds=monotonic() - began, records=records)
        except NotAsked:
            self._rendering.failed(url, "it had no turn")
            raise
        except NotRenderedError as error:
            self._rendering.failed(url, str(error))
            if turn is Turn.CHECK:
                return response
            raise

    def _taken(
        self, request: Request, response: Response, dom: Dom, plain: Page, *, seconds: float, records: list[Loads]
    ) -> Response:
        """Return the response with the DOM. Raises NotRenderedError where that lacks what could not be loaded."""
        url = request.meta[STATE].url
        loads = records[-1]
        login = "" if dom.moved_to or dom.url == url else self._login_shown(request, dom.url)
        if dom.moved_to or login:
            self._rendering.failed(url, "it leads to another page")
            headers = response.headers.copy()
            headers[b"Location"] = dom.moved_to or login
            return response.replace(headers=headers, status=302 if login else response.status)
        body = with_base(dom.html, dom.base if dom.base != url else "").encode("utf-8", "replace")
        if 0 < self._browser.most_bytes < len(body):
            raise NotRenderedError(f"its DOM has {len(body)} bytes, more than DOWNLOAD_MAXSIZE")
        shown = with_dom(response, body)
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
                seconds=seconds,
                requests=sum(one.requests for one in records),
                refused=loads.refused,
            ),
        )
        request.meta[RENDERED] = True
        exchange = request.meta.get(EXCHANGE)
        if exchange is not None:
            request.meta[EXCHANGE] = replace(exchange, dom=body)
        return shown

    def _login_shown(self, request: Request, url: str) -> str:
        """Return the address that a page's scripts have left it at, if that is the one of its log-in."""
        access = self._session.engine.logins.access(request.meta[STATE].site)
        login = None if access is None or access.session is None else access.session
        if login is None or login.kind != "form" or login.url is None:
            return ""
        return url if url.partition("?")[0].rstrip("/") == login.url.text.partition("?")[0].rstrip("/") else ""


def with_base(html: str, base: str) -> str:
    """Return HTML whose links are relative to a URL, if one is given."""
    if not base:
        return html
    head = html.lower().find("<head>")
    at = 0 if head < 0 else head + len("<head>")
    escaped = base.replace("&", "&amp;").replace('"', "&quot;")
    return f'{html[:at]}<base href="{escaped}">{html[at:]}'
