"""Checks the files of an archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crawlspace.archive.compaction import records_of
from crawlspace.archive.records import digest_of


def faults_of(path: Path) -> Iterator[str]:
    """Yield what is wrong with a file: where it is damaged or cut off, and responses whose digest does not hold."""
    end = 0
    for offset, record in records_of(path):
        end = record.end
        digest = record.fields.get("WARC-Payload-Digest")
        if record.kind == "response" and digest != digest_of(record.block.partition(b"\r\n\r\n")[2]):
            yield f"{path.name}: the digest of {record.url}, at byte {offset:,}, does not hold"
    size = path.stat().st_size
    if end != size:
        yield f"{path.name}: damaged, or cut off, behind byte {end:,} of {size:,}"
