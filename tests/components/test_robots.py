"""How many redirects of a robots.txt are followed, and what else its answer may be; where they may lead: `test_rule_middleware.py`."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.http import Response

from crawlspace.crawl.run import FetchRobots
from crawlspace.frontier.robots import MAX_REDIRECTS
from crawlspace.runtime.components.requests import ROBOTS, robots_request
from crawlspace.runtime.components.robots import RobotsTxt
from tests.components.conftest import MakeCrawl

START = "http://shop.example/"
ORIGIN = f"{START}robots.txt"

ANSWERS = [
    # status, Location,                redirects before, what the spider gets: a status, or the redirect's target
    (200,     None,                    0,                200),
    (404,     None,                    0,                404),
    (304,     None,                    0,                304),
    (999,     None,                    0,                500),
    (301,     "/other.txt",            0,                f"{START}other.txt"),
    (302,     "/other.txt",            MAX_REDIRECTS - 1, f"{START}other.txt"),
    (302,     "/other.txt",            MAX_REDIRECTS,    404),
    (302,     None,                    0,                302),
    (302,     "http://[",              0,                302),
    (302,     "ftp://shop.example/",   0,                302),
]  # fmt: skip


@pytest.mark.parametrize(("status", "location", "before", "expected"), ANSWERS)
def test_answers(open_crawl: MakeCrawl, status: int, location: str | None, before: int, expected: int | str) -> None:
    middleware = RobotsTxt.from_crawler(open_crawl(START).crawler)
    request = robots_request(FetchRobots("shop.example:80", "http", ORIGIN, before), callback=None, errback=None)
    headers = {} if location is None else {"Location": location}
    found = middleware.process_response(request, Response(ORIGIN, status, headers=headers, request=request))
    if isinstance(expected, int):
        assert isinstance(found, Response)
        assert found.status == expected
    else:
        assert isinstance(found, Request)
        assert (found.url, found.meta[ROBOTS].redirects) == (expected, before + 1)


def test_pages_are_not_concerned(open_crawl: MakeCrawl) -> None:
    crawl = open_crawl(START)
    request = crawl.request()
    moved = Response(START, 302, headers={"Location": "/new"}, request=request)
    assert RobotsTxt.from_crawler(crawl.crawler).process_response(request, moved) is moved
