"""Checks the files of an archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crawlspace.archive.compaction import records_of
from crawlspace.archive.reader import Record
from crawlspace.archive.records import DOM, digest_of


def faults_of(path: Path) -> Iterator[str]:
    """Yield what is wrong with a file: where it is damaged or cut off, responses and DOMs whose digest does not hold, and DOMs that are missing."""
    end, awaited = 0, None
    for offset, record in records_of(path):
        end, digest = record.end, record.fields.get("WARC-Payload-Digest")
        payload = _payload(record)
        if payload is not None and digest != digest_of(payload):
            yield f"{path.name}: the digest of {record.url}, at byte {offset:,}, does not hold"
        if awaited is not None and (record.kind, digest) != ("resource", awaited[0]):
            yield f"{path.name}: the DOM of {awaited[1]}, at byte {offset:,}, is not there"
        awaited = (record.fields[DOM], record.url) if DOM in record.fields else None
    size = path.stat().st_size
    if end != size:
        yield f"{path.name}: damaged, or cut off, behind byte {end:,} of {size:,}"


def _payload(record: Record) -> bytes | None:
    if record.kind == "response":
        return record.block.partition(b"\r\n\r\n")[2]
    return record.block if record.kind == "resource" else None
