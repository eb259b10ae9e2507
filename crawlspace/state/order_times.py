"""When orders for the index were given: the outbox numbers them, and notes for those of a minute by when they had been given.

The notes are a value by name of the store. When there are too many, two of the older half become one each, so that they take little space
however long an order waits. `outbox.note_time` in `redis/lua/outbox.lua` does the same.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

import msgspec

ORDER_TIMES = "order_times"
"""Meta: the notes, a JSON list of pairs: the number of the first order, and the time by which it and the following ones had been given, in
seconds since 1970."""
EVERY_S = 60
MOST = 200

_decode = msgspec.json.Decoder(list[tuple[int, int]]).decode


def noted(value: str | None, number: int, now: int) -> str | None:
    """Return the notes with one for an order that is given now; None if the last one holds for it."""
    notes = _read(value)
    if notes and 0 < notes[-1][1] - now <= EVERY_S:
        return None
    notes.append((number, now + EVERY_S))
    if len(notes) > MOST:
        older = notes[: MOST // 2]
        notes[: MOST // 2] = [(first[0], second[1]) for first, second in zip(older[::2], older[1::2], strict=True)]
    return msgspec.json.encode(notes).decode()


def given_by(value: str | None, number: int) -> int | None:
    """Return a time by which an order had been given; None if nothing is known."""
    notes = _read(value)
    return notes[max(0, bisect_right(notes, number, key=lambda note: note[0]) - 1)][1] if notes else None


def _read(value: str | None) -> list[tuple[int, int]]:
    """Return the notes; none where they are not in order, as after damage."""
    try:
        notes = _decode(value or "[]")
    except (msgspec.MsgspecError, RecursionError):
        return []
    return notes if all(one[0] < other[0] for one, other in pairwise(notes)) else []
