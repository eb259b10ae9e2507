"""Redirects of a robots.txt (where they may lead: `test_rule_middleware.py`), and requests that are for no page."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Headers, Response
from scrapy.http.request import NO_CALLBACK

from crawlspace.crawl.run import FetchRobots
from crawlspace.decision import Reason
from crawlspace.frontier.robots import MAX_REDIRECTS
from crawlspace.runtime.components.requests import ROBOTS, robots_request
from crawlspace.runtime.components.robots import RobotsTxt
from crawlspace.runtime.components.rule_middleware import RuleMiddleware
from middlewares.crawl_space import CrawlSpaceGuard
from tests.components.conftest import MakeCrawl, OpenCrawl

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


# --- requests that are for no page ----------------------------------------------------------------------------------


DOCS = "http://shop.example/docs/"
RULES = "allow domain shop.example\nallow domain many.example\nforbid domain *\nforbid prefix http://shop.example/cart\n"
PNG = b"\x89PNG\r\n\x1a\n"


async def refusal_of(guard: RuleMiddleware, request: Request) -> str:
    """Why a request is refused; empty where it is not."""
    try:
        waits = guard.process_request(request)
        if waits is not None:
            await waits
    except IgnoreRequest as error:
        return str(error)
    return ""


def counted(crawl: OpenCrawl) -> dict[Reason, int]:
    """Return what was refused since the last call, by reason."""
    return dict(crawl.engine.take_refused())


RESOURCES = [
    # URL of a file or image,                            reason
    ("http://shop.example/a.zip",                        Reason.ADMITTED),
    ("http://shop.example/a?b=c",                        Reason.ADMITTED),
    ("http://shop.example/cart/1.png",                   Reason.ADMITTED),
    ("http://shop.example/1/2/3/4/5/6/7.png",            Reason.ADMITTED),
    ("http://other.example/1.png",                       Reason.DOMAIN),
    ("ftp://shop.example/a.zip",                         Reason.SCHEME),
    ("http://me:word@shop.example/1.png",                Reason.CREDENTIALS),
]  # fmt: skip


@pytest.mark.parametrize(("url", "reason"), RESOURCES)
async def test_files_and_images_are_no_pages(open_crawl: MakeCrawl, url: str, reason: Reason) -> None:
    """Only scheme and domain rules hold for the URL, and its type may be any."""
    limits = {"CRAWLSPACE_FOLLOW_QUERY_STRINGS": False, "CRAWLSPACE_MAX_PATH_DEPTH": 3}
    crawl = open_crawl(DOCS, rules=RULES, **limits)
    guard = CrawlSpaceGuard.from_crawler(crawl.crawler)
    request = Request(url, callback=NO_CALLBACK)
    refusal = await refusal_of(guard, request)
    assert refusal.partition(" (")[0] == ("" if reason is Reason.ADMITTED else reason.sentence)
    assert counted(crawl) == ({} if reason is Reason.ADMITTED else {reason: 1})
    headers = Headers({"Content-Type": "image/png"})
    guard.headers_received(headers, request)
    response = Response(url, headers=headers, body=PNG, request=request)
    assert guard.process_response(request, response) is response


def test_what_is_requested_otherwise_is_held_to_the_types(open_crawl: MakeCrawl) -> None:
    guard = CrawlSpaceGuard.from_crawler(open_crawl(DOCS).crawler)
    with pytest.raises(StopDownload):
        guard.headers_received(Headers({"Content-Type": "image/png"}), Request(DOCS))


READ_FIRST = [
    # answer to the request for robots.txt,           refusal of /no,  and of /yes
    ((200, b"User-agent: *\nDisallow: /no"),          Reason.ROBOTS.sentence, ""),
    ((404, b""),                                      "",              ""),
    ((500, b""),                                      "robots.txt of its site cannot be read at present", "robots.txt of its site cannot be read at present"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "no", "yes"), READ_FIRST)
async def test_a_robots_txt_that_nobody_has_read_is_read_once(
    open_crawl: MakeCrawl, answer: tuple[int, bytes], no: str, yes: str
) -> None:
    crawl = open_crawl(DOCS, ROBOTSTXT_OBEY=True)
    guard = CrawlSpaceGuard.from_crawler(crawl.crawler)
    asked: list[str] = []

    async def download_async(request: Request) -> Response:
        asked.append(request.url)
        await asyncio.sleep(0)
        return Response(request.url, answer[0], body=answer[1], request=request)

    crawl.crawler.engine = SimpleNamespace(download_async=download_async)
    urls = [f"http://many.example/{name}" for name in ("no", "yes", "no")]
    first = await asyncio.gather(*(refusal_of(guard, Request(url)) for url in urls))
    assert [*first, await refusal_of(guard, Request(urls[1]))] == [no, yes, no, yes]
    assert asked == ["http://many.example/robots.txt"]
