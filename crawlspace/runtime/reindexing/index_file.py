"""The file of the embedded index before and after a reindex."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from crawlspace import private_files
from crawlspace.admin.reindex import IndexState
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.sinks.repair import Resending
from crawlspace.errors import StoreError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.runtime.command import refuse_index_elsewhere

if TYPE_CHECKING:
    from crawlspace.admin.reindex import Reindexed
    from crawlspace.runtime.command import Place
    from crawlspace.runtime.stores.places import OpenStore


def prepare_index(place: Place, opened: OpenStore) -> IndexState:
    """Make the file of the index if it is missing, and return what is in it.

    Raises StoreError for an index on another machine, and where the file is missing while the collection is crawled: the crawl writes to
    the lost one.
    """
    refuse_index_elsewhere(place, opened)
    _make_file(place, opened)
    with closing(EmbeddedIndex(place.index_file, owner=place.name)) as index:
        mark = index.mark()
        return IndexState(0 if mark is None else mark.batch, index.count_pushed())


def note_sent_again(place: Place, opened: OpenStore, done: Reindexed, *, now: int) -> None:
    """Note that the index was sent all documents, unless a crawl is sending them."""
    if opened.crawlers():
        return
    all_taken = not (done.fetched or done.left or opened.store.parked(EMBEDDED))
    with closing(EmbeddedIndex(place.index_file, owner=place.name)) as index:
        Resending(opened.store, index, owner=place.name, now=now).sent_again(all_taken=all_taken)


def _make_file(place: Place, opened: OpenStore) -> None:
    if place.index_file.exists():
        return
    if opened.crawlers():
        raise StoreError(
            f"there is no index at {place.index_file} any more, and {place.name} is being crawled: stop the crawl first"
        )
    try:
        private_files.make_folder(place.index_file.parent)
    except OSError as error:
        raise StoreError(f"{place.index_file.parent} cannot be made: {error.strerror}") from error
    private_files.make_file(place.index_file)
