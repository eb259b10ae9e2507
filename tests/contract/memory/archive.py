"""The archive in memory: its files, the places of records, and documents that are pushed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from crawlspace.document import Document
from crawlspace.model import UrlState
from tests.contract.memory.duplicates import MemoryDuplicates
from tests.contract.memory.inherited_metadata import MemoryInheritance
from tests.contract.memory.outbox import MemoryOutbox


class MemoryArchive:
    """The part of the store that concerns the archive, and the sinks as a whole. What is declared is the store's."""

    _urls: dict[int, UrlState]
    _outbox: MemoryOutbox
    _groups: MemoryDuplicates
    _inheritance: MemoryInheritance
    _stored: Callable[[Iterable[int]], list[UrlState]]

    def __init__(self) -> None:
        super().__init__()
        self._archive_files: dict[int, str] = {}

    def archive_files(self) -> dict[int, str]:
        return dict(self._archive_files)

    def add_archive_file(self, name: str) -> int:
        for number, known in self._archive_files.items():
            if known == name:
                return number
        self._archive_files[len(self._archive_files) + 1] = name
        return len(self._archive_files)

    def move_archived(self, moves: Sequence[tuple[int, int, int | None]]) -> None:
        for id, was, is_now in moves:
            if id in self._urls and self._urls[id].archived == was:
                self._urls[id].archived = is_now

    def link_metadata(self, ids: Sequence[int]) -> Mapping[int, str]:
        return self._inheritance.link_metadata(ids)

    def push_again(self, documents: Mapping[int, Document | None], *, sink: str | None = None) -> list[int]:
        indexed = sorted(row.id for row in self._stored(documents) if self._groups.is_indexed(row))
        return self._groups.push_again({id: documents[id] for id in indexed}, sink=sink)

    def ordered(self, sink: str, urls: Sequence[str]) -> dict[str, bool]:
        return self._outbox.ordered(sink, urls)

    def in_index(self, urls: Sequence[str]) -> set[str]:
        return {row.url for row in self._urls.values() if self._groups.is_in_index(row)} & set(urls)

    def delete_again(self, sink: str, urls: Sequence[str]) -> None:
        ids = {row.url: row.id for row in self._urls.values()}
        self._outbox.delete(sink, {url: ids.get(url, 0) for url in sorted(set(urls) - self.in_index(urls))})
