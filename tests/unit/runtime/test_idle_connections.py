"""Connections that are kept for later are bounded, over Twisted's own pool."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.web.client import HTTPConnectionPool

from crawlspace.runtime.http.http_internals import bound_idle_connections
from crawlspace.runtime.http.kept_connections import LoopTimers

MOST = 3


class Connection:
    state = "QUIESCENT"

    def __init__(self, site: str) -> None:
        self.site = site
        self.closed = False
        self.transport = self

    def loseConnection(self) -> None:
        self.closed = True


class Pool:
    def __init__(self) -> None:
        self.clock = Clock()
        self.pool = HTTPConnectionPool(self.clock)
        self.connections: list[Connection] = []
        bound_idle_connections(self.pool, MOST)

    def keep(self, *sites: str) -> None:
        for site in sites:
            connection = Connection(site)
            self.connections.append(connection)
            self.pool._putConnection((b"http", site.encode(), 80), connection)
            self.clock.advance(1)

    @property
    def open(self) -> str:
        return "".join(one.site for one in self.connections if not one.closed)


@pytest.mark.parametrize(
    ("sites", "open_"),
    [("abc", "abc"), ("abcd", "bcd"), ("abcabc", "abc"), ("aab", "aab"), ("aaaabb", "abb"), ("abcdefgh", "fgh")],
)
def test_those_idle_longest_are_closed(sites: str, open_: str) -> None:
    pool = Pool()
    pool.keep(*sites)
    assert pool.open == open_
    assert len(pool.pool._connections) == len(set(open_)), "nothing is kept of sites that have none"


def test_what_is_kept_ends_after_its_time() -> None:
    pool = Pool()
    pool.keep(*"abcde")
    pool.clock.advance(pool.pool.cachedConnectionTimeout)
    assert pool.open == ""
    keys: list[Any] = list(pool.pool._timeouts)
    assert keys == []


def test_timers_are_those_of_the_loop_where_there_is_one() -> None:
    reactor = Clock()
    timers = LoopTimers(reactor)
    calls: list[str] = []

    async def wait() -> None:
        over = asyncio.Event()
        timers.callLater(0, calls.append, "cancelled").cancel()
        timer = timers.callLater(0, calls.append, "called")
        timers.callLater(0, over.set)
        await asyncio.wait_for(over.wait(), 60)
        assert timer.args == ("called",)

    asyncio.run(wait())
    assert (calls, reactor.getDelayedCalls()) == (["called"], [])
    timers.callLater(1, calls.append, "without a loop")
    reactor.advance(1)
    assert calls == ["called", "without a loop"]
