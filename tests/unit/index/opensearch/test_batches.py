"""How many orders are sent at once, and in how many requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawlspace.clock import FakeClock
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.outbox import Drain
from crawlspace.index.sink import Sent
from tests.contract.conftest import Known
from tests.contract.memory.store import MemoryStore
from tests.fault_proxy import Fault, FaultProxy, error
from tests.quick import some
from tests.search_server import search_server, sink_of


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
