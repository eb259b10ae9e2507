"""The links of archived pages, for a crawl that judges them again without fetching (`rule_changes/archived_links.py`)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from crawlspace.archive.reader import ArchiveReader
from crawlspace.content.mime import SNIFFED_BYTES, sniff
from crawlspace.crawl.rule_changes.archived_links import LinkJudging
from crawlspace.errors import CrawlspaceError, StoreError
from crawlspace.model import OutcomeKind
from crawlspace.runtime.archived_responses import response_of
from crawlspace.runtime.download.errors import UndecodableBody
from crawlspace.runtime.download.headers import declared_type
from crawlspace.runtime.requests import page_request
from crawlspace.runtime.scrapy_internals import wake
from crawlspace.runtime.spiders.responses import HTML_TYPES, Responses

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult

    from crawlspace.model import Outcome, UrlState
    from crawlspace.runtime.session import Session

logger = logging.getLogger(__name__)


class StoredLinks:
    """Has the links judged of what is left of a change, a few pages at each turn of the loop."""

    def __init__(self, session: Session, responses: Responses | None, crawler: Crawler) -> None:
        """`responses`: None where the spider makes of pages what it wants, so that they are fetched."""
        self._session = session
        self._responses = responses
        self._crawler = crawler
        archive = session.collection.archive
        files = session.engine.store.archive_files
        self._archive = ArchiveReader(archive.folder, files() if archive.is_on else {}, look_up=files)
        self._judging = LinkJudging(session.engine, self._read)
        self._next: CallLaterResult | None = None
        if session.engine.is_judging:
            self._next = call_later(0, self._step)

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
        self._archive.close()

    def _step(self) -> None:
        self._next = None
        try:
            if self._session.error is None and self._judging.step():
                self._next = call_later(0, self._step)
            wake(self._crawler)
        except CrawlspaceError as error:
            self._session.fail(error, self._crawler)
        except Exception as error:
            logger.exception("the links of archived pages could not be judged")
            fault = f"the links of archived pages could not be judged, through a fault of ours ({type(error).__name__}: {error})"
            self._session.fail(StoreError(f"{fault}: the log has the details, please report it; nothing is lost"), self._crawler)

    def _read(self, state: UrlState) -> Outcome | None:
        """Return the outcome of the stored response; None where it cannot be read, so that the page is fetched."""
        try:
            return self._outcome(state)
        except UndecodableBody:
            return None
        except Exception:
            logger.exception("%s: its stored response could not be read, so the page is fetched", state.url)
            return None

    def _outcome(self, state: UrlState) -> Outcome | None:
        stored = None if state.archived is None or self._responses is None else self._archive.response(state.archived, state.url)
        if stored is None or self._responses is None:
            return None
        response = response_of(stored, page_request(state, callback=None, errback=None))
        if sniff(declared_type(response.headers), response.body[:SNIFFED_BYTES]) not in HTML_TYPES:
            return None
        outcome = self._responses.outcome(response, state).outcome
        return outcome if outcome.kind is OutcomeKind.DOCUMENT else None
