"""The session of a process that makes documents anew: rules and settings of a collection, without its store and index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlspace.archive.reader import ArchiveReader
from crawlspace.config.collection import load_collection
from crawlspace.crawl.replay import ReplayEngine
from crawlspace.crawl.startup import Startup
from crawlspace.runtime.session import Session
from crawlspace.runtime.stores.crawl_store import CrawlStore

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping


class ReplaySession(Session):
    """`channel` leads to the process that wants the documents."""

    def __init__(
        self, name: str, settings: Mapping[str, object], *, archive_files: dict[int, str], channel: socket.socket
    ) -> None:
        """Raises CrawlspaceError for a collection whose configuration has a mistake."""
        self.replay_engine = ReplayEngine(load_collection(name, settings))
        collection, startup = self.replay_engine.collection, Startup(self.replay_engine, [], None, 0)
        super().__init__(
            collection,
            startup,
            opened=CrawlStore(self.replay_engine.memory),
            index=None,
            sinks=(),
            archiving=None,
            settings=settings,
        )
        self.archive = ArchiveReader(collection.archive.folder, archive_files)
        self.channel = channel
        self.at_close(self.archive.close)
