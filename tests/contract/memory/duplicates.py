"""The documents of the memory store: the representative of each group, and the orders for the index when it changes.

All groups are computed from all rows after every change, so that nothing can be missed here that SQLite has to update.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from crawlspace.document import Document, Part
from crawlspace.model import Held, UrlState
from crawlspace.simhash import bands, distance, probes
from crawlspace.state.changes import Change, Effects
from crawlspace.state.duplicates import (
    NO_MEMBERS,
    NO_PAGE,
    GroupRanking,
    Settlement,
    canonical_page,
    held_checksum,
    host_of,
    rank_members,
    settle,
    stays_in_index,
    stored_checksum,
)
from crawlspace.state.near_duplicates import MOST_IN_BAND, MOST_NEAR, NearPage, joined_text, leading_text, regroup
from tests.contract.memory.outbox import MemoryOutbox

_Texts = tuple[str, str, list[Part]]
"""Text, Markdown and parts of a document."""


@dataclass(slots=True)
class Before:
    """The URLs that a transaction concerns as they were before it, and the changes of their documents so far."""

    urls: dict[int, str] = field(default_factory=dict)
    documents: dict[int, Document] = field(default_factory=dict)
    new_texts: dict[int, _Texts] = field(default_factory=dict)
    """The texts of new documents by id, with their Markdown and parts."""
    taken_back: set[int] = field(default_factory=set)
    """Ids of URLs that had left a document in the index, and about which this collection decides again."""
    left_group: set[int] = field(default_factory=set)
    """Ids of URLs that leave their groups because their deletion is held and their page is no document any more."""


class MemoryNearGroups:
    """Near duplicates: see `NearGroups`. Everything is looked for among all rows."""

    def __init__(
        self, rows: Mapping[int, UrlState], with_key: Callable[[int], Iterable[UrlState]], epoch: Callable[[], int]
    ) -> None:
        self.epoch = epoch
        self._rows = rows
        self._with_key = with_key
        self.leading_texts: dict[bytes, bytes] = {}
        self._places: dict[bytes, set[int]] = {}
        """By leading text, the bands by which it is found."""
        self.groups: dict[int, bytes] = {}
        """By id of a page, the group that has its text as a near duplicate."""
        self.representatives: dict[bytes, int | None] = {}
        """By group, before the transaction, or chosen since."""
        self._texts: dict[int, bytes] = {}
        """By the same ids, their texts."""

    def canonical_of(self, row: UrlState) -> UrlState | None:
        """Return the page of which a URL is an alternate."""
        return None if row.canonical is None else canonical_page(self._with_key(row.canonical))

    def group(self, row: UrlState) -> bytes:
        assert row.checksum is not None
        return self.groups.get(row.id, row.checksum)

    def drop_changed(self) -> None:
        """Drop pages that have another text by now, or no signature, or are alternates of a canonical page."""
        for id, text in list(self._texts.items()):
            row = self._rows.get(id)
            if row is None or row.checksum != text or row.simhash is None or self.canonical_of(row) is not None:
                del self._texts[id], self.groups[id]

    def _pages(self) -> list[UrlState]:
        return [row for row in self._rows.values() if row.checksum is not None and self.canonical_of(row) is None]

    def _members(self, group: bytes) -> list[UrlState]:
        rows = [row for row in self._rows.values() if row.checksum is not None]
        return [row for row in rows if self.group(self.canonical_of(row) or row) == group]

    def _page(self, row: UrlState, group: bytes) -> NearPage:
        assert row.checksum is not None
        named = any(other.canonical == row.key for other in self._members(group))
        return NearPage(row.id, row.checksum, row.simhash, named, row.rank, host_of(row.site))

    def signature(self, text: bytes) -> bytes | None:
        return self.leading_texts.get(text)

    def leading(self, signature: bytes, within: int) -> Iterable[tuple[int, bytes]]:
        wanted = set(probes(signature, within))
        for text, other in self.leading_texts.items():
            apart, places = distance(signature, other), self._places[text]
            if apart <= within and (len(places) == len(bands(other)) or not wanted.isdisjoint(places)):
                yield apart, text

    def is_full(self, group: bytes) -> bool:
        return len(self.near_pages(group)) >= MOST_NEAR

    def lead(self, text: bytes, signature: bytes | None) -> None:
        self.leading_texts.pop(text, None)
        self._places.pop(text, None)
        if signature is not None:
            self.leading_texts[text] = signature
            taken = Counter(place for places in self._places.values() for place in places)
            self._places[text] = {band for band in bands(signature) if taken[band] < MOST_IN_BAND}

    def group_of(self, text: bytes) -> bytes | None:
        return next((self.groups[id] for id, own in self._texts.items() if own == text), None)

    def page(self, id: int) -> tuple[bytes, NearPage] | None:
        row = self._rows.get(id)
        if row is None or row.checksum is None or self.canonical_of(row) is not None:
            return None
        return self.group(row), self._page(row, self.group(row))

    def near_pages(self, group: bytes) -> list[NearPage]:
        return [self._page(self._rows[id], group) for id, of in self.groups.items() if of == group]

    def host_before(self, group: bytes, near: Iterable[NearPage]) -> str | None:
        before = self.representatives.get(group)
        pages = {row.id: row for row in self._pages() if self.group(row) == group}
        return None if before is None or before not in pages else host_of(pages[before].site)

    def first_of_host(self, group: bytes, host: str | None) -> NearPage | None:
        pages = [self._page(row, group) for row in self._pages() if row.checksum == self.group(row) == group]
        found = [page for page in pages if host in (None, page.host)]
        return min(found, key=lambda page: (not page.named, page.rank, page.id), default=None)

    def has_many(self, group: bytes, most: int) -> bool:
        return sum(row.checksum == self.group(row) == group for row in self._pages()) > most

    def choose(self, group: bytes, page: NearPage) -> None:
        self.representatives[group] = page.id

    def move(self, text: bytes, group: bytes, into: bytes) -> None:
        for row in self._pages():
            if row.checksum == text and self.group(row) == group:
                self.groups.pop(row.id, None)
                self._texts.pop(row.id, None)
                if into != text:
                    self.groups[row.id], self._texts[row.id] = into, text


class MemoryDuplicates:
    """`rows` are the store's own by id, `with_key` finds those with a key."""

    def __init__(
        self,
        rows: Mapping[int, UrlState],
        with_key: Callable[[int], Iterable[UrlState]],
        *,
        outbox: MemoryOutbox,
        within: Callable[[], int],
        epoch: Callable[[], int],
    ) -> None:
        self._rows = rows
        self._with_key = with_key
        self._outbox = outbox
        self._within = within
        self._near = MemoryNearGroups(rows, with_key, epoch)
        self._group: dict[int, bytes] = {}
        self._rankings: dict[bytes, GroupRanking] = {}
        self._documents: dict[int, Document] = {}
        self._texts: dict[bytes, _Texts] = {}
        self._left: set[int] = set()
        """URLs that left the collection and not the index."""

    @property
    def indexed(self) -> int:
        return len(self._rankings)

    def ranking_of_group(self, row: UrlState) -> GroupRanking:
        """Return the ranking of the group of a URL; one without a document has no representative."""
        return NO_MEMBERS if row.checksum is None else self._before(row.id)

    def is_indexed(self, row: UrlState) -> bool:
        return self.ranking_of_group(row).representative == row.id

    def has_left(self, id: int) -> bool:
        """Whether a URL has left the collection and not the index."""
        return id in self._left

    def is_in_index(self, row: UrlState) -> bool:
        """Whether the index has a document of a URL, also if it was left there for another collection."""
        return row.id in self._left or self.is_indexed(row)

    def has_other(self, checksum: bytes, id: int) -> bool:
        """Whether another URL has a document with this checksum, in the group of that name."""
        now = self._rankings.get(checksum, NO_MEMBERS)
        return bool({now.representative, *now.noted} - {None, id})

    def leading_text(self, simhash: bytes) -> bytes | None:
        return leading_text(self._near, simhash, self._within())

    def has_near(self, checksum: bytes, simhash: bytes, id: int) -> bool:
        """Whether another URL represents the group that a text would join."""
        group, _ = self._near.page(id) or (checksum, None)
        pages = [*self._near.near_pages(group), self._near.first_of_host(group, None)]
        is_alone = not self._near.has_many(group, 1) and {one.id for one in pages if one is not None} <= {id}
        text = joined_text(self._near, checksum, simhash, self._within(), left=group if is_alone and group != checksum else None)
        return text is not None and self._rankings[text].representative != id

    def document(self, id: int) -> Document | None:
        """What is pushed for a URL, as it is now."""
        row = self._rows[id]
        stored = self._documents.get(id)
        if stored is None or row.checksum is None or row.checksum not in self._texts:
            return None
        text, markdown, parts = self._texts[row.checksum]
        return replace(_copy_of(stored), url=row.url, text=text, markdown=markdown, parts=parts, duplicates=self._noted(row))

    def archived(self, id: int) -> int | None:
        """The place of the document of a URL in the archive."""
        row = self._rows.get(id)
        return None if row is None or row.checksum is None else row.archived

    def before(self, rows: Iterable[UrlState]) -> Before:
        before = Before()
        for row in rows:
            before.urls[row.id] = row.url
            document = self.document(row.id) if self._outbox.has(row.url) else None
            if document is not None:
                before.documents[row.id] = document
        return before

    def change(self, old: UrlState, change: Change, before: Before) -> dict[str, object]:
        """Take the document that a change brings, or drop the one that it takes out; return the row's fields that follow."""
        checksum, canonical = None if change.forget else change.state.checksum, change.state.canonical
        held, simhash = change.state.held, change.state.simhash
        if checksum is not None and change.document is None:
            checksum, canonical, simhash = old.checksum, old.canonical, old.simhash
        group_checksum = stored_checksum(
            change.state,
            checksum,
            indexed=self._before(old.id).representative == old.id,
            new=change.document is not None,
        )
        if group_checksum != checksum:
            checksum, canonical = group_checksum, NO_PAGE
            if group_checksum is not None:
                before.left_group.add(old.id)
            elif held is Held.MANY:
                held = None  # a duplicate: it has nothing in the index
        elif checksum == held_checksum(old.id):
            canonical = NO_PAGE
        if checksum is None:
            self._part(old, change, before)
            self._documents.pop(old.id, None)
            before.new_texts.pop(old.id, None)
        elif change.document is not None:
            document = change.document
            self._documents[old.id] = replace(_copy_of(document), text="", markdown="", parts=[])
            before.new_texts[old.id] = document.text, document.markdown, list(document.parts)
        if checksum is None or checksum == held_checksum(old.id):
            simhash = None
        return {"checksum": checksum, "canonical": canonical, "simhash": simhash, "held": held}

    def settle(self, before: Before, effects: Effects) -> None:
        """Compute the groups and give the orders that follow."""
        then = self._rankings
        self._regroup()
        now = self._rankings
        checksums = then.keys() | now.keys()
        pushes, deletes, _ = settle(
            {checksum: then.get(checksum, NO_MEMBERS) for checksum in checksums},
            {checksum: now.get(checksum, NO_MEMBERS) for checksum in checksums},
            before.new_texts.keys(),
        )
        before.taken_back |= {id for id in self._left if self._rows[id].checksum is not None}
        self._left -= before.taken_back
        wins = {group.representative for group in now.values()}
        displaced = sum(id in self._rows and self._rows[id].checksum is not None for id in set(deletes) - self._left)
        deletes = sorted((set(deletes) - self._left) | (before.taken_back - wins))
        self._keep_texts(before.new_texts)
        pushes = [
            id for id in pushes if self._rows[id].checksum in self._texts
        ]  # a held document that has left its group stays in the index as it is
        for id in (self._left | before.left_group) & before.documents.keys():
            self._outbox.keep(before.urls[id], before.documents[id])
        urls = {id: before.urls[id] if id in before.urls else self._rows[id].url for id in (*pushes, *deletes)}
        self._give(Settlement(pushes, deletes), urls)
        self.drop_texts(pushes)
        effects.pushes, effects.deletes, effects.displaced = len(pushes), len(deletes), displaced

    def push_again(self, documents: Mapping[int, Document | None], *, sink: str | None) -> list[int]:
        """Give push orders for URLs that are in the index; return those of which neither the store nor the caller has the document."""
        able = {id: given for id, given in documents.items() if given is not None or self.document(id) is not None}
        self._give(Settlement(list(able), []), {id: self._rows[id].url for id in able}, sink=sink)
        for id, given in able.items():
            row = self._rows[id]
            if given is not None:
                self._outbox.keep(row.url, replace(_copy_of(given), url=row.url, duplicates=self._noted(row)), sink=sink)
        return [id for id in documents if id not in able]

    def _give(self, settlement: Settlement, urls: Mapping[int, str], *, sink: str | None = None) -> None:
        for id, sequence in self._outbox.give(settlement, urls, sink=sink).items():
            if sink is None and id in self._rows:
                self._rows[id].ordered = sequence

    def drop_texts(self, ids: Iterable[int]) -> None:
        """Remove the texts that are not needed any more: those of pages that are alone in their group and have been sent."""
        for id in ids:
            row = self._rows.get(id)
            if row is None or row.checksum is None or row.canonical is not None or self._outbox.has(row.url):
                continue
            if row.simhash is not None:  # it may get near duplicates, which don't bring its text
                continue
            if sum(other.checksum == row.checksum for other in self._rows.values()) == 1:
                self._texts.pop(row.checksum, None)

    def _noted(self, row: UrlState) -> list[str]:
        return [self._rows[other].url for other in self.ranking_of_group(row).noted]

    def _before(self, id: int) -> GroupRanking:
        """Return the ranking that the group of a URL had when the groups were last computed."""
        return self._rankings[self._group[id]] if id in self._group else NO_MEMBERS

    def _part(self, old: UrlState, change: Change, before: Before) -> None:
        """Note whether the index keeps the document of a URL that has none any more."""
        if old.checksum is not None and change.keep_in_index and not change.forget:
            if self._before(old.id).representative == old.id or old.id in self._left | before.taken_back:
                self._left.add(old.id)
                before.taken_back.discard(old.id)
        elif old.id in self._left and (change.forget or not (change.keep_in_index or stays_in_index(change.state))):
            self._left.discard(old.id)
            before.taken_back.add(old.id)

    def _regroup(self) -> None:
        self._near.representatives = {group: ranking.representative for group, ranking in self._rankings.items()}
        self._near.drop_changed()
        regroup(self._near, list(self._rows), list(self._near.leading_texts), self._within())
        members: defaultdict[bytes, list[UrlState]] = defaultdict(list)
        alternate = set()
        self._group = {}
        for row in self._rows.values():
            if row.checksum is None:
                continue
            page = self._near.canonical_of(row)
            group = self._near.group(row if page is None else page)
            if page is not None or row.id in self._near.groups:
                alternate.add(row.id)
            self._group[row.id] = group
            members[group].append(row)
        self._rankings = {
            group: rank_members(
                rows,
                alternate,
                near=self._near.groups.keys(),
                representative=self._near.representatives.get(group),
            )
            for group, rows in members.items()
        }

    def _keep_texts(self, new: Mapping[int, _Texts]) -> None:
        """Keep one text a checksum: that of the only page, or of the representative where it came; else the first."""
        for id in sorted(new):
            row = self._rows[id]
            is_alone = sum(other.checksum == row.checksum for other in self._rows.values()) == 1
            if row.checksum is not None and (is_alone or self.is_indexed(row) or row.checksum not in self._texts):
                self._texts[row.checksum] = new[id]
        needed = {row.checksum for row in self._rows.values()}
        self._texts = {checksum: text for checksum, text in self._texts.items() if checksum in needed}


def _copy_of(document: Document) -> Document:
    return replace(document, headings=list(document.headings), fields=dict(document.fields), duplicates=[])
