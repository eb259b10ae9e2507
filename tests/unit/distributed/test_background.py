"""What runs behind the crawl while the server is away: again and again, and at the end not for much longer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from crawlspace.distributed import background as module
from crawlspace.distributed.background import MAX_WAIT_WHEN_DONE_S, MAX_WAIT_WHEN_STOPPED_S, ServerThread
from crawlspace.errors import StoreAway, StoreError, StoreFull


class Server:
    """One that fails as often as it is told to; each call takes a while by the clock that the thread looks at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.failures: Iterator[StoreError] = iter(())
        self.calls: list[str] = []
        monkeypatch.setattr(module, "monotonic", lambda: self.now)
        monkeypatch.setattr(module, "PAUSE_S", 0.0)

    def call(self, name: str) -> str:
        self.calls.append(name)
        self.now += 4
        for failure in self.failures:
            raise failure
        return name


class Crawl:
    """What the crawl's thread hears."""

    def __init__(self, server: Server) -> None:
        self.thread = ServerThread()
        self.server = server
        self.done: list[str] = []
        self.failed: list[BaseException] = []

    async def begin(self) -> None:
        self.thread.begin(self.failed.append)

    def do(self, name: str) -> None:
        self.thread.do(lambda: self.server.call(name), self.done.append)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def away(times: int) -> Iterator[StoreError]:
    return iter([StoreAway("Redis cannot be reached")] * times)


def test_calls_to_an_unreachable_server_are_repeated_until_it_answers(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl(server)
    asyncio.run(crawl.begin())
    server.failures = away(50)
    crawl.do("a")
    crawl.do("b")
    crawl.thread.settle()
    assert server.calls == ["a"] * 51 + ["b"]
    assert crawl.done == ["a", "b"]
    assert [record.message.partition(";")[0] for record in caplog.records] == [
        "Redis cannot be reached",
        "Redis answers again, the crawl continues",
    ]
    crawl.thread.finish()


def test_at_the_end_it_is_waited_for_once_and_not_by_each_call(server: Server) -> None:
    crawl = Crawl(server)
    asyncio.run(crawl.begin())
    crawl.thread.hurry()
    server.failures = away(1000)
    for name in "abc":
        crawl.do(name)
    crawl.thread.finish()
    assert server.now - MAX_WAIT_WHEN_STOPPED_S < 4, "the last try began before the patience was over"
    assert set(server.calls) == {"a"}
    assert [type(error) for error in crawl.failed] == [StoreAway] * 3
    assert not crawl.done


def test_at_the_end_one_that_comes_back_gets_the_rest(server: Server) -> None:
    crawl = Crawl(server)
    asyncio.run(crawl.begin())
    crawl.thread.hurry()
    server.failures = away(2)
    for name in "abc":
        crawl.do(name)
    crawl.thread.finish()
    assert crawl.done == ["a", "b", "c"]


def test_at_the_end_a_full_server_still_gets_calls_that_need_no_memory(server: Server) -> None:
    crawl = Crawl(server)
    asyncio.run(crawl.begin())
    crawl.thread.hurry()
    server.now = MAX_WAIT_WHEN_STOPPED_S
    server.failures = iter([StoreFull("Redis is full")])
    for name in "ab":
        crawl.do(name)
    crawl.thread.finish()
    assert (crawl.done, len(crawl.failed)) == (["b"], 1)


def test_calls_on_the_thread_of_a_crawl_that_ends_are_repeated_until_one_absence_was_too_long(server: Server) -> None:
    thread = ServerThread()
    assert not thread.tries_again(server.now), "it does not end yet"
    server.now = 100.0
    thread.hurry()
    server.now = 200.0
    assert thread.tries_again(200.0)
    server.now += MAX_WAIT_WHEN_STOPPED_S - 1
    assert thread.tries_again(200.0)
    assert thread.tries_again(server.now), "another absence"
    server.now += 1
    assert not thread.tries_again(200.0)
    assert not thread.tries_again(server.now)
    thread.finish()


def test_a_crawl_that_is_done_waits_longer(server: Server) -> None:
    thread = ServerThread()
    thread.hurry(MAX_WAIT_WHEN_DONE_S)
    server.now = MAX_WAIT_WHEN_DONE_S - 1
    assert thread.tries_again(0.0)
    thread.finish()
