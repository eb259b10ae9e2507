"""A collection that sends to a search server with markers, and an index that is put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from crawlspace.clock import FakeClock
from crawlspace.index.marks import Agreement, BatchMark, agreement
from crawlspace.index.outbox import Drain
from tests.contract.conftest import Known
from tests.contract.memory.store import MemoryStore
from tests.fault_proxy import FaultProxy
from tests.search_server import search_server, sink_of
from tests.solr_server import rebuildable_solr
from tests.unit.index.faulty import PUSHES_TO_SOLR

BEHIND = "the index is older than the stored state of the pages"
REPAIR = "`scrapy audit demo --sink search --repair` sends what is missing there"


class MarkedScene:
    """A collection and its sink; each `start` is a process of its own."""

    def __init__(self, search: Any, proxy: FaultProxy, folder: Path, opened: ExitStack, collection: str = "demo") -> None:
        self.search, self.proxy, self.folder, self.opened, self.collection = search, proxy, folder, opened, collection
        self.store, self.clock = MemoryStore(sinks=("search",)), FakeClock()
        self.known = Known(self.store)
        self.options: dict[str, object] = {}
        self.start()

    def start(self) -> None:
        options = {**self.search.options(**self.options), "url": self.proxy.url}
        self.sink = sink_of(self.folder, options, collection=self.collection)
        self.opened.callback(self.sink.close)
        self.drain = Drain(self.store, self.sink, self.clock, batch=4)

    def begin_anew(self) -> None:
        """Lose the state of the collection."""
        self.store = MemoryStore(sinks=("search",))
        self.known = Known(self.store)
        self.clock.advance(1_000)

    def another(self, collection: str) -> MarkedScene:
        """Another collection that sends there."""
        return MarkedScene(self.search, self.proxy, self.folder, self.opened, collection)

    def crawl(self, names: str, *, text: str = "") -> None:
        """Send pages, a batch for all of them, or more if the server wants that."""
        urls = [f"a.example/{name}" for name in names]
        self.known.discover(*urls)
        self.known.record(*(self.known.page(url, f"{url} {text}", text=f"text {text or url}") for url in urls))
        for _ in range(10):
            self.clock.advance(100)
            self.drain.step()
        assert self.drain.backlog() == 0

    @property
    def mark(self) -> BatchMark | None:
        with closing(sink_of(self.folder, self.search.options(), collection=self.collection)) as sink:
            mark: BatchMark | None = sink.mark()
        return mark

    @property
    def agrees(self) -> bool:
        return agreement(self.store, "search", self.mark, now=0) is Agreement.SAME

    @property
    def there(self) -> str:
        """The names of the pages that the index has."""
        return "".join(sorted(url[-1] for url in self.search.documents()))


@contextmanager
def marked(kind: str, folder: Path) -> Iterator[MarkedScene]:
    """A scene with an empty server of a kind: opensearch or solr."""
    with ExitStack() as stack:
        if kind == "solr":
            solr = stack.enter_context(rebuildable_solr())
            proxy = stack.enter_context(closing(FaultProxy(solr.url, path=PUSHES_TO_SOLR)))
            yield MarkedScene(solr, proxy, folder, stack)
        else:
            search = stack.enter_context(search_server())
            proxy = stack.enter_context(closing(FaultProxy(search.url)))
            yield MarkedScene(search, proxy, folder, stack)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return those about markers."""
    return [record.getMessage() for record in caplog.records if record.name.endswith(".search_server.marker")]
