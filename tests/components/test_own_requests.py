"""When requests of a spider's own are sent, and how many pages may wait for theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, JsonRequest, Response

from crawlspace.model import UrlState
from crawlspace.runtime.components.items import Fetched
from crawlspace.runtime.components.own_parsing import is_own
from crawlspace.runtime.components.own_requests import OpenPage, Own, OwnRequests
from crawlspace.runtime.components.requests import OWN
from crawlspace.urls import parse
from spiders.collection import CollectionSpider
from tests.components.conftest import MakeCrawl, OpenCrawl

START = "http://shop.example/"
API = "http://api.example/"


class Priced(CollectionSpider):
    """Asks another site for each page."""

    name = "demo"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield Request(API + response.url[-1], callback=self.parse_price)

    def parse_price(self, response: Response) -> dict[str, Any]:
        return {"price": 7}


class Waiting:
    """The requests that wait in a crawl, by page and name."""

    def __init__(self, crawl: OpenCrawl) -> None:
        self.requests = OwnRequests(crawl.engine.frontier, crawl.engine.site_delays, sent_ago_s=lambda _: 0.0)
        self._pages: dict[str, OpenPage] = {}

    def put(self, page: str, url: str, priority: int = 0) -> Request:
        if page not in self._pages:
            state = UrlState(1, 1, f"{START}{page}", parse(START).site)
            nothing: Any = None
            self._pages[page] = OpenPage(state, nothing, nothing, may_follow=True, complete=nothing)
        request = Request(url, priority=priority, meta={OWN: Own(self._pages[page], None, None)})
        self.requests.put(request)
        return request

    def take_all(self) -> list[str]:
        taken = []
        while (request := self.requests.take()) is not None:
            taken.append(request.url)
        return taken


def test_a_page_asks_its_site_one_after_the_other_by_priority(open_crawl: MakeCrawl) -> None:
    waiting = Waiting(open_crawl(START))
    requests = [waiting.put("a", f"{START}{n}", priority=n) for n in range(3)]
    waiting.put("b", f"{START}b")
    assert waiting.take_all() == [f"{START}2", f"{START}b"]
    waiting.requests.ended(requests[2].meta[OWN])
    assert waiting.take_all() == [f"{START}1"]


def test_another_site_is_asked_as_often_at_a_time_as_it_may_be(open_crawl: MakeCrawl) -> None:
    waiting = Waiting(open_crawl(START, CRAWLSPACE_SITES={"api.example": {"concurrency": 2}}))
    requests = [waiting.put("a", f"{API}{n}") for n in range(4)]
    assert waiting.take_all() == [f"{API}0", f"{API}1"]
    waiting.requests.ended(requests[0].meta[OWN])
    assert waiting.take_all() == [f"{API}2"]


@pytest.mark.parametrize("url", [START, API])
def test_the_delay_of_a_site_is_kept(open_crawl: MakeCrawl, url: str) -> None:
    crawl = open_crawl(START, DOWNLOAD_DELAY=5)
    waiting = Waiting(crawl)
    requests = [waiting.put("a", f"{url}{n}") for n in range(2)]
    assert waiting.take_all() == [f"{url}0"]
    waiting.requests.ended(requests[0].meta[OWN])
    assert waiting.take_all() == []
    assert 4 < (waiting.requests.soonest_in() or 0) <= 5
    page_of_the_same_site = crawl.engine.next_fetch()
    assert (page_of_the_same_site is None) is (url == START), "pages wait, too"


def test_a_redirect_that_cannot_be_parsed_is_passed_on_to_be_refused(open_crawl: MakeCrawl) -> None:
    waiting = Waiting(open_crawl(START))
    request = waiting.put("a", "http://1.2.3.256/")
    assert waiting.take_all() == ["http://1.2.3.256/"]
    waiting.requests.ended(request.meta[OWN])
    assert not waiting.requests.are_waiting


async def test_only_so_many_pages_wait_for_their_requests(open_crawl: MakeCrawl) -> None:
    crawl = open_crawl(START, CONCURRENT_REQUESTS=2, spider=Priced, ROBOTSTXT_OBEY=False)
    own = crawl.spider.own

    async def run(callback: Callable[[Response], Any], request: Request, url: str) -> list[Any]:
        response = HtmlResponse(url, headers={"Content-Type": "text/html"}, body=b"<p>words", request=request)
        return [one async for one in callback(response)]

    opened = []
    crawl.engine.admit([])
    for number in range(2):
        assert not own.holds_pages_back
        state = UrlState(number + 1, number + 1, f"{START}{number}", parse(START).site)
        from_frontier = Request(state.url, meta={"crawlspace_state": state})
        opened += await run(own.parse, from_frontier, state.url)
    assert own.holds_pages_back
    answers = await run(own.answered, opened[0], opened[0].url)
    assert [one.item for one in answers if isinstance(one, Fetched)] == [{"price": 7}]
    assert not own.holds_pages_back
    await run(own.answered, opened[1], opened[1].url)


KINDS = [
    # a request that parsing yields                                 it is the spider's own, and no link
    (lambda s: Request(START),                                      False),
    (lambda s: Request(START, callback=s.parse),                    False),
    (lambda s: Request(START, callback=s.parse, headers={"a": "b"}), False),
    (lambda s: Request(START, callback=s.parse_price),              True),
    (lambda s: Request(START, method="POST"),                       True),
    (lambda s: Request(START, body="x"),                            True),
    (lambda s: JsonRequest(START, data={}, callback=s.parse),       True),
    (lambda s: Request(START, callback=print),                      True),
]  # fmt: skip


@pytest.mark.parametrize(("make", "own"), KINDS, ids=range(len(KINDS)))
def test_which_requests_are_a_spiders_own(make: Callable[[Priced], Request], *, own: bool) -> None:
    assert is_own(make(Priced("demo"))) is own
