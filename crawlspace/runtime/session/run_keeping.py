"""Keeps the numbers of a running crawl in its store, for others to read, and its summary in the end."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call

from crawlspace.crawl.run_log import KEEP_EVERY_S, RunLog
from crawlspace.errors import StoreError
from crawlspace.runtime.session.summary import RunReport

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session


class RunKeeping:
    """Extension that writes the record of the run every few seconds, while its numbers change."""

    def __init__(self, session: Session, log: RunLog) -> None:
        self._session, self._log = session, log
        self._loop: Any = None
        self._is_writing = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RunKeeping:
        session: Session | None = getattr(crawler.spider, "session", None)
        if session is None or session.run_log is None:
            raise NotConfigured
        extension = cls(session, session.run_log)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        self._session.describe = self._describe
        self._loop = create_looping_call(self._keep)
        self._loop.start(KEEP_EVERY_S, now=False)
        self._session.at_close(self._stop)

    def _describe(self) -> dict[str, object]:
        return RunReport.of(self._session, began=self._log.record.began).as_json()

    def _stop(self) -> None:
        if self._loop.running:
            self._loop.stop()

    def _keep(self) -> None:
        session, log = self._session, self._log
        if session.error is not None or self._is_writing or not log.is_outdated(session.progress):
            return
        write = log.update(session.progress)

        def written() -> None:
            with suppress(StoreError):  # the next transaction of outcomes fails, too, or waits
                write()

        if session.shared is None:
            written()
            return

        def done(_: None) -> None:
            self._is_writing = False

        self._is_writing = True
        session.shared.in_background(written, done)
