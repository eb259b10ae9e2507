"""Documents displaced in a run: a page gets the text of another one, or names another one as canonical.

A site that returns its log-in page for every URL, or names the front page as canonical everywhere, would empty an index. So
displaced documents count as deletions. Whether a document is displaced is certain only when it is recorded; until then it counts
as possible, and the store is queried only near the limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from crawlspace.model import UrlState


class KnownDocuments(Protocol):
    def is_duplicate(self, id: int, *, checksum: bytes, canonical: int | None) -> bool: ...


@dataclass(slots=True)
class _Displaced:
    """The documents of outcomes that are recorded in one transaction."""

    unclear: list[UrlState] = field(default_factory=list)
    """URLs whose documents may be displaced."""
    lost: int = 0
    """Number of others whose documents will be."""
    first: dict[bytes, int] = field(default_factory=dict)
    """By checksum, the id of the first URL with such a document."""
    pages: set[int] = field(default_factory=set)
    """Keys of documents without another canonical page."""

    @property
    def count(self) -> int:
        return self.lost + len(self.unclear)


class Displacements:
    """Displacements not recorded yet: of the batch being collected, and of the one being written."""

    def __init__(self, store: KnownDocuments) -> None:
        self._store = store
        self._gathered = _Displaced()
        self._written = _Displaced()

    def is_beyond(self, state: UrlState, after: UrlState, *, room: int) -> bool:
        """Return whether the URL's document would be displaced beyond `room` displacements, unrecorded ones included.

        `after` is the state after the outcome. If the result is False, the outcome counts as recorded.
        """
        if not state.indexed or (after.checksum, after.canonical) == (state.checksum, state.canonical):
            return False
        if self._count() < room:
            self._gathered.unclear.append(after)
            return False
        lost = self.lost(room=room)
        if not self.is_lost(after):
            return False
        if lost >= room:
            return True
        self._gathered.lost += 1
        return False

    def lost(self, *, room: int) -> int:
        """Return the number of documents that unrecorded outcomes displace: exact if it may be `room` or more."""
        if self._count() >= room:
            for batch in (self._written, self._gathered):
                batch.lost += sum(map(self.is_lost, batch.unclear))
                batch.unclear.clear()
        return self._count()

    def is_lost(self, after: UrlState) -> bool:
        """Return whether another document has the same text, or the page named as canonical has a document."""
        assert after.checksum is not None
        for batch in (self._written, self._gathered):
            if batch.first.get(after.checksum, after.id) != after.id or after.canonical in batch.pages:
                return True
        return self._store.is_duplicate(after.id, checksum=after.checksum, canonical=after.canonical)

    def add(self, after: UrlState) -> None:
        """Add a document that will be recorded."""
        assert after.checksum is not None
        self._gathered.first.setdefault(after.checksum, after.id)
        if after.canonical is None:
            self._gathered.pages.add(after.key)

    def begin(self) -> None:
        """Start writing the collected batch; the store has the one before."""
        self._written, self._gathered = self._gathered, _Displaced()

    def end(self) -> None:
        """End a successful write; the store's counts include it."""
        self._written.unclear.clear()
        self._written.lost = 0

    def give_back(self) -> None:
        """Merge the batch that could not be written into the one being collected."""
        before, after = self._written, self._gathered
        before.unclear += after.unclear
        before.lost += after.lost
        before.first = {**after.first, **before.first}
        before.pages |= after.pages
        self._written, self._gathered = _Displaced(), before

    def _count(self) -> int:
        return self._written.count + self._gathered.count
