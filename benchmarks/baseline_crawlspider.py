"""The baseline of Scrapy alone: a CrawlSpider that follows every link and writes url, title and text to a JSON-lines feed.

    python -m benchmarks.baseline_crawlspider START_URL ITEMS_FILE [REDIS_URL]

Its settings are Scrapy's defaults, but for the concurrency, which is the same as in the crawl it is compared with.
With a Redis URL, scheduler and duplicate filter are those of scrapy-redis.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

CONCURRENCY = 16


class Pages(CrawlSpider):
    name = "pages"
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)

    def parse_start_url(self, response: Response, **_: object) -> Iterator[dict[str, str]]:
        return self.parse_page(response)

    def parse_page(self, response: Response) -> Iterator[dict[str, str]]:
        yield {
            "url": response.url,
            "title": response.xpath("string(//title)").get(""),
            "text": " ".join(response.xpath("//body//text()").getall()),
        }


def main(start_url: str, items: Path, redis_url: str | None = None) -> None:
    shared = {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "REDIS_URL": redis_url,
    }
    process = CrawlerProcess(
        {
            **(shared if redis_url else {}),
            "FEEDS": {str(items): {"format": "jsonlines", "overwrite": True}},
            "CONCURRENT_REQUESTS": CONCURRENCY,
            "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
            "DOWNLOAD_DELAY": 0,
            "LOG_LEVEL": "WARNING",
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(Pages, start_urls=[start_url], allowed_domains=[urlsplit(start_url).hostname])
    process.start()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
