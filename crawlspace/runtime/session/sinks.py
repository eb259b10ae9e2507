"""The sinks of a collection besides those of its settings: former ones, which keep their orders, and new ones, which lack all documents."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from crawlspace import private_files
from crawlspace.admin.delivery import open_sink
from crawlspace.archive.reader import ArchiveReader
from crawlspace.config.collection import Collection
from crawlspace.config.sinks import EMBEDDED, SQLITE, SinkSettings
from crawlspace.crawl.sinks.deliveries import known_sinks, note_sinks, request_backfill
from crawlspace.index.sink import Sink
from crawlspace.state.store import Store

if TYPE_CHECKING:
    from crawlspace.crawl.engine import Engine
    from crawlspace.crawl.sinks.backfill import Backfill

_EXCLUDED = "excluded logins:"
"""Meta, with the name of a sink: the log-ins whose documents were left out of it; empty when it was sent all."""


def open_sinks(collection: Collection, undo: ExitStack) -> list[Sink]:
    """Open the sinks of a crawl, which `undo` closes; the embedded index is made if it is missing. Raises StoreError."""
    sinks = []
    for options in collection.sinks.options:
        if options.name == EMBEDDED:
            private_files.make_file(collection.index_file)
        sinks.append(open_sink(options, collection.sinks, owner=collection.name))
        undo.callback(sinks[-1].close)
    return sinks


def fillings_of(collection: Collection, engine: Engine, store: Store) -> dict[str, Backfill]:
    """Return what sends the servers among the sinks of a crawl the documents that they lack, by name."""
    from crawlspace.crawl.sinks.backfill import Backfill  # noqa: PLC0415 - only for a crawl

    archive = collection.archive
    reader = ArchiveReader(archive.folder, store.archive_files() if archive.is_on else {}, look_up=store.archive_files)
    return {
        one.name: Backfill(store, one.name, engine.clock, reader, engine.due, exclusion=collection.sinks.exclusion_of(one.name))
        for one in collection.sinks.servers
    }


def former_sinks(store: Store, sinks: SinkSettings) -> list[str]:
    """Return the sinks that the settings name no more, and that were not forgotten."""
    return sorted(_known(store).keys() - set(sinks.names))


def give_orders_to(store: Store, sinks: SinkSettings) -> None:
    """Have a store give orders to the sinks of the settings, and to former ones."""
    store.use_sinks((*sinks.names, *former_sinks(store, sinks)))


def note_new_sinks(store: Store, sinks: SinkSettings) -> None:
    """Remember the sinks of the settings; a server that is new, or leaves out other documents than before, is sent all documents."""
    known = _known(store)
    types = {one.name: one.type for one in sinks.options}
    lacking = [name for name in types if name not in known and name != EMBEDDED]
    excluded: dict[str, str] = {}
    for one in sinks.servers:
        exclusion = sinks.exclusion_of(one.name)
        wanted = "" if exclusion is None else exclusion.logins
        if wanted != (store.get_meta(_EXCLUDED + one.name) or ""):
            lacking += [one.name] if one.name not in lacking else []
            excluded[one.name] = wanted
    if lacking and store.counts().indexed:
        for name in lacking:
            request_backfill(store, name)
    for name, wanted in excluded.items():  # last: a kill may come before
        store.set_meta(_EXCLUDED + name, wanted)
    note_sinks(store, {**known, **types})


def _known(store: Store) -> dict[str, str]:
    known = known_sinks(store)
    if not known and store.scan(0, 1):  # of before there were others
        return {EMBEDDED: SQLITE}
    return known
