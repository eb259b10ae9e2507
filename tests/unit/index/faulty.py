"""A sink before a search server that fails, and what any such sink makes of conflicts and failures."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from crawlspace.clock import FakeClock
from crawlspace.index.outbox import Drain
from crawlspace.model import Document, IndexOrder, Op
from crawlspace.state.memory.store import MemoryStore
from crawlspace.urls import document_id
from tests.contract.conftest import Known, full
from tests.fault_proxy import Fault, FaultProxy
from tests.search_server import sink_of


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


# What the server has of a, with its version and collection; the order; whether it is done, and what the server has then.
CONFLICTS = [
    (push("a", 5, "old"), "demo", push("a", 5, "old"), True, "old"),
    (push("a", 9, "of another life"), "demo", push("a", 5, "new"), False, "of another life"),
    (push("a", 9, "of another"), "other", push("a", 5, "new"), False, "of another"),
    (push("a", 3, "of another"), "other", push("a", 5, "new"), True, "new"),
    (push("a", 9, "of another life"), "demo", delete("a", 5), False, "of another life"),
    (push("a", 9, "of another"), "other", delete("a", 5), True, "of another"),
    (push("a", 3, "of another"), "other", delete("a", 5), True, "of another"),
    (push("a", 3, "old"), "demo", delete("a", 5), True, None),
    (delete("a", 9), "demo", push("a", 5, "new"), False, None),
    (delete("a", 9), "demo", delete("a", 5), True, None),
    (delete("a", 5), "demo", delete("a", 5), True, None),
]


def check_conflict(
    scene: FaultyScene[Any], there: IndexOrder, owner: str, order: IndexOrder, text: str | None, *, is_done: bool
) -> None:
    other = scene.another(owner)
    if there.op is Op.DELETE:  # it must have been there
        other.send([push("a", 1)])
    other.send([there])
    other.close()
    sent = scene.sink.send([order])
    assert (not sent.later, sent.refused) == (is_done, [])
    assert sent.above == (0 if is_done else 9)
    assert scene.texts.get("a") == text


def check_raised_versions(scene: FaultyScene[Any]) -> None:
    """The server has documents of far larger versions than those of the orders."""
    far = 1 << 62
    scene.sink.send([push("a", far, "of another life"), push("b", far + 5, "of another life")])
    store, clock = MemoryStore(sinks=("search",)), FakeClock()
    known = Known(store)
    known.discover("a.example/a", "a.example/b", "a.example/c")
    known.record(*(known.page(f"a.example/{name}", name, text=f"new {name}") for name in "abc"))
    drain = Drain(store, scene.sink, clock)
    for _ in range(3):
        drain.step()
        clock.advance(100)
    assert drain.backlog() == 0
    assert scene.texts == {"a": "new a", "b": "new b", "c": "new c"}
    assert store.get_meta("versions:search") != ""


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
