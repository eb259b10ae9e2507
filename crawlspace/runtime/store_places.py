"""Where the store of a collection is, for what is done beside a crawl: a file of its own, or a server that workers share."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from crawlspace.admin.url_changes import bring_up_to_date, deliver
from crawlspace.crawl.engine import SINK
from crawlspace.state import who_has
from crawlspace.state.sqlite.file import CrawlLock, is_older
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.who_crawls import Crawler, who_crawls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from crawlspace.clock import Clock
    from crawlspace.index.owners import Has
    from crawlspace.state.store import Store


class OpenStore(Protocol):
    """The store of a collection, as long as it is open."""

    @property
    def store(self) -> Store: ...

    def crawlers(self) -> Sequence[Crawler]:
        """Return who crawls the collection at this moment, in the order in which they began. Writes nothing."""

    def index_place(self) -> str:
        """Return `host:path` of the index where it is on one of several machines; empty where it is beside the store, or not known."""

    def deliver(self, index_file: Path, clock: Clock) -> str:
        """Send the index what waits for it, unless a crawl does; return a sentence for a person, empty when nothing waits."""


class StorePlace(Protocol):
    """Raises StoreError and its kinds for a store that cannot be used, ConfigError for settings that lead to none."""

    @property
    def is_shared(self) -> bool:
        """Whether several may crawl the collection at a time."""

    def reading(self, *, upgrade: bool = False) -> AbstractContextManager[OpenStore | None]:
        """Open the store to read it, also while it is crawled; None, and nothing is made, if the collection was never crawled.

        What an older version has written cannot be read as it is: it is brought up to date first where `upgrade` says so, for which
        nobody may crawl. Else it raises StoreVersionError.
        """

    def changing(self) -> AbstractContextManager[OpenStore | None]:
        """Open the store to change it, also while it is crawled; None, and nothing is made, if the collection was never crawled.

        What an older version has written is brought up to date first, and for that nobody may crawl.
        """

    def is_older(self) -> bool:
        """Whether an older version has written the store. Touches nothing."""

    def bring_up_to_date(self) -> None:
        """Bring what an older version has written up to date, and tell so on stderr; do nothing with any other, or none."""

    def having(self) -> AbstractContextManager[Has | None]:
        """Open the store to ask which documents the collection has in its index; None if it was never crawled."""


def store_place(collection: str, file: Path, settings: Mapping[str, object]) -> StorePlace:
    """Return where the store of a collection is: `file`, unless its settings name a server. Nothing is opened, and no setting judged."""
    if not str(settings["CRAWLSPACE_STORE_URL"] or "").strip():
        return StateFile(collection, file)
    from crawlspace.runtime.redis_store import RedisPlace  # noqa: PLC0415 - with the client a time that only those pay who share

    return RedisPlace(collection, settings)


class StateFile:
    """The store of one crawl at a time."""

    is_shared = False

    def __init__(self, collection: str, path: Path) -> None:
        self.path = path
        self._collection = collection

    @contextmanager
    def reading(self, *, upgrade: bool = False) -> Iterator[OpenFile | None]:
        if not self.path.exists():
            yield None
            return
        if upgrade:
            self.bring_up_to_date()
        with closing(SqliteStore(self.path, read_only=True)) as store:
            yield OpenFile(store, self._collection)

    @contextmanager
    def changing(self) -> Iterator[OpenFile | None]:
        if not self.path.exists():
            yield None
            return
        self.bring_up_to_date()
        with closing(SqliteStore(self.path, sinks=(SINK,))) as store:
            yield OpenFile(store, self._collection)

    def is_older(self) -> bool:
        return is_older(self.path)

    def bring_up_to_date(self) -> None:
        bring_up_to_date(self.path)

    @contextmanager
    def having(self) -> Iterator[Has | None]:
        if not self.path.exists():
            yield None
            return
        with who_has.having(self.path) as has:
            yield has


@dataclass(frozen=True, slots=True)
class OpenFile:
    store: SqliteStore
    collection: str

    def crawlers(self) -> Sequence[Crawler]:
        crawler = who_crawls(self.store.path)
        return [] if crawler is None else [crawler]

    def index_place(self) -> str:
        return ""

    def deliver(self, index_file: Path, clock: Clock) -> str:
        return deliver(self.store, index_file, owner=self.collection, clock=clock, alone=self._alone)

    @contextmanager
    def _alone(self) -> Iterator[Callable[[], object]]:
        """Hold the right to crawl. Raises StoreLocked."""
        with closing(CrawlLock(self.store.path)):
            yield lambda: None
