"""The sink for OpenSearch: failures of requests and of single documents, their messages, and the size of batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from crawlspace.clock import FakeClock
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.json_client import Reply
from crawlspace.index.marks import BatchMark
from crawlspace.index.opensearch.sink import TESTED, product_of
from crawlspace.index.outbox import Drain
from crawlspace.index.sink import Sent
from tests.command_line import ROOT
from tests.contract.conftest import Known
from tests.contract.memory.store import MemoryStore
from tests.fault_proxy import Fault, FaultProxy, answers, error
from tests.quick import some
from tests.search_server import INDEX, SearchServer, search_server, sink_of
from tests.unit.index.faulty import FaultyScene, check_answers, check_random_faults, delete, faulty, push

LATER = BatchMark("x", 2)
Scene = FaultyScene[SearchServer]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with faulty("opensearch", tmp_path) as made:
        yield made


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
    check_answers(scene, done, refused, later, is_slow=is_slow)


def test_a_server_that_does_not_answer_in_time_is_not_called_unreachable(scene: Scene) -> None:
    is_over = Event()

    def held(_: bytes) -> None:
        is_over.wait(600)

    scene.proxy.faults = [Fault(held)]
    with pytest.raises(IndexUnavailable, match="has not answered within 1 s"):
        scene.another(timeout=1).send([push("a", 1)])
    is_over.set()


def test_an_alias_that_is_gone_is_not_made_again(scene: Scene) -> None:
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


@pytest.mark.parametrize("seed", some(range(20), 5))
def test_after_any_faults_the_index_is_as_the_store(scene: Scene, seed: int) -> None:
    kinds = [Fault(cut=True), Fault(lose=True), Fault(change=fewer), answers(429, error("es_rejected_execution_exception"))]
    kinds += [answers(503, ""), answers(500, ""), item_error("cluster_block_exception", 403)]
    check_random_faults(scene, kinds, seed)


# --- messages -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["/_bulk", "/_search"])
def refusing(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    with ExitStack() as stack:
        search = stack.enter_context(search_server())
        proxy = stack.enter_context(closing(FaultProxy(search.url, path=request.param)))
        made: Scene = FaultyScene(search, proxy, tmp_path, lambda document: str(document["text"]["other"]))
        stack.enter_context(made.opened)
        yield made


FULL = (
    "index [intranet-000001] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has"
    " read-only-allow-delete block]"
)

# Type and reason as OpenSearch 2.19.1 gives them; what is reported.
REFUSALS = [
    ("index_closed_exception", "closed", "index_closed_exception: closed; open the index again"),
    (
        "cluster_block_exception",
        "index [intranet-000001] blocked by: [FORBIDDEN/5/index read-only (api)];",
        "cluster_block_exception: index [intranet-000001] blocked by: [FORBIDDEN/5/index read-only (api)]; end that, and waiting orders are sent",
    ),
    (
        "cluster_block_exception",
        f"{FULL};",
        f"cluster_block_exception: {FULL}; free space on the disks of the server",
    ),
    ("security_exception", "no permissions", "security_exception: no permissions"),
]


@pytest.mark.parametrize("refusing", ["/_bulk"], indirect=True)
@pytest.mark.parametrize(("kind", "reason", "reported"), REFUSALS)
def test_an_index_that_takes_nothing(refusing: Scene, kind: str, reason: str, reported: str) -> None:
    assert not refusing.sink.send([push("a", 1)]).why_later
    refusing.proxy.faults = [answers(400, error(kind, reason))]
    sent = refusing.sink.send([push("a", 2)], BatchMark("x", 2))
    assert sent.why_later == f"{INDEX} at {refusing.proxy.url} accepts no documents at present: {reported}"


@pytest.mark.parametrize("refusing", ["/_bulk"], indirect=True)
def test_a_cause_that_says_the_same_again_is_left_out(refusing: Scene) -> None:
    wrong = {"type": "mapper_parsing_exception", "reason": "Failed: no handler", "caused_by": {"reason": "no handler"}}
    refusing.proxy.faults = [answers(400, {"error": wrong})]
    (refused,) = refusing.sink.send([push("a", 1)]).refused
    assert refused.reason == "mapper_parsing_exception: Failed: no handler"


@pytest.mark.parametrize("refusing", ["/_search"], indirect=True)
@pytest.mark.parametrize(
    ("kind", "reason", "reported"),
    [
        ("index_closed_exception", "closed", "index_closed_exception: closed"),
        (
            "illegal_argument_exception",
            "Text fields are not optimised for operations that require per-document field data like aggregations and sorting",
            "its documents cannot be put in order; the template must have the field id as keyword",
        ),
    ],
)
def test_an_index_that_cannot_be_listed_says_why(refusing: Scene, kind: str, reason: str, reported: str) -> None:
    refusing.sink.send([push("a", 1)])
    whole = {"type": "search_phase_execution_exception", "reason": "all shards failed"}
    refusing.proxy.faults = [answers(400, {"error": whole | {"root_cause": [{"type": kind, "reason": reason}]}})]
    with pytest.raises(IndexUnavailable) as raised:
        list(refusing.sink.entries(owner="demo"))
    assert str(raised.value) == f"{refusing.proxy.url} does not return the documents of intranet: {reported}"


@pytest.mark.parametrize("refusing", ["/_search"], indirect=True)
def test_an_index_that_has_taken_nothing_yet_can_be_listed(refusing: Scene) -> None:
    """Its mapping has no field then, where the template has none."""
    refusing.search.ask("PUT", f"/{INDEX}-000001", {"aliases": {INDEX: {"is_write_index": True}}})
    assert list(refusing.sink.entries(owner="demo")) == []


def body(number: object, distribution: str = "") -> dict[str, object]:
    return {"version": {"number": number} | ({"distribution": distribution} if distribution else {})}


KNOWN = [
    (body("2.19.1", "opensearch"), "OpenSearch 2.19.1", "flat_object", ""),
    (body("2.19.4", "opensearch"), "OpenSearch 2.19.4", "flat_object", ""),
    (body("3.8.0", "opensearch"), "OpenSearch 3.8.0", "flat_object", "OpenSearch 3.8.0 was not tried by us;"),
    (body("1.0.0", "opensearch"), "OpenSearch 1.0.0", "flat_object", "OpenSearch 1.0.0 was not tried by us;"),
    (body("7.10.2"), "Elasticsearch 7.10.2", "flattened", ""),
    (body("7.1.2", "opensearch"), "OpenSearch 7.1.2", "flat_object", "OpenSearch 7.1.2 was not tried by us;"),
    (body("9.1.0"), "Elasticsearch 9.1.0", "flattened", "Elasticsearch 9.1.0 was not tried by us;"),
    (body("10.0.0-SNAPSHOT"), "Elasticsearch 10.0.0-SNAPSHOT", "flattened", "Elasticsearch 10.0.0-SNAPSHOT was not tried"),
]


@pytest.mark.parametrize(("answer", "name", "flat_type", "warning"), KNOWN)
def test_products(answer: object, name: str, flat_type: str, warning: str) -> None:
    product = product_of("http://h", Reply(200, answer))
    assert (str(product), product.flat_type) == (name, flat_type)
    assert product.warning.startswith(warning)
    assert bool(product.warning) == bool(warning)


REFUSED = [
    (body("7.9.3"), "is Elasticsearch 7.9.3; 7.10 is the oldest that is supported"),
    (body("0.9.0", "opensearch"), "is OpenSearch 0.9.0; 1.0 is the oldest that is supported"),
    (body("new"), "is no OpenSearch or Elasticsearch"),
    (body(None), "is no OpenSearch or Elasticsearch"),
    (body("7.10.2\nand a line of its own"), "is no OpenSearch or Elasticsearch"),
]


@pytest.mark.parametrize(("answer", "sentence"), REFUSED)
def test_what_is_none_or_too_old_is_named(answer: object, sentence: str) -> None:
    with pytest.raises(IndexUnavailable, match=sentence):
        product_of("http://h", Reply(200, answer))


def test_the_versions_that_were_tried_are_documented() -> None:
    text = (ROOT / "docs" / "sinks.md").read_text(encoding="utf-8")
    for name, numbers in TESTED.items():
        for number in numbers:
            assert f"| {name} {number} |" in text


# --- batches --------------------------------------------------------------------------------------------------------


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    with search_server() as search, closing(FaultProxy(search.url)) as made:
        yield made


def sink(stack: ExitStack, proxy: FaultProxy, folder: Path, **more: object) -> Any:
    options = {"type": "opensearch", "url": proxy.url, "index": "intranet", "replicas": 0, **more}
    return stack.enter_context(closing(sink_of(folder, options)))


def pushes(number: int) -> list[IndexOrder]:
    urls = [f"http://a.example/{one}" for one in range(1, number + 1)]
    return [IndexOrder(one, Op.PUSH, url, Document(url, text="text"), version=one) for one, url in enumerate(urls, 1)]


@pytest.mark.parametrize(
    ("orders", "connections", "requests"),
    some([(1, 4, 1), (50, 4, 1), (51, 4, 2), (400, 4, 4), (400, 2, 2), (1000, 1, 2), (1000, 4, 4)], 3),
)
def test_a_batch_is_divided_among_the_connections(
    proxy: FaultProxy, tmp_path: Path, orders: int, connections: int, requests: int
) -> None:
    with ExitStack() as stack:
        sent = sink(stack, proxy, tmp_path, connections=connections).send(pushes(orders))
    assert (sent.refused, sent.later, proxy.bulks) == ([], [], requests)


def test_a_server_is_sent_more_at_once_than_a_file(proxy: FaultProxy, tmp_path: Path) -> None:
    store = MemoryStore(sinks=("search", "embedded"))
    known = Known(store)
    names = [f"a.example/{number}" for number in range(2_100)]
    known.discover(*names)
    known.record(*(known.page(name, name) for name in names))
    with ExitStack() as stack:
        to_server = sink(stack, proxy, tmp_path)
        to_file = stack.enter_context(closing(EmbeddedIndex(tmp_path / "index.db")))
        assert [len(Drain(store, one, FakeClock()).take()) for one in (to_server, to_file)] == [2_000, 200]


@pytest.mark.parametrize("quoted", ["half a pair \ud800", "nothing unusual"])
def test_an_answer_that_quotes_what_is_no_text_is_understood(proxy: FaultProxy, tmp_path: Path, quoted: str) -> None:
    def change(body: dict[str, Any]) -> object:
        (item, *others) = body["items"]
        return {
            **body,
            "items": [{"index": {**item["index"], "status": 400, **error("mapper_parsing_exception", quoted)}}, *others],
        }

    proxy.faults = [Fault(change=change)]
    with ExitStack() as stack:
        sent = sink(stack, proxy, tmp_path).send(pushes(2))
    assert [refusal.order.sequence for refusal in sent.refused] == [1]
    assert not sent.later


def large(number: int) -> list[IndexOrder]:
    """Orders each of which is a request of its own."""
    return [replace(order, document=Document(order.url, text="text " * 1_500)) for order in pushes(number)]


@pytest.mark.parametrize("fault", [Fault(cut=True), Fault(lose=True)])
def test_a_request_that_is_cut_leaves_the_others_done(proxy: FaultProxy, tmp_path: Path, fault: Fault) -> None:
    proxy.faults = [fault]
    with ExitStack() as stack:
        opened = sink(stack, proxy, tmp_path, batch_bytes=10_000)
        sent = opened.send(large(4))
        assert (len(sent.later), sent.refused, proxy.bulks) == (1, [], 4)
        assert "cannot be reached" in sent.why_later
        assert opened.send(sent.later) == Sent([], [])
    assert proxy.bulks == 5


def test_conflicts_that_cannot_be_looked_up_leave_the_others_done(proxy: FaultProxy, tmp_path: Path) -> None:
    with ExitStack() as stack:
        opened = sink(stack, proxy, tmp_path)
        opened.send(pushes(1))
        proxy.beside = Fault(lambda body: (502, "<html>") if b'"ids"' in body else None)
        sent = opened.send(pushes(3))
        assert [order.sequence for order in sent.later] == [1]
        proxy.beside = None
        assert opened.send(sent.later) == Sent([], [])
