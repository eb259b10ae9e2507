"""Compaction: files of an archive are rewritten without the records that no URL refers to.

Records are copied to new files, the store gets their new archive offsets, and only then the old file is removed: after a kill at any moment,
each archive offset has its records, and the next compaction drops the copies, if there are any.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

from crawlspace.archive.files import FileSeries, NewFile, archive_files, file_and_offset, place_of, size_of
from crawlspace.archive.members import copied, records_of

Move = tuple[int, int, int | None]
"""Id of a URL, its archive offset, and the new one."""
_MOVED_AT_ONCE = 1_000


class ArchivedUrl(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def archived(self) -> int | None: ...


class PlaceStore(Protocol):
    """The archive offsets and file names in a store."""

    def scan(self, after: int, limit: int) -> Sequence[ArchivedUrl]: ...
    def archive_files(self) -> dict[int, str]: ...
    def add_archive_file(self, name: str) -> int: ...
    def move_archived(self, moves: Sequence[Move]) -> None: ...


@dataclass(slots=True)
class Compacted:
    """The result of a compaction: freed bytes, and number of dropped pages whose documents were kept."""

    freed_bytes: int = 0
    pages: int = 0


class LivePlaces:
    """The archive offsets of URLs, by the number of the file: 16 bytes a URL."""

    def __init__(self, store: PlaceStore) -> None:
        self._of_file: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))
        after = 0
        while page := store.scan(after, 5_000):
            for known in page:
                if known.archived is not None:
                    number, offset = file_and_offset(known.archived)
                    self._of_file[number].extend((offset, known.id))
            after = page[-1].id

    def count(self, number: int) -> int:
        """Return the number of archive offsets in a file."""
        return len(self._of_file.get(number, ())) // 2

    def of(self, number: int) -> Mapping[int, int]:
        """Return the ids of URLs by offset."""
        pairs = self._of_file.get(number, array("q"))
        return dict(zip(pairs[::2], pairs[1::2], strict=True))


class Compaction:
    """Compacts closed files of a folder, whose archive offsets are all stored. Raises OSError and ArchiveError."""

    def __init__(
        self,
        store: PlaceStore,
        series: FileSeries,
        *,
        files: Sequence[Path] | None = None,
        seen: dict[str, int] | None = None,
    ) -> None:
        """`files`: only these are compacted. `seen` has the number of archive offsets in each file in which nothing was superseded."""
        self._files = archive_files(series.folder) if files is None else files
        self._seen = {} if seen is None else seen
        self._store = store
        self._series = series
        self._file: NewFile | None = None
        self._number = 0
        self.done = Compacted()

    def drop_superseded(self, most: int | None = None) -> Generator[Path]:
        """Drop superseded records until the archive has no more than `most` bytes; yield each file before it is compacted."""
        yield from self._rewrite(self._files, most=most, documents_only=False)

    def drop_pages(self, most: int) -> Generator[Path]:
        """Drop the oldest pages, and keep their documents, until the archive has no more than `most` bytes."""
        files = [*(path for path in self._files if path.exists()), *self._series.closed]
        yield from self._rewrite(_oldest_first(files), most=most, documents_only=True)

    def _rewrite(self, files: Sequence[Path], *, most: int | None, documents_only: bool) -> Generator[Path]:
        places = LivePlaces(self._store)
        numbers = {name: number for number, name in self._store.archive_files().items()}
        try:
            for path in files:
                if most is not None and size_of(self._series.folder) <= most:
                    break
                number = numbers.get(path.name, 0)
                if not documents_only and self._seen.get(path.name) == places.count(number):
                    continue
                yield path
                with suppress(FileNotFoundError):  # another worker compacts the archive, too
                    self._rewrite_one(path, number, places, documents_only=documents_only)
        finally:
            self._series.close()

    def _rewrite_one(self, path: Path, number: int, places: LivePlaces, *, documents_only: bool) -> None:
        live, size = places.of(number), path.stat().st_size
        found = _Records.of(path)
        if found.end != size:
            return  # a damaged file is kept, because it may be repaired
        groups = [group for group in found.fetches if group.offset in live]
        kept = sum(group.document_bytes if documents_only else group.end - group.offset for group in groups)
        if size - kept <= found.head:
            if not documents_only:
                self._seen[path.name] = places.count(number)
            return
        moves: list[Move] = []
        with path.open("rb") as file:
            for group in groups:
                end = group.offset + group.document_bytes if documents_only else group.end
                new = self._copy(file.fileno(), group.offset, end)
                self.done.pages += documents_only and group.has_response
                moves.append((live[group.offset], place_of(number, group.offset), new))
        if self._series.current is not None:
            self._series.current.flush()
        for first in range(0, len(moves), _MOVED_AT_ONCE):
            self._store.move_archived(moves[first : first + _MOVED_AT_ONCE])
        path.unlink(missing_ok=True)
        self.done.freed_bytes += size - kept

    def _copy(self, fd: int, offset: int, end: int) -> int | None:
        """Copy records, and return their new archive offset; None if there are none."""
        if offset == end:
            return None
        file = self._series.writable()
        if file is not self._file:
            self._file, self._number = file, self._store.add_archive_file(file.name)
        place = place_of(self._number, file.end)
        file.write(copied(fd, offset, end))
        return place


@dataclass(frozen=True, slots=True)
class _Fetch:
    """The records of a fetch, from an offset on; the document comes first, if any."""

    offset: int
    end: int
    document_bytes: int
    has_response: bool


@dataclass(frozen=True, slots=True)
class _Records:
    """The contents of a file: the fetches with a document or a response, the size of its first record, and the end of its last record."""

    fetches: list[_Fetch]
    head: int
    end: int

    @classmethod
    def of(cls, path: Path) -> _Records:
        fetches: list[_Fetch] = []
        of, head, end = "", 0, 0
        for offset, record in records_of(path):
            end = record.end
            head = head or end
            id = record.fields.get("WARC-Record-ID", "")
            if of and of in (id, record.fields.get("WARC-Concurrent-To")):  # part of the fetch before
                last = fetches[-1]
                fetches[-1] = _Fetch(last.offset, end, last.document_bytes, last.has_response or record.kind == "response")
            elif record.kind == "metadata":
                of = record.fields.get("WARC-Refers-To", "")
                fetches.append(_Fetch(offset, end, end - offset, has_response=False))
            elif record.kind == "response":
                of = id
                fetches.append(_Fetch(offset, end, 0, has_response=True))
            else:
                of = ""
        return cls(fetches, head, end)


def _oldest_first(files: Sequence[Path]) -> list[Path]:
    """Return files by the date of their first fetch, because a file that a compaction has written has a later name."""
    return sorted(
        files, key=lambda path: next((record.fields.get("WARC-Date", "") for _, record in islice(records_of(path), 1, 2)), "")
    )
