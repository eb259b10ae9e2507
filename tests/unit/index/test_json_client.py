"""The client of a server, as a crawl uses it."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

from crawlspace.model import Document, IndexOrder, Op
from tests.contract.sinks import OrderReceiver
from tests.search_server import sink_of


def test_it_is_closed_where_a_loop_runs(tmp_path: Path) -> None:
    """A crawl sends on other threads, and closes its sinks on that of its loop."""

    async def crawl() -> None:
        order = IndexOrder(1, Op.PUSH, "http://a.example/", Document("http://a.example/"), version=1)
        await asyncio.to_thread(sink.send, [order])
        sink.close()

    with closing(OrderReceiver()) as receiver:
        sink = sink_of(tmp_path, {"type": "http", "url": receiver.url})
        asyncio.run(crawl())
        assert receiver.orders.get("http://a.example/") is not None
