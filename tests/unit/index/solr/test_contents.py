"""What the sink for Solr tells of its index: documents that are not committed yet, too, and nothing of what is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawlspace.errors import IndexUnavailable
from crawlspace.index.sink import Entry, Inventory, Sent
from tests.fault_proxy import Fault, FaultProxy
from tests.search_server import sink_of
from tests.solr_server import SolrServer, solr_server
from tests.unit.index.faulty import delete, push


@pytest.fixture
def server() -> Iterator[SolrServer]:
    with solr_server() as made:
        yield made


def url(name: object) -> str:
    return f"http://a.example/{name}"


def test_what_there_is_at_this_moment(server: SolrServer, tmp_path: Path) -> None:
    late = server.options(commit_within=3600)
    with closing(sink_of(tmp_path, late)) as sink, closing(sink_of(tmp_path, late, collection="other")) as other:
        sink.send([push("a", 1), push("b", 2), push("c", 3)])
        other.send([push("d", 4), push("b", 5)])
        sink.send([delete("c", 6), delete("x", 7)])
        asked = [url(name) for name in "abcdx"]
        expected = {"a": (1, "demo"), "b": (5, "other"), "d": (4, "other")}
        assert sink.look_up(asked) == {url(name): Entry(url(name), *rest) for name, rest in expected.items()}
        assert sink.look_up([]) == {}
        assert isinstance(sink, Inventory)
        assert list(sink.entries(owner="demo")) == [[Entry(url("a"), 1, "demo")]]
        of_other = {entry.url[-1]: entry.version for page in sink.entries(owner="other") for entry in page}
        assert of_other == {"b": 5, "d": 4}
        assert list(sink.entries(owner="nobody")) == []


def test_more_than_a_page(server: SolrServer, tmp_path: Path) -> None:
    with closing(sink_of(tmp_path, server.options())) as sink:
        orders = [push(f"{number}", number) for number in range(1, 2_351)]
        assert not sink.send(orders).later
        pages = list(sink.entries(owner="demo"))
        assert [len(page) for page in pages] == [1_000, 1_000, 350]
        assert {entry.url: entry.version for page in pages for entry in page} == {order.url: order.version for order in orders}
        assert len(sink.look_up([order.url for order in orders])) == len(orders)


def without_documents(body: dict[str, Any]) -> object:
    """Solr misses what it commits at that moment."""
    return {**body, "response": {"numFound": 0, "docs": []}}


def test_what_is_missed_at_first_is_looked_up_again(server: SolrServer, tmp_path: Path) -> None:
    with closing(FaultProxy(server.url, path="/get")) as proxy:
        with closing(sink_of(tmp_path, server.options() | {"url": proxy.url})) as sink:
            missed = Fault(change=without_documents)
            proxy.faults = [missed]
            assert sink.send([push("a", 1)]) == Sent([], [])
            proxy.faults = [missed]
            assert list(sink.look_up([url("a")])) == [url("a")]
            sink.send([push("a", 9)])
            proxy.rest = missed
            late = sink.send([delete("a", 5)])
            assert [order.url for order in late.later] == [url("a")], "there is a later version, whatever the server tells"
            proxy.rest = None
            assert sink.send([delete("a", 5)]).above == 9


def in_part(body: dict[str, Any]) -> object:
    return {**body, "responseHeader": {"status": 0, "partialResults": True}}


def of_somebody(_: dict[str, Any]) -> object:
    return {"hello": "world"}


@pytest.mark.parametrize("path", ["/select", "/get"])
@pytest.mark.parametrize("change", [in_part, of_somebody])
def test_an_answer_in_part_is_not_taken_for_all(server: SolrServer, tmp_path: Path, path: str, change: Any) -> None:
    with closing(FaultProxy(server.url, path=path)) as proxy:
        with closing(sink_of(tmp_path, server.options() | {"url": proxy.url})) as sink:
            sink.send([push("a", 1)])
            proxy.rest = Fault(change=change)
            with pytest.raises(IndexUnavailable, match="does not answer in full"):
                list(sink.entries(owner="demo")) if path == "/select" else sink.look_up([url("a")])
