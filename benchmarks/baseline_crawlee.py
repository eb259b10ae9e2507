"""Crawlee for Python, as its documentation begins: every link of the site, and url, title and text into a data set.

    python -m benchmarks.baseline_crawlee START_URL ITEMS_FILE

It takes part in `benchmarks.whole_crawl --others` where crawlee[parsel] is installed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext

from benchmarks.baseline_crawlspider import CONCURRENCY


async def crawl(start_url: str, items: Path) -> None:
    crawler = ParselCrawler(
        concurrency_settings=ConcurrencySettings(
            min_concurrency=CONCURRENCY, desired_concurrency=CONCURRENCY, max_concurrency=CONCURRENCY
        ),
        configure_logging=False,
    )
    with items.open("w", encoding="utf-8") as lines:

        @crawler.router.default_handler
        async def page(context: ParselCrawlingContext) -> None:
            select = context.selector
            item = {
                "url": context.request.url,
                "title": select.xpath("string(//title)").get(""),
                "text": " ".join(select.xpath("//body//text()").getall()),
            }
            lines.write(json.dumps(item) + "\n")
            await context.enqueue_links()

        await crawler.run([start_url])


if __name__ == "__main__":
    asyncio.run(crawl(sys.argv[1], Path(sys.argv[2])))
