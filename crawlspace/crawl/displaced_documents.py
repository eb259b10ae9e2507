"""Documents that a run loses although their pages are there: a page gets the text of another one, or names it as canonical.

A site that answers every address with its log-in page, or a template that names the front page as canonical everywhere, would empty
an index in this way. So they count as deletions. Whether a page loses its document is known for sure only when it is recorded; until
then it is counted as one that may, and the store is asked only where the limit is near.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from crawlspace.model import UrlState


class KnownDocuments(Protocol):
    def is_duplicate(self, id: int, *, checksum: bytes, canonical: int | None) -> bool: ...


@dataclass(slots=True)
class _Batch:
    """What is known of outcomes that are recorded in one transaction."""

    unclear: list[UrlState] = field(default_factory=list)
    """They may lose their documents."""
    lost: int = 0
    """So many others will."""
    first: dict[bytes, int] = field(default_factory=dict)
    """By checksum, the first URL with such a document."""
    pages: set[int] = field(default_factory=set)
    """Keys of documents that name no other page as canonical."""

    @property
    def count(self) -> int:
        return self.lost + len(self.unclear)


class Displacements:
    """What has been decided and is not recorded yet: the batch that is gathered, and the one that is being written."""

    def __init__(self, store: KnownDocuments) -> None:
        self._store = store
        self._gathered = _Batch()
        self._written = _Batch()

    def is_beyond(self, state: UrlState, after: UrlState, *, room: int) -> bool:
        """Whether a URL would lose its document although no more than `room` may be lost, those included that are not recorded yet.

        `after` is what an outcome would make of it. Where it is not beyond, it counts as recorded.
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
        """Return how many documents will be lost by what is not recorded yet: exactly where that may be `room` or more."""
        if self._count() >= room:
            for batch in (self._written, self._gathered):
                batch.lost += sum(map(self.is_lost, batch.unclear))
                batch.unclear.clear()
        return self._count()

    def is_lost(self, after: UrlState) -> bool:
        """Whether another document has the same text, or the page that it names as canonical has one."""
        assert after.checksum is not None
        for batch in (self._written, self._gathered):
            if batch.first.get(after.checksum, after.id) != after.id or after.canonical in batch.pages:
                return True
        return self._store.is_duplicate(after.id, checksum=after.checksum, canonical=after.canonical)

    def add(self, after: UrlState) -> None:
        """Note a document that is going to be recorded."""
        assert after.checksum is not None
        self._gathered.first.setdefault(after.checksum, after.id)
        if after.canonical is None:
            self._gathered.pages.add(after.key)

    def begin(self) -> None:
        """What has been gathered is being written; what was before is recorded, and the store knows it."""
        self._written, self._gathered = self._gathered, _Batch()

    def end(self) -> None:
        """What was being written is recorded, and counted by what the store has found."""
        self._written.unclear.clear()
        self._written.lost = 0

    def give_back(self) -> None:
        """What was being written could not be; it is written with what is gathered."""
        before, after = self._written, self._gathered
        before.unclear += after.unclear
        before.lost += after.lost
        before.first = {**after.first, **before.first}
        before.pages |= after.pages
        self._written, self._gathered = _Batch(), before

    def _count(self) -> int:
        return self._written.count + self._gathered.count
