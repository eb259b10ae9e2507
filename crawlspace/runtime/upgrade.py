"""Brings what a collection has stored up to date before it is crawled, where an older version has written it, and tells so on stderr.

An index that collections share may not know whose its documents are (see `crawlspace.index.owners`); then all of them are asked.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from crawlspace.admin.url_changes import LiveCount, Stopped
from crawlspace.clock import SystemClock
from crawlspace.config.collection import collection_folder, collection_names, load_collection
from crawlspace.errors import ConfigError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.owners import Has, unsettled
from crawlspace.runtime.command import place_of
from crawlspace.runtime.loader import collection_settings

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlspace.runtime.store_places import StorePlace


def prepare(name: str, own: BaseSettings, project: BaseSettings) -> None:
    """Bring a collection's files up to date. `own` are its settings, `project` those that its settings.py is not laid over yet.

    Raises StoreLocked while somebody crawls who would be in the way, Stopped for Ctrl-C, and what reading settings, rules and files
    raises. Each file is as it was or up to date then.
    """
    place = place_of(name, collection_folder(name, own), own)
    documents = unsettled(place.index_file)
    if not documents and not place.store.is_older():
        return
    load_collection(name, own)  # its mistakes are told before anything is changed
    place.store.bring_up_to_date()
    if documents:
        _settle(place.index_file, documents, {name: place.store, **_sharing(place.index_file, name, project)})


def _sharing(index_file: Path, name: str, project: BaseSettings) -> dict[str, StorePlace]:
    """Return where the stores are of the other collections that have the same index, by name."""
    found = {}
    for other in collection_names(str(project["CRAWLSPACE_COLLECTIONS_DIR"])):
        if other == name:
            continue
        try:
            settings = collection_settings(project, other)
        except ConfigError as error:
            raise ConfigError(
                f"before anything is crawled into {index_file}, all collections that share it are asked whose its documents are, but the"
                f" settings of {other} cannot be read: {error}"
            ) from error
        there = place_of(other, collection_folder(other, project), settings)
        if there.index_file.resolve() == index_file.resolve():
            found[other] = there.store
    return found


def _settle(index_file: Path, documents: int, stores: Mapping[str, StorePlace]) -> None:
    """Ask who has the documents that may be anybody's."""
    for store in stores.values():
        store.bring_up_to_date()
    try:
        with ExitStack() as stack:
            opened = {name: stack.enter_context(store.having()) for name, store in stores.items()}
            holders = {name: has for name, has in opened.items() if has is not None}
            asked = ", ".join(sorted(holders)) or "nobody, because no collection that shares it has been crawled"
            sys.stderr.write(f"{index_file} does not know whose {documents:,} of its documents are: asking {asked}\n")
            count = LiveCount(sys.stderr, SystemClock())
            stack.callback(count.erase)
            for first in list(holders)[:1]:
                holders[first] = _counted(holders[first], count)
            stack.enter_context(closing(EmbeddedIndex(index_file, holders=holders)))
    except KeyboardInterrupt:
        raise Stopped(f"stopped: {index_file} is as it was") from None


def _counted(has: Has, count: LiveCount) -> Has:
    total = 0

    def ask(urls: Collection[str]) -> Collection[str]:
        nonlocal total
        total += len(urls)
        count(total)
        return has(urls)

    return ask
