"""Inherited metadata in the memory store: computed from all rows after every change; see `state.inherited_metadata`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from crawlspace.model import OUT_OF_SPACE, State, UrlState
from crawlspace.state.changes import Change, Effects
from crawlspace.state.inherited_metadata import LinkMetadataChange, due_at, link_metadata_change_of, repeats, shows_other


@dataclass(slots=True)
class _PageChange:
    """The combined changes of one page."""

    key: int
    change: LinkMetadataChange | None = None
    repeats: bool = False
    rules: int = 0
    fetched_with: str | None = None
    """What it inherited when it was leased."""


class MemoryInheritance:
    """`rows` are the store's own by id, `with_key` finds those with a key, `links` has the keys that a page links to."""

    def __init__(
        self,
        rows: Mapping[int, UrlState],
        with_key: Callable[[int], Iterable[UrlState]],
        links: Mapping[int, Sequence[int]],
    ) -> None:
        self._rows = rows
        self._with_key = with_key
        self._links = links
        self._link_metadata: dict[int, str] = {}
        self._by: dict[int, int] = {}
        """The source page by URL."""
        self._marks: dict[int, int] = {}
        self._fields: dict[int, Mapping[str, str]] = {}
        """Of the last document, by id."""

    def settle(self, keys: Mapping[int, int], changes: Sequence[Change], effects: Effects, *, now: int) -> None:
        """Update inherited metadata after changes; `keys` are those of the URLs as they were, by id."""
        pages: dict[int, _PageChange] = {}
        gone: set[int] = set()
        for change in changes:
            id = change.state.id
            if id not in keys or id in gone:
                continue
            page = pages.setdefault(id, _PageChange(keys[id]))
            page.change, page.repeats = link_metadata_change_of(change) or page.change, repeats(change)
            page.rules, page.fetched_with = change.state.rules, change.state.inherited
            if change.document is not None:
                self._fields[id] = dict(change.document.fields)
            if change.forget:
                gone.add(id)
        before = {id: row.inherited for id, row in self._rows.items()}
        changed_under: dict[int, int] = {}
        """By URL whose inherited metadata changed the generation of rules of its source page."""
        self._take_back(pages, changed_under)
        self._give(pages, changed_under)
        for id, inherited in before.items():
            if id in pages and pages[id].fetched_with != inherited:
                self._hasten(self._rows[id], pages[id].fetched_with, pages[id].rules, effects, now)
            elif id in changed_under:
                self._hasten(self._rows[id], inherited, changed_under[id], effects, now)
        for id in gone:
            for kept in (self._link_metadata, self._by, self._marks, self._fields):
                kept.pop(id, None)

    def drop(self) -> None:
        """Remove metadata without a source page, and that of pages that the rules exclude."""
        for row in self._rows.values():
            page = self._rows.get(self._by.get(row.id, 0))
            if row.inherited is None or (row.id in self._by and (page is None or page.status not in OUT_OF_SPACE)):
                continue
            row.inherited = None
            self._by.pop(row.id, None)
            if _may_be_hastened(row) and row.fetched_at is not None and row.next_fetch is not None:
                row.next_fetch = min(row.next_fetch, row.fetched_at)

    def _take_back(self, pages: Mapping[int, _PageChange], changed_under: dict[int, int]) -> None:
        for row in self._rows.values():
            page = pages.get(self._by.get(row.id, 0))
            if page is None or page.change is None:
                continue
            link_metadata = page.change.link_metadata if row.key in page.change.links else None
            if link_metadata != row.inherited:
                row.inherited = link_metadata
                changed_under[row.id] = page.rules
            if link_metadata is None:
                del self._by[row.id]

    def _give(self, pages: Mapping[int, _PageChange], changed_under: dict[int, int]) -> None:
        for id, page in pages.items():
            if page.change is not None:
                self._link_metadata.pop(id, None)
                if page.change.link_metadata is not None:
                    self._link_metadata[id] = page.change.link_metadata
            elif not page.repeats:
                continue
            if id not in self._link_metadata:
                continue
            for key in self._links.get(id, ()) if page.change is None else page.change.links:
                for row in self._with_key(key):
                    if key != page.key and row.id not in self._by:
                        if row.inherited != self._link_metadata[id]:
                            row.inherited = self._link_metadata[id]
                            changed_under[row.id] = page.rules
                        self._by[row.id] = id

    def _hasten(self, row: UrlState, before: str | None, rules: int, effects: Effects, now: int) -> None:
        """Make a document due whose inherited metadata changed since it was made, or a redirect that passes it on."""
        if not _may_be_hastened(row) or row.next_fetch is None:
            return
        if row.state is State.REDIRECTED:
            differs = before != row.inherited
        else:
            differs = shows_other(self._fields.get(row.id, {}) if row.checksum is not None else {}, before, row.inherited)
        at, mark = due_at(now, rules, self._marks.get(row.id), row.fetched_at)
        if differs and at < row.next_fetch:
            row.next_fetch = at
            if mark is not None:
                self._marks[row.id] = mark
            effects.due.append((row.site, row.queue, at))


def _may_be_hastened(row: UrlState) -> bool:
    return row.state in (State.DONE, State.REDIRECTED) and row.lease_until is None and row.next_fetch is not None
