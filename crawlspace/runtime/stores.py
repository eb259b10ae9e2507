"""Opens the store that a collection is configured with, for a crawl."""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING

from crawlspace.clock import SystemClock
from crawlspace.crawl.engine import SINK
from crawlspace.crawl.startup import build_space, rules_of
from crawlspace.distributed.background import ServerThread
from crawlspace.distributed.connection import connected
from crawlspace.errors import StoreError
from crawlspace.state.move.move import refuse_unfinished
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.who_crawls import process_exists

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from crawlspace.config.collection import Collection
    from crawlspace.distributed.worker import SharedStore
    from crawlspace.index.embedded import EmbeddedIndex

PAUSE_S = 0.1


def open_store(collection: Collection, settings: Mapping[str, object]) -> SqliteStore | SharedStore:
    """Open a collection's store to crawl it. Raises StoreError and its kinds, ConfigError, and RulesDiffer for a worker with other rules."""
    if not collection.store_url:
        file = SqliteStore.open_for_crawl(collection.store_file, sinks=(SINK,))
        try:
            refuse_unfinished(file, collection.name)
        except BaseException:
            file.close()
            raise
        return file
    from crawlspace.distributed.worker import SharedStore  # noqa: PLC0415 - with the client half a second, which only those pay who share a collection

    rules = rules_of(collection, build_space(collection))
    client = connected(settings, crawls=True)
    background = ServerThread()
    try:
        store = SharedStore(
            client,
            collection.name,
            sinks=(SINK,),
            background=background,
            clock=SystemClock(),
            lease_s=collection.lease_s,
            timeout_s=collection.worker_timeout_s,
            sources=[source for source, weight in collection.weights.items() if weight],
            most_sites=collection.max_sites,
        )
        refuse_unfinished(store, collection.name)
        _join(store, rules, index_place(collection.index_file))
    except BaseException:
        client.close()
        raise
    return store


def _join(store: SharedStore, rules: str, place: str) -> None:
    from crawlspace.state.redis.workers import workers  # noqa: PLC0415 - as above

    here = socket.gethostname()
    store.worker.expire(one.name for one in workers(store) if one.host == here and not process_exists(one.process))
    told = False
    while (busy := store.worker.begin(rules, index=(SINK, place))) is not None:
        if not told:
            told = True
            sys.stderr.write(
                f"waiting for {busy}, which brings what is known in line with the rules, sends the index what waits, or does not answer\n"
            )
        Event().wait(PAUSE_S)


def abandon(store: SqliteStore | SharedStore) -> None:
    """Close a store whose crawl could not begin; the others need not wait for its worker."""
    if not isinstance(store, SqliteStore):
        with suppress(StoreError):
            store.worker.leave()
    store.close()


def index_place(file: Path) -> str:
    """Where an index is, among all machines."""
    return f"{socket.gethostname()}:{file.resolve()}"


def check_server(collection: Collection, store: SqliteStore | SharedStore, index: EmbeddedIndex) -> None:
    """Raise StoreError when the server has lost what it knew: the documents of the index would never be fetched again, nor deleted."""
    if isinstance(store, SqliteStore):
        return
    if store.is_new and index.count(of=collection.name):
        raise StoreError(
            f"Redis knows nothing of {collection.name}, although there are documents of it in {collection.index_file}, as when it is"
            f" restarted without having kept anything: put a copy of its data back, or move the index away too and crawl anew"
        )
    store.keep()


def sends_from_here(collection: Collection, store: SqliteStore | SharedStore) -> bool:
    """Whether the index is this machine's, and nobody else can be sending it anything."""
    if isinstance(store, SqliteStore):
        return True
    from crawlspace.state.redis.workers import workers  # noqa: PLC0415 - as above

    place = store.scripts.hash("index").get(SINK.encode())
    return place == index_place(collection.index_file).encode() and len(workers(store)) == 1
