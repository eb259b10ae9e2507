"""The names of the streams in a compound file (MS-CFB), Microsoft's container before zip: they show the type of the file.

Only the directory is read. Encrypted OOXML files are such a container, too (MS-OFFCRYPTO, 2.3.4).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

_SIGNATURE = bytes.fromhex("d0cf11e0a1b11ae1")
_ENTRY = 128
_MOST_SECTORS = 1_000
"""Sectors of a directory that are read: at least 4,000 names."""
_LAST = 0xFFFFFFFA


def is_compound(start: bytes) -> bool:
    """Return whether a file begins as a compound file."""
    return start.startswith(_SIGNATURE)


def stream_names(file: BinaryIO) -> set[str]:
    """Return the names in the directory; of a damaged file, those that can be read."""
    file.seek(0)
    header = file.read(512)
    if len(header) < 512 or not is_compound(header):
        return set()
    shift = struct.unpack_from("<H", header, 30)[0]
    if shift not in (9, 12):
        return set()
    names: set[str] = set()
    for sector in _directory(file, header, 1 << shift):
        for at in range(0, len(sector) - _ENTRY + 1, _ENTRY):
            length = min(64, struct.unpack_from("<H", sector, at + 64)[0])
            names.add(sector[at : at + max(0, length - 2)].decode("utf-16-le", "replace"))
    return names


def _directory(file: BinaryIO, header: bytes, size: int) -> Iterator[bytes]:
    """Yield the sectors of the directory, along their chain in the allocation table."""
    tables = struct.unpack_from("<109I", header, 76)
    sector = struct.unpack_from("<I", header, 48)[0]
    for _ in range(_MOST_SECTORS):
        if sector >= _LAST:
            return
        content = _read(file, sector, size)
        if len(content) < size:
            return
        yield content
        table, within = divmod(sector, size // 4)
        if table >= len(tables) or tables[table] >= _LAST:
            return
        following = _read(file, tables[table], size)[within * 4 : within * 4 + 4]
        if len(following) < 4:
            return
        sector = struct.unpack("<I", following)[0]


def _read(file: BinaryIO, sector: int, size: int) -> bytes:
    file.seek((sector + 1) * size)
    return file.read(size)
