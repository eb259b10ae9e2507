"""Opens the store that a collection is configured with, for a crawl."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from crawlspace import private_files
from crawlspace.archive.files import rotated_bytes
from crawlspace.clock import Clock, SystemClock
from crawlspace.config.collection import Collection
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.commits import Archiving
from crawlspace.crawl.rule_changes.rediscovery import SpiderCode
from crawlspace.crawl.run_events import EVENTS_FOLDER, RunEvents, keep_only
from crawlspace.crawl.run_log import RunLog, file_of, run_records
from crawlspace.crawl.sinks.repair import Resending, Resent, enter_unknown
from crawlspace.crawl.startup import Startup, build_deletion_limit, build_space, open_engine, rules_of
from crawlspace.distributed.background import ServerThread
from crawlspace.distributed.connection import connected
from crawlspace.errors import ConfigError, StoreError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.sink import Sink, index_place
from crawlspace.runtime.session.archive_limit import RunningLimit
from crawlspace.runtime.session.paths import store_location
from crawlspace.runtime.session.sinks import give_orders_to, note_new_sinks
from crawlspace.state.dump import refuse_unfinished_copy
from crawlspace.state.redis.keys import Key
from crawlspace.state.sqlite.file import process_exists
from crawlspace.state.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from crawlspace.distributed.shared_store import SharedStore
    from crawlspace.state.redis.store import RedisStore

PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Joined:
    """This process as one of the workers that crawl a collection together."""

    shared: SharedStore
    background: ServerThread

    def leave(self) -> None:
        """Give back all that is owned, without having crawled."""
        self.background.do(self.shared.worker.leave)
        self.background.finish()


@dataclass(frozen=True, slots=True)
class CrawlStore:
    """The store of a collection that this process crawls; `joined` where several do."""

    store: SqliteStore | RedisStore
    joined: Joined | None = None


def make_folder(collection: Collection) -> None:
    """Make the collection's data folder, which only this user may read. Raises ConfigError."""
    for folder in (collection.data_folder, collection.index_file.parent):
        try:
            private_files.make_folder(folder)
        except OSError as error:
            raise ConfigError(
                f"{folder} cannot be made: {error.strerror}; set CRAWLSPACE_DATA_DIR to a folder that can be written"
            ) from error


def open_store(collection: Collection, settings: Mapping[str, object]) -> CrawlStore:
    """Open a collection's store to crawl it. Raises StoreError and its kinds, ConfigError, and RulesDiffer for a worker with other rules."""
    if not collection.store_url:
        file = SqliteStore.open_for_crawl(collection.store_file, sinks=collection.sinks.names)
        try:
            give_orders_to(file, collection.sinks)
            refuse_unfinished_copy(file, collection.name)
        except BaseException:
            file.close()
            raise
        return CrawlStore(file)
    from crawlspace.distributed.shared_store import SharedStore  # noqa: PLC0415 - with the client half a second, which only those pay who share a collection

    rules = rules_of(collection, build_space(collection))
    client = connected(settings, crawls=True)
    background = ServerThread()
    try:
        shared = SharedStore.open(
            client,
            collection.name,
            sinks=collection.sinks.names,
            background=background,
            timeout_s=collection.worker_timeout_s,
            sources=[source for source, weight in collection.weights.items() if weight],
        )
        give_orders_to(shared.store, collection.sinks)
        refuse_unfinished_copy(shared.store, collection.name)
        _join(shared, rules, index_place(collection.index_file))
    except BaseException:
        client.close()
        raise
    return CrawlStore(shared.store, Joined(shared, background))


def _join(shared: SharedStore, rules: str, place: str) -> None:
    from crawlspace.state.redis.workers import workers  # noqa: PLC0415 - as above

    here = socket.gethostname()
    shared.worker.expire(one.name for one in workers(shared.store) if one.host == here and not process_exists(one.process))
    has_reported = False
    while (busy := shared.worker.begin(rules, index=(EMBEDDED, place))) is not None:
        if not has_reported:
            has_reported = True
            sys.stderr.write(
                f"waiting for {busy}, which brings what is known in line with the rules, sends the index what waits, or does not answer\n"
            )
        Event().wait(PAUSE_S)


def open_archive(
    collection: Collection, opened: CrawlStore, clock: Clock, undo: ExitStack, settings: Mapping[str, object]
) -> Archiving | None:
    """Open the archive of a crawl, which `undo` closes; None where nothing is to be archived. Raises ArchiveError."""
    if not collection.archive.is_on:
        return None
    name, folder, most = collection.name, collection.archive.folder, collection.archive.max_bytes
    limit = (
        None
        if most is None
        else RunningLimit(collection, store_location(name, collection.store_file, settings, collection.sinks), most)
    )
    archiving = Archiving(folder, opened.store, collection=name, clock=clock, rotated_bytes=rotated_bytes(most), limit=limit)
    undo.callback(archiving.close)
    return archiving


def begin_log(collection: Collection, opened: CrawlStore) -> RunLog:
    """Begin the record of this process's run, or join the run of the other workers. Raises StoreError."""
    if opened.joined is None:
        return RunLog(opened.store, SystemClock(), most=collection.runs_kept)
    from crawlspace.state.redis.workers import workers  # noqa: PLC0415 - as above

    shared = opened.joined.shared
    return RunLog(
        opened.store,
        SystemClock(),
        most=collection.runs_kept,
        worker=shared.worker.name,
        running=lambda: {one.name for one in workers(shared.store)} - {shared.worker.name},
    )


def begin_events(collection: Collection, opened: CrawlStore, log: RunLog, undo: ExitStack) -> RunEvents | None:
    """Begin the file of the events of this process's run, which `undo` closes, and remove those of runs that are not kept any more.

    None where none is kept. Raises RunFileError.
    """
    folder = collection.data_folder / EVENTS_FOLDER
    kept = run_records(opened.store) if collection.runs_kept else []
    keep_only(folder, {file_of(record) for record in kept})
    if not collection.runs_kept:
        return None
    events = RunEvents(folder, file_of(log.record), run=log.run, store=opened.store, clock=SystemClock())
    undo.callback(events.close)
    return events


def discard_log(log: RunLog) -> None:
    """Remove the record of a run that could not begin."""
    with suppress(StoreError):
        log.discard()


def abandon(opened: CrawlStore) -> None:
    """Close a store whose crawl could not begin; other workers need not wait for this one."""
    if opened.joined is not None:
        with suppress(StoreError):
            opened.joined.shared.worker.leave()
    opened.store.close()


def check_server(collection: Collection, opened: CrawlStore, index: EmbeddedIndex | None) -> None:
    """Raise StoreError when the server has lost what it knew: the documents of the index would never be fetched again, nor deleted."""
    if opened.joined is None:
        return
    mark = opened.joined.shared.mark
    if mark.is_new and index is not None and index.count(of=collection.name):
        raise StoreError(
            f"Redis has no data of {collection.name}, although there are documents of it in {collection.index_file}, as when it is"
            f" restarted without having kept anything: put a copy of its data back, or move the index away too and crawl again"
        )
    mark.save()


def index_is_here(collection: Collection, opened: CrawlStore) -> bool:
    """Whether the index of a collection is the one on this machine."""
    if opened.joined is None:
        return True
    place = opened.joined.shared.store.server.hash(Key.INDEX).get(EMBEDDED.encode())
    return place == index_place(collection.index_file).encode()


def sends_from_here(collection: Collection, opened: CrawlStore) -> bool:
    """Whether the index is on this machine, and no other worker can be sending it anything."""
    if opened.joined is None:
        return True
    from crawlspace.state.redis.workers import workers  # noqa: PLC0415 - as above

    return index_is_here(collection, opened) and len(workers(opened.joined.shared.store)) == 1


# --- starting ------------------------------------------------------------------------------------------------------


def start(
    collection: Collection,
    opened: CrawlStore,
    index: EmbeddedIndex | None,
    sinks: Sequence[Sink],
    archiving: Archiving | None,
    *,
    events: RunEvents | None = None,
    spider: SpiderCode,
) -> tuple[Startup, Resent | None]:
    """Apply the rules to the store, repair the index where it does not match the store, and open the engine."""
    clock, store = SystemClock(), opened.store
    note_new_sinks(store, collection.sinks)
    resending = None if index is None else Resending(store, index, owner=collection.name, now=int(clock.now()))
    resent = resending.begin() if resending is not None and sends_from_here(collection, opened) else None
    view = None if opened.joined is None else opened.joined.shared.view
    startup = open_engine(
        collection, store=store, sinks=sinks, clock=clock, worker=view, archiving=archiving, events=events, spider=spider
    )
    if resending is not None:
        resending.finish(partial(enter_unknown, startup.engine), limit=build_deletion_limit(collection))
    return startup, resent
