"""What is reported of an index that takes nothing, or does not return the documents of it: which one, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from crawlspace.errors import IndexUnavailable
from crawlspace.index.marks import BatchMark
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
