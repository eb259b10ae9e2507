"""Collections that tests open to be crawled, with Scrapy's own crawler; the test plays engine and downloader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy
from scrapy import Request
from scrapy.http import Headers, HtmlResponse
from scrapy.utils.test import get_crawler

from crawlspace import settings as defaults
from crawlspace.crawl.run import FetchPage
from crawlspace.model import UrlState
from crawlspace.runtime.components.items import Fetched
from crawlspace.runtime.components.requests import page_request
from crawlspace.runtime.session.session import Session
from spiders.collection import CollectionSpider

NOTHING_IS_SENT = {"TWISTED_REACTOR_ENABLED": False}
FAST = {"ROBOTSTXT_OBEY": False, "DOWNLOAD_DELAY": 0}


class Demo(CollectionSpider):
    name = "demo"


class OpenCrawl:
    """Session, crawler and spider of the collection `demo`. To be closed."""

    def __init__(
        self, folder: Path, *starts: str, spider: type[CollectionSpider] = Demo, rules: str = "", **settings: Any
    ) -> None:
        files = folder / "collections" / "demo"
        files.mkdir(parents=True)
        (files / "start_urls.txt").write_text("\n".join(starts))
        (files / "crawl.rules").write_text(rules)
        project = {name: value for name, value in vars(defaults).items() if name.isupper()}
        folders = {"CRAWLSPACE_COLLECTIONS_DIR": str(files.parent), "CRAWLSPACE_DATA_DIR": str(folder / "data")}
        both = {**project, **folders, **NOTHING_IS_SENT, **FAST, **settings}
        self.session = Session.open("demo", both)
        self.engine = self.session.engine
        self.crawler: Any = get_crawler(spider, both)
        self.spider = self.crawler.spider = spider.from_crawler(self.crawler, session=self.session)
        engine: Any = SimpleNamespace(spider=self.spider, scraper=SimpleNamespace(enqueue_scrape=None))
        self.crawler.engine = engine

    def close(self) -> None:
        self.session.close()

    def request(self) -> Request:
        """Return the request for the next page that may be fetched."""
        fetch = self.engine.next_fetch()
        assert isinstance(fetch, FetchPage)
        return page_request(fetch.state, callback=None, errback=None, conditional=fetch.conditional)

    def read(self, request: Request, body: str = "", *, status: int = 200, headers: Mapping[str, str] | None = None) -> Fetched:
        """Return what the spider makes of the answer to a request."""
        given = Headers({"Content-Type": "text/html", **(headers or {})})
        (fetched,) = self.spider.parse(HtmlResponse(request.url, status, given, body.encode(), request=request))
        assert isinstance(fetched, Fetched)
        return fetched

    def state(self, url: str) -> UrlState:
        """Return the state of a URL as it is stored."""
        state = self.engine.store.get(url)
        assert state is not None
        return state

    def orders(self) -> Sequence[str]:
        """Return the URLs of the index orders that are not sent yet."""
        return [order.url for order in self.engine.store.orders("index", 1_000, now=2**40)]


def crawler_of_another(spider: type[scrapy.Spider] = scrapy.Spider) -> Any:
    """Return Scrapy's crawler for a spider that is no collection's."""
    crawler = get_crawler(settings_dict=NOTHING_IS_SENT)
    crawler.spider = spider("plain")
    return crawler


MakeCrawl = Callable[..., OpenCrawl]


@pytest.fixture
def open_crawl(tmp_path: Path) -> Iterator[MakeCrawl]:
    """A function that opens a collection with these start URLs and settings."""
    made: list[OpenCrawl] = []

    def make(*starts: str, **settings: Any) -> OpenCrawl:
        made.append(OpenCrawl(tmp_path / str(len(made)), *starts, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()
