"""Reads and verifies the records of a file in parts of bounded size, because a file that was tampered with may have a member of any size.

A gzip member inflates to a thousand times its size, and a record may claim any length. Only what is needed is kept in memory, and a record
that is longer than its Content-Length is damaged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import TypeVar

from isal import isal_zlib

from crawlspace.archive.records import DOM, named_digest

T = TypeVar("T")

_READ_AT_ONCE = 1 << 15
_INFLATED_AT_ONCE = 1 << 20
_COPIED_AT_ONCE = 1 << 20
MOST_HEAD = 1 << 20
"""Bytes of the fields of a record, and of status line and headers of a response: a crawl accepts headers of 256 KiB."""
_MOST_DIGITS = 15
_AFTER_BLOCK = 16
"""Bytes that may follow the block of a record, where four are usual."""


class DamagedRecord(Exception):
    """There is no record at an offset, or it is damaged."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record: its fields, its block, and the offset of the next one."""

    fields: Mapping[str, str]
    block: bytes
    end: int

    @property
    def kind(self) -> str:
        return self.fields.get("WARC-Type", "")

    @property
    def url(self) -> str:
        return self.fields.get("WARC-Target-URI", "")


class _Member:
    """A gzip member."""

    def __init__(self, fd: int, offset: int) -> None:
        self._member = isal_zlib.decompressobj(isal_zlib.MAX_WBITS | 16)
        self._fd, self._at = fd, offset
        self._unread, self._has_more = b"", False

    def part(self) -> bytes:
        """Return the next inflated bytes; none at the end. Raises DamagedRecord."""
        member = self._member
        try:
            while not member.eof:
                if not (self._unread or self._has_more):
                    self._unread = os.pread(self._fd, _READ_AT_ONCE, self._at)
                    self._at += len(self._unread)
                    if not self._unread:
                        raise DamagedRecord
                part = member.decompress(self._unread, _INFLATED_AT_ONCE)
                self._unread, self._has_more = member.unconsumed_tail, len(part) == _INFLATED_AT_ONCE
                if part:
                    return part
        except (OSError, isal_zlib.error) as error:  # type: ignore[misc]  # the stub has it as an instance
            raise DamagedRecord from error
        return b""

    @property
    def end(self) -> int:
        """The offset after the member, once all of it was read."""
        return self._at - len(self._member.unused_data)


class RecordParts:
    """A record at an offset of a file: its fields, the length of its block, and then the block in parts. Raises DamagedRecord."""

    def __init__(self, fd: int, offset: int) -> None:
        self._member = _Member(fd, offset)
        read = bytearray()
        while (at := read.find(b"\r\n\r\n")) < 0:
            part = self._member.part()
            if not part or len(read) > MOST_HEAD:
                raise DamagedRecord
            read += part
        first, *lines = read[:at].decode("utf-8", "replace").split("\r\n")
        self.fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        length = number(self.fields.get("Content-Length", ""))
        if length is None or at > MOST_HEAD or not first.startswith("WARC/"):
            raise DamagedRecord
        self.length = length
        self._begin = bytes(memoryview(read)[at + 4 :])

    def parts(self) -> Iterator[bytes]:
        """Yield the block. Raises DamagedRecord, at its end at the latest, if it does not have its length."""
        left, part = self.length, self._begin
        while part or (part := self._member.part()):
            if left > 0:
                yield part if len(part) <= left else part[:left]
            left -= len(part)
            if left < -_AFTER_BLOCK:
                raise DamagedRecord
            part = b""
        if left > 0:
            raise DamagedRecord

    def record(self, block: bytes = b"") -> Record:
        """Return the record, once all parts were read, with a block or without."""
        return Record(self.fields, block, self._member.end)


def records_of(path: Path) -> Iterator[tuple[int, Record]]:
    """Yield the records of a file with their offsets, without their blocks; stop at a damaged one."""
    return ((offset, record) for offset, record, _ in _read_all(path, _skip))


def record_without_block(fd: int, offset: int) -> Record | None:
    """Return the record at an offset, whose block is read and not kept; None if it is missing or damaged."""
    try:
        record = RecordParts(fd, offset)
        _skip(record)
    except DamagedRecord:
        return None
    return record.record()


def copied(fd: int, offset: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of a file between two offsets."""
    for at in range(offset, end, _COPIED_AT_ONCE):
        yield os.pread(fd, min(_COPIED_AT_ONCE, end - at), at)


def number(digits: str) -> int | None:
    """Return a number in a record; None for anything else, or more digits than a length or offset has."""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else None


def faults_of(path: Path) -> Iterator[str]:
    """Yield the faults of a file: damage, responses and DOMs with a wrong digest, and missing DOMs."""
    end, awaited = 0, None
    for offset, record, found in _read_all(path, _digest_of):
        end, digest = record.end, record.fields.get("WARC-Payload-Digest")
        if found is not None and digest != found:
            yield f"{path.name}: the digest of {record.url}, at byte {offset:,}, does not hold"
        if awaited is not None and (record.kind, digest) != ("resource", awaited[0]):
            yield f"{path.name}: the DOM of {awaited[1]}, at byte {offset:,}, is not there"
        awaited = (record.fields[DOM], record.url) if DOM in record.fields else None
    size = path.stat().st_size
    if end != size:
        yield f"{path.name}: damaged, or cut off, after byte {end:,} of {size:,}"


def _read_all(path: Path, read: Callable[[RecordParts], T]) -> Iterator[tuple[int, Record, T]]:
    """Yield the records of a file, without their blocks, with their offsets and what `read` returns for each; stop at a damaged one."""
    with path.open("rb") as file, suppress(DamagedRecord):
        offset = 0
        while True:
            parts = RecordParts(file.fileno(), offset)
            found = read(parts)
            record = parts.record()
            yield offset, record, found
            offset = record.end


def _skip(record: RecordParts) -> None:
    for _ in record.parts():
        pass


def _digest_of(record: RecordParts) -> str | None:
    """Read a record, and return the digest of the payload of a response or DOM; None for other records. Raises DamagedRecord."""
    hashed, head = sha1(usedforsecurity=False), bytearray()
    kind = record.fields.get("WARC-Type")
    is_body = kind == "resource"
    for part in record.parts():
        if is_body:
            hashed.update(part)
        elif kind == "response" and len(head) <= MOST_HEAD:
            head += part
            at = head.find(b"\r\n\r\n")
            if at >= 0:
                is_body = True
                hashed.update(memoryview(head)[at + 4 :])
    return named_digest(hashed.digest()) if kind in ("response", "resource") else None
