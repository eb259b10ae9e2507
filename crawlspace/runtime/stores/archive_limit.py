"""Keeps an archive below CRAWLSPACE_ARCHIVE_MAX_BYTES, at the end of a run."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from crawlspace.admin.archive import compact
from crawlspace.archive.files import size_of
from crawlspace.clock import SystemClock
from crawlspace.plural import counted

if TYPE_CHECKING:
    from crawlspace.archive.compaction import PlaceStore
    from crawlspace.config.collection import Collection
    from crawlspace.crawl.archiving import Archiving

logger = logging.getLogger(__name__)


def end_archive(archiving: Archiving | None, collection: Collection, store: PlaceStore, *, is_last: bool) -> None:
    """Close the archive of a crawl, if it has one; where nobody else crawls, keep it below its limit. Raises ArchiveError."""
    if archiving is not None:
        archiving.close()
        if is_last:
            keep_limit(collection, store)


def keep_limit(collection: Collection, store: PlaceStore) -> None:
    """Drop superseded records above the limit, then the oldest pages, with a warning. While nobody crawls. Raises ArchiveError."""
    folder, most = collection.archive.folder, collection.archive.max_bytes
    if most is None or size_of(folder) <= most:
        return
    done = compact(store, folder, collection=collection.name, clock=SystemClock(), max_bytes=most)
    if done.pages:
        logger.warning(
            "the archive of %s was above CRAWLSPACE_ARCHIVE_MAX_BYTES (%s) with nothing superseded: the oldest %s dropped, and only their"
            " documents stay; make it larger to keep more",
            collection.name,
            f"{most:,}",
            counted(done.pages, "page was", "pages were"),
        )
    if (size := size_of(folder)) > most:
        logger.warning(
            "the archive of %s has %s bytes, more than CRAWLSPACE_ARCHIVE_MAX_BYTES (%s), with documents alone: make it larger",
            collection.name,
            f"{size:,}",
            f"{most:,}",
        )
