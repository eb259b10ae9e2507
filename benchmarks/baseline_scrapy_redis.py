"""The baseline of scrapy-redis alone: a RedisSpider that follows all links of its site, with one queue shared by all workers.

python -m benchmarks.baseline_scrapy_redis REDIS_URL DELAY_S CONCURRENCY SECONDS
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from scrapy import Request
from scrapy.crawler import CrawlerProcess
from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy_redis.spiders import RedisSpider


class SharedPages(RedisSpider):
    name = "shared-pages"
    redis_key = "shared-pages:start_urls"
    links = LinkExtractor()

    def parse(self, response: TextResponse) -> Iterator[Request]:
        for link in self.links.extract_links(response):
            yield Request(link.url)


def start_key() -> str:
    """Return the name of the list that start URLs are put in."""
    return SharedPages.redis_key


def main(redis_url: str, delay_s: float, concurrency: int, seconds: int) -> None:
    process = CrawlerProcess(
        {
            "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
            "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
            "SCHEDULER_PERSIST": True,
            "REDIS_URL": redis_url,
            "DOWNLOAD_DELAY": delay_s,
            "RANDOMIZE_DOWNLOAD_DELAY": False,
            "CONCURRENT_REQUESTS": concurrency,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
            "CLOSESPIDER_TIMEOUT": seconds,
            "LOG_LEVEL": "WARNING",
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(SharedPages)
    process.start()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
