"""When a request to a site is sent: delays count from its writing, and a site that may be another worker's is not asked."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy
from scrapy.settings import Settings
from twisted.web._newclient import ResponseFailed, ResponseNeverReceived

from crawlspace.runtime.http.errors import KeptConnectionClosed, NotAsked
from crawlspace.runtime.http.handler import TimingHandler, site_of
from crawlspace.runtime.http.http_internals import pool_of
from crawlspace.urls import parse
from tests.unit.runtime.connections import Network


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
    """As where a worker was suspended since it returned the URL: another worker may own the site by now."""
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
def test_scrapys_handler_uses_the_session(
    monkeypatch: pytest.MonkeyPatch, owned_for_s: float, sent: int, *, is_taken_for_dead: bool
) -> None:
    network = Network(monkeypatch)
    monkeypatch.setattr("twisted.internet.reactor", network.time, raising=False)
    session = SimpleNamespace(
        sending=network.sending,
        connecting=nullcontext,
        owned_for_s=lambda _: owned_for_s,
        incarnation=lambda: network.incarnation,
        collection=SimpleNamespace(archive=SimpleNamespace(is_on=False), sites=SimpleNamespace(settings=[])),
    )
    crawler: Any = SimpleNamespace(spider=SimpleNamespace(session=session), settings=Settings())
    network.pool = pool_of(TimingHandler(crawler))
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
def test_a_request_on_a_broken_connection_is_not_repeated_at_once(
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


def test_through_a_proxy_the_site_is_that_of_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_site_that_answers_before_the_request(monkeypatch: pytest.MonkeyPatch, *, may_be_sent: bool) -> None:
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
