"""Where the files, the store and the index of a collection are, for commands."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from scrapy.settings import BaseSettings

from crawlspace.admin.site_report import SiteReport, unreachable_sites
from crawlspace.archive.reader import ArchiveReader
from crawlspace.clock import Clock
from crawlspace.config.content import archive_folder
from crawlspace.config.sinks import SINKS, SinkSettings, sinks_of
from crawlspace.errors import CrawlspaceError, StoreError, StoreLocked
from crawlspace.index.sink import index_place
from crawlspace.parsing import integer
from crawlspace.private_files import make_folder
from crawlspace.runtime.session.sinks import give_orders_to
from crawlspace.state.sqlite.file import CrawlLock, is_awaited, who_crawls
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import SiteStore, Store
from crawlspace.state.views import Crawler

if TYPE_CHECKING:
    from crawlspace.distributed.server_check import ServerFault
    from crawlspace.index.embedded import EmbeddedIndex


class OpenStore(Protocol):
    """The open store of a collection."""

    @property
    def store(self) -> Store: ...

    def crawlers(self) -> Sequence[Crawler]:
        """Return the processes that crawl the collection now, in the order in which they started. Writes nothing."""

    def stamp(self) -> str:
        """Return a text that is another one once the store has been written to, by whomever."""

    def index_place(self) -> str:
        """Return `host:path` of an index on one of several machines; empty where it is next to the store, or unknown."""

    def deliver(self, sinks: SinkSettings, clock: Clock) -> str:
        """Send the waiting orders to the sinks, unless a crawl does; return a sentence for a person, empty when none waits."""

    def alone(self, sink: str, paths: str) -> AbstractContextManager[Callable[[], object]]:
        """Keep all others from sending to a sink, which is at that place. Call what it yields after each batch; both raise StoreLocked where a
        crawl sends."""


class StoreLocation(Protocol):
    """The location of a store. Raises StoreError and its kinds for a store that cannot be used, ConfigError for settings that name none."""

    @property
    def is_shared(self) -> bool:
        """Whether several processes may crawl the collection at a time."""

    def faults(self) -> Sequence[ServerFault]:
        """Return what is wrong with the server that the store is on; nothing for a file."""

    def reading(self) -> AbstractContextManager[OpenStore | None]:
        """Open the store to read it, also during a crawl; None, and nothing is created, if the collection was never crawled."""

    def changing(self) -> AbstractContextManager[OpenStore | None]:
        """Open the store to change it, also during a crawl; None, and nothing is created, if the collection was never crawled."""

    def filling(self) -> AbstractContextManager[OpenStore]:
        """Open the store to change it; create it if the collection was never crawled."""


@dataclass(frozen=True, slots=True)
class CollectionPaths:
    """The files and settings of a collection, as far as they can be read while its rules hold a mistake."""

    name: str
    folder: Path
    settings: BaseSettings
    store: StoreLocation
    state_file: Path
    """Path of the store if it is a file."""
    sinks: SinkSettings

    @property
    def index_file(self) -> Path:
        """The file of the embedded index, where it has one."""
        return self.sinks.index_file

    @contextmanager
    def crawled(self, opening: AbstractContextManager[OpenStore | None], *, exit_status: int = 1) -> Iterator[OpenStore]:
        """Open the store. Raises StoreError, with that exit status, if the collection was never crawled."""
        with opening as opened:
            if opened is None:
                error = StoreError(f"{self.name} has never been crawled: `scrapy crawl {self.name}` does")
                error.exit_status = exit_status
                raise error
            yield opened

    def unreachable(self, store: SiteStore) -> list[SiteReport]:
        """Return the sites of the collection that cannot be reached. Raises SettingError."""
        name = "CRAWLSPACE_MAX_TEMPORARY_ERRORS"
        return unreachable_sites(store, max_temporary_errors=integer(name, self.settings[name], low=1))


def collection_paths(name: str, folder: Path, settings: BaseSettings) -> CollectionPaths:
    """Return the files of a collection with these settings. Raises ConfigError."""
    data_folder = Path(str(settings["CRAWLSPACE_DATA_DIR"])) / name
    sinks = sinks_of(settings, collection=name, data_folder=data_folder)
    state_file = data_folder / "state.db"
    return CollectionPaths(
        name,
        folder,
        settings,
        store=store_location(name, state_file, settings, sinks),
        state_file=state_file,
        sinks=sinks,
    )


def running_here(paths: CollectionPaths) -> int | None:
    """Return a process of this machine that crawls a collection, if that can be known. Raises ConfigError."""
    here = socket.gethostname()
    with suppress(StoreError), paths.store.reading() as opened:  # a crawl reports what is wrong with the store
        for one in () if opened is None else opened.crawlers():
            if one.share is None or one.share.host == here:
                return one.process
    return None


def refuse_missing_index(paths: CollectionPaths) -> None:
    """Raise StoreError if the collection has been crawled and its index is not here; with its place, if known."""
    if not paths.sinks.has_embedded:
        raise StoreError(
            f"{paths.name} has no embedded index, because {SINKS} has no sink of type sqlite: its documents are in {', '.join(paths.sinks.names)}"
        )
    if paths.index_file.exists():
        return
    if not paths.store.is_shared:
        if paths.state_file.exists():
            raise StoreError(
                f"there is no index at {paths.index_file}, although {paths.name} has been crawled: `scrapy reindex {paths.name}` rebuilds it"
            )
        return
    with paths.store.reading() as opened:
        if opened is None:
            return
        there = opened.index_place()
    raise StoreError(
        f"there is no index at {paths.index_file}: that of {paths.name} is {f'at {there}' if there else 'on another machine'}; look there"
    )


def refuse_index_elsewhere(paths: CollectionPaths, opened: OpenStore) -> None:
    """Raise StoreError if the index of a collection is on another machine."""
    there = opened.index_place()
    if there not in ("", index_place(paths.index_file)):
        raise StoreError(f"the index of {paths.name} is at {there}: run it there")


def store_location(collection: str, file: Path, settings: Mapping[str, object], sinks: SinkSettings) -> StoreLocation:
    """Return where the store of a collection is: `file`, unless its settings name a server. Nothing is opened, and no setting validated."""
    if not str(settings["CRAWLSPACE_STORE_URL"] or "").strip():
        return StateFile(collection, file, sinks)
    from crawlspace.runtime.session.redis_store import RedisLocation  # noqa: PLC0415 - with the client a time that only those pay who share

    return RedisLocation(collection, settings, sinks)


class StateFile:
    """A store in a file, for one crawl at a time."""

    is_shared = False

    def __init__(self, collection: str, path: Path, sinks: SinkSettings) -> None:
        self.path = path
        self._collection = collection
        self._sinks = sinks

    def faults(self) -> Sequence[ServerFault]:
        return ()

    @contextmanager
    def reading(self) -> Iterator[OpenFile | None]:
        if not self.path.exists():
            yield None
            return
        with closing(SqliteStore(self.path, read_only=True)) as store:
            yield OpenFile(store, self._collection)

    @contextmanager
    def changing(self) -> Iterator[OpenFile | None]:
        if not self.path.exists():
            yield None
            return
        with self.filling() as opened:
            yield opened

    @contextmanager
    def filling(self) -> Iterator[OpenFile]:
        try:
            make_folder(self.path.parent)
        except OSError as error:
            raise StoreError(
                f"{self.path.parent} cannot be made: {error.strerror}; set CRAWLSPACE_DATA_DIR to a folder that can be written"
            ) from error
        with closing(SqliteStore(self.path)) as store:
            give_orders_to(store, self._sinks)
            yield OpenFile(store, self._collection)


@dataclass(frozen=True, slots=True)
class OpenFile:
    store: SqliteStore
    collection: str

    def crawlers(self) -> Sequence[Crawler]:
        crawler = who_crawls(self.store.path)
        return [] if crawler is None else [crawler]

    def stamp(self) -> str:
        path, found = self.store.path, []
        for file in (path, path.with_name(f"{path.name}-wal")):
            try:
                status = file.stat()
            except OSError:
                continue
            if status.st_size:
                found.append(f"{status.st_ino} {status.st_size} {status.st_mtime_ns}")
        return ", ".join(found)

    def index_place(self) -> str:
        return ""

    def deliver(self, sinks: SinkSettings, clock: Clock) -> str:
        from crawlspace.admin.delivery import deliver  # noqa: PLC0415 - most commands send nothing

        return deliver(self.store, sinks, owner=self.collection, clock=clock, alone=self.alone)

    @contextmanager
    def alone(self, sink: str, paths: str) -> Iterator[Callable[[], object]]:
        def make_way() -> None:
            if is_awaited(self.store.path):
                raise StoreLocked("a crawl begins")

        make_way()
        with closing(CrawlLock(self.store.path)):
            yield make_way


# --- archive -------------------------------------------------------------------------------------------------------


def folder_of(paths: CollectionPaths) -> Path:
    """Return the folder of a collection's archive, even if it does not exist."""
    return archive_folder(paths.settings, paths.state_file.parent)


def archive_reader(paths: CollectionPaths, opened: OpenStore) -> ArchiveReader:
    files = opened.store.archive_files
    return ArchiveReader(folder_of(paths), files(), look_up=files)


# --- lost from index -----------------------------------------------------------------------------------------------


class LostFromIndex:
    """The documents that an index has lost; none where the index cannot be read here."""

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
def lost_documents(paths: CollectionPaths, opened: OpenStore) -> Iterator[LostFromIndex]:
    """Open the index of a collection, if it is on this machine."""
    from crawlspace.index.embedded import EmbeddedIndex  # noqa: PLC0415 - most commands don't open it

    there = opened.index_place()
    with ExitStack() as stack:
        found = LostFromIndex()
        if paths.index_file.exists() and there in ("", index_place(paths.index_file)):
            try:
                index = stack.enter_context(closing(EmbeddedIndex(paths.index_file, read_only=True, owner=paths.name)))
                found = LostFromIndex(index)
            except CrawlspaceError:
                pass  # `status` reports it
        yield found
