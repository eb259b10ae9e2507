"""Which connections requests go out on, and when: nothing of one answer reaches another, and nothing is sent twice or too late."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import CannotResolveHostError, DownloadConnectionRefusedError

from crawlspace.decision import Reason
from crawlspace.runtime.components.requests import STATE, request_id
from crawlspace.runtime.http import transfer as module
from crawlspace.runtime.http.causes import Cause
from crawlspace.runtime.http.errors import AnswerFailed, KeptConnectionClosed, NotSent
from tests.unit.runtime.http.fetching import END, OK, PAGE, RESET, WAIT, Answer, crawling, loopback
from tests.unit.runtime.http.look_ups import answer_look_ups

OTHER = PAGE.replace(b"abc", b"xyz")


async def test_a_connection_is_kept_for_the_next_request() -> None:
    async with loopback([PAGE]) as (server, crawl):
        for _ in range(5):
            assert (await crawl.fetch(server.url())).body == b"abc"
        assert (server.connections, len(server.requests)) == (1, 5)


async def test_requests_at_a_time_have_a_connection_each() -> None:
    async with loopback([PAGE]) as (server, crawl):
        for _ in range(2):
            responses = await asyncio.gather(*(crawl.fetch(server.url(f"/{number}")) for number in range(4)))
            assert [response.body for response in responses] == [b"abc"] * 4
        assert (server.connections, len(server.requests)) == (4, 8)


async def test_nothing_is_kept_of_a_request_that_is_given_up() -> None:
    """Its socket is closed, and the number may be that of another connection next."""
    async with loopback([PAGE.removesuffix(b"c"), WAIT]) as (server, crawl):
        transfers = crawl.handler._client._transfers
        fetching = asyncio.ensure_future(crawl.fetch(server.url()))
        async with asyncio.timeout(60):
            while not any(one.head for one in transfers.by_socket.values()):  # type: ignore[attr-defined]  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0)
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)
        assert fetching.cancelled()
        assert (transfers.by_socket, transfers.running(), transfers.kept._by_host) == ({}, [], {})


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
async def test_no_other_program_gets_a_connection() -> None:
    """pycurl duplicates the socket that it is given, and a duplicate is inherited by whatever the process starts."""

    def sockets() -> set[str]:
        return {one.name for one in Path("/proc/self/fd").iterdir() if _is_inherited(int(one.name))}

    async with loopback([PAGE]) as (server, crawl):
        before = sockets()
        await crawl.fetch(server.url())
        assert sockets() == before


def _is_inherited(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:  # it has been closed
        return False


SURPLUS = [
    # what is sent, together with the answer or later
    (OTHER,                        True),
    (OTHER,                        False),
    (b"HTTP/1.1 200 OK\r\n",       False),
    (b"x",                         True),
    (b"x",                         False),
    (b"\r\n",                      False),
]  # fmt: skip


@pytest.mark.parametrize("body", [PAGE, PAGE.replace(b"abc", b"").replace(b"3", b"0"), b"HTTP/1.1 304 Not Modified\r\n\r\n"])
@pytest.mark.parametrize(("surplus", "at_once"), SURPLUS)
async def test_what_a_server_sends_after_an_answer_is_never_taken_for_the_next(
    body: bytes, surplus: bytes, *, at_once: bool
) -> None:
    async with loopback([body + surplus if at_once else body], [PAGE]) as (server, crawl):
        await crawl.fetch(server.url())
        if not at_once:
            await server.send(surplus)
        response = await crawl.fetch(server.url())
        assert (response.status, response.body) == (200, b"abc")
        assert server.by_connection == [1, 2]


async def test_a_kept_connection_that_was_closed_is_not_used() -> None:
    """Not even where libcurl has not seen it, which looks once a second: this costs no attempt of the request."""
    async with loopback([PAGE]) as (server, crawl):
        for _ in range(3):
            assert (await crawl.fetch(server.url())).body == b"abc"
            await server.close_all()
        assert (server.connections, len(server.requests)) == (3, 3)


async def test_many_kept_connections_that_were_closed_are_not_used() -> None:
    async with loopback([PAGE]) as (server, crawl):
        await asyncio.gather(*(crawl.fetch(server.url(f"/{number}")) for number in range(6)))
        await server.close_all()
        responses = await asyncio.gather(*(crawl.fetch(server.url(f"/{number}")) for number in range(6)))
        assert [response.body for response in responses] == [b"abc"] * 6
        assert len(server.requests) == 12


@pytest.mark.parametrize("end", [END, RESET])
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("others", [0, 1])
async def test_a_request_on_a_kept_connection_that_is_being_closed_is_not_sent_twice(method: str, end: Any, others: int) -> None:
    """libcurl would send it again at once; here it fails, and has its second attempt after the delay, on a new connection."""
    async with loopback(*[[PAGE]] * (1 + others), [end], [PAGE], with_session=True) as (server, crawl):
        await asyncio.gather(*(crawl.fetch(server.url()) for _ in range(1 + others)))
        kept = server.connections
        with pytest.raises(KeptConnectionClosed) as raised:
            await crawl.fetch(Request(server.url(), method=method, body=b"b" if method == "POST" else b""))
        assert len(server.requests) == 2 + others
        again = Request(server.url(), method=method)
        assert crawl.second_attempts.may_retry(request_id(again), raised.value)
        assert (await crawl.fetch(again)).body == b"abc"
        assert server.by_connection[-1] == kept + 1, "on a new connection"


BREAKS = [
    # answer to the request that is not the first of its connection, cause
    ([b"HTTP/1.1 200", END], Cause.CLOSED),
    ([OK, END],              Cause.RESET),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "cause"), BREAKS)
async def test_a_request_that_was_answered_in_part_is_not_sent_twice(answer: Answer, cause: Cause) -> None:
    async with loopback([PAGE], answer, [PAGE]) as (server, crawl):
        await crawl.fetch(server.url())
        with pytest.raises(AnswerFailed) as raised:
            await crawl.fetch(server.url())
        assert raised.value.cause is cause
        assert len(server.requests) == 2


async def test_a_refused_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with crawling() as crawl:
        with pytest.raises(DownloadConnectionRefusedError):
            await crawl.fetch(f"http://127.0.0.1:{port}/")


# --- which addresses ------------------------------------------------------------------------------------------------


async def test_names_are_looked_up_by_our_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look_up(host: str) -> list[str]:
        asked.append(host)
        return ["192.0.2.1", "127.0.0.1"]

    answer_look_ups(monkeypatch, look_up)
    async with loopback([PAGE]) as (server, crawl):
        crawl.forbidden.add("192.0.2.1")
        response = await crawl.fetch(server.url(host="www.example."))
        assert (str(response.ip_address), response.url) == ("127.0.0.1", server.url(host="www.example."))
        assert b"Host: www.example:%d\r\n" % server.port in server.requests[0]
        assert set(asked) == {"www.example"}


SPELLINGS = ["localhost", "127.0.0.1", "127.1", "0x7f.1", "2130706433", "127.0.0.1.", "%31%32%37.1", "a.example"]


@pytest.mark.parametrize("host", SPELLINGS)
async def test_no_spelling_leads_to_an_address_that_is_forbidden(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    answer_look_ups(monkeypatch, lambda _: ["127.0.0.1"])
    async with loopback([PAGE]) as (server, crawl):
        crawl.forbidden.add("127.0.0.1")
        with pytest.raises(CannotResolveHostError):
            await crawl.fetch(server.url(host=host))
        assert server.connections == 0


async def test_an_address_is_checked_again_before_a_connection_and_before_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where another name had led there, or a rule has come meanwhile."""
    answer_look_ups(monkeypatch, lambda _: ["127.0.0.1"])

    async with loopback([PAGE]) as (server, crawl):
        url = server.url(host="a.example")
        await crawl.fetch(url)

        async def other(host: str, port: int, **_: Any) -> Any:
            return [(socket.AF_INET, "127.0.0.2")]

        monkeypatch.setattr(crawl.resolver, "cached", lambda *_, **__: None)
        monkeypatch.setattr(crawl.resolver, "addresses", other)
        crawl.forbidden.add("127.0.0.1")
        with pytest.raises(CannotResolveHostError):  # on the kept connection
            await crawl.fetch(url)
        refused = crawl.resolver.why_refused("a.example", server.port)
        assert refused is not None
        assert refused.reason is Reason.ADDRESS
        assert (server.connections, len(server.requests)) == (1, 1)


async def test_a_proxy_of_the_environment_is_not_for_us_to_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrapy's middleware decides which requests go through a proxy."""
    for name in ("http_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with loopback([PAGE]) as (server, crawl):
        assert (await crawl.fetch(server.url())).body == b"abc"


# --- when -----------------------------------------------------------------------------------------------------------


async def test_a_site_that_may_be_another_workers_gets_no_request() -> None:
    async with loopback([PAGE], with_session=True) as (server, crawl):
        crawl.owned_for_s = 0.0
        with pytest.raises(NotSent):
            await crawl.fetch_page(server.url())
        crawl.owned_for_s = 9.0
        await crawl.fetch_page(server.url())
        crawl.owned_for_s = 0.0
        with pytest.raises(NotSent):  # nor on the kept connection
            await crawl.fetch_page(server.url())
        assert len(server.requests) == 1
        crawl.owned_for_s = 9.0
        await crawl.fetch_page(server.url())
        assert len(server.requests) == 2


async def test_what_was_begun_before_others_had_the_site_is_not_sent_when_it_is_held_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where the network was cut while a name was looked up: its delay has been kept by another worker meanwhile."""

    async with loopback([PAGE], with_session=True) as (server, crawl):
        look_up = crawl.resolver.addresses

        async def lose_all(host: str, port: int, **named: Any) -> Any:
            crawl.incarnation += 1
            return await look_up(host, port, **named)

        monkeypatch.setattr(crawl.resolver, "cached", lambda *_, **__: None)
        monkeypatch.setattr(crawl.resolver, "addresses", lose_all)
        with pytest.raises(NotSent):
            await crawl.fetch_page(server.url())
        monkeypatch.setattr(crawl.resolver, "addresses", look_up)
        await crawl.fetch_page(server.url())
        assert len(server.requests) == 1


async def test_the_delay_counts_from_the_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0]
    monkeypatch.setattr("crawlspace.runtime.http.sending.monotonic", lambda: now[0])
    async with loopback([PAGE], [b"x" * 9 + b"\r\n\r\n", END], with_session=True) as (server, crawl):
        site = f"127.0.0.1:{server.port}"
        assert crawl.sending.ago_s(site) == 0.0
        response = await crawl.fetch_page(server.url())
        now[0] = 15.0
        assert crawl.sending.ago_s(site) == 5.0
        assert response.request is None
        with pytest.raises(AnswerFailed):
            await crawl.fetch_page(server.url())
        now[0] = 17.0
        assert crawl.sending.ago_s(site) == 2.0


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has that option")
async def test_a_request_is_not_sent_again_by_the_system_when_others_may_have_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the network was cut: the system tries again what is not acknowledged, for a quarter of an hour."""
    options: list[tuple[int, int]] = []

    class Socket(socket.socket):
        def setsockopt(self, level: int, option: int, value: Any) -> None:  # type: ignore[override]
            super().setsockopt(level, option, value)
            options.append((option, self.getsockopt(level, option)))

    names = {name: getattr(socket, name) for name in dir(socket)}
    monkeypatch.setattr(module, "socket", SimpleNamespace(**{**names, "socket": Socket}))
    async with loopback([PAGE], with_session=True) as (server, crawl):
        await crawl.fetch_page(server.url())
        assert options == [], "nobody else can be given the site"
        crawl.owned_for_s = 26.1001
        await crawl.fetch_page(server.url())
        assert options == [(socket.TCP_USER_TIMEOUT, 26_101)]
        assert server.connections == 1


async def test_the_latency_counts_from_the_writing() -> None:
    async with loopback([PAGE], with_session=True) as (server, crawl):
        request = Request(server.url(), meta={STATE: SimpleNamespace(id=1, site="127.0.0.1:80")})
        await crawl.fetch(request)
        assert 0.0 < request.meta["download_latency"] < 30.0


# --- what is sent ---------------------------------------------------------------------------------------------------

SENT = [
    # headers of a request, lines of what is sent after the Host header
    ({},                                                       b""),
    ({"B": "b", "A": "a"},                                     b"B: b\r\nA: a\r\n"),
    ({"A": ["1", "2"]},                                        b"A: 1\r\nA: 2\r\n"),
    ({"A": ""},                                                b"A:\r\n"),
    ({"A": "1\r\nB: 2\n c\0d"},                                b"A: 1 B: 2 cd\r\n"),
    ({"A: x\r\nB": "1", "A B": "2", "A;": "3"},                b""),
    ({"Accept": "*/*", "User-Agent": "me", "Expect": "x"},     b"Accept: */*\r\nUser-Agent: me\r\nExpect: x\r\n"),
    ({"Content-Length": "9", "Transfer-Encoding": "chunked"},  b""),
    ({"Proxy-Authorization": "Basic x"},                       b""),
    ({"X": b"\xfc\xff"},                                       b"X: \xfc\xff\r\n"),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "lines"), SENT)
async def test_headers_are_sent_as_they_are(headers: dict[str, Any], lines: bytes) -> None:
    async with loopback([PAGE]) as (server, crawl):
        await crawl.fetch(Request(server.url(), headers=headers))
        assert server.requests == [b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%b\r\n" % (server.port, lines)]


TARGETS = [
    # what follows the port in a URL, what is asked for
    ("",                   b"/"),
    ("?a=b",               b"/?a=b"),
    ("/a/../b/./c",        b"/a/../b/./c"),
    ("/a//b;c=d?e=%2F&f",  b"/a//b;c=d?e=%2F&f"),
    ("/?u=http://x/y@z",   b"/?u=http://x/y@z"),
    ("/a#b",               b"/a"),
]  # fmt: skip


@pytest.mark.parametrize(("rest", "target"), TARGETS)
async def test_targets_are_sent_as_they_are(rest: str, target: bytes) -> None:
    async with loopback([PAGE]) as (server, crawl):
        await crawl.fetch(f"http://user:word@127.0.0.1:{server.port}{rest}")
        assert server.requests[0].startswith(b"GET %b HTTP/1.1\r\n" % target)
        assert b"authorization" not in server.requests[0].lower()


async def test_what_waits_at_the_end_of_a_crawl_fails() -> None:
    asked = asyncio.Event()

    async def note() -> None:
        asked.set()

    async with loopback([note, WAIT]) as (server, crawl):
        fetching = asyncio.ensure_future(crawl.fetch(server.url()))
        await asked.wait()
        await crawl.handler.close()
        with pytest.raises(AnswerFailed):
            await fetching
