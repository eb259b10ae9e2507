"""Which requests get those of DEFAULT_REQUEST_HEADERS that carry credentials."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware

from crawlspace.runtime.components.middlewares import DefaultHeaders
from tests.components.conftest import MakeCrawl
from tests.components.opened import crawler_of_another

START = "https://wiki.example.com/"
SENT = [
    # URL, own headers of the request, whether Scrapy's proxies are on, headers that it is sent with
    (START, {}, True, {"Accept": "a", "Authorization": "secret", "Proxy-Authorization": "p"}),
    ("https://evil.example/", {}, True, {"Accept": "a", "Proxy-Authorization": "p"}),
    ("https://evil.example/", {}, False, {"Accept": "a"}),
    ("https://evil.example/", {"Authorization": "own"}, False, {"Accept": "a", "Authorization": "own"}),
    (START, {"Accept": "own"}, False, {"Accept": "own", "Authorization": "secret", "Proxy-Authorization": "p"}),
]


@pytest.mark.parametrize(("url", "own", "through_proxies", "expected"), SENT)
def test_headers_of_a_request(
    open_crawl: MakeCrawl, url: str, own: dict[str, str], expected: dict[str, str], *, through_proxies: bool
) -> None:
    headers = {"Accept": "a", b"Authorization": "secret", "Proxy-Authorization": "p", "Cookie": None}
    crawl = open_crawl(START, DEFAULT_REQUEST_HEADERS=headers, HTTPPROXY_ENABLED=through_proxies)
    request = Request(url, headers=own)
    DefaultHeaders.from_crawler(crawl.crawler).process_request(request)
    assert request.headers.to_unicode_dict() == expected


def test_other_spiders_have_scrapys_middleware() -> None:
    assert type(DefaultHeaders.from_crawler(crawler_of_another())) is DefaultHeadersMiddleware
