"""Keeps an archive below CRAWLSPACE_ARCHIVE_MAX_BYTES: whenever one of its files is full, and at the end of a run."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from crawlspace.admin.archive import compact
from crawlspace.archive.compaction import Compacted, Compaction, PlaceStore
from crawlspace.archive.files import FileSeries, is_from_here, rotated_bytes, size_of, unwritable
from crawlspace.clock import SystemClock
from crawlspace.config.collection import Collection
from crawlspace.crawl.commits import Archiving
from crawlspace.errors import CrawlspaceError
from crawlspace.text import counted

if TYPE_CHECKING:
    from crawlspace.runtime.session.paths import StoreLocation

logger = logging.getLogger(__name__)

_MUCH = 1.25
"""Times the limit."""
_SETTLED_S = 3600.0
"""Seconds after which all that another worker has written to a file is recorded or given up."""


class RunningLimit:
    """Keeps the limit while a crawl writes to the archive, on a thread with a connection of its own to the store."""

    def __init__(self, collection: Collection, location: StoreLocation, most: int) -> None:
        self._collection = collection
        self._location = location
        self._most = most
        self._ends = Event()
        self._thread: Thread | None = None
        self._seen: dict[str, int] = {}
        self._in_vain = 0
        """The size in bytes at which the archive could not be reduced further."""

    def keep(self, files: Sequence[Path]) -> None:
        """Begin to reduce the archive by dropping pages of these files, if it is too large."""
        size = size_of(self._collection.archive.folder)
        if size <= max(self._most, self._in_vain * _MUCH):
            return
        if self._thread is not None and self._thread.is_alive():
            if size <= self._most * _MUCH:
                return
            self._thread.join()  # the crawl writes faster than the archive is made smaller
        chosen = [path for path in files if not self._location.is_shared or _is_settled(path)]
        self._thread = Thread(target=self._run, args=(chosen,), name="archive limit", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for the file that is being reduced; the end of the run does the rest."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, files: Sequence[Path]) -> None:
        folder, name = self._collection.archive.folder, self._collection.name
        try:
            with self._location.changing() as opened:
                if opened is None:
                    return
                series = FileSeries(folder, collection=name, clock=SystemClock(), rotated_bytes=rotated_bytes(self._most))
                compaction = Compaction(opened.store, series, files=files, seen=self._seen)
                self._each(compaction.drop_superseded(self._most))
                self._each(compaction.drop_pages(self._most))
            _say(name, self._most, compaction.done)
            size = size_of(folder)
            self._in_vain = size if size > self._most else 0
        except (OSError, CrawlspaceError) as error:
            fault = unwritable(folder, error) if isinstance(error, OSError) else error
            logger.warning("the archive of %s is above CRAWLSPACE_ARCHIVE_MAX_BYTES and stays so for now: %s", name, fault)
        except Exception:
            logger.exception("the archive of %s could not be made smaller, through a fault of ours: please report it", name)

    def _each(self, files: Generator[Path]) -> None:
        with closing(files):
            while not self._ends.is_set() and next(files, None) is not None:
                pass


def _is_settled(path: Path) -> bool:
    """Return whether all that was written to a file is recorded, where several workers write."""
    try:
        return is_from_here(path.name) or time.time() - path.stat().st_mtime > _SETTLED_S
    except FileNotFoundError:
        return False


def end_archive(archiving: Archiving | None, collection: Collection, store: PlaceStore, *, is_last: bool) -> None:
    """Close the archive of a crawl, if it has one; where no other worker crawls, keep it below its limit. Raises ArchiveError."""
    if archiving is not None:
        archiving.close()
        if is_last:
            keep_limit(collection, store)


def keep_limit(collection: Collection, store: PlaceStore) -> None:
    """Drop superseded records above the limit, then the oldest pages, with a warning. Not during a crawl. Raises ArchiveError."""
    folder, most = collection.archive.folder, collection.archive.max_bytes
    if most is None or size_of(folder) <= most:
        return
    _say(collection.name, most, compact(store, folder, collection=collection.name, clock=SystemClock(), max_bytes=most))
    if (size := size_of(folder)) > most:
        logger.warning(
            "the archive of %s has %s bytes, more than CRAWLSPACE_ARCHIVE_MAX_BYTES (%s), with documents alone: make it larger",
            collection.name,
            f"{size:,}",
            f"{most:,}",
        )


def _say(name: str, most: int, done: Compacted) -> None:
    if done.pages:
        logger.warning(
            "the archive of %s was above CRAWLSPACE_ARCHIVE_MAX_BYTES (%s) with nothing superseded: the oldest %s dropped, and only their"
            " documents stay; make it larger to keep more",
            name,
            f"{most:,}",
            counted(done.pages, "page was", "pages were"),
        )
