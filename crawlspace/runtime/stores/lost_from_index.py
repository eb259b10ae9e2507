"""Which documents of a collection its index has lost, and what else commands show of what it has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from crawlspace.errors import CrawlspaceError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.places import index_place

if TYPE_CHECKING:
    from crawlspace.runtime.command import Place
    from crawlspace.runtime.stores.places import OpenStore


class LostFromIndex:
    """What an index has lost. Without an index that can be read here, nothing is known to be lost."""

    def __init__(self, index: EmbeddedIndex | None = None) -> None:
        self._index = index
        self.count = 0 if index is None else index.count_lost()

    def is_lost(self, url: str) -> bool:
        return self._index is not None and self.count > 0 and self._index.is_lost(url)

    def text_status(self, url: str) -> str:
        """Return why the file of a URL has no text; empty where that is not known."""
        document = None if self._index is None else self._index.get(url)
        return "" if document is None else document.fields.get("text_status", "")


@contextmanager
def lost_documents(place: Place, opened: OpenStore) -> Iterator[LostFromIndex]:
    """Open the index of a collection, if it is on this machine."""
    there = opened.index_place()
    with ExitStack() as stack:
        found = LostFromIndex()
        if place.index_file.exists() and there in ("", index_place(place.index_file)):
            try:
                index = stack.enter_context(closing(EmbeddedIndex(place.index_file, read_only=True, owner=place.name)))
                found = LostFromIndex(index)
            except CrawlspaceError:
                pass  # `status` reports it
        yield found
