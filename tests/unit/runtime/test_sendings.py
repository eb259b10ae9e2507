"""When a request counts as sent, over Twisted's own pool and connections: on a new one, on one that was kept, and with TLS."""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ConnectionDone
from twisted.internet.ssl import CertificateOptions
from twisted.internet.testing import MemoryReactorClock
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from twisted.web._newclient import Request, ResponseFailed, ResponseNeverReceived
from twisted.web.client import URI, HTTPConnectionPool
from twisted.web.http_headers import Headers

from crawlspace.runtime.download import handler as module
from crawlspace.runtime.download.failures import KeptConnectionClosed, NotAsked
from crawlspace.runtime.download.handler import SendingTimes, TimingHandler, site_of, watch_connections
from crawlspace.runtime.download.kept_connections import TLS_END_S, no_second_sending
from crawlspace.urls import parse
from tests.certificates import certificate

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
        self.aborts_later = False
        """As a socket's does, in the loop's next turn; here, never."""

    def writeSomeData(self, data: bytes) -> int:
        self.written += data
        return len(data)

    def connectionLost(self, reason: Failure) -> None:
        super().connectionLost(reason)
        self.protocol.connectionLost(reason)

    def setTcpNoDelay(self, enabled: bool) -> None:
        """There is no socket."""

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


def on_a_new_connection(network: Network) -> None:
    network.ask()


def on_a_kept_connection(network: Network) -> None:
    network.ask()
    network.write()
    network.time.advance(100)
    network.answer()
    network.ask()


WAYS = [
    # how                 requests that go out, for which crawl the connections are made
    (on_a_new_connection,  1,                   [True]),
    (on_a_kept_connection, 2,                   [True]),
]  # fmt: skip


@pytest.mark.parametrize(("send", "sent", "known"), WAYS)
def test_the_delay_counts_from_the_last_writing(
    monkeypatch: pytest.MonkeyPatch, send: Callable[[Network], None], sent: int, known: list[bool]
) -> None:
    network = Network(monkeypatch)
    send(network)
    network.time.advance(0.4)
    assert network.sent == sent - 1, "it waits for the loop"
    network.write()
    network.time.advance(3)
    assert network.ago_s == 3.0
    assert (network.sent, network.is_known) == (sent, known)


def before_it_has_a_connection(network: Network) -> None:
    network.owned_for_s = 0.0
    network.ask()


def before_it_is_written(network: Network) -> None:
    network.ask()
    network.owned_for_s = 0.0


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("ask", [before_it_has_a_connection, before_it_is_written])
def test_a_request_that_may_not_be_sent_any_more_is_not(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[Network], None], *, kept: bool
) -> None:
    """As where a worker was suspended since it handed out the URL: the site may be another's by now."""
    network = Network(monkeypatch)
    if kept:
        network.ask()
        network.write()
        network.answer()
    ask(network)
    network.write()
    network.time.advance(3)
    assert network.ago_s == (3 if kept else 0)
    assert network.sent == kept
    assert [failure.type for failure in network.errors] == [NotAsked], "it is not sent a second time by Twisted"
    assert len(network.wires) == 1
    assert not network.is_open, "nothing else would ever close it"


@pytest.mark.parametrize(("owned_for_s", "is_taken_for_dead", "sent"), [(0.0, False, 0), (20.0, False, 1), (20.0, True, 0)])
def test_scrapys_handler_asks_the_session(
    monkeypatch: pytest.MonkeyPatch, owned_for_s: float, sent: int, *, is_taken_for_dead: bool
) -> None:
    network = Network(monkeypatch)
    reactor: Any = network.time
    network.pool = HTTPConnectionPool(reactor)
    monkeypatch.setattr(HTTP11DownloadHandler, "__init__", lambda handler, _: setattr(handler, "_pool", network.pool))
    session = SimpleNamespace(
        sending=network.sending,
        connecting=nullcontext,
        owned_for_s=lambda _: owned_for_s,
        incarnation=lambda: network.incarnation,
    )
    crawler: Any = SimpleNamespace(spider=SimpleNamespace(session=session))
    TimingHandler(crawler)
    network.ask()
    network.incarnation += is_taken_for_dead
    network.write()
    assert network.sent == sent
    assert [failure.type for failure in network.errors] == [NotAsked] * (1 - sent)


def while_it_is_connected(network: Network) -> None:
    network.is_slow = True
    network.ask()
    network.incarnation += 1
    network.come_about()


def before_the_loop_writes(network: Network) -> None:
    network.ask()
    network.incarnation += 1


@pytest.mark.parametrize("lose_all", [while_it_is_connected, before_the_loop_writes])
def test_what_was_begun_before_others_had_the_site_is_not_sent_when_it_is_held_again(
    monkeypatch: pytest.MonkeyPatch, lose_all: Callable[[Network], None]
) -> None:
    """As where the network was cut while a connection came about: its delay has been kept by another worker meanwhile."""
    network = Network(monkeypatch)
    lose_all(network)
    network.write()
    assert network.sent == 0
    assert [failure.type for failure in network.errors] == [NotAsked]
    network.is_slow = False
    network.ask()
    network.write()
    assert network.sent == 1, "what is begun now is sent"


def in_order(network: Network) -> None:
    network.close()


def after_a_byte(network: Network) -> None:
    network.wires[-1].protocol.dataReceived(b"H")
    network.close()


def because_we_have_waited_long_enough(network: Network) -> None:
    network.wires[-1].aborts_later = True
    network.asked.cancel()


BREAKS = [
    # on which connection   how it ends                           what the request fails with
    (on_a_new_connection,  in_order,                           ResponseNeverReceived),
    (on_a_new_connection,  after_a_byte,                       ResponseFailed),
    (on_a_kept_connection, in_order,                           KeptConnectionClosed),
    (on_a_kept_connection, after_a_byte,                       ResponseFailed),
    (on_a_kept_connection, because_we_have_waited_long_enough, ResponseNeverReceived),
]  # fmt: skip


@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize(("ask", "end", "error"), BREAKS)
def test_a_connection_that_breaks_is_not_asked_a_second_time_at_once(
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[Network], None],
    end: Callable[[Network], None],
    error: type[Exception],
    *,
    is_written: bool,
) -> None:
    network = Network(monkeypatch)
    ask(network)
    if is_written:
        network.write()
    end(network)
    network.write()
    assert [failure.type for failure in network.errors] == [error]
    assert len(network.wires) == 1, "no other is made"


def test_a_second_turn_is_on_a_new_connection_though_there_is_another_kept_one(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(monkeypatch)
    for takes_new, connections in [(False, 1), (False, 1), (True, 2), (False, 2)]:
        if takes_new:
            network.take_new_connection()
        network.ask()
        network.write()
        network.answer()
        assert len(network.wires) == connections


def test_through_a_proxy_the_site_is_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(monkeypatch, proxy=b"proxy.example")
    network.ask()
    network.write()
    network.time.advance(3)
    assert network.ago_s == 3.0
    network.answer()
    network.owned_for_s = 0.0
    network.ask()
    assert [failure.type for failure in network.errors] == [NotAsked]


@pytest.mark.parametrize("may_be_sent", [True, False])
def test_a_site_that_answers_before_it_is_asked(monkeypatch: pytest.MonkeyPatch, *, may_be_sent: bool) -> None:
    """As some servers do that are tired of waiting: the request is still on its way out."""
    network = Network(monkeypatch)
    network.ask()
    network.answer()
    if not may_be_sent:
        network.owned_for_s = 0.0
    network.time.advance(1)
    network.write()
    network.time.advance(3)
    assert (network.sent, network.ago_s) == ((1, 3.0) if may_be_sent else (0, 0.0))


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has that option")
def test_a_request_is_not_sent_again_by_the_system_when_others_may_have_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the network was cut: the system tries again what is not acknowledged, for a quarter of an hour."""
    network = Network(monkeypatch)
    network.ask()
    network.write()
    assert network.wires[0].options == {}, "nobody else can be given the site"
    network.answer()
    network.owned_for_s = 27.3
    network.ask()
    network.owned_for_s = 26.1001
    network.write()
    assert network.wires[0].options == {socket.TCP_USER_TIMEOUT: 26_101}


class Secure(Network):
    """As Network, with TLS. What is at the other end gets and says what `exchange` hands over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        super().__init__(monkeypatch)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate(folder / "certificate.pem"))
        self._told, self._tells = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._end = context.wrap_bio(self._told, self._tells, server_side=True)
        self.heard = b""

    def protocol(self, factory: Any) -> Any:
        client: Any = CertificateOptions()
        clock: Any = self.time
        return TLSMemoryBIOFactory(client, isClient=True, wrappedFactory=factory, clock=clock).buildProtocol(None)

    def say(self, data: bytes) -> None:
        self._end.write(data)

    def exchange(self) -> None:
        """Hand over what this end has written, and then what the other end says to that."""
        self.time.advance(0)  # small writes are gathered until the next turn
        self.write()
        self._told.write(self.wires[-1].written)
        self.wires[-1].written = b""
        with suppress(ssl.SSLWantReadError):
            self._end.do_handshake()
            self.heard += self._end.read()
        said = self._tells.read()
        if said:
            self.wires[-1].protocol.dataReceived(said)


def test_a_delay_does_not_count_from_before_the_handshake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With TLS a request waits for the handshake, which a site may answer late."""
    network = Secure(monkeypatch, tmp_path)
    network.ask()
    network.exchange()
    network.time.advance(0.8)
    assert not network.heard
    for _ in range(3):
        network.exchange()
    assert network.heard.startswith(b"GET / ")
    network.time.advance(3)
    assert network.ago_s == 3.0
    network.say(ANSWER)
    network.exchange()
    network.pool.closeCachedConnections()
    network.write()
    assert network.wires[0].written, "that it closes is told to the site"
    assert network.ago_s == 3.0, "but is no request"


def test_a_request_is_not_sent_after_a_handshake_that_took_too_long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    network = Secure(monkeypatch, tmp_path)
    network.ask()
    network.exchange()
    network.owned_for_s = 0.0
    for _ in range(3):
        network.exchange()
    assert not network.heard
    assert [failure.type for failure in network.errors] == [NotAsked]
    assert not network.is_open


def test_a_kept_connection_with_tls_is_closed_where_its_site_must_not_be_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Even if the other end never answers that it has heard of that."""
    network = Secure(monkeypatch, tmp_path)
    network.ask()
    for _ in range(4):
        network.exchange()
    network.say(ANSWER)
    network.exchange()
    assert network.is_open
    network.owned_for_s = 0.0
    network.ask()
    network.write()
    assert [failure.type for failure in network.errors] == [NotAsked]
    assert not network.is_open


@pytest.mark.parametrize("agrees", [True, False])
def test_a_connection_with_tls_is_gone_some_seconds_after_its_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, agrees: bool
) -> None:
    """Even if the other end never answers that it has heard of that, and goes on sending."""
    network = Secure(monkeypatch, tmp_path)
    network.ask()
    for _ in range(4):
        network.exchange()
    network.say(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    network.exchange()
    if agrees:
        network.exchange()
        network.close()
    else:
        assert network.is_open
    network.time.advance(TLS_END_S)
    assert not network.is_open
    assert not network.time.getDelayedCalls()


ADDRESSES = [
    "http://a.example/",
    "https://a.example/",
    "http://a.example:80/x",
    "https://a.example:8443/x?y=http://b.example:1/",
    "HTTP://A.EXAMPLE/",
    "http://a.example./",
    "http://bücher.example/ä",
    "http://127.0.0.1/",
    "http://127.0.0.1:8123/",
    "http://[::1]/",
    "http://[2001:DB8::7]:8080/",
    "http://under_score.example/",
    "http://a.example?x=/y",
    f"http://{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 60}.example:81/",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_site_of_a_request_is_called_as_the_frontier_calls_it(address: str) -> None:
    url = parse(address)
    assert site_of(scrapy.Request(url.text).url.encode("ascii")) == url.site
