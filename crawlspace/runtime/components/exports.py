"""Scrapy's feed exports, with a sentence and an exit status for an export that cannot be written.

Scrapy logs a traceback for each item that it cannot write, and the crawl ends as if nothing had happened. Here a file that cannot be written
is an error before anything is fetched, and one that fails later ends the crawl: what it has not fetched stays pending. A file that is
replaced as a whole (`-O`) stays as it was if the crawl fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.exceptions import UsageError as ScrapyUsageError
from scrapy.exporters import JsonLinesItemExporter
from scrapy.extensions.feedexport import FeedExporter, FeedSlot, FileFeedStorage
from scrapy.settings import BaseSettings, Settings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.asyncio import run_in_thread
from scrapy.utils.conf import feed_process_params_from_cli
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred
from w3lib.url import file_uri_to_path

from crawlspace.archive.reader import ArchiveReader
from crawlspace.clock import iso
from crawlspace.document import Document
from crawlspace.errors import ConfigError, CrawlspaceError, ExportError, UsageError
from crawlspace.index.orders import written_document
from crawlspace.model import State
from crawlspace.private_files import real_path
from crawlspace.runtime.components.replaced_file import ReplacedFile, is_replaceable
from crawlspace.runtime.components.scrapy_internals import ExportHook
from crawlspace.state.store import Store
from crawlspace.urls import document_id

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

logger = logging.getLogger(__name__)

_SCRAPYS_LOGGER = "scrapy.extensions.feedexport"


def check_exports(settings: BaseSettings) -> None:
    """Raise ConfigError for an export to a file that cannot be written. An existing file is not changed."""
    for uri, options in settings.getdict("FEEDS").items():
        path = file_of(str(uri))
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _check_writable(real_path(path) if is_replaceable(path) else path)
            if options.get("overwrite") and is_replaceable(path):
                ReplacedFile(path).discard()
        except OSError as error:
            raise ConfigError(
                f"the export {path} cannot be written: {error.strerror}; name a file that can (-o, -O, FEEDS)"
            ) from error


class Exports(ExportHook, FeedExporter):
    """Exports as Scrapy does, and ends the crawl with an ExportError where it cannot."""

    def __init__(self, crawler: Crawler) -> None:
        log = logging.getLogger(_SCRAPYS_LOGGER)
        reasons: list[str] = []
        note = partial(_note, reasons)
        log.addFilter(note)
        try:
            super().__init__(crawler)
        except NotConfigured:
            if crawler.settings["FEEDS"]:
                raise ConfigError(f"the exports in FEEDS cannot be made: {'; '.join(reasons)}") from None
            raise
        finally:
            log.removeFilter(note)
        self.failure: ExportError | None = None
        """Why an export cannot be written."""
        log.addFilter(self._one_sentence)

    def item_scraped(self, item: Any, spider: Spider) -> None:
        if self.failure is not None:
            return
        try:
            super().item_scraped(item, spider)
        except OSError as error:
            self._failed(error)

    def export(self, item: Any) -> None:
        """Export an item, and log why where it cannot be encoded."""
        assert self.crawler.spider is not None
        try:
            self.item_scraped(item, self.crawler.spider)
        except Exception:
            logger.exception("an item could not be exported")

    def discard(self) -> None:
        """End without an export: the temporary file of a file to be replaced is removed."""
        logging.getLogger(_SCRAPYS_LOGGER).removeFilter(self._one_sentence)
        for slot in self.slots:
            if isinstance(slot.storage, FeedFile):
                slot.storage.discard()

    async def close_spider(self, spider: Spider) -> None:
        try:
            await super().close_spider(spider)
        finally:
            logging.getLogger(_SCRAPYS_LOGGER).removeFilter(self._one_sentence)

    async def end_export(self, slot: FeedSlot, spider: Spider) -> None:
        if isinstance(slot.storage, FeedFile) and slot.storage.replaces:
            if not self._may_replace(slot):
                _keep_old(slot, slot.storage)
                return
            if not slot.itemcount and slot.store_empty and slot.batch_id == 1 and hasattr(spider, "session"):
                everything = f"`scrapy export {spider.name} -O {slot.uri}` exports all that is in the index"
                logger.warning("the export %s is empty, because this run fetched no document: %s", slot.uri, everything)
        try:
            await super().end_export(slot, spider)
        except OSError as error:
            self._failed(error)

    def _may_replace(self, slot: FeedSlot) -> bool:
        """Return whether the export may replace the file of an earlier run."""
        session: Session | None = getattr(self.crawler.spider, "session", None)
        if self.failure is not None or (session is not None and session.error is not None):
            return False
        return slot.itemcount > 0 or session is None or (session.finish_reason == "finished" and not session.all_faults())

    def _one_sentence(self, record: logging.LogRecord) -> bool:
        """Turn the traceback of a file that could not be stored, as at the end of an upload, into an ExportError."""
        if record.levelno < logging.ERROR or not record.exc_info or record.exc_info[1] is None:
            return True
        self._failed(record.exc_info[1])
        return False

    def _failed(self, error: BaseException) -> None:
        if self.failure is not None:
            return
        where = getattr(error, "filename", None) or ", ".join(slot.uri for slot in self.slots)
        why = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        sentence = f"the export {where} cannot be written: {why}"
        session: Session | None = getattr(self.crawler.spider, "session", None)
        if session is None:
            self.failure = ExportError(sentence)
            self.failure.__cause__ = error
            logger.error("%s", sentence)
        else:
            self.failure = ExportError(f"{sentence}; it lacks documents of this run, what is left is crawled by the next start")
            session.fail(self.failure, self.crawler)


def _keep_old(slot: FeedSlot, storage: FeedFile) -> None:
    """Leave the file of an earlier run as it is, and log that where there is one."""
    storage.discard()
    if Path(storage.path).exists():
        why = "the crawl has failed" if slot.itemcount else "no document was fetched"
        logger.warning("the export %s is not written, because %s; the file of an earlier run stays", slot.uri, why)


def _note(reasons: list[str], record: logging.LogRecord) -> bool:
    """Note an error that would be logged, and keep it out of the log."""
    if record.levelno >= logging.ERROR:
        reasons.append(record.getMessage())
    return record.levelno < logging.ERROR


def _check_writable(path: Path) -> None:
    """Raise OSError for a file that cannot be written. It is as before then."""
    was_there = path.exists()
    with path.open("ab"):
        pass
    if not was_there:
        path.unlink()


def file_of(uri: str) -> Path | None:
    """The file that a feed is written to; None where that is none, or known only when the crawl begins."""
    if "%(" in uri:
        return None
    scheme = urlsplit(uri).scheme
    if scheme == "file":
        return Path(file_uri_to_path(uri))
    return Path(uri) if not scheme else None


# --- feed file -----------------------------------------------------------------------------------------------------


class FeedFile(FileFeedStorage):
    """As Scrapy's, but with `overwrite` (`-O`) the file that is there stays until the new one is complete."""

    _new: ReplacedFile | None = None

    @property
    def replaces(self) -> bool:
        """Whether a file is replaced as a whole; a device or a pipe is written to at once."""
        return self.write_mode == "wb" and is_replaceable(Path(self.path))

    def open(self, spider: Spider) -> IO[bytes]:
        if not self.replaces:
            return super().open(spider)
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        self._new = ReplacedFile(Path(self.path))
        return self._new.file

    def store(self, file: IO[bytes]) -> Deferred[None] | None:
        if self._new is None:
            return super().store(file)
        return deferred_from_coro(run_in_thread(self._new.put_in_place))

    def discard(self) -> None:
        """Remove the export; the existing file stays."""
        if self._new is not None:
            self._new.discard()


# --- json lines ----------------------------------------------------------------------------------------------------


_ENCODER = msgspec.json.Encoder()


class JsonLinesExporter(JsonLinesItemExporter):
    """As Scrapy's. A Document that is to be exported whole, in UTF-8, is encoded at once, and no character costs an item."""

    def __init__(self, file: Any, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self._whole = self.fields_to_export is None and not self.indent and self.encoding == "utf-8"

    def export_item(self, item: Any) -> None:
        if type(item) in (Document, IndexedDocument) and self.fields_to_export is None:
            written = _written(item)
            if self._whole:
                self.file.write(_ENCODER.encode(written) + b"\n")
                return
        else:
            written = dict(self.get_serialized_fields(item))
        line = self.encoder.encode(written) + "\n"
        # own parsing may leave halves of surrogate pairs
        self.file.write(line.encode(self.encoding or "utf-8", "replace"))


# --- index export --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class IndexedDocument(Document):
    """A document of the index, with what the collection knows of its page."""

    id: str = ""
    fetched: str = ""
    """Time of the last fetch that showed the page to be like this, in UTC; empty while it fails, or its deletion is held."""
    content_place: str = ""
    """File and offset of its record in the archive; empty where it has none."""


_OF_DOCUMENT = tuple(one.name for one in fields(Document))


def with_states(documents: Iterable[Document], store: Store | None, archive: ArchiveReader | None) -> Iterator[IndexedDocument]:
    """Yield documents of the index with the id, the time of the fetch and the place in the archive of each."""
    for document in documents:
        found = IndexedDocument(**{name: getattr(document, name) for name in _OF_DOCUMENT}, id=document_id(document.url))
        state = None if store is None else store.get(document.url)
        if state is not None and state.state is State.DONE and state.held is None and state.fetched_at is not None:
            found.fetched = iso(state.fetched_at)
        if state is not None and state.archived is not None and archive is not None and state.checksum is not None:
            location = archive.location(state.archived)
            found.content_place = "" if location is None else f"{location.file}:{location.offset}"
        yield found


def _written(document: Document) -> dict[str, object]:
    """Return a document as JSON has it, without the time and the place if they are not known."""
    written = written_document(document)
    if isinstance(document, IndexedDocument):
        more = {"id": document.id, "fetched": document.fetched, "content_place": document.content_place}
        written |= {name: value for name, value in more.items() if value}
    return written


_AT_ONCE = 200
"""Documents between two looks at what is still being stored: a batch that is complete keeps its file open until then."""
STDOUT = "stdout:"

Feeds = dict[str, dict[str, Any]]
"""A value of FEEDS."""


def read_feeds(settings: BaseSettings, new: Sequence[str], replaced: Sequence[str]) -> Feeds:
    """Return the feeds that `-o` and `-O` name, in Scrapy's notation. Raises UsageError, also for a file of `new` that is there."""
    without_feeds = settings.copy()
    without_feeds.set("FEEDS", {}, priority="cmdline")
    try:
        feeds: Feeds = feed_process_params_from_cli(without_feeds, [*new], overwrite_output=[*replaced])
    except ScrapyUsageError as error:
        raise UsageError(str(error)) from error
    for uri, options in feeds.items():
        path = file_of(uri)
        if new and path is not None and path.is_file():
            raise UsageError(f"{path} exists already: -O replaces it")
        if uri != STDOUT:
            options["overwrite"] = True
    return feeds


def export(documents: Iterable[Document], feeds: Mapping[str, Any], settings: BaseSettings, *, name: str) -> int:
    """Write documents to feeds; return how many. Raises ConfigError and ExportError; a file that was there stays then."""
    own = Settings(settings)
    own.set("FEEDS", feeds, priority="cmdline")
    check_exports(own)
    crawler = Crawler(type("IndexSpider", (Spider,), {"name": name}), own)
    crawler.stats = MemoryStatsCollector(crawler)
    crawler.spider = crawler.spidercls.from_crawler(crawler)
    return asyncio.run(_exported(documents, Exports(crawler), crawler.spider))


async def _exported(documents: Iterable[Document], exports: Exports, spider: Spider) -> int:
    number = 0
    try:
        exports.open_spider(spider)
        for number, document in enumerate(documents, 1):
            exports.item_scraped(document, spider)
            if number % _AT_ONCE == 0:
                await exports.stored()
            _raise_failure(exports)
        await exports.close_spider(spider)
        _raise_failure(exports)
    except (CrawlspaceError, BrokenPipeError, asyncio.CancelledError):
        exports.discard()
        raise
    except Exception as error:  # an exporter of the user's may raise anything
        exports.discard()
        raise ExportError(f"document {number:,} cannot be exported: {type(error).__name__}: {error}") from error
    return number


def _raise_failure(exports: Exports) -> None:
    """Raise why an export could not be written, or BrokenPipeError where its reader has closed the pipe."""
    if exports.failure is not None:
        cause = exports.failure.__cause__
        raise cause if isinstance(cause, BrokenPipeError) else exports.failure
