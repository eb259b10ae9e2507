"""A sink before a search server that fails, and what any such sink makes of conflicts and failures."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from crawlspace.clock import FakeClock
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.outbox import Drain
from crawlspace.urls import document_id
from tests.contract.conftest import Known, full
from tests.contract.memory.store import MemoryStore
from tests.fault_proxy import Fault, FaultProxy
from tests.search_server import search_server, sink_of
from tests.solr_server import solr_server


class Searched(Protocol):
    """A server of which a test sees what it has."""

    def documents(self) -> dict[str, dict[str, Any]]: ...
    def options(self, **more: object) -> dict[str, object]: ...


T = TypeVar("T", bound=Searched)


class FaultyScene(Generic[T]):
    """A server, the proxy before it, and a sink that sends to that."""

    def __init__(self, search: T, proxy: FaultProxy, folder: Path, text_of: Callable[[dict[str, Any]], str]) -> None:
        self.search, self.proxy, self.folder = search, proxy, folder
        self.opened = ExitStack()
        self._text_of = text_of
        self.sink: Any = self.another()

    def another(self, collection: str = "demo", /, **options: object) -> Any:
        made = sink_of(self.folder, {**self.search.options(**options), "url": self.proxy.url}, collection=collection)
        self.opened.callback(made.close)
        return made

    @property
    def texts(self) -> dict[str, str]:
        return {url[-1]: self._text_of(document) for url, document in self.search.documents().items()}


PUSHES_TO_SOLR = "commitWithin="
"""What is in the address of a request with documents for Solr, and of no other."""


@contextmanager
def faulty(kind: str, folder: Path) -> Iterator[FaultyScene[Any]]:
    """A scene with an empty server of a kind: opensearch or solr."""
    with ExitStack() as stack:
        made: FaultyScene[Any]
        if kind == "solr":
            solr = stack.enter_context(solr_server())
            proxy = stack.enter_context(closing(FaultProxy(solr.url, path=PUSHES_TO_SOLR)))
            made = FaultyScene(solr, proxy, folder, lambda document: document["text_txt_other"])
        else:
            search = stack.enter_context(search_server())
            proxy = stack.enter_context(closing(FaultProxy(search.url)))
            made = FaultyScene(search, proxy, folder, lambda document: document["text"]["other"])
        stack.enter_context(made.opened)
        yield made


def push(name: str, version: int, text: str = "") -> IndexOrder:
    url = f"http://a.example/{name}"
    return IndexOrder(version, Op.PUSH, url, Document(url, text=text or f"text {name}"), version=version)


def delete(name: str, version: int) -> IndexOrder:
    return IndexOrder(version, Op.DELETE, f"http://a.example/{name}", version=version)


def check_answers(scene: FaultyScene[Any], done: str, refused: str, later: str, *, is_slow: bool) -> None:
    """Send a, b and c while the faults happen, and then again what was to be sent later."""
    orders = [push(name, number) for number, name in enumerate("abc", 1)]
    sent = scene.sink.send(orders)
    assert "".join(refusal.order.url[-1] for refusal in sent.refused) == refused
    assert "".join(sorted(order.url[-1] for order in sent.later)) == later
    assert (bool(sent.why_later), sent.is_slow) == (bool(later), is_slow)
    assert not scene.proxy.faults
    assert not scene.sink.send(sent.later).later, "once it is well again"
    assert set(scene.texts) >= set(done + later)


def check_random_faults(scene: FaultyScene[Any], kinds: Sequence[Fault], seed: int) -> None:
    """Push and delete while faults of these kinds happen: in the end the index has what the store has."""
    chance, clock, store = random.Random(seed), FakeClock(), MemoryStore(sinks=("search",))
    known, names = Known(store), [f"a.example/{name}" for name in "abcdefghij"]
    known.discover(*names)
    latest: dict[str, str] = {}
    drain = Drain(store, scene.sink, clock, batch=4)
    for step in range(30):
        name = chance.choice(names)
        if chance.random() < 0.6:
            latest[name[-1]] = f"text of {step}"
            known.record(known.page(name, f"{step}", text=latest[name[-1]]))
        else:
            latest.pop(name[-1], None)
            known.record(known.change(name, checksum=None))
        scene.proxy.faults = [chance.choice(kinds)] if chance.random() < 0.5 else []
        drain.step()
        clock.advance(chance.choice((0, 1, 100)))
        if chance.random() < 0.2:  # as after a kill
            drain = Drain(store, scene.another(), clock, batch=4)
    scene.proxy.faults = []
    for _ in range(30):
        clock.advance(100)
        drain.step()
    assert drain.backlog() == 0
    assert not store.parked("search")
    expected = {state.url: state for state in store.urls() if state.indexed}
    found = scene.search.documents()
    assert found.keys() == expected.keys()
    assert {full(name) for name in names} >= found.keys()
    assert all(found[url]["id"] == document_id(url) for url in expected)
    assert scene.texts == latest
