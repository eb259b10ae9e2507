"""The last ten fetches of a URL, in 47 bytes at most: when, the status code, how long it took, and whether the document was new.

Each has two bytes: ten bits are the status code, four the time that it took, and two what became of the document. The newest comes first,
and its time is `UrlState.fetched_at`; before each of the others are three bytes, the seconds between it and the next newer one: four bits of
exponent and twenty of mantissa, so that the times of a month are right within seconds.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from crawlspace.model import UrlState

MOST = 10
"""Fetches."""
_ENTRY = struct.Struct("<BHH")
_MANTISSA_BITS = 20
_LONGEST_S = ((1 << _MANTISSA_BITS) - 1) << 15
_MOST_BYTES = 2 + (MOST - 1) * _ENTRY.size
_FIRST, _LAST = 100, 999
_LARGE = (2004, 2005, 2006, 3020, 3021)
"""Codes beyond _LAST. Their places are stored: new ones come last."""
_NUMBERS = {
    **{code: code - _FIRST + 1 for code in range(_FIRST, _LAST + 1)},
    **{code: _LAST - _FIRST + 2 + place for place, code in enumerate(_LARGE)},
}
_CODES = {number: code for code, number in _NUMBERS.items()}
_SHORTEST_S = 0.016
_CLASSES = 15
"""Of durations; 0: unknown. The first one is below _SHORTEST_S, each further one is up to twice as long."""


class DocumentChange(IntEnum):
    """What a fetch showed of the document. The numbers are stored."""

    NONE = 0
    """There is no document, or it is not known."""
    NEW = 1
    CHANGED = 2
    UNCHANGED = 3

    @property
    def label(self) -> str:
        return self.name.lower()


class PastFetch(NamedTuple):
    """One fetch of a URL. `took_s` is right within a factor of 1.5, None if unknown."""

    at: int
    status: int | None
    took_s: float | None
    change: DocumentChange


def history_after(state: UrlState, *, now: int, status: int, took_s: float | None, change: DocumentChange) -> bytes:
    """Return the history with one more fetch; `state` is that of the URL before it."""
    newest = (_NUMBERS.get(status, 0) << 6 | _class_of(took_s) << 2 | change).to_bytes(2, "little")
    if state.fetched_at is None:
        return newest
    before = state.history
    if not before:  # fetched by a version that kept none
        before = (_NUMBERS.get(state.status or 0, 0) << 6).to_bytes(2, "little")
    return (newest + _packed_gap(now - state.fetched_at) + before)[:_MOST_BYTES]


def fetches(state: UrlState) -> list[PastFetch]:
    """Return the last fetches of a URL, the newest first. Of a history that cannot be read, only what else is known."""
    if state.fetched_at is None:
        return []
    history = state.history or b""
    if len(history) % _ENTRY.size != 2:
        return [PastFetch(state.fetched_at, state.status, None, DocumentChange.NONE)]
    at = state.fetched_at
    found = [_fetch(at, int.from_bytes(history[:2], "little"))]
    for low, high, packed in _ENTRY.iter_unpack(history[2:]):
        gap = low | high << 8
        at -= (gap & (1 << _MANTISSA_BITS) - 1) << (gap >> _MANTISSA_BITS)
        found.append(_fetch(at, packed))
    return found


def _packed_gap(seconds: int) -> bytes:
    seconds = max(0, min(seconds, _LONGEST_S))  # the clock may have been set back
    exponent = max(0, seconds.bit_length() - _MANTISSA_BITS)
    return (exponent << _MANTISSA_BITS | seconds >> exponent).to_bytes(3, "little")


def _class_of(took_s: float | None) -> int:
    if took_s is None:
        return 0
    return min(_CLASSES, 1 + int(took_s / _SHORTEST_S).bit_length())


def _fetch(at: int, packed: int) -> PastFetch:
    number = packed >> 2 & 15
    took_s = None if not number else round(_SHORTEST_S * 2 ** (number - 1.5), 3)
    return PastFetch(at, _CODES.get(packed >> 6), took_s, DocumentChange(packed & 3))
