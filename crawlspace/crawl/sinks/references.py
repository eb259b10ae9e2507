"""Where in the archive the documents of orders are, and which documents are sent without their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from crawlspace.archive.places import file_and_offset
from crawlspace.config.content_references import ReferenceSettings
from crawlspace.config.sinks import EMBEDDED
from crawlspace.index.by_reference import by_reference
from crawlspace.model import IndexOrder


class NumberedFiles(Protocol):
    """The files of an archive, by number."""

    def archive_files(self) -> dict[int, str]: ...


class ArchiveReferences:
    """The documents of a collection in its archive. Raises StoreError."""

    def __init__(self, store: NumberedFiles, settings: ReferenceSettings) -> None:
        self._store = store
        self._settings = settings
        self._files: dict[int, str] = {}

    def of(self, orders: Sequence[IndexOrder]) -> tuple[IndexOrder, ...]:
        """Return the orders with where their documents are, and those of documents that are too large without the text."""
        return tuple(map(self._of, orders))

    def _of(self, order: IndexOrder) -> IndexOrder:
        if order.document is None or order.archived is None:
            return order
        number, offset = file_and_offset(order.archived)
        if number not in self._files:
            self._files = self._store.archive_files()
        name = self._files.get(number)
        if name is None:
            return order
        known = replace(order, content_place=f"{name}:{offset}", content_url=self._settings.url_of(order.url))
        return (by_reference(known) or known) if self._settings.is_too_large(order.document.text) else known


def references_of(store: NumberedFiles, sink: str, settings: ReferenceSettings) -> ArchiveReferences | None:
    """Return what the documents for a sink are referred to with; None for one that gets all whole."""
    return ArchiveReferences(store, settings) if settings.is_archived and sink != EMBEDDED else None
