"""Scheduler of a process that makes documents anew: pages come from another process, and no request is sent."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.core.scheduler import BaseScheduler

from crawlspace.archive import records
from crawlspace.framing import LENGTH_BYTES, framed
from crawlspace.index.as_sent.login_exclusion import checksum_behind_login, is_marked, mark
from crawlspace.model import OutcomeKind
from crawlspace.printable import printable
from crawlspace.runtime.files.reading import FileReading
from crawlspace.runtime.replay.messages import PageAnswer, pages_of
from crawlspace.runtime.replay.pages import ArchivedPages
from crawlspace.runtime.requests import OWN, STATE
from crawlspace.runtime.scrapy_internals import wake
from crawlspace.runtime.spiders.own_parsing import is_own

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawlspace.archive.reader import StoredPage
    from crawlspace.crawl.replay import Remade
    from crawlspace.model import UrlState
    from crawlspace.runtime.replay.session import ReplaySession
    from crawlspace.runtime.spiders.own_parsing import OwnParsing

logger = logging.getLogger(__name__)


class ReplayScheduler(BaseScheduler):
    """Has the pages handled that the session's channel brings, some at a time, and answers each."""

    def __init__(self, crawler: Crawler, session: ReplaySession) -> None:
        self._crawler = crawler
        self._session = session
        self._engine = session.replay_engine
        self._engine.take = self._answer
        self._stored: dict[int, StoredPage] = {}
        """By the id of the URL, while a page is handled."""
        self._at_once = asyncio.Semaphore(crawler.settings.getint("CONCURRENT_REQUESTS"))
        self._work: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._answers: list[bytes] = []
        """Those that are about to be sent."""
        self._is_over = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ReplayScheduler:
        return cls(crawler, crawler.spider.session)  # type: ignore[union-attr]

    def open(self, spider: Any) -> None:
        self._own: OwnParsing = spider.own
        self._files = FileReading(self._session, self._crawler)
        self._pages = ArchivedPages(self._crawler, parse=self._files.read_first(spider.page_parser()), failed=spider.failed)
        self._crawler.signals.connect(self._begin, signal=signals.spider_opened)

    def close(self, reason: str) -> None:
        if self._work is not None:
            self._work.cancel()
        self._own.close()
        self._files.close()
        self._send()
        if self._writer is not None:
            self._writer.close()
        self._session.close()

    def has_pending_requests(self) -> bool:
        return not self._is_over

    def next_request(self) -> Request | None:
        return None

    def enqueue_request(self, request: Request) -> bool:
        """Take a link of a page without effect; a page that needs a request of its own keeps its document."""
        if OWN in request.meta:
            state = self._own.leave(request)
            if state is not None:
                self._engine.keep(state, f"its spider requests {printable(request.url)}")
            return False
        return STATE not in request.meta and not is_own(request)

    def _begin(self) -> None:
        self._work = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Handle the pages that come, until the other process closes the channel."""
        try:
            reader, self._writer = await asyncio.open_unix_connection(sock=self._session.channel)
            async with asyncio.TaskGroup() as group:
                while length := await _read(reader, LENGTH_BYTES):
                    for state in pages_of(await _read(reader, int.from_bytes(length, "big"))).states:
                        await self._at_once.acquire()
                        group.create_task(self._handle(state))
        except OSError:
            pass  # the other process is gone
        finally:
            self._is_over = True
            wake(self._crawler)

    async def _handle(self, state: UrlState) -> None:
        try:
            self._engine.begin(state)
            stored = None if state.archived is None else self._session.archive.page(state.archived, state.url)
            if stored is None:
                self._engine.keep(state, "", is_missing=True)
                return
            self._stored[state.id] = stored
            await self._pages.handle(state, stored.response)
            self._engine.keep(state, "a component has lost its request or response")
        except Exception as error:
            logger.exception("%s could not be made anew, through a fault of ours", state.url)
            self._engine.keep(state, f"a fault of ours ({type(error).__name__})")
        finally:
            self._stored.pop(state.id, None)
            self._at_once.release()

    def _answer(self, state: UrlState, remade: Remade) -> None:
        stored, document = self._stored.get(state.id), remade.document
        if stored is not None and document is not None and is_marked(stored.document) and not is_marked(document):
            mark(document)  # the response was had with a log-in, which is not set any more
            remade.checksum = checksum_behind_login(remade.checksum)
        if stored is not None and document is not None and remade.kind is OutcomeKind.DOCUMENT and document != stored.document:
            remade.record = records.metadata(document, url=state.url, of=stored.id, date=stored.response.date)
            remade.response = stored.location
        if not self._answers:
            asyncio.get_running_loop().call_soon(self._send)
        self._answers.append(framed(PageAnswer(remade)))

    def _send(self) -> None:
        """Send the answers of this turn of the loop at once."""
        if self._writer is not None and self._answers:
            self._writer.write(b"".join(self._answers))
        self._answers.clear()


async def _read(reader: asyncio.StreamReader, number: int) -> bytes:
    """Return so many bytes; none when the other side has closed the channel."""
    try:
        return await reader.readexactly(number)
    except asyncio.IncompleteReadError:
        return b""
