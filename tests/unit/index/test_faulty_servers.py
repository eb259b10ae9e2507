"""What any sink for a search server makes of conflicts and of requests that fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlspace.clock import FakeClock
from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.outbox import Drain
from tests.contract.conftest import Known
from tests.contract.memory.store import MemoryStore
from tests.fault_proxy import Fault
from tests.unit.index.faulty import FaultyScene, delete, faulty, push

Scene = FaultyScene[Any]
BAD = {
    "opensearch": {"error": {"type": "parse_exception", "reason": "bad line"}},
    "solr": {"responseHeader": {"status": 400}, "error": {"msg": "bad line", "code": 400}},
}
"""How each server says what is wrong with a request."""


@pytest.fixture(params=["opensearch", "solr"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scene(kind: str, tmp_path: Path) -> Iterator[Scene]:
    with faulty(kind, tmp_path) as made:
        yield made


def test_a_connection_that_is_cut_says_so(scene: Scene) -> None:
    for fault in (Fault(cut=True), Fault(lose=True)):
        scene.proxy.faults = [fault]
        with pytest.raises(IndexUnavailable, match="cannot be reached"):
            scene.sink.send([push("a", 1)])
        assert not scene.sink.send([push("a", 1), push("b", 2)]).refused
    assert set(scene.texts) == {"a", "b"}


def test_a_request_that_is_too_large_is_divided_and_one_that_cannot_be_is_refused(scene: Scene) -> None:
    scene.proxy.rest = Fault(lambda body: (413, "too large") if len(body) > 2_000 else None)
    sent = scene.sink.send(
        [push(name, number, name * (3_000 if name == "d" else 400)) for number, name in enumerate("abcdefgh", 1)]
    )
    assert [(refusal.order.url[-1], refusal.reason) for refusal in sent.refused] == [("d", "it is too large for the server")]
    assert set(scene.texts) == set("abcefgh")


def test_a_request_that_is_refused_for_one_document_is_divided_until_that_is_alone(scene: Scene, kind: str) -> None:
    scene.proxy.rest = Fault(lambda body: (400, BAD[kind]) if b"poison" in body else None)
    sent = scene.sink.send([push(name, number, "poison" if name == "f" else "") for number, name in enumerate("abcdefgh", 1)])
    assert [(refusal.order.url[-1], "bad line" in refusal.reason) for refusal in sent.refused] == [("f", True)]
    assert set(scene.texts) == set("abcdegh")


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


@pytest.mark.parametrize(("there", "owner", "order", "is_done", "text"), CONFLICTS)
def test_a_conflict_is_decided_by_version_and_owner(
    scene: Scene, there: IndexOrder, owner: str, order: IndexOrder, text: str | None, *, is_done: bool
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


def test_versions_are_raised_above_those_of_the_server(scene: Scene) -> None:
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
