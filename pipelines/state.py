"""Records each outcome: state, links and index order in one transaction, many outcomes to a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from crawlspace.runtime.session.recording import Recorder

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawlspace.runtime.components.items import Fetched


class RecordState:
    """Records what became of each URL, which closes its lease. A page that no pipeline lets through is recorded as failed."""

    def __init__(self, crawler: Crawler) -> None:
        self.recorder = Recorder(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_fetch(self, fetched: Fetched) -> None:
        self.recorder.record(fetched.outcome)

    def close_spider(self) -> None:
        self.recorder.close()
