"""A page whose parsing raises ends in an outcome, too."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.http import Response

from crawlspace.outcome import OutcomeKind
from crawlspace.runtime.components.items import Fetched
from crawlspace.runtime.components.one_outcome import OneOutcome
from crawlspace.status import Status
from tests.components.conftest import MakeCrawl

START = "http://shop.example/"


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
    assert "test_outcome.py" in caplog.text, "the log has the traceback"
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
    assert "test_outcome.py:" in found[2][0]


@pytest.mark.parametrize("request_", [None, Request(START)])
def test_what_is_no_page_of_a_collection_is_left_to_scrapy(open_crawl: MakeCrawl, request_: Request | None) -> None:
    middleware = OneOutcome.from_crawler(open_crawl(START).crawler)
    assert middleware.process_spider_exception(Response(START, request=request_), ValueError("x")) is None
