"""Records the outcomes of a crawl: state, links and index order in one transaction, many outcomes to a transaction."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import CallLaterResult, call_later
from twisted.python.failure import Failure

from crawlspace.errors import CrawlspaceError
from crawlspace.outcome import Outcome
from crawlspace.runtime.components.items import failed, simhash_of
from crawlspace.runtime.components.requests import FAILED, ROBOTS, STATE
from crawlspace.runtime.components.responses import lost
from crawlspace.runtime.components.scheduler import BATCH
from crawlspace.runtime.components.scrapy_internals import wake
from crawlspace.text import printable

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

logger = logging.getLogger(__name__)

MOST_UNCOMMITTED = 4 * BATCH
"""Outcomes at which the crawl waits for its archive."""
ARCHIVED_IN_S = 0.02
"""Seconds that the archive takes for the records of a few outcomes."""
LONGEST_WAIT_S = 0.3
"""Seconds that an outcome may wait for others of its transaction."""


class Recorder:
    """Records outcomes, which closes their leases, and commits them in batches."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._timer: CallLaterResult | None = None
        crawler.signals.connect(self.response_lost, signal=signals.spider_error)

    def record(self, outcome: Outcome) -> None:
        """Record an outcome; it is committed with others, at the latest after LONGEST_WAIT_S."""
        engine = self._session.engine
        if outcome.document is not None:
            outcome.simhash = simhash_of(outcome.document, self._session.collection.content)
        try:
            engine.fetched(outcome)
        except CrawlspaceError as error:
            self._session.fail(error, self._crawler)
            return
        if engine.uncommitted >= BATCH:
            self._session.commit(self._crawler, waits=engine.uncommitted >= MOST_UNCOMMITTED)
        if self._timer is None and engine.has_uncommitted:
            self._timer = call_later(LONGEST_WAIT_S, self._commit_in_time)

    def ensure(self, outcome: Outcome) -> None:
        """Record a page as failed (699) that has passed the pipelines and was not recorded, as where a pipeline of the project raised."""
        if self._session.error is None and self._session.engine.is_awaited(outcome.id):
            logger.error("%s was not recorded, because a pipeline of the project failed (699)", outcome.url)
            self.record(failed(outcome, why="a pipeline of the project failed"))

    def response_lost(self, failure: Failure, response: Any) -> None:
        """Record a page whose response did not reach its callback, or whose item did not reach the pipelines."""
        request = getattr(response, "request", None)
        meta = {} if request is None else request.meta
        if ROBOTS in meta:
            failure.request = request  # type: ignore[attr-defined]
            self._crawler.spider.robots_failed(failure)  # type: ignore[union-attr]
        elif STATE in meta and not meta.get(FAILED) and self._session.engine.is_awaited(meta[STATE].id):
            self.record(lost(meta[STATE], printable(f"{type(failure.value).__name__}: {failure.value}")))

    def close(self) -> None:
        """Commit what is recorded, and leave no timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if getattr(self._crawler.spider, "session", None) is not None:  # other spiders, as in scrapy shell, have none
            self._session.commit(self._crawler)

    @property
    def _session(self) -> Session:
        session: Session = self._crawler.spider.session  # type: ignore[union-attr]
        return session

    def _commit_in_time(self) -> None:
        self._timer = None
        self._session.commit(self._crawler, waits=False)
        session = self._session
        if session.shared is None and session.error is None and session.engine.is_writing:
            self._timer = call_later(ARCHIVED_IN_S, self._commit_in_time)
        wake(self._crawler)  # the recorded outcomes may have been awaited, or be the last
