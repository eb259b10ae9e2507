"""Writes documents that were made anew, each with a copy of the records that it was made of.

A place leads to a document and its response, one behind the other; so the response is copied, and the older one is superseded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from crawlspace.archive.new_files import ROTATED_BYTES, FileSeries, NewFile, unwritable
from crawlspace.archive.places import place_of
from crawlspace.archive.reader import ArchiveReader
from crawlspace.archive.records import Location
from crawlspace.clock import Clock


class ArchiveFileNames(Protocol):
    def add_archive_file(self, name: str) -> int: ...


class NewDocuments:
    """Writes files of this process into the folder of an archive. Raises ArchiveError."""

    def __init__(self, folder: Path, store: ArchiveFileNames, reader: ArchiveReader, *, collection: str, clock: Clock) -> None:
        self._folder = folder
        self._store = store
        self._reader = reader
        self._collection = collection
        self._clock = clock
        self._series: FileSeries | None = None
        self._file: NewFile | None = None
        self._number = 0

    def add(self, record: bytes, response: Location, url: str) -> int:
        """Write the record of a document and those of its response, and return their place."""
        try:
            file = self._writable()
            place = place_of(self._number, file.end)
            file.write([record, *self._reader.raw_fetch(response, url)])
        except OSError as error:
            raise unwritable(self._folder, error) from error
        return place

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError as error:
                raise unwritable(self._folder, error) from error

    def _writable(self) -> NewFile:
        if self._file is not None and self._file.end >= ROTATED_BYTES:
            self.close()
        if self._file is None:
            if self._series is None:
                self._series = FileSeries(self._folder, collection=self._collection, clock=self._clock)
            self._file = self._series.begin()
            self._number = self._store.add_archive_file(self._file.name)
        return self._file
