"""The baseline of rendering: Scrapy with scrapy-playwright, whose pages are followed by their links and written to a JSON-lines feed.

    python -m benchmarks.baseline_playwright START_URL ITEMS_FILE BROWSER

Pages are as complete as ours: the network is idle. Everything else is scrapy-playwright's default, but for the pages at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response

PAGES = 4
"""At a time, of both."""
_META = {"playwright": True, "playwright_page_goto_kwargs": {"wait_until": "networkidle"}}


class Pages(Spider):
    name = "pages"

    async def start(self) -> Any:
        for url in self.start_urls:
            yield Request(url, meta=_META)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {
            "url": response.url,
            "title": response.xpath("string(//title)").get(""),
            "text": " ".join(response.xpath("//body//text()").getall()),
        }
        for href in response.xpath("//a/@href").getall():
            yield response.follow(href, meta=_META)


def main(start_url: str, items: Path, browser: str) -> None:
    handler = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
    process = CrawlerProcess(
        {
            "FEEDS": {str(items): {"format": "jsonlines", "overwrite": True}},
            "DOWNLOAD_HANDLERS": {"http": handler, "https": handler},
            "CONCURRENT_REQUESTS": PAGES,
            "CONCURRENT_REQUESTS_PER_DOMAIN": PAGES,
            "DOWNLOAD_DELAY": 0,
            "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": browser, "headless": True},
            "LOG_LEVEL": "WARNING",
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(Pages, start_urls=[start_url])
    process.start()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
