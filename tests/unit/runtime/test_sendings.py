"""When a request counts as sent, over Twisted's own pool and connections: on a new one, on one that was kept, and a second time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from twisted.internet.defer import succeed
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.web._newclient import Request
from twisted.web.client import HTTPConnectionPool
from twisted.web.http_headers import Headers

from crawlspace.runtime import handler as module
from crawlspace.runtime.failures import NotAsked
from crawlspace.runtime.handler import SendingTimes, watch_connections

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Network:
    """A pool whose connections are made at once and written to nowhere; the test answers on them, or closes them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, host: bytes = b"a.example") -> None:
        self.time = Clock()
        monkeypatch.setattr(module, "monotonic", self.time.seconds)
        self.key = (b"http", host, 80)
        self.connections: list[Any] = []
        self.sending = SendingTimes()
        self.is_known: list[bool] = []
        """For each connection, whether it was known for which crawl it was made."""
        self._known = False
        reactor: Any = self.time
        self.pool = HTTPConnectionPool(reactor)
        self.may_send = True
        watch_connections(self.pool, self.sending, connecting=self._connecting, may_send=lambda _: self.may_send)

    @contextmanager
    def _connecting(self) -> Iterator[None]:
        self._known = True
        yield
        self._known = False

    def connect(self, factory: Any) -> Any:
        self.is_known.append(self._known)
        connection = factory.buildProtocol(None)
        connection.makeConnection(StringTransport())
        self.connections.append(connection)
        return succeed(connection)

    def ask(self) -> Any:
        request = Request(b"GET", b"/", Headers({b"host": [b"a.example"]}), None, persistent=True)
        endpoint: Any = self
        return self.pool.getConnection(self.key, endpoint).addCallback(lambda connection: connection.request(request))

    def answer(self) -> None:
        self.connections[-1].dataReceived(ANSWER)

    def close(self) -> None:
        self.connections[-1].connectionLost(Failure(ConnectionDone()))

    @property
    def sent(self) -> int:
        return sum(connection.transport.value().count(b"GET / ") for connection in self.connections)


async def turns() -> None:
    """As many of the event loop as it takes for a request to be written."""
    for _ in range(3):
        await asyncio.sleep(0)


async def on_a_new_connection(network: Network) -> None:
    network.ask()


async def on_a_kept_connection(network: Network) -> None:
    network.ask()
    await turns()
    network.time.advance(100)
    network.answer()
    network.ask()


async def a_second_time(network: Network) -> None:
    await on_a_kept_connection(network)
    await turns()
    network.time.advance(0.9)
    network.close()


WAYS = [
    # how                 requests that go out, for which crawl the connections are made
    (on_a_new_connection,  1,                   [True]),
    (on_a_kept_connection, 2,                   [True]),
    (a_second_time,        3,                   [True, True]),
]  # fmt: skip


@pytest.mark.parametrize(("send", "sent", "known"), WAYS)
def test_the_delay_counts_from_the_last_sending(
    monkeypatch: pytest.MonkeyPatch, send: Callable[[Network], Awaitable[None]], sent: int, known: list[bool]
) -> None:
    network = Network(monkeypatch)

    async def crawl() -> tuple[float, float]:
        await send(network)
        unknown = network.sending.ago_s("a.example:80")
        await turns()
        network.time.advance(3)
        return unknown, network.sending.ago_s("a.example:80")

    assert asyncio.run(crawl()) == (0.0, 3.0)
    assert (network.sent, network.is_known) == (sent, known)


@pytest.mark.parametrize("kept", [False, True])
def test_a_request_that_may_not_be_sent_is_not(monkeypatch: pytest.MonkeyPatch, *, kept: bool) -> None:
    """As where a worker was suspended between handing out a URL and having a connection for it: the site may be another's by now."""
    network = Network(monkeypatch)
    errors: list[Failure] = []

    async def crawl() -> float:
        if kept:
            network.ask()
            await turns()
            network.answer()
        network.may_send = False
        network.ask().addErrback(errors.append)
        await turns()
        network.time.advance(3)
        return network.sending.ago_s("a.example:80")

    assert asyncio.run(crawl()) == (3 if kept else 0)
    assert network.sent == kept
    assert [failure.type for failure in errors] == [NotAsked], "it is not sent a second time by Twisted"
    assert network.connections[0].transport.disconnecting, "nothing else would ever close it"


SITES = [
    # the host as Twisted has it, the site as the frontier has it
    (b"a.example",                "a.example:80"),
    (b"127.0.0.1",                "127.0.0.1:80"),
    (b"::1",                      "[::1]:80"),
    (b"2001:db8::7",              "[2001:db8::7]:80"),
]  # fmt: skip


@pytest.mark.parametrize(("host", "site"), SITES)
def test_a_sending_is_noted_under_the_name_of_its_site(monkeypatch: pytest.MonkeyPatch, host: bytes, site: str) -> None:
    network = Network(monkeypatch, host)

    async def crawl() -> float:
        network.ask()
        await turns()
        network.time.advance(3)
        return network.sending.ago_s(site)

    assert asyncio.run(crawl()) == 3.0
