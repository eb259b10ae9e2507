"""Rewrites files of an archive without the records that no URL has its place at.

Records are copied as they are to new files, the store learns their new places, and only then the old file goes: a kill at any moment
leaves each place with its records, and at most copies that the next compaction drops.
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

from crawlspace.archive.files import ROTATED_BYTES, FileSeries, NewFile, archive_files, file_and_offset, place_of, size_of
from crawlspace.archive.members import copied, records_of

Move = tuple[int, int, int | None]
"""Id of a URL, its place up to now, and the new one."""
_MOVED_AT_ONCE = 1_000


class ArchivedUrl(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def archived(self) -> int | None: ...


class PlaceStore(Protocol):
    """What a store keeps of an archive."""

    def scan(self, after: int, limit: int) -> Sequence[ArchivedUrl]: ...
    def archive_files(self) -> dict[int, str]: ...
    def add_archive_file(self, name: str) -> int: ...
    def move_archived(self, moves: Sequence[Move]) -> None: ...


@dataclass(slots=True)
class Compacted:
    """What a compaction has freed, and how many pages it has dropped of which the document stays."""

    freed_bytes: int = 0
    pages: int = 0


class LivePlaces:
    """The places that URLs have, by the number of the file: 16 bytes a URL."""

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
        """Return how many are in a file."""
        return len(self._of_file.get(number, ())) // 2

    def of(self, number: int) -> Mapping[int, int]:
        """Return the ids of URLs by offset."""
        pairs = self._of_file.get(number, array("q"))
        return dict(zip(pairs[::2], pairs[1::2], strict=True))


class Compaction:
    """Compacts closed files of a folder, all of whose records have been stored by now. Raises OSError and ArchiveError."""

    def __init__(
        self,
        store: PlaceStore,
        series: FileSeries,
        *,
        files: Sequence[Path] | None = None,
        rotated_bytes: int = ROTATED_BYTES,
        seen: dict[str, int] | None = None,
    ) -> None:
        """`files`: only these are looked at. `seen` has how many places were in a file, by its name, when nothing in it was superseded."""
        self._files = archive_files(series.folder) if files is None else files
        self._seen = {} if seen is None else seen
        self._store = store
        self._series = series
        self._rotated_bytes = rotated_bytes
        self._file: NewFile | None = None
        self._made: list[Path] = []
        self._number = 0
        self.done = Compacted()

    def drop_superseded(self, most: int | None = None) -> Generator[Path]:
        """Drop the records that are superseded, until the archive has no more bytes than that; yield each file before it is looked at."""
        yield from self._rewrite(self._files, most=most, documents_only=False)

    def drop_pages(self, most: int) -> Generator[Path]:
        """Drop the oldest pages, and keep their documents, until the archive has no more bytes than that."""
        files = [*(path for path in self._files if path.exists()), *self._made]
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
                with suppress(FileNotFoundError):  # another worker makes the archive smaller, too
                    self._rewrite_one(path, number, places, documents_only=documents_only)
        finally:
            self._close()

    def _rewrite_one(self, path: Path, number: int, places: LivePlaces, *, documents_only: bool) -> None:
        live, size = places.of(number), path.stat().st_size
        found = _Records.of(path)
        if found.end != size:
            return  # it is damaged: what a person may be able to repair is not removed
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
        if self._file is not None:
            self._file.flush()
        for first in range(0, len(moves), _MOVED_AT_ONCE):
            self._store.move_archived(moves[first : first + _MOVED_AT_ONCE])
        path.unlink(missing_ok=True)
        self.done.freed_bytes += size - kept

    def _copy(self, fd: int, offset: int, end: int) -> int | None:
        """Copy records, and return their new place; None for none."""
        if offset == end:
            return None
        if self._file is not None and self._file.end >= self._rotated_bytes:
            self._close()
        if self._file is None:
            self._file = self._series.begin()
            self._number = self._store.add_archive_file(self._file.name)
        place = place_of(self._number, self._file.end)
        self._file.write(copied(fd, offset, end))
        return place

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._made.append(self._series.folder / self._file.name)
            self._file = None


@dataclass(frozen=True, slots=True)
class _Fetch:
    """The records of a fetch, from an offset on; the document comes first, if there is one."""

    offset: int
    end: int
    document_bytes: int
    has_response: bool


@dataclass(frozen=True, slots=True)
class _Records:
    """What is in a file: the fetches of which there is a document or a response, the bytes of its first record, and its last whole byte."""

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
            if of and of in (id, record.fields.get("WARC-Concurrent-To")):  # it belongs to the fetch before
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
    """Return files by the date of the first fetch in them: a file that a compaction has written has a later name."""
    return sorted(
        files, key=lambda path: next((record.fields.get("WARC-Date", "") for _, record in islice(records_of(path), 1, 2)), "")
    )
