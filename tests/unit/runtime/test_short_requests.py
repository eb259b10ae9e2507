"""The short way of a request on a kept connection: the same is sent, and not sent, as by Scrapy's own way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.exceptions import DownloadTimeoutError
from twisted.internet.testing import MemoryReactorClock
from twisted.web.client import URI, Agent

from crawlspace.runtime.http.errors import KeptConnectionClosed, NotAsked
from crawlspace.runtime.shortcuts import exchanges
from crawlspace.runtime.shortcuts.exchanges import sent_in_short
from tests.unit.runtime.connections import ANSWER
from tests.unit.runtime.fetching import PAGE, URL, Fetching, answer
from tests.unit.runtime.test_sendings_tls import Secure

REQUESTS = [
    # a request                                                                                  written in the short way
    (Request(URL),                                                                               True),
    (Request("http://a.example"),                                                                False),
    (Request(URL + "a//b/[c]'|^?d=e&f?g;h"),                                                      True),
    (Request(URL + "%C3%A4?x=%20#there"),                                                         False),
    (Request(URL + "a;b"),                                                                       False),
    (Request(URL + "/b"),                                                                        False),
    (Request(URL, headers={"If-None-Match": '"a"', "DNT": "1", "TE": "x", "x-p3p-b": ["a", "", " b "]}),  True),
    (Request(URL, headers={"User-Agent": "a", "Accept-Language": "en", "cookie": "a=b; c=d"}),    True),
    (Request(URL, headers={"X": "a\r\nY: b"}),                                                   False),
    (Request(URL, headers={"X": "a\nb"}),                                                        False),
    (Request(URL, headers={"Host": "b.example"}),                                                False),
    (Request(URL, method="HEAD"),                                                                False),
    (Request(URL, method="POST", body=b"abc"),                                                   False),
    (Request(URL, body=b"abc"),                                                                  False),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "is_short"), REQUESTS)
def test_the_same_is_sent_for_a_request(monkeypatch: pytest.MonkeyPatch, request_: Request, *, is_short: bool) -> None:
    written = []
    for may_be_short in (True, False):
        fetching = Fetching(monkeypatch, is_short=may_be_short)
        fetching.fetch(request_.copy())
        assert bool(fetching.wire.written) is (is_short and may_be_short), "else it waits for the loop"
        fetching.network.write()
        written.append(fetching.wire.written)
    assert written[0] == written[1] != b""


@example("a?")
@example("?")
@example("a;?b")
@example("/a")
@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=8))
def test_what_is_sent_of_any_url_is_what_twisted_would_send(rest: str) -> None:
    for origin in ("http://a.example", "http://a.example:80", "https://a_b.example:8443", "http://127.0.0.1:81"):
        url = f"{origin}/{rest}"
        request: Any = SimpleNamespace(url=url, method="GET", body=b"", headers={}, meta={})
        sent = sent_in_short(request)
        if sent is None:
            continue
        uri = URI.fromBytes(url.encode())
        assert sent.key == (uri.scheme, uri.host, uri.port)
        host = Agent(MemoryReactorClock())._computeHostValue(uri.scheme, uri.host, uri.port)
        assert sent.head == b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (uri.originForm, host)


@pytest.mark.parametrize(
    "meta", [{"proxy": "http://p.example:3128"}, {"bindaddress": "192.0.2.7"}, {"bindaddress": ("192.0.2.7", 0)}]
)
def test_what_goes_another_way_is_left_to_scrapy(meta: dict[str, Any]) -> None:
    assert sent_in_short(Request(URL, meta=meta)) is None
    assert sent_in_short(Request(URL)) is not None


def test_the_time_of_a_request_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = []
    for is_short in (True, False):
        fetching = Fetching(monkeypatch, is_short=is_short)
        fetching.fetch(download_timeout=20)
        fetching.network.write()
        fetching.send(PAGE[:-1])
        fetching.network.time.advance(19)
        assert not fetching.results
        fetching.network.time.pump([1, 1])
        outcomes.append(fetching.outcome)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0]["error"][0] is DownloadTimeoutError
    assert outcomes[0]["closed"]


@pytest.mark.parametrize("came", [b"", PAGE[:-1], PAGE[:20]])
def test_a_request_is_given_up(monkeypatch: pytest.MonkeyPatch, came: bytes) -> None:
    outcomes = []
    for is_short in (True, False):
        fetching = Fetching(monkeypatch, is_short=is_short)
        fetched = fetching.fetch()
        fetching.network.write()
        fetching.send(*filter(None, [came]))
        fetched.cancel()
        outcomes.append(fetching.outcome)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0]["closed"]


def test_a_timer_of_a_request_that_is_done_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    fetching = Fetching(monkeypatch)
    answer(fetching, PAGE)
    assert [call.func.__name__ for call in fetching.network.time.getDelayedCalls()] == ["_removeConnection"]


@pytest.mark.parametrize("is_short", [True, False])
def test_a_site_that_is_no_longer_ours_is_not_asked(monkeypatch: pytest.MonkeyPatch, *, is_short: bool) -> None:
    fetching = Fetching(monkeypatch, is_short=is_short)
    fetching.network.owned_for_s = 0.0
    fetching.fetch()
    fetching.network.write()
    outcome = fetching.outcome
    assert (outcome["error"][0], outcome["sent"], outcome["closed"]) == (NotAsked, b"", True)


@pytest.mark.parametrize("is_short", [True, False])
def test_what_is_left_of_a_request_is_not_sent_to_a_site_that_is_no_longer_ours(
    monkeypatch: pytest.MonkeyPatch, *, is_short: bool
) -> None:
    """As where the system takes a part only."""
    fetching = Fetching(monkeypatch, is_short=is_short)
    fetching.wire.takes = 10
    fetching.fetch()
    if not is_short:
        fetching.network.write()
    assert fetching.wire.written == b"GET / HTTP"
    fetching.network.owned_for_s = 0.0
    fetching.network.write()
    outcome = fetching.outcome
    assert (outcome["error"][0], outcome["sent"], outcome["closed"]) == (NotAsked, b"GET / HTTP", True)


def test_a_request_that_is_written_in_parts_is_sent_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    fetching = Fetching(monkeypatch)
    fetching.wire.takes = 10
    fetching.fetch()
    for _ in range(10):
        fetching.network.write()
    assert fetching.wire.written == b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
    fetching.send(PAGE)
    fetching.wire.takes = None
    fetching.fetch()
    assert len(fetching.results) == 1
    fetching.network.write()
    assert fetching.wire.written.count(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n") == 2


def test_the_time_counts_from_the_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where an answer is left to Scrapy."""
    fetching = Fetching(monkeypatch)
    time = fetching.network.time
    monkeypatch.setattr(exchanges, "monotonic", time.seconds)
    fetching.fetch(download_timeout=20)
    time.advance(15)
    fetching.send(PAGE[:20])
    time.pump([4])
    assert not fetching.results
    time.pump([1, 1])
    assert fetching.outcome["error"][0] is DownloadTimeoutError


def test_a_kept_connection_that_was_lost_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    fetching = Fetching(monkeypatch)
    fetching.network.close()
    fetching.fetch()
    assert (fetching.results, fetching.wire.written) == ([], b"")
    assert len(fetching.network.time.tcpClients) == 1


def test_what_is_left_of_a_request_goes_before_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a server answers before it has the whole request."""
    fetching = Fetching(monkeypatch)
    fetching.wire.takes = 10
    fetching.fetch()
    fetching.send(PAGE)
    fetching.wire.takes = None
    fetching.fetch()
    fetching.network.write()
    assert fetching.wire.written == 2 * b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"


def test_what_is_logged_of_tls_is_logged_by_scrapy(monkeypatch: pytest.MonkeyPatch) -> None:
    fetching = Fetching(monkeypatch, DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING=True)
    fetching.fetch()
    assert fetching.wire.written == b"", "it is left to Scrapy"


def test_connections_are_kept_by_timers_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def keep() -> None:
        assert Fetching(monkeypatch).network.time.getDelayedCalls() == []

    asyncio.run(keep())


def test_the_delay_counts_from_the_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    fetching = Fetching(monkeypatch)
    fetching.network.time.advance(5)
    fetching.fetch()
    fetching.network.time.advance(3)
    assert fetching.network.ago_s == 3


@pytest.mark.parametrize("is_short", [True, False])
def test_a_second_attempt_has_a_new_connection(monkeypatch: pytest.MonkeyPatch, *, is_short: bool) -> None:
    fetching = Fetching(monkeypatch, is_short=is_short)
    fetching.fetch()
    fetching.network.write()
    fetching.network.close()
    assert isinstance(fetching.results[0].value, KeptConnectionClosed)
    assert fetching.session.second_turns.may_retry(1, fetching.results[0].value)
    fetching.keep_connection()
    fetching.fetch()
    fetching.network.write()
    assert [wire.written for wire in fetching.network.wires[1:]] == [b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"]
    assert len(fetching.network.time.tcpClients) == 1


class SecureFetching(Fetching):
    """As Fetching, over TLS."""

    network: Secure

    def keep_connection(self) -> None:
        self.network.ask()
        for _ in range(4):
            self.network.exchange()
        self.network.say(ANSWER)
        self.network.exchange()


def test_the_same_with_tls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    outcomes = []
    for is_short in (True, False):
        fetching = SecureFetching(monkeypatch, Secure(monkeypatch, tmp_path), is_short=is_short)
        fetching.fetch()
        fetching.network.exchange()
        assert fetching.network.heard.count(b"GET / HTTP/1.1\r\nHost: a.example\r\n") == 2
        fetching.network.say(PAGE)
        fetching.network.exchange()
        outcome = fetching.outcome
        assert outcome.pop("certificate").dumpPEM() in (tmp_path / "certificate.pem").read_bytes()
        outcomes.append({**outcome, "sent": None})
        fetching.network.time.advance(3)
        fetching.network.pool.closeCachedConnections()
        fetching.network.write()
        assert fetching.network.ago_s == 3, "that it closes is no request"
    assert outcomes[0] == outcomes[1]
