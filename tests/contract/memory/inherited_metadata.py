"""Inherited metadata in the memory store, see `state.inherited_metadata`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from crawlspace.model import UrlState
from crawlspace.state.changes import Change, Effects
from crawlspace.state.inherited_metadata import (
    InheritingUrl,
    MetadataChanges,
    StoredDocument,
    dropped,
    metadata_changes,
    recorded_pages,
)

_Value = TypeVar("_Value")


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
        self._sources: dict[int, int] = {}
        """The source page by URL."""
        self._marks: dict[int, int] = {}
        self._fields: dict[int, Mapping[str, str]] = {}
        """Of the last document, by id."""

    def settle(self, keys: Mapping[int, int], changes: Sequence[Change], effects: Effects, *, now: int) -> None:
        """Update inherited metadata after changes; `keys` are those of the URLs as they were, by id."""
        self._fields.update((change.state.id, dict(change.document.fields)) for change in changes if change.document is not None)
        pages = recorded_pages(changes, keys)
        found = metadata_changes(pages, self, now=now)
        self._write(found)
        found.add_to(effects)
        for page in pages:
            if page.forgotten:
                for kept in (self._link_metadata, self._sources, self._marks, self._fields):
                    kept.pop(page.id, None)

    def drop(self) -> None:
        urls = [self._inheriting(row) for row in self._rows.values()]
        self._write(dropped(urls, {id: row.status for id, row in self._rows.items()}, self))

    # StoredMetadata
    def link_metadata(self, pages: Collection[int]) -> Mapping[int, str]:
        return {id: self._link_metadata[id] for id in pages if id in self._link_metadata}

    def links(self, pages: Collection[int]) -> Mapping[int, Sequence[int]]:
        return {id: self._links.get(id, ()) for id in pages}

    def inherited(self, ids: Collection[int]) -> Mapping[int, str | None]:
        return {id: self._rows[id].inherited for id in ids if id in self._rows}

    def with_source(self, pages: Collection[int]) -> Iterable[InheritingUrl]:
        return [self._inheriting(self._rows[id]) for id, page in self._sources.items() if page in pages and id in self._rows]

    def without_source(self, keys: Collection[int]) -> Iterable[InheritingUrl]:
        found = (row for key in keys for row in self._with_key(key))
        return [self._inheriting(row) for row in found if row.id not in self._sources]

    def documents(self, ids: Collection[int]) -> Iterator[StoredDocument]:
        for id in ids:
            yield StoredDocument(self._rows[id], self._fields.get(id, {}), self._marks.get(id))

    def _inheriting(self, row: UrlState) -> InheritingUrl:
        return InheritingUrl(row.id, row.key, row.inherited, self._sources.get(row.id))

    def _write(self, changes: MetadataChanges) -> None:
        for page, metadata in changes.link_metadata.items():
            _put(self._link_metadata, page, metadata)
        for id, (_, url) in changes.inherited.items():
            self._rows[id].inherited = url.inherited
            _put(self._sources, id, url.source_page)
        for due in changes.due:
            self._rows[due.state.id].next_fetch = due.at
            if due.mark is not None:
                self._marks[due.state.id] = due.mark


def _put(values: dict[int, _Value], id: int, value: _Value | None) -> None:
    if value is None:
        values.pop(id, None)
    else:
        values[id] = value
