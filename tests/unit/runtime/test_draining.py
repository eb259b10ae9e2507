"""How the pipeline drains the outbox: one batch at a time, and none any more when the spider is closed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

import crawlspace.runtime.pipelines.index as module
from crawlspace.errors import StoreError
from crawlspace.runtime.session import Session
from pipelines.index import DrainIndex


class Outbox:
    """Stands for session, engine and drain: so many batches, each sent in a few turns of the loop."""

    error: Exception | None = None
    shared = None

    def __init__(self, batches: int) -> None:
        self.engine = self.drain = self
        self.backlog = self.left = batches
        self.sending = 0
        self.most_at_once = 0
        self.is_closed = False

    def commit(self, crawler: object) -> None: ...

    def take(self) -> list[int]:
        return [self.left] if self.left else []

    async def deliver(self, batch: list[int]) -> int:
        assert not self.is_closed
        self.sending += 1
        self.most_at_once = max(self.most_at_once, self.sending)
        for _ in range(3):
            await asyncio.sleep(0)
        self.sending -= 1
        return len(batch)

    def settle(self, delivered: int) -> Any:
        self.left -= delivered
        self.backlog = self.left
        return SimpleNamespace(waiting_s=None)


@pytest.mark.parametrize("turns", range(6), ids="{} turns before the end".format)
def test_a_tick_and_the_end_do_not_send_both(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    outbox = Outbox(3)
    crawler: Any = SimpleNamespace(spider=SimpleNamespace(session=outbox))
    drain = DrainIndex(crawler)

    async def no_thread(job: Any, *args: Any) -> Any:
        result = job(*args)
        return await result if asyncio.iscoroutine(result) else result

    async def crawl() -> None:
        tick = asyncio.create_task(drain._tick())  # as the looping call does it: it begins with the loop's next turn
        for _ in range(turns):
            await asyncio.sleep(0)
        await drain.close_spider()
        outbox.is_closed = True
        await tick

    monkeypatch.setattr(module, "deferToThread", no_thread)
    monkeypatch.setattr(module, "maybe_deferred_to_future", lambda awaitable: awaitable)
    asyncio.run(crawl())
    assert (outbox.left, outbox.most_at_once) == (0, 1)


def test_an_error_after_the_end_closes_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    async def closed(*, reason: str) -> None:
        raise RuntimeError("Spider not opened")

    engine = SimpleNamespace(spider=object(), close_spider_async=closed)
    crawler: Any = SimpleNamespace(engine=engine)
    session = Session.__new__(Session)
    session.error = None

    async def crawl() -> None:
        tasks: list[asyncio.Task[None]] = []
        monkeypatch.setattr("scrapy.utils.defer._schedule_coro", lambda coro: tasks.append(asyncio.create_task(coro)))
        session.fail(StoreError("full"), crawler)
        engine.spider = None  # the end came first
        await asyncio.gather(*tasks)

    asyncio.run(crawl())
    assert str(session.error) == "full"
