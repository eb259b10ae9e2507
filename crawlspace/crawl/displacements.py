"""Documents that outcomes of this run displace: another page represents their group from then on.

A page gets the text of another one, or nearly so, or names another one as canonical. Such documents count as deletions. Whether one is displaced
is certain only when it is recorded; until then it counts as possible, and the store is queried only near the deletion limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from crawlspace.model import UrlState
from crawlspace.simhash import in_epoch, is_near
from crawlspace.state.near_duplicates import NEAR_EPOCH_META, NEAR_META
from crawlspace.state.store import Store


@dataclass(slots=True)
class _Displaced:
    """The documents of outcomes that are recorded in one transaction."""

    unclear: list[UrlState] = field(default_factory=list)
    """URLs whose documents are possibly displaced."""
    lost: int = 0
    """Number of other URLs whose documents are certainly displaced."""
    documents: dict[bytes, dict[int | None, int]] = field(default_factory=dict)
    """By checksum and the key of the page named as canonical, in order of arrival, the id of the first URL with such a document."""
    signatures: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    """Ids, checksums and signatures of the texts of documents that may have near duplicates."""
    pages: set[int] = field(default_factory=set)
    """Keys of documents without another canonical page."""

    @property
    def count(self) -> int:
        return self.lost + len(self.unclear)


class Displacements:
    """Displacements not recorded yet: of the batch being collected, and of the one being written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._within = int(store.get_meta(NEAR_META) or 0)
        self._epoch = int(store.get_meta(NEAR_EPOCH_META) or 0)
        self._gathered = _Displaced()
        self._written = _Displaced()

    def in_epoch(self, simhash: bytes | None) -> bytes | None:
        """Return the signature of a page as it is recorded: it differs from one that was recorded before the setting changed."""
        return None if simhash is None else in_epoch(simhash, self._epoch)

    def is_beyond(self, state: UrlState, after: UrlState, *, room: int) -> bool:
        """Return whether the URL's document would be displaced beyond `room` displacements, unrecorded ones included.

        `after` is the state after the outcome. If the result is False, the outcome counts as recorded.
        """
        if not state.indexed or not has_other_standing(state, after):
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
            for canonical, id in batch.documents.get(after.checksum, {}).items():
                if id == after.id:
                    break  # the documents after it are lost to it
                if canonical is None or not self._has_document(canonical):
                    return True
            if after.canonical in batch.pages:
                return True
        if any(id != after.id for id, _ in self._near(after.simhash)):
            return True
        simhash = after.simhash if self._within else None
        return self._store.is_duplicate(after.id, checksum=after.checksum, canonical=after.canonical, simhash=simhash)

    def shared_text(self, checksum: bytes, simhash: bytes | None) -> bytes:
        """Return the checksum of the text whose near duplicate a new text is; its own if there is none."""
        first = next((text for _, text in self._near(simhash)), None)
        if first is None and simhash is not None and self._within:
            first = self._store.leading_text(simhash)
        return first or checksum

    def _near(self, simhash: bytes | None) -> Iterator[tuple[int, bytes]]:
        """Yield ids and checksums of the documents not recorded yet whose texts are near."""
        if simhash is None or not self._within:
            return
        for batch in (self._written, self._gathered):
            for id, checksum, other in batch.signatures:
                if is_near(simhash, other, self._within):
                    yield id, checksum

    def add(self, after: UrlState) -> None:
        """Add a document that will be recorded."""
        assert after.checksum is not None
        self._gathered.documents.setdefault(after.checksum, {}).setdefault(after.canonical, after.id)
        if after.canonical is None:
            self._gathered.pages.add(after.key)
        if after.simhash is not None:
            self._gathered.signatures.append((after.id, after.checksum, after.simhash))

    def begin(self) -> None:
        """Start writing the collected batch; the store has the one before."""
        self._written, self._gathered = self._gathered, _Displaced()

    def end(self) -> None:
        """End a successful write; the store's counts include it."""
        self._written.unclear.clear()
        self._written.lost = 0

    def merge_back(self) -> None:
        """Merge the batch that could not be written into the one being collected."""
        before, after = self._written, self._gathered
        before.unclear += after.unclear
        before.lost += after.lost
        for checksum, first in after.documents.items():
            earlier = before.documents.get(checksum, {})
            before.documents[checksum] = {**earlier, **first, **earlier}
        before.pages |= after.pages
        before.signatures += after.signatures
        self._written, self._gathered = _Displaced(), before

    def _has_document(self, page: int) -> bool:
        """Return whether the page of a key has a document and names no other page, so that pages that name it have none."""
        if any(page in batch.pages for batch in (self._written, self._gathered)):
            return True
        return self._store.is_duplicate(0, checksum=b"", canonical=page)

    def _count(self) -> int:
        return self._written.count + self._gathered.count


def has_other_standing(state: UrlState, after: UrlState) -> bool:
    """Return whether a document may be in another group than before."""
    return (after.checksum, after.canonical, after.simhash) != (state.checksum, state.canonical, state.simhash)
