"""How many documents may leave the index at once: an outage or a mistake in a rule file must not empty it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeletionLimit:
    """Too many deletions are more than `percent` of a hundred indexed documents, and more than `count`."""

    percent: int
    count: int

    def most(self, indexed: int) -> int:
        """Return the largest number of deletions that is allowed while so many documents are indexed."""
        return max(self.count, indexed * self.percent // 100)

    def allows(self, deletions: int, *, indexed: int) -> bool:
        """Return whether so many deletions are not too many; `indexed` is the number of documents before them."""
        return deletions <= self.most(indexed)
