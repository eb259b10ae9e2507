"""Where a record is in an archive: the number of a file and an offset in it, as one integer that the store keeps for each URL."""

from __future__ import annotations

_OFFSET_BITS = 32
LARGEST_FILE = 1 << 31
"""A record begins below this offset: beyond the size at which files are rotated, and within the bits of an offset."""
MOST_FILES = 1 << (53 - _OFFSET_BITS)
"""A place is a number below 2^53, which Lua can hold."""


def place_of(number: int, offset: int) -> int:
    return number << _OFFSET_BITS | offset


def file_and_offset(place: int) -> tuple[int, int]:
    return place >> _OFFSET_BITS, place & ((1 << _OFFSET_BITS) - 1)
