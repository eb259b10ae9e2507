"""What the sink for OpenSearch does when a request or single documents fail: nothing is lost, and nothing held up by one document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from crawlspace.errors import IndexUnavailable
from crawlspace.index.marks import BatchMark
from tests.fault_proxy import Fault, answers, error
from tests.quick import some
from tests.search_server import INDEX, SearchServer
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
