"""What the spider makes of an answer, of a failed download, and of parsing that raises: exactly one outcome."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import scrapy
from scrapy import Request
from scrapy.exceptions import DownloadTimeoutError
from scrapy.http import HtmlResponse, Response
from twisted.python.failure import Failure

from crawlspace.content.page import Page
from crawlspace.crawl.run import FetchRobots
from crawlspace.decision import Reason
from crawlspace.outcome import OutcomeKind
from crawlspace.runtime.components.items import Fetched
from crawlspace.runtime.components.one_outcome import OneOutcome
from crawlspace.runtime.components.requests import robots_request
from crawlspace.runtime.http.errors import KeptConnectionClosed, NotSent
from crawlspace.status import Status
from spiders.collection import CollectionSpider
from tests.components.conftest import MakeCrawl

START = "http://shop.example/"
ROBOTS_OF_SHOP = FetchRobots("shop.example:80", "http", f"{START}robots.txt")
PAGE = '<title>Page</title><p>words</p><a href="/next">next</a><a href="/a.pdf">file</a>'
NOINDEX = '<meta name="robots" content="noindex">'
NOFOLLOW = '<meta name="robots" content="nofollow">'

ANSWERS = [
    # status, headers,                              body,              outcome,                               of the document, links
    (200, {},                                       PAGE,              (OutcomeKind.DOCUMENT, 200),           "Page",          2),
    (200, {},                                       NOINDEX + PAGE,    (OutcomeKind.EXCLUDED, Status.NOINDEX),           None,            2),
    (200, {"X-Robots-Tag": "noindex"},              PAGE,              (OutcomeKind.EXCLUDED, Status.NOINDEX),           None,            2),
    (200, {},                                       NOFOLLOW + PAGE,   (OutcomeKind.DOCUMENT, 200),           "Page",          0),
    (200, {"Content-Type": "text/plain"},           "words",           (OutcomeKind.DOCUMENT, 200),           "",              0),
    (200, {"Content-Type": "image/png"},            "",                (OutcomeKind.EXCLUDED, Status.WRONG_TYPE),           None,            0),
    (200, {"Location": "/new"},                     PAGE,              (OutcomeKind.REDIRECTED, Status.SOFT_REDIRECT),         None,            0),
    (301, {"Location": "/new"},                     "",                (OutcomeKind.REDIRECTED, 301),         None,            0),
    (302, {},                                       "",                (OutcomeKind.GONE, Status.REDIRECT_MALFORMED),               None,            0),
    (302, {"Location": "http://["},                 "",                (OutcomeKind.GONE, Status.REDIRECT_MALFORMED),               None,            0),
    (404, {},                                       PAGE,              (OutcomeKind.GONE, 404),               None,            0),
    (429, {},                                       "",                (OutcomeKind.FAILED, 429),             None,            0),
    (503, {"Retry-After": "60"},                    "",                (OutcomeKind.FAILED, 503),             None,            0),
    (503, {},                                       "",                (OutcomeKind.GONE, 503),               None,            0),
    (999, {},                                       "",                (OutcomeKind.GONE, 500),               None,            0),
]  # fmt: skip


@pytest.mark.parametrize(("status", "headers", "body", "outcome", "title", "links"), ANSWERS)
def test_an_answer_is_one_outcome(
    open_crawl: MakeCrawl,
    status: int,
    headers: dict[str, str],
    body: str,
    outcome: tuple[OutcomeKind, int],
    title: str | None,
    links: int,
) -> None:
    crawl = open_crawl(START, CRAWLSPACE_META_ROBOTS=True)
    fetched = crawl.read(crawl.request(), body, status=status, headers=headers)
    found = fetched.outcome
    assert (found.url, found.kind, int(found.status), len(found.links or [])) == (START, *outcome, links)
    assert (fetched.item and fetched.item.title) == title
    assert found.retry_after_s == (60.0 if "Retry-After" in headers else None)


SHELL = '<title>Shop</title><div id="app"></div><script src="/app.js"></script>'


@pytest.mark.parametrize(
    ("settings", "is_reported"),
    [
        ({}, True),
        ({"CRAWLSPACE_RENDER": "always"}, False),
        ({"CRAWLSPACE_RENDER": "auto"}, False),  # rendered, or that was of no use to pages like it
        ({"CRAWLSPACE_RENDER": "auto", "CRAWLSPACE_SITES": {"shop.example": {"render": "never"}}}, True),
    ],
)
def test_a_page_that_may_need_a_browser_is_reported_unless_it_had_one(
    open_crawl: MakeCrawl,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, object],
    is_reported: bool,
) -> None:
    monkeypatch.setattr("crawlspace.runtime.session.session.check_extra", lambda: None)  # nothing is rendered here
    crawl = open_crawl(START, **settings)
    outcome = crawl.read(crawl.request(), SHELL).outcome
    assert outcome.left_out == ({Reason.NEEDS_BROWSER: 1} if is_reported else {})
    assert ('render = "auto"' in caplog.text) is is_reported


def test_without_a_collection_there_are_items_and_requests() -> None:
    """As in `scrapy parse`."""
    spider = CollectionSpider("demo")
    document, *requests = spider.parse(HtmlResponse(START, body=PAGE.encode(), request=Request(START)))
    assert document.title == "Page"
    assert [request.url for request in requests] == [f"{START}next", f"{START}a.pdf"]


class Own(CollectionSpider):
    """A collection with its own parsing."""

    name = "demo"

    def document(self, response: Response, page: Page) -> Any:
        return {"one": None, "list": [], "numbers": [1, 2], "number": 1, "fields": {"title": "Own"}}[page.title]


@pytest.mark.parametrize(
    ("title", "kind", "status"),
    [
        ("one", OutcomeKind.EXCLUDED, Status.NOINDEX),
        ("list", OutcomeKind.EXCLUDED, Status.NOINDEX),
        ("numbers", OutcomeKind.FAILED, Status.UNEXPECTED),
        ("number", OutcomeKind.FAILED, Status.UNEXPECTED),
        ("fields", OutcomeKind.DOCUMENT, 200),
    ],
)
def test_what_own_parsing_returns(open_crawl: MakeCrawl, title: str, kind: OutcomeKind, status: int) -> None:
    crawl = open_crawl(START, spider=Own)
    outcome = crawl.read(crawl.request(), f"<title>{title}</title>").outcome
    assert (outcome.kind, outcome.status) == (kind, status)


class Adding(CollectionSpider):
    """Takes a link by itself."""

    name = "demo"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield from super().parse(response)
        yield scrapy.Request(f"{START}added")


class Yielding(CollectionSpider):
    """Yields an item, as any spider of Scrapy."""

    name = "demo"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}


@pytest.mark.parametrize(("spider", "status", "depths"), [(Adding, 200, [1]), (Yielding, 200, [])])
async def test_an_overridden_parse_has_one_outcome_too(
    open_crawl: MakeCrawl, spider: type[CollectionSpider], status: int, depths: list[int]
) -> None:
    crawl = open_crawl(START, spider=spider)
    request = crawl.request()
    response = HtmlResponse(START, headers={"Content-Type": "text/html"}, body=PAGE.encode(), request=request)
    found = [one async for one in crawl.spider.page_parser()(response)]
    assert [one.outcome.status for one in found if isinstance(one, Fetched)] == [status]
    assert [one.meta["depth"] for one in found if isinstance(one, scrapy.Request)] == depths


def failure(request: Request, error: Exception) -> Failure:
    failed = Failure(error)
    failed.request = request  # type: ignore[attr-defined]
    return failed


def test_a_failed_download_is_one_outcome(open_crawl: MakeCrawl) -> None:
    crawl = open_crawl(START)
    (fetched,) = crawl.spider.failed(failure(crawl.request(), DownloadTimeoutError("x")))
    assert (fetched.outcome.kind, fetched.outcome.status) == (OutcomeKind.FAILED, Status.TIMEOUT)


@pytest.mark.parametrize("error", [NotSent(), KeptConnectionClosed()])
def test_a_page_that_was_not_requested_has_no_outcome_and_is_fetched_later(open_crawl: MakeCrawl, error: Exception) -> None:
    crawl = open_crawl(START)
    request = crawl.request()
    assert crawl.engine.next_fetch() is None
    assert list(crawl.spider.failed(failure(request, error))) == []
    assert crawl.request().url == request.url


@pytest.mark.parametrize("error", [NotSent(), KeptConnectionClosed()])
def test_a_robots_txt_that_was_not_requested_is_fetched_later(open_crawl: MakeCrawl, error: Exception) -> None:
    crawl = open_crawl(START, ROBOTSTXT_OBEY=True)
    assert crawl.engine.next_fetch() == ROBOTS_OF_SHOP
    assert crawl.engine.next_fetch() is None
    crawl.spider.robots_failed(failure(robots_request(ROBOTS_OF_SHOP, callback=None, errback=None), error))
    assert crawl.engine.next_fetch() == ROBOTS_OF_SHOP


@pytest.mark.parametrize(("body", "is_allowed"), [("", True), ("User-agent: *\nDisallow: /", False)])
def test_pages_come_after_the_robots_txt_of_their_site(open_crawl: MakeCrawl, body: str, *, is_allowed: bool) -> None:
    crawl = open_crawl(START, ROBOTSTXT_OBEY=True)
    fetch = crawl.engine.next_fetch()
    assert isinstance(fetch, FetchRobots)
    request = robots_request(fetch, callback=None, errback=None)
    crawl.spider.robots_read(Response(request.url, 200, body=body.encode(), request=request))
    assert (crawl.engine.next_fetch() is not None) is is_allowed


def test_parsing_that_raises(open_crawl: MakeCrawl, caplog: pytest.LogCaptureFixture) -> None:
    crawl = open_crawl(START)
    middleware = OneOutcome.from_crawler(crawl.crawler)
    response = Response(START, request=crawl.request())
    try:
        raise ValueError("a mistake in\x1b somebody's parsing")
    except ValueError as error:
        found = middleware.process_spider_exception(response, error)
    assert found is not None
    (fetched,) = found
    assert isinstance(fetched, Fetched)
    assert (fetched.outcome.kind, fetched.outcome.status) == (OutcomeKind.FAILED, Status.UNEXPECTED)
    assert "could not be parsed (699)" in caplog.text
    assert "test_spider.py" in caplog.text, "the log has the traceback"
    assert "\x1b" not in fetched.outcome.detail + caplog.text


def test_a_fault_of_every_page_is_logged_in_a_line_for_each_with_one_traceback(
    open_crawl: MakeCrawl, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = open_crawl(START)
    middleware = OneOutcome.from_crawler(crawl.crawler)
    response = Response(START, request=crawl.request())
    for number in range(3):
        try:
            raise ValueError(f"page {number}")
        except ValueError as error:
            middleware.process_spider_exception(response, error)
    try:
        raise ValueError("elsewhere")
    except ValueError as error:
        middleware.process_spider_exception(response, error)
    found = [record.getMessage().splitlines() for record in caplog.records if "(699)" in record.getMessage()]
    assert [("Traceback (most recent call last):" in lines, len(lines) > 1) for lines in found] == [
        (True, True),
        (False, False),
        (False, False),
        (True, True),
    ]
    assert "ValueError: page 2 (" in found[2][0]
    assert "test_spider.py:" in found[2][0]


@pytest.mark.parametrize("request_", [None, Request(START)])
def test_what_is_no_page_of_a_collection_is_left_to_scrapy(open_crawl: MakeCrawl, request_: Request | None) -> None:
    middleware = OneOutcome.from_crawler(open_crawl(START).crawler)
    assert middleware.process_spider_exception(Response(START, request=request_), ValueError("x")) is None
