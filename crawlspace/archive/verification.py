"""Checks the files of an archive."""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path

from crawlspace.archive.members import MOST_HEAD, DamagedRecord, Record, RecordParts
from crawlspace.archive.records import DOM


def faults_of(path: Path) -> Iterator[str]:
    """Yield what is wrong with a file: where it is damaged or cut off, responses and DOMs whose digest does not hold, and DOMs that are missing."""
    end, awaited = 0, None
    for offset, record, found in _digests_of(path):
        end, digest = record.end, record.fields.get("WARC-Payload-Digest")
        if found is not None and digest != found:
            yield f"{path.name}: the digest of {record.url}, at byte {offset:,}, does not hold"
        if awaited is not None and (record.kind, digest) != ("resource", awaited[0]):
            yield f"{path.name}: the DOM of {awaited[1]}, at byte {offset:,}, is not there"
        awaited = (record.fields[DOM], record.url) if DOM in record.fields else None
    size = path.stat().st_size
    if end != size:
        yield f"{path.name}: damaged, or cut off, behind byte {end:,} of {size:,}"


def _digests_of(path: Path) -> Iterator[tuple[int, Record, str | None]]:
    """Yield the records of a file with their offsets and the digests of their payloads, without their blocks; stop at a damaged one."""
    with path.open("rb") as file:
        offset = 0
        while True:
            try:
                parts = RecordParts(file.fileno(), offset)
                digest = _digest_of(parts)
            except DamagedRecord:
                return
            record = parts.made(b"")
            yield offset, record, digest
            offset = record.end


def _digest_of(record: RecordParts) -> str | None:
    """Return the digest of what a response or DOM has; None for another record. Reads it. Raises DamagedRecord."""
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
    return f"sha1:{b32encode(hashed.digest()).decode()}" if kind in ("response", "resource") else None
