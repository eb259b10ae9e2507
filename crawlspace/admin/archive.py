"""Maintenance of an archive: its coverage, verification, and compaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from crawlspace.archive.compaction import Compacted, Compaction, PlaceStore
from crawlspace.archive.files import FileSeries, archive_files, close_abandoned, rotated_bytes, unwritable
from crawlspace.archive.members import faults_of
from crawlspace.archive.reader import ArchiveReader
from crawlspace.clock import Clock
from crawlspace.state.store import UrlStore
from crawlspace.state.views import KnownUrl

_PAGE = 5_000


@dataclass(slots=True)
class Coverage:
    """Numbers of indexed documents, and of those that have a record."""

    documents: int = 0
    archived: int = 0


def coverage(store: UrlStore, archive: ArchiveReader) -> Coverage:
    """Count the indexed documents, and those whose record is in a file on this machine."""
    found = Coverage()
    for known in _known(store):
        if known.indexed:
            found.documents += 1
            found.archived += known.archived is not None and archive.has(known.archived)
    return found


def faults(store: UrlStore, archive: ArchiveReader, folder: Path, *, progress: Callable[[str], None]) -> Iterator[str]:
    """Yield the faults of an archive: of its files, and of URLs without a record at their location."""
    for path in archive_files(folder):
        progress(f"checking {path.name}")
        yield from faults_of(path)
    for known in _known(store):
        if known.archived is not None and not archive.is_at(known.archived, known.url):
            yield f"{known.url} has no record at its location"


def compact(
    store: PlaceStore,
    folder: Path,
    *,
    collection: str,
    clock: Clock,
    max_bytes: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Compacted:
    """Drop superseded records; with `max_bytes`, then the oldest pages above it. Not during a crawl. Raises ArchiveError."""
    try:
        close_abandoned(folder)
        series = FileSeries(folder, collection=collection, clock=clock, rotated_bytes=rotated_bytes(max_bytes))
        compaction = Compaction(store, series)
        for path in compaction.drop_superseded(max_bytes):
            progress(f"compacting {path.name}")
        for path in compaction.drop_pages(max_bytes) if max_bytes is not None else ():
            progress(f"dropping pages of {path.name}")
    except OSError as error:
        raise unwritable(folder, error) from error
    return compaction.done


def _known(store: UrlStore) -> Iterator[KnownUrl]:
    after = 0
    while page := store.scan(after, _PAGE):
        yield from page
        after = page[-1].id
