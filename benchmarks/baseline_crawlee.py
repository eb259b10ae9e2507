"""Crawlee for Python, as its documentation begins: every link of the same host, and url, title and text into its data set.

    python benchmarks/baseline_crawlee.py START_URL CONCURRENCY [memory]

Run by an interpreter that has `crawlee[parsel]`; nothing of this project is imported. The data set is written below
CRAWLEE_STORAGE_DIR, a file a page, and the queue beside it, as Crawlee does by default; with `memory` nothing is kept.
ParselCrawler is the quickest of its HTTP crawlers (lxml below it), its default HTTP client (impit) as quick as curl's and
quicker than httpx.
"""

from __future__ import annotations

import asyncio
import sys

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient


async def crawl(start_url: str, *, concurrency: int, kept: bool) -> None:
    crawler = ParselCrawler(
        # The least is the most, so that its pool does not hold itself back on a busy machine.
        concurrency_settings=ConcurrencySettings(
            min_concurrency=concurrency, desired_concurrency=concurrency, max_concurrency=concurrency
        ),
        storage_client=None if kept else MemoryStorageClient(),
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def page(context: ParselCrawlingContext) -> None:
        select = context.selector
        await context.push_data(
            {
                "url": context.request.url,
                "title": select.xpath("string(//title)").get(""),
                "text": " ".join(select.xpath("//body//text()").getall()),
            }
        )
        await context.enqueue_links(strategy="same-hostname")

    statistics = await crawler.run([start_url])
    print(f"{statistics.requests_finished} finished, {statistics.requests_failed} failed")


if __name__ == "__main__":
    asyncio.run(crawl(sys.argv[1], concurrency=int(sys.argv[2]), kept="memory" not in sys.argv[3:]))
