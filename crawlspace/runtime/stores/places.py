"""Where the store of a collection is, for commands: a file, or a server that workers share."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from crawlspace.admin.delivery import deliver
from crawlspace.errors import StoreError, StoreLocked
from crawlspace.private_files import make_folder
from crawlspace.runtime.stores.sinks import give_orders_to
from crawlspace.state.sqlite.file import CrawlLock, is_awaited, who_crawls
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.who_crawls import Crawler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from crawlspace.clock import Clock
    from crawlspace.config.sinks import SinkSettings
    from crawlspace.distributed.server_check import ServerFault
    from crawlspace.state.store import Store


class OpenStore(Protocol):
    """The store of a collection, as long as it is open."""

    @property
    def store(self) -> Store: ...

    def crawlers(self) -> Sequence[Crawler]:
        """Return who crawls the collection at this moment, in the order in which they began. Writes nothing."""

    def index_place(self) -> str:
        """Return `host:path` of the index where it is on one of several machines; empty where it is beside the store, or not known."""

    def deliver(self, sinks: SinkSettings, clock: Clock) -> str:
        """Send the sinks what waits for them, unless a crawl does; return a sentence for a person, empty when nothing waits."""

    def alone(self, sink: str, place: str) -> AbstractContextManager[Callable[[], object]]:
        """Keep all others from sending to a sink, which is at that place. Call what it yields after each batch; both raise StoreLocked where a
        crawl sends."""


class StorePlace(Protocol):
    """Raises StoreError and its kinds for a store that cannot be used, ConfigError for settings that lead to none."""

    @property
    def is_shared(self) -> bool:
        """Whether several may crawl the collection at a time."""

    def faults(self) -> Sequence[ServerFault]:
        """Return what is wrong with the server that the store is on; nothing for a file."""

    def reading(self) -> AbstractContextManager[OpenStore | None]:
        """Open the store to read it, also while it is crawled; None, and nothing is made, if the collection was never crawled."""

    def changing(self) -> AbstractContextManager[OpenStore | None]:
        """Open the store to change it, also while it is crawled; None, and nothing is made, if the collection was never crawled."""

    def filling(self) -> AbstractContextManager[OpenStore]:
        """Do the same, and make the store of a collection that was never crawled."""


def store_place(collection: str, file: Path, settings: Mapping[str, object], sinks: SinkSettings) -> StorePlace:
    """Return where the store of a collection is: `file`, unless its settings name a server. Nothing is opened, and no setting validated."""
    if not str(settings["CRAWLSPACE_STORE_URL"] or "").strip():
        return StateFile(collection, file, sinks)
    from crawlspace.runtime.stores.redis import RedisPlace  # noqa: PLC0415 - with the client a time that only those pay who share

    return RedisPlace(collection, settings, sinks)


class StateFile:
    """The store of one crawl at a time."""

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

    def index_place(self) -> str:
        return ""

    def deliver(self, sinks: SinkSettings, clock: Clock) -> str:
        return deliver(self.store, sinks, owner=self.collection, clock=clock, alone=self.alone)

    @contextmanager
    def alone(self, sink: str, place: str) -> Iterator[Callable[[], object]]:
        def make_way() -> None:
            if is_awaited(self.store.path):
                raise StoreLocked("a crawl begins")

        make_way()
        with closing(CrawlLock(self.store.path)):
            yield make_way
