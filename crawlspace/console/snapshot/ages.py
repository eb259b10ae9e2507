"""How old the documents in an index are: a histogram of the times since their pages were fetched."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

_HOUR, _DAY = 3_600, 86_400
AGES: Sequence[tuple[int, str]] = (
    (_HOUR, "under 1 h"),
    (_DAY, "1–24 h"),
    (7 * _DAY, "1–7 days"),
    (28 * _DAY, "1–4 weeks"),
    (91 * _DAY, "1–3 mo."),
    (365 * _DAY, "3–12 mo."),
)
"""The upper bounds of the groups in seconds, and how they are called."""
LABELS = (*(label for _, label in AGES), "over 1 y.")
_BOUNDS = [bound for bound, _ in AGES]


class DocumentAges:
    """Counts documents by age."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._counts = [0] * len(LABELS)

    def add(self, fetched_at: int | None) -> None:
        """Count a document; one that was imported and not fetched yet is left out."""
        if fetched_at is not None:
            self._counts[bisect_right(_BOUNDS, self._now - fetched_at)] += 1

    def written(self) -> str:
        return " ".join(map(str, self._counts))


def read_ages(text: str) -> list[tuple[str, int]]:
    """Return the groups with their numbers, of what `written` gave; none where it gave nothing."""
    return list(zip(LABELS, map(int, text.split()), strict=False))
