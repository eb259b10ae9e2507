"""The sinks of a simulated crawler: the embedded index in its file, and a search server behind a network that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from crawlspace.clock import FakeClock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.sinks.backfill import Backfill
from crawlspace.crawl.sinks.deliveries import request_backfill
from crawlspace.document import Document, IndexOrder
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.json_client import Connection
from crawlspace.index.marks import BatchMark, forget_mark
from crawlspace.index.opensearch.sink import OpenSearchSink
from crawlspace.index.outbox import MAX_WAIT_S, Drain
from crawlspace.index.search_server.sink import ServerSettings
from crawlspace.index.sink import Sent, Sink
from crawlspace.state.store import Store
from tests.fault_proxy import FaultProxy
from tests.histories.documents import Indexed
from tests.histories.fate import Countdown, Fate, Killed
from tests.search_server import INDEX, SearchServer
from tests.sink_faults.faults import Faults

SEARCH = "search"
"""The name of the sink."""
_RATE = 0.5
_REQUEST_BYTES = 2_000
"""A few documents of a simulated web."""
_LAST_BATCHES = 200
"""More than there are to send when nothing fails."""


class Archive(Protocol):
    def document(self, place: int, url: str) -> Document | None: ...


class SimulatedSearch:
    """The fate of a request depends on its orders and the seed alone: requests are sent one after the other."""

    def __init__(self, server: SearchServer, seed: int, owner: str) -> None:
        self._server = server
        self._owner = owner
        self._faults = Faults(server, seed, self._kill, lambda: None, rate=_RATE)
        self._proxy = FaultProxy(server.url)
        self._proxy.rest, self._proxy.beside = self._faults.bulk(), self._faults.beside()
        self.is_named = True
        """Whether the settings name the sink already."""
        self.was_filled = False
        """Whether it lacked documents at any time."""
        self._may_be_killed = self._is_killed = False
        self._sink: OpenSearchSink | None = None
        self.filling: Backfill | None = None
        """Sends it the documents it lacks, in a crawl by one process."""

    def open(self, *, may_be_killed: bool) -> OpenSearchSink:
        """Open the sink for a crawl, which may be killed while it waits for an answer of the server."""
        self._may_be_killed, self._is_killed = may_be_killed, False
        self._sink = self._made()
        return self._sink

    def filling_of(self, store: Store, engine: Engine, archive: Archive | None) -> Backfill:
        """Return what sends the sink what it lacks, for a worker of that crawl."""
        return Backfill(store, SEARCH, engine.clock, archive or _NoArchive(), engine.due)

    def end(self) -> None:
        """As a crawl ends."""
        if self._sink is not None:
            self._sink.close()
        self._sink = self.filling = None

    def close(self) -> None:
        self._proxy.close()

    # --- what happens to it, and what it has -----------------------------------------------------------------------

    def lose(self, store: Store) -> None:
        """Remove the server's index; a person orders it filled again."""
        self._faults.end()
        self._server.ask("DELETE", f"/{INDEX}-000001")
        self.fail_again()
        forget_mark(store, SEARCH)
        request_backfill(store, SEARCH)

    def end_faults(self) -> None:
        self._faults.end()

    def fail_again(self) -> None:
        self._faults.rate = _RATE

    def send_rest(self, store: Store, now: float) -> None:
        """End all faults, and send all orders that wait or were refused."""
        self._faults.end()
        store.unpark(SEARCH)
        clock = FakeClock(now)
        with closing(self._made()) as sink:
            drain = Drain(store, sink, clock)
            for _ in range(_LAST_BATCHES):
                if not drain.backlog():
                    return
                drain.step()
                clock.advance(MAX_WAIT_S)

    def index(self) -> dict[str, Indexed]:
        """Return the documents that the server has."""
        if INDEX not in self._server.ask("GET", "/_alias").get(f"{INDEX}-000001", {}).get("aliases", {}):
            return {}
        return {
            url: Indexed(
                _text(found.get("title")),
                _text(found.get("text")),
                frozenset(found.get("duplicates", ())),
                found.get("fields", {}).get("kind", ""),
            )
            for url, found in self._server.documents().items()
        }

    def _made(self) -> OpenSearchSink:
        connection = Connection(self._proxy.url, {}, 60)
        dies = self._dies
        return _MortalSink(dies, connection, self._owner)

    def _kill(self) -> None:
        self._is_killed = self._may_be_killed

    def _dies(self) -> bool:
        dies, self._is_killed = self._is_killed, False
        return dies


class _MortalSink(OpenSearchSink):
    """A sink whose process may be killed while it waits for an answer."""

    def __init__(self, dies: Callable[[], bool], connection: Connection, owner: str) -> None:
        settings = ServerSettings(SEARCH, connection, INDEX, owner, _REQUEST_BYTES, connections=1)
        super().__init__(settings, replicas=0)
        self._dies = dies

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        try:
            return super().send(orders, mark)
        finally:
            if self._dies():
                raise Killed


class _NoArchive:
    def document(self, _: int, __: str) -> None:
        return None


def fill(drain: Drain, filling: Backfill | None) -> bool:
    """Order some of the documents that a sink lacks; return whether there may be more."""
    return filling is not None and drain.sink == SEARCH and not drain.is_unavailable and filling.step()


def send_once(engine: Engine, countdown: Countdown, search: SimulatedSearch | None) -> bool:
    """Send each sink one batch; False when there was none, or no sink took any."""
    sent = [_send(engine, drain, countdown, search) for drain in engine.deliveries.drains]
    return any(sent)


def _send(engine: Engine, drain: Drain, countdown: Countdown, search: SimulatedSearch | None) -> bool:
    fills = fill(drain, None if search is None else search.filling)
    batch = drain.take()
    if not batch:
        return fills
    delivery = drain.deliver(batch)
    countdown.tick()
    return engine.deliveries.settle(drain, delivery).waiting_s is None


def _text(of_languages: dict[str, str] | None) -> str:
    return next(iter((of_languages or {"": ""}).values()))


# --- index file ----------------------------------------------------------------------------------------------------


class IndexFile:
    """The file that all collections of a machine share."""

    name: str
    clock: FakeClock
    _index_file: Path
    _contents: dict[tuple[str, bytes], tuple[str, str]]
    _latest: dict[str, tuple[str, str]]
    search: SimulatedSearch | None = None

    @property
    def sinks(self) -> tuple[str, ...]:
        """Return the names of the sinks."""
        return (EMBEDDED,) if self.search is None or not self.search.is_named else (EMBEDDED, SEARCH)

    def more_sinks(self, fate: Fate) -> list[Sink]:
        """Return the sinks other than the index, as a crawl opens them."""
        is_named = self.search is not None and self.search.is_named
        return [self.search.open(may_be_killed=fate.kill_after is not None)] if self.search is not None and is_named else []

    def open_index(self) -> EmbeddedIndex:
        """Open the index, as a crawl of this collection does."""
        return EmbeddedIndex(self._index_file, owner=self.name, clock=self.clock)

    def lose_index(self) -> None:
        """Remove the index."""
        for path in self._index_file.parent.glob(f"{self._index_file.name}*"):
            path.unlink()

    def documents(self) -> list[Document]:
        """Return its documents."""
        with closing(EmbeddedIndex(self._index_file)) as index:
            return [document for url in index.urls() if (document := index.get(url)) is not None]

    def owners(self) -> dict[str, str]:
        """Return the collection that pushed each document last, by URL."""
        with closing(EmbeddedIndex(self._index_file)) as index:
            return {str(url): str(owner) for url, owner in index._db.execute("SELECT url, owner FROM documents")}

    def note_document(self, url: str, document: Document | None, checksum: bytes | None) -> None:
        """Store title and text of a document that was made of a page."""
        if document is not None and checksum is not None:
            self._contents[url, checksum] = self._latest[url] = (document.title, document.text)
