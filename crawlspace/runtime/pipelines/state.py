"""Records each outcome: state, links and index order in one transaction, many outcomes to a transaction."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self

from scrapy.utils.asyncio import call_later

from crawlspace.errors import CrawlspaceError
from crawlspace.runtime.items import Fetched, failed
from crawlspace.runtime.scheduler import BATCH
from crawlspace.runtime.scrapy_internals import wake

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult

    from crawlspace.model import Outcome
    from crawlspace.runtime.session import Session

logger = logging.getLogger(__name__)

LONGEST_WAIT_S = 0.3
"""How long an outcome may wait for the others of its transaction."""


class BaseRecordState:
    """Closes the lease of each fetch."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._timer: CallLaterResult | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Fetched):
            self._record(item.outcome)
        return item

    def ensure(self, outcome: Outcome) -> None:
        """Record a page that came to its end and was not recorded, as where a changed pipeline of a project raised: as failed (699)."""
        if self._session.error is None and self._session.engine.is_awaited(outcome.id):
            logger.error("%s was not recorded, because a pipeline of the project failed (699)", outcome.url)
            self._record(failed(outcome, why="a pipeline of the project failed"))

    def close_spider(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if getattr(self._crawler.spider, "session", None) is not None:  # other spiders, as in scrapy shell, have none
            self._session.commit(self._crawler)

    @property
    def _session(self) -> Session:
        session: Session = self._crawler.spider.session  # type: ignore[union-attr]
        return session

    def _record(self, outcome: Outcome) -> None:
        engine = self._session.engine
        try:
            engine.fetched(outcome)
        except CrawlspaceError as error:
            self._session.fail(error, self._crawler)
            return
        if engine.uncommitted >= BATCH:
            self._session.commit(self._crawler)
        elif self._timer is None:
            self._timer = call_later(LONGEST_WAIT_S, self._in_time)

    def _in_time(self) -> None:
        self._timer = None
        self._session.commit(self._crawler)
        wake(self._crawler)  # what was recorded may be what was waited for, or the end
