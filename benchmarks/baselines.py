"""The crawlers that ours is compared with, each as its documentation begins; Crawlee has files of its own.

    python -m benchmarks.baselines crawlspider START_URL ITEMS_FILE [REDIS_URL]
    python -m benchmarks.baselines scrapy-redis REDIS_URL DELAY_S CONCURRENCY SECONDS
    python -m benchmarks.baselines playwright START_URL ITEMS_FILE BROWSER

The first is Scrapy alone: a CrawlSpider that follows every link and writes url, title and text to a JSON-lines feed; with a Redis URL its
scheduler and duplicate filter are those of scrapy-redis. The second follows all links of its sites, with one queue for all workers. The
third renders the pages by scrapy-playwright, until the network is idle, as ours are. Their settings are the defaults, but for the
concurrency, which is the same as in the crawl that they are compared with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

CONCURRENCY = 16
RENDERED_AT_ONCE = 4
START_KEY = "shared-pages:start_urls"
"""The list in Redis that the start URLs of `scrapy-redis` are put in."""
_QUIET = {"LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False}
_OVER_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
}
_RENDERED = {"playwright": True, "playwright_page_goto_kwargs": {"wait_until": "networkidle"}}


class Pages(CrawlSpider):
    name = "pages"
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)

    def parse_start_url(self, response: Response, **_: object) -> Iterator[dict[str, str]]:
        return self.parse_page(response)

    def parse_page(self, response: Response) -> Iterator[dict[str, str]]:
        yield _item(response)


class RenderedPages(Spider):
    name = "rendered-pages"

    async def start(self) -> Any:
        for url in self.start_urls:
            yield Request(url, meta=_RENDERED)

    def parse(self, response: Response) -> Iterator[Any]:
        yield _item(response)
        for href in response.xpath("//a/@href").getall():
            yield response.follow(href, meta=_RENDERED)


def _item(response: Response) -> dict[str, str]:
    return {
        "url": response.url,
        "title": response.xpath("string(//title)").get(""),
        "text": " ".join(response.xpath("//body//text()").getall()),
    }


def crawlspider(start_url: str, items: str, redis_url: str = "") -> None:
    over_redis = {**_OVER_REDIS, "REDIS_URL": redis_url} if redis_url else {}
    settings = {**over_redis, **_settings(CONCURRENCY), **_feed(items)}
    _crawl(Pages, settings, start_urls=[start_url], allowed_domains=[urlsplit(start_url).hostname])


def scrapy_redis(redis_url: str, delay_s: str, concurrency: str, seconds: str) -> None:
    from scrapy_redis.spiders import RedisSpider  # the CrawlSpider must not pay for it

    class SharedPages(RedisSpider):
        name = "shared-pages"
        redis_key = START_KEY
        links = LinkExtractor()

        def parse(self, response: TextResponse) -> Iterator[Request]:
            for link in self.links.extract_links(response):
                yield Request(link.url)

    settings = {
        **_OVER_REDIS,
        **_settings(int(concurrency), of_a_site=1, delay_s=float(delay_s)),
        "REDIS_URL": redis_url,
        "SCHEDULER_PERSIST": True,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "CLOSESPIDER_TIMEOUT": int(seconds),
    }
    _crawl(SharedPages, settings)


def playwright(start_url: str, items: str, browser: str) -> None:
    handler = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
    settings = {
        **_settings(RENDERED_AT_ONCE),
        **_feed(items),
        "DOWNLOAD_HANDLERS": {"http": handler, "https": handler},
        "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": browser, "headless": True},
    }
    _crawl(RenderedPages, settings, start_urls=[start_url])


def _settings(concurrency: int, *, of_a_site: int | None = None, delay_s: float = 0) -> dict[str, object]:
    return {
        **_QUIET,
        "CONCURRENT_REQUESTS": concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": of_a_site or concurrency,
        "DOWNLOAD_DELAY": delay_s,
    }


def _feed(items: str) -> dict[str, object]:
    return {"FEEDS": {items: {"format": "jsonlines", "overwrite": True}}}


def _crawl(spider: type[Spider], settings: dict[str, object], **arguments: object) -> None:
    process = CrawlerProcess(settings)
    process.crawl(spider, **arguments)
    process.start()


BASELINES: dict[str, Callable[..., None]] = {"crawlspider": crawlspider, "scrapy-redis": scrapy_redis, "playwright": playwright}

if __name__ == "__main__":
    BASELINES[sys.argv[1]](*sys.argv[2:])
