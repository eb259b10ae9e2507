"""A collection as one file, whatever store it comes from, and that file as a source to be moved from.

After a line that names the format come a header, the records and a trailer, each after its length and its CRC-32 in four bytes each. The
trailer has the number of records of each kind and a checksum over all of them: what is cut off or damaged is noticed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec

from crawlspace.errors import StoreDamaged, StoreVersionError
from crawlspace.state.move.move import CopyMark, CopySource, Moved, changed, check_source
from crawlspace.state.move.records import FORMAT, OrderRecord, Record, Summary, UrlRecord

_FIRST_LINE = b"crawlspace dump\n"
_MOST_BYTES = 1 << 30
"""Bytes of a record: a larger size is damage."""


class Header(msgspec.Struct, array_like=True, tag="header"):
    """In another format, too, these come first."""

    format: int
    collection: str
    source: str
    """The store that it was read from, for people."""
    version: str
    """Of that store, to tell one dump from another."""
    urls: int


class Trailer(msgspec.Struct, array_like=True, tag="trailer"):
    by_kind: dict[str, tuple[int, bytes]]
    """See `Summary.by_kind`."""


_Part = Header | Record | Trailer
_decode: Callable[[bytes], _Part] = msgspec.msgpack.Decoder(_Part).decode


def dump(source: CopySource, file: BinaryIO, collection: str) -> Moved:
    """Write all that a store holds to a file. Raises as `move`, and OSError for the file, of which nothing is of use then."""
    check_source(source, collection)
    header = Header(FORMAT, collection, source.name, source.version(), source.count())
    summary = Summary()
    file.write(_FIRST_LINE)
    _write(file, header, summary)
    for record in source.records():
        _write(file, record, summary)
    if source.version() != header.version:
        raise changed(source, collection)
    _write(file, Trailer(summary.by_kind), summary)
    file.flush()
    return Moved(summary[UrlRecord], summary[OrderRecord])


class DumpReader:
    """A dump as the source of a move. The file must be seekable; `name` is its place for messages."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Raises StoreDamaged for what is no dump, and StoreVersionError for one of another format."""
        self.name = name
        self._file = file
        self._read = 0
        header = self._next() if file.read(len(_FIRST_LINE)) == _FIRST_LINE else None
        if not isinstance(header, Header):
            raise StoreDamaged(f"{name} is no dump of a collection")
        if header.format != FORMAT:
            raise StoreVersionError(
                f"{name} was written by another version of crawlspace (dump format {header.format}, this one reads {FORMAT}):"
                " use that version"
            )
        self.header = header
        self._first = file.tell()

    def version(self) -> str:
        return self.header.version

    def mark(self) -> CopyMark | None:
        return None

    def count(self) -> int:
        return self.header.urls

    def records(self) -> Iterator[Record]:
        """Yield all records. Raises StoreDamaged, at the latest after the last of them."""
        self._file.seek(self._first)
        self._read = 0
        found = Summary()
        found.add(self.header)
        while not isinstance(record := self._next(), Header | Trailer):
            found.add(record)
            yield record
        if isinstance(record, Header) or record.by_kind != found.by_kind:
            raise self._damaged("records are missing, or there are too many")

    def _next(self) -> _Part:
        head = self._file.read(8)
        size, checksum = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
        encoded = self._file.read(min(size, _MOST_BYTES))
        if len(head) < 8 or len(encoded) < min(size, _MOST_BYTES):
            raise StoreDamaged(f"{self.name} is cut off after {self._read:,} records: use another copy of it")
        self._read += 1
        try:
            if zlib.crc32(encoded) != checksum:
                raise ValueError("its checksum differs")
            return _decode(encoded)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise self._damaged(f"record {self._read:,}: {error}") from error

    def _damaged(self, what: str) -> StoreDamaged:
        return StoreDamaged(f"{self.name} is damaged ({what}): use another copy of it")


def _write(file: BinaryIO, record: msgspec.Struct, summary: Summary) -> None:
    encoded = summary.add(record)
    file.write(len(encoded).to_bytes(4, "big") + zlib.crc32(encoded).to_bytes(4, "big") + encoded)
