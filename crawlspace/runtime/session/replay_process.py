"""A process that rebuilds documents from archived pages: `python -m crawlspace.runtime.session.replay_process DESCRIPTOR`.

It talks on the socket that it inherits, and ends when the other side closes that. It has the spider of the collection, with the project's
middlewares and pipelines, and neither store nor index.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

import scrapy.core.downloader.contextfactory  # noqa: F401 - before all else, as in crawlspace/commands/crawl.py
from scrapy import Request, signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.misc import load_object
from scrapy.utils.project import get_project_settings
from twisted.python.failure import Failure

from crawlspace.archive import records
from crawlspace.archive.reader import ArchiveReader, StoredPage, StoredResponse
from crawlspace.config.collection import load_collection
from crawlspace.content.boilerplate import SiteBlocks
from crawlspace.crawl.replay import RebuiltDocument, ReplayEngine
from crawlspace.crawl.startup import Startup
from crawlspace.errors import CrawlspaceError
from crawlspace.framing import LENGTH_BYTES, framed, received
from crawlspace.index.login_exclusion import checksum_behind_login, is_marked, mark, simhash_behind_login
from crawlspace.model import UrlState
from crawlspace.outcome import OutcomeKind
from crawlspace.runtime.components.archived_responses import as_downloaded
from crawlspace.runtime.components.command import reduce_garbage_collection
from crawlspace.runtime.components.files import FileReading
from crawlspace.runtime.components.loader import CollectionLoader
from crawlspace.runtime.components.own_parsing import OwnParsing, is_own
from crawlspace.runtime.components.requests import OWN, STATE, page_request
from crawlspace.runtime.components.scrapy_internals import wake
from crawlspace.runtime.session.replay import Fault, PageAnswer, ReplayStart, pages_of, start_of
from crawlspace.runtime.session.session import Session
from crawlspace.runtime.session.stores import CrawlStore
from crawlspace.text import printable

_SCHEDULER = "crawlspace.runtime.session.replay_process.ReplayScheduler"
_HANDLER = "crawlspace.runtime.session.replay_process.NoNetwork"
_WITHOUT_EFFECT = (
    "crawlspace.runtime.session.progress.Progress",
    "crawlspace.runtime.session.run_keeping.RunKeeping",
    "scrapy.extensions.telnet.TelnetConsole",
    "scrapy.extensions.remote_control.RemoteControl",
    "scrapy.extensions.spiderstate.SpiderState",
)
_LIMITS = ("TIMEOUT", "TIMEOUT_NO_ITEM", "ITEMCOUNT", "PAGECOUNT", "PAGECOUNT_NO_ITEM", "ERRORCOUNT")
"""They end a crawl early: no process that makes documents may end before it has made them all."""


def main(descriptor: int) -> int:
    """Rebuild documents until the other side closes the socket."""
    with socket.socket(fileno=descriptor) as channel:
        start = start_of(received(channel))
        try:
            _run(start, channel)
        except CrawlspaceError as error:
            channel.sendall(framed(Fault(str(error))))
            return error.exit_status
        except SystemExit as error:  # of the loader, where the code of a spider fails
            channel.sendall(framed(Fault(str(error.code))))
            return 1
    return 0


def _run(start: ReplayStart, channel: socket.socket) -> None:
    settings = _settings(start)
    own = settings.copy()
    CollectionLoader.from_settings(own).load(start.collection).update_settings(own)
    session = ReplaySession(
        start.collection, own, archive_files=start.archive_files, channel=channel, boilerplate=start.boilerplate
    )
    if settings[
        "ASYNCIO_EVENT_LOOP"
    ]:  # else Scrapy makes one of the default kind first, and drops it, which may print a traceback at the end
        asyncio.set_event_loop(load_object(settings["ASYNCIO_EVENT_LOOP"])())
    process: Any = (AsyncCrawlerProcess if settings.getbool("TWISTED_REACTOR_ENABLED") else CrawlerProcess)(settings)
    reduce_garbage_collection()
    crawl = process.crawl(process.create_crawler(start.collection), session=session)
    process.start(install_signal_handlers=False)
    if isinstance(crawl, asyncio.Future) and crawl.done() and (error := crawl.exception()) is not None:
        raise CrawlspaceError(f"the spider could not be set up: {printable(str(error))}; see your settings and components")


def _settings(start: ReplayStart) -> Settings:
    settings = get_project_settings()
    settings.setdict({"LOG_LEVEL": "WARNING"}, priority="command")
    settings.setdict(start.options, priority="cmdline")
    without_effect = dict.fromkeys(_WITHOUT_EFFECT)
    ours = {
        "SCHEDULER": _SCHEDULER,
        "DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), _HANDLER),
        "FEEDS": {},
        "EXTENSIONS": {**settings.getdict("EXTENSIONS"), **without_effect},
        "HTTPCACHE_ENABLED": False,
        **{f"CLOSESPIDER_{limit}": 0 for limit in _LIMITS},
    }
    settings.setdict(ours, priority="cmdline")
    return settings


# --- pages ---------------------------------------------------------------------------------------------------------


class ArchivedPages:
    """`parse` and `failed` are the callbacks of page requests."""

    def __init__(self, crawler: Crawler, *, parse: Callable[..., Any], failed: Callable[..., Any]) -> None:
        self._crawler = crawler
        self._parse = parse
        self._failed = failed

    async def handle(self, state: UrlState, stored: StoredResponse) -> None:
        """Let Scrapy handle the response of a page; return when it is done."""
        request = page_request(state, callback=self._parse, errback=self._failed)

        async def answer(_: Request) -> Response:
            return as_downloaded(stored, request)

        engine: Any = self._crawler.engine
        result: Response | Failure
        try:
            response = await engine.downloader.middleware.download_async(answer, request)
            if isinstance(response, Request):
                return
            response.request = request
            result = response
        except Exception:  # noqa: BLE001 - whatever a middleware raises: it becomes the outcome of the page
            result = Failure()
        await maybe_deferred_to_future(engine.scraper.enqueue_scrape(result, request))


# --- scheduler -----------------------------------------------------------------------------------------------------


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
            logger.exception("%s could not be rebuilt, through a fault of ours", state.url)
            self._engine.keep(state, f"a fault of ours ({type(error).__name__})")
        finally:
            self._stored.pop(state.id, None)
            self._at_once.release()

    def _answer(self, state: UrlState, rebuilt: RebuiltDocument) -> None:
        stored, document = self._stored.get(state.id), rebuilt.document
        if stored is not None and document is not None and is_marked(stored.document) and not is_marked(document):
            mark(document)  # the response was had with a log-in, which is not set any more
            rebuilt.checksum = checksum_behind_login(rebuilt.checksum)
            rebuilt.simhash = simhash_behind_login(rebuilt.simhash)
        if stored is not None and document is not None and rebuilt.kind is OutcomeKind.DOCUMENT and document != stored.document:
            rebuilt.record = records.metadata(document, url=state.url, of=stored.id, date=stored.response.date)
            rebuilt.response = stored.location
        if not self._answers:
            asyncio.get_running_loop().call_soon(self._send)
        self._answers.append(framed(PageAnswer(rebuilt)))

    def _send(self) -> None:
        """Send the answers of this iteration of the loop together."""
        if self._writer is not None and self._answers:
            self._writer.write(b"".join(self._answers))
        self._answers.clear()


async def _read(reader: asyncio.StreamReader, number: int) -> bytes:
    """Return so many bytes; none when the other side has closed the channel."""
    try:
        return await reader.readexactly(number)
    except asyncio.IncompleteReadError:
        return b""


# --- session -------------------------------------------------------------------------------------------------------


class ReplaySession(Session):
    """`channel` leads to the process that wants the documents."""

    def __init__(
        self,
        name: str,
        settings: Mapping[str, object],
        *,
        archive_files: dict[int, str],
        channel: socket.socket,
        boilerplate: dict[str, SiteBlocks],
    ) -> None:
        """Raises CrawlspaceError for a collection whose configuration has a mistake."""
        self.replay_engine = ReplayEngine(load_collection(name, settings))
        collection, startup = self.replay_engine.collection, Startup(self.replay_engine, [], None, 0)
        super().__init__(
            collection,
            startup,
            opened=CrawlStore(self.replay_engine.memory),
            index=None,
            sinks=(),
            archiving=None,
            run_log=None,
            settings=settings,
        )
        self.boilerplate = boilerplate
        self.archive = ArchiveReader(collection.archive.folder, archive_files)
        self.channel = channel
        self.at_close(self.archive.close)


# --- no network ----------------------------------------------------------------------------------------------------


class NoNetwork(BaseDownloadHandler):
    """Refuses every request."""

    async def download_request(self, request: Request) -> Response:
        raise IgnoreRequest("no request is sent while documents are rebuilt from the archive")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
