"""Connections that a test makes, writes and closes in the place of the event loop."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import pytest
from twisted.internet.abstract import FileDescriptor
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.web._newclient import Request
from twisted.web.client import URI, HTTPConnectionPool
from twisted.web.http_headers import Headers

from crawlspace.runtime.http import handler as module
from crawlspace.runtime.http.handler import SendingTimes, watch_connections
from crawlspace.runtime.http.kept_connections import no_second_sending

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Wire(FileDescriptor):
    """A connection's end without a socket: what is written to it once the loop comes to that stays in `written`."""

    def __init__(self, reactor: Any, protocol: Any) -> None:
        super().__init__(reactor)
        self.connected = 1
        self.protocol = protocol
        self.written = b""
        self.socket = self
        self.options: dict[int, int] = {}
        """Of the connection, as last set."""
        self.takes: int | None = None
        """Bytes that the system takes at once; None: all."""
        self.aborts_later = False
        """As a socket's does, in the loop's next turn; here, never."""

    def writeSomeData(self, data: bytes) -> int:
        data = data[: self.takes]
        self.written += data
        return len(data)

    def connectionLost(self, reason: Failure) -> None:
        super().connectionLost(reason)
        self.protocol.connectionLost(reason)

    def setTcpNoDelay(self, enabled: bool) -> None:
        """There is no socket."""

    def getPeer(self) -> IPv4Address:
        return IPv4Address("TCP", "192.0.2.1", 80)

    def getHandle(self) -> None:
        """Inside a tunnel this is no socket."""

    def setsockopt(self, level: int, option: int, value: int) -> None:
        assert level == socket.IPPROTO_TCP
        self.options[option] = value

    def abortConnection(self) -> None:
        self.stopWriting()
        if self.aborts_later:
            return
        self.connectionLost(Failure(ConnectionDone()))


class Network:
    """A pool whose connections are made at once; the test writes as the loop would, answers, and closes them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, url: bytes = b"http://a.example/", proxy: bytes | None = None) -> None:
        self.url = URI.fromBytes(url)
        self.time = MemoryReactorClock()
        monkeypatch.setattr(module, "monotonic", self.time.seconds)
        self.key = (b"http", self.url.host, self.url.port) if proxy is None else (b"http-proxy", proxy, 3128)
        self.wires: list[Wire] = []
        self.sending = SendingTimes()
        self.is_known: list[bool] = []
        """For each connection, whether it was known for which crawl it was made."""
        self._known = False
        reactor: Any = self.time
        self.pool = HTTPConnectionPool(reactor)
        self.take_new_connection = no_second_sending(self.pool)
        self.incarnation = 0
        self.owned_for_s = inf
        """For a.example:80; other sites are held for ever."""
        self.errors: list[Failure] = []
        self.is_slow = False
        """A connection is made when the test says so."""
        watch_connections(
            self.pool,
            self.sending,
            connecting=self._connecting,
            owned_for_s=self._owned_for_s,
            incarnation=lambda: self.incarnation,
        )

    def _owned_for_s(self, site: str) -> float:
        return self.owned_for_s if site == "a.example:80" else inf

    @contextmanager
    def _connecting(self) -> Iterator[None]:
        self._known = True
        yield
        self._known = False

    def connect(self, factory: Any) -> Any:
        self.is_known.append(self._known)
        connection = self.protocol(factory)
        self.wires.append(Wire(self.time, connection))
        connection.makeConnection(self.wires[-1])
        connected = getattr(connection, "wrappedProtocol", connection)
        self._about: Any = Deferred() if self.is_slow else succeed(connected)
        self.come_about = lambda: self._about.callback(connected)
        return self._about

    def protocol(self, factory: Any) -> Any:
        return factory.buildProtocol(None)

    def ask(self) -> None:
        request = Request._construct(b"GET", b"/", Headers({b"host": [b"a.example"]}), None, persistent=True, parsedURI=self.url)
        endpoint: Any = self
        self.asked: Any = self.pool.getConnection(self.key, endpoint)
        self.asked.addCallback(lambda connection: connection.request(request)).addErrback(self.errors.append)

    def write(self) -> None:
        """Do what the loop does in its next turn."""
        for wire in list(self.time.getWriters()):
            why = wire.doWrite()
            if why is not None:
                self.time.removeWriter(wire)
                wire.connectionLost(Failure(why))

    def answer(self) -> None:
        self.wires[-1].protocol.dataReceived(ANSWER)

    def close(self) -> None:
        self.wires[-1].connectionLost(Failure(ConnectionDone()))

    @property
    def is_open(self) -> bool:
        return any(not wire.disconnected for wire in self.wires)

    @property
    def sent(self) -> int:
        return sum(wire.written.count(b"GET / ") for wire in self.wires)

    @property
    def ago_s(self) -> float:
        return self.sending.ago_s("a.example:80")
