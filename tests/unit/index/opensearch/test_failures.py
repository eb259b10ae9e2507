"""What the sink for OpenSearch does when a request or single documents fail: nothing is lost, and nothing held up by one document."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from crawlspace.clock import FakeClock
from crawlspace.errors import IndexUnavailable
from crawlspace.index.marks import BatchMark
from crawlspace.index.opensearch.sink import OpenSearchSink
from crawlspace.index.outbox import Drain
from crawlspace.model import Document, IndexOrder, Op
from crawlspace.state.memory.store import MemoryStore
from crawlspace.urls import document_id
from tests.contract.conftest import Known, full
from tests.fault_proxy import Fault, FaultProxy, answers, error
from tests.search_server import INDEX, SearchServer, search_server, sink_of

LATER = BatchMark("x", 2)


class Scene:
    def __init__(self, search: SearchServer, proxy: FaultProxy, folder: Path, **options: object) -> None:
        self.search, self.proxy, self.folder = search, proxy, folder
        self.opened = ExitStack()
        self.sink: OpenSearchSink = self.another(**options)

    def another(self, collection: str = "demo", /, **options: object) -> Any:
        made = sink_of(self.folder, {**self.search.options(**options), "url": self.proxy.url}, collection=collection)
        self.opened.callback(made.close)
        return made

    @property
    def texts(self) -> dict[str, str]:
        return {url[-1]: document["text"]["other"] for url, document in self.search.documents().items()}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        search = stack.enter_context(search_server())
        proxy = stack.enter_context(closing(FaultProxy(search.url)))
        made = Scene(search, proxy, tmp_path)
        stack.enter_context(made.opened)
        yield made


def push(name: str, version: int, text: str = "") -> IndexOrder:
    url = f"http://a.example/{name}"
    return IndexOrder(version, Op.PUSH, url, Document(url, text=text or f"text {name}"), version=version)


def delete(name: str, version: int) -> IndexOrder:
    return IndexOrder(version, Op.DELETE, f"http://a.example/{name}", version=version)


def item_error(kind: str, status: int) -> Fault:
    """The server answers for the first document that it failed."""

    def change(body: dict[str, Any]) -> object:
        (name, item), *_ = body["items"][0].items()
        body["items"][0] = {name: {"_id": item["_id"], "status": status, **error(kind)}}
        return {**body, "errors": True}

    return Fault(change=change)


def fewer(body: dict[str, Any]) -> object:
    return {**body, "items": body["items"][:1]}


# What happens to the request with a, b and c; then what is done, refused, and sent later; and whether smaller batches may help.
FAULTS: list[tuple[str, list[Fault], str, str, str, bool]] = [
    ("nothing", [], "abc", "", "", False),
    ("too many requests", [answers(429, error("es_rejected_execution_exception"))], "", "", "abc", True),
    ("not ready", [answers(503, "nothing but text")], "", "", "abc", True),
    ("wrong password", [answers(401, error("security_exception"))], "", "", "abc", False),
    ("no right to write", [answers(403, error("security_exception"))], "", "", "abc", False),
    ("a fault of the server", [answers(500, "Internal Server Error")], "", "", "abc", False),
    ("a gateway's page", [answers(502, "<html>")], "", "", "abc", False),
    ("fewer answers than items", [Fault(change=fewer)], "a", "", "bc", False),
    ("a document that is refused", [item_error("mapper_parsing_exception", 400)], "bc", "a", "", False),
    ("field limit", [item_error("illegal_argument_exception", 400)], "bc", "a", "", False),
    ("closed index", [item_error("index_closed_exception", 400)], "bc", "", "a", False),
    ("disk too full", [item_error("cluster_block_exception", 429)], "bc", "", "a", False),
    ("index read-only", [item_error("cluster_block_exception", 403)], "bc", "", "a", False),
    ("a busy shard", [item_error("es_rejected_execution_exception", 429)], "bc", "", "a", True),
    ("a pipeline fails, and not when alone", [item_error("fail_processor_exception", 500)], "abc", "", "", False),
    (
        "a pipeline fails on it alone, too",
        [item_error("fail_processor_exception", 500), item_error("fail_processor_exception", 500)],
        "bc",
        "a",
        "",
        False,
    ),
    ("something that nobody has heard of", [item_error("unheard_of_exception", 418)], "bc", "", "a", False),
]


@pytest.mark.parametrize(("name", "faults", "done", "refused", "later", "is_slow"), FAULTS, ids=[row[0] for row in FAULTS])
def test_each_item_is_judged_by_its_own_answer(
    scene: Scene, name: str, faults: list[Fault], done: str, refused: str, later: str, *, is_slow: bool
) -> None:
    scene.proxy.faults = list(faults)
    orders = {name: push(name, number) for number, name in enumerate("abc", 1)}
    sent = scene.sink.send(list(orders.values()))
    assert "".join(refusal.order.url[-1] for refusal in sent.refused) == refused
    assert "".join(sorted(order.url[-1] for order in sent.later)) == later
    assert (bool(sent.why_later), sent.is_slow) == (bool(later), is_slow)
    assert not scene.proxy.faults
    assert not scene.sink.send(sent.later).later, "once it is well again"
    assert set(scene.texts) >= set(done + later), name


def test_a_connection_that_is_cut_says_so(scene: Scene) -> None:
    for fault in (Fault(cut=True), Fault(lose=True)):
        scene.proxy.faults = [fault]
        with pytest.raises(IndexUnavailable, match="cannot be reached"):
            scene.sink.send([push("a", 1)])
        assert not scene.sink.send([push("a", 1), push("b", 2)]).refused
    assert set(scene.texts) == {"a", "b"}


def test_a_server_that_does_not_answer_in_time_is_not_called_unreachable(scene: Scene) -> None:
    is_over = Event()

    def held(_: bytes) -> None:
        is_over.wait(600)

    scene.proxy.faults = [Fault(held)]
    with pytest.raises(IndexUnavailable, match="has not answered within 1 s"):
        scene.another(timeout=1).send([push("a", 1)])
    is_over.set()


def test_a_request_that_is_too_large_is_divided_and_one_that_cannot_be_is_refused(scene: Scene) -> None:
    scene.proxy.rest = Fault(lambda body: (413, "too large") if len(body) > 2_000 else None)
    sent = scene.sink.send(
        [push(name, number, name * (3_000 if name == "d" else 400)) for number, name in enumerate("abcdefgh", 1)]
    )
    assert [(refusal.order.url[-1], refusal.reason) for refusal in sent.refused] == [("d", "it is too large for the server")]
    assert set(scene.texts) == set("abcefgh")


def test_a_request_that_is_refused_for_one_document_is_divided_until_that_is_alone(scene: Scene) -> None:
    scene.proxy.rest = Fault(lambda body: (400, error("parse_exception", "bad line")) if b"poison" in body else None)
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


def test_an_alias_that_is_gone_is_not_made_anew(scene: Scene) -> None:
    scene.sink.send([push("a", 1)], BatchMark("x", 1))
    scene.search.ask("DELETE", f"/{INDEX}-000001")
    with pytest.raises(IndexUnavailable, match=r"is not there any more.*scrapy sinks demo --fill search"):
        scene.another().send([delete("a", 2)], LATER)
    assert f"{INDEX}-000001" not in scene.search.ask("GET", "/_aliases")
    sent = scene.sink.send([push("b", 3)], LATER)
    assert [order.url[-1] for order in sent.later] == ["b"]
    with pytest.raises(IndexUnavailable, match="is not there any more"):
        scene.sink.send([push("b", 3)], LATER)


def test_an_index_that_has_the_name_of_the_alias_is_not_written_to(scene: Scene) -> None:
    scene.search.ask("PUT", f"/{INDEX}")
    with pytest.raises(IndexUnavailable, match=f"{INDEX} at .* is an index, and must be an alias"):
        scene.sink.send([push("a", 1)])


SERVERS = [
    (200, {"hello": "world"}, "is no OpenSearch or Elasticsearch"),
    (404, "not found", "is no OpenSearch or Elasticsearch"),
    (401, error("security_exception"), "refuses access"),
    (503, "later", "is not ready"),
    (200, {"version": {"number": "6.8.23"}, "tagline": "You Know, for Search"}, "is Elasticsearch 6.8.23; 7.10 is the oldest"),
]


@pytest.mark.parametrize(("status", "body", "sentence"), SERVERS)
def test_another_server_is_named(scene: Scene, status: int, body: object, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = scene.sink._client.request

    async def answered(method: str, path: str, **options: Any) -> Any:
        reply = await request(method, path, **options)
        return type(reply)(status, body) if path == "/" else reply

    monkeypatch.setattr(scene.sink._client, "request", answered)
    with pytest.raises(IndexUnavailable, match=sentence):
        scene.sink.send([push("a", 1)])


def test_a_mapping_of_the_users_own(scene: Scene) -> None:
    template = scene.folder / "own.json"
    properties = {"title": {"type": "text"}, "text": {"type": "text"}, "url": {"type": "keyword"}}
    template.write_text(json.dumps({"mappings": {"properties": properties}}))
    with closing(scene.another(template=str(template))) as sink:
        sink.send([push("a", 1, "plain")])
    assert scene.search.documents()["http://a.example/a"]["text"] == "plain"


@pytest.mark.parametrize("seed", range(20))
def test_after_any_faults_the_index_is_as_the_store(scene: Scene, seed: int) -> None:
    chance, clock, store = random.Random(seed), FakeClock(), MemoryStore(sinks=("search",))
    known, names = Known(store), [f"a.example/{name}" for name in "abcdefghij"]
    known.discover(*names)
    kinds = [Fault(cut=True), Fault(lose=True), Fault(change=fewer), answers(429, error("es_rejected_execution_exception"))]
    kinds += [answers(503, ""), answers(500, ""), item_error("cluster_block_exception", 403)]
    drain = Drain(store, scene.sink, clock, batch=4)
    for step in range(30):
        name = chance.choice(names)
        if chance.random() < 0.6:
            known.record(known.page(name, f"{step}", text=f"text of {step}"))
        else:
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
