"""Scrapy's feed exports, with a sentence and an exit status for an export that cannot be written.

Scrapy logs a traceback for each item that it cannot write, and the crawl ends as if nothing had happened. Here a file that cannot be written
is an error before anything is fetched, and one that fails later ends the crawl: what it has not fetched stays pending. A file that is
replaced as a whole (`-O`) stays as it was if the crawl fails.
"""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.exceptions import NotConfigured
from scrapy.extensions.feedexport import FeedExporter
from w3lib.url import file_uri_to_path

from crawlspace.errors import ConfigError, ExportError
from crawlspace.private_files import real_path
from crawlspace.runtime.exports.feed_file import FeedFile
from crawlspace.runtime.exports.replaced_file import ReplacedFile, is_replaceable
from crawlspace.runtime.scrapy_internals import ExportHook

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.extensions.feedexport import FeedSlot
    from scrapy.settings import BaseSettings

    from crawlspace.runtime.session import Session

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
        """End without an export: what was written beside a file that was to be replaced is removed."""
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
        """Return whether what was exported may take the place of the file of an earlier run."""
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
