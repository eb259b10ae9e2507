"""Messages about a server or an index that accepts nothing, or cannot be read: which one, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Reply
from crawlspace.index.marks import BatchMark
from crawlspace.index.opensearch.sink import TESTED, product_of
from tests.command_line import ROOT
from tests.fault_proxy import FaultProxy, answers, error
from tests.search_server import INDEX, search_server
from tests.unit.index.faulty import FaultyScene, push
from tests.unit.index.opensearch.test_failures import Scene


@pytest.fixture(params=["/_bulk", "/_search"])
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
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
        "cluster_block_exception: index [intranet-000001] blocked by: [FORBIDDEN/5/index read-only (api)]; end that, and what waits is sent",
    ),
    (
        "cluster_block_exception",
        f"{FULL};",
        f"cluster_block_exception: {FULL}; free space on the disks of the server",
    ),
    ("security_exception", "no permissions", "security_exception: no permissions"),
]


@pytest.mark.parametrize("scene", ["/_bulk"], indirect=True)
@pytest.mark.parametrize(("kind", "reason", "reported"), REFUSALS)
def test_an_index_that_takes_nothing(scene: Scene, kind: str, reason: str, reported: str) -> None:
    assert not scene.sink.send([push("a", 1)]).why_later
    scene.proxy.faults = [answers(400, error(kind, reason))]
    sent = scene.sink.send([push("a", 2)], BatchMark("x", 2))
    assert sent.why_later == f"{INDEX} at {scene.proxy.url} accepts no documents at present: {reported}"


@pytest.mark.parametrize("scene", ["/_bulk"], indirect=True)
def test_a_cause_that_says_the_same_again_is_left_out(scene: Scene) -> None:
    wrong = {"type": "mapper_parsing_exception", "reason": "Failed: no handler", "caused_by": {"reason": "no handler"}}
    scene.proxy.faults = [answers(400, {"error": wrong})]
    (refused,) = scene.sink.send([push("a", 1)]).refused
    assert refused.reason == "mapper_parsing_exception: Failed: no handler"


@pytest.mark.parametrize("scene", ["/_search"], indirect=True)
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
def test_an_index_that_cannot_be_listed_says_why(scene: Scene, kind: str, reason: str, reported: str) -> None:
    scene.sink.send([push("a", 1)])
    whole = {"type": "search_phase_execution_exception", "reason": "all shards failed"}
    scene.proxy.faults = [answers(400, {"error": whole | {"root_cause": [{"type": kind, "reason": reason}]}})]
    with pytest.raises(IndexUnavailable) as raised:
        list(scene.sink.entries(owner="demo"))
    assert str(raised.value) == f"{scene.proxy.url} does not return the documents of intranet: {reported}"


@pytest.mark.parametrize("scene", ["/_search"], indirect=True)
def test_an_index_that_has_taken_nothing_yet_can_be_listed(scene: Scene) -> None:
    """Its mapping has no field then, where the template has none."""
    scene.search.ask("PUT", f"/{INDEX}-000001", {"aliases": {INDEX: {"is_write_index": True}}})
    assert list(scene.sink.entries(owner="demo")) == []


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
