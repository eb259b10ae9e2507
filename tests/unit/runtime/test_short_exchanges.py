"""The short way of an answer on a kept connection: the same as Scrapy's own way makes of it."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest
from pydispatch import dispatcher
from scrapy import Request, signals
from scrapy.exceptions import StopDownload

from crawlspace.runtime.rule_middleware import RuleMiddleware
from crawlspace.runtime.shortcuts import exchanges
from crawlspace.runtime.shortcuts.exchanges import LARGEST, ShortAgent
from tests.unit.runtime.fetching import HTML, OK, PAGE, Fetching, answer


@pytest.fixture
def left_to_scrapy(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs whose answers were left to Scrapy after all."""
    urls: list[str] = []
    read = ShortAgent.read_as_usual

    def note(self: Any, request: Request, *args: Any, **named: Any) -> Any:
        urls.append(request.url)
        return read(self, request, *args, **named)

    monkeypatch.setattr(ShortAgent, "read_as_usual", note)
    return urls


ANSWERS = [
    # what                             parts of the answer                                           then closed, left to Scrapy
    ("a page",                         [PAGE],                                                             False, False),
    ("a body in parts",                [PAGE[:-3], b"a", b"b", b"c"],                                      False, False),
    ("no body",                        [OK + HTML + b"Content-Length: 0\r\n\r\n"],                         False, False),
    ("a redirect",                     [b"HTTP/1.1 301 Moved\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n"], False, False),
    ("unchanged",                      [b"HTTP/1.1 304 Not Modified\r\nETag: a\r\n\r\n"],                  False, False),
    ("an error",                       [PAGE.replace(b"200 OK", b"500 Error")],                            False, False),
    ("headers that come twice",        [PAGE.replace(b"\r\n\r\n", b"\r\nSet-Cookie: a\r\nset-cookie: b\r\n\r\n")], False, False),
    ("text",                           [PAGE.replace(b"html", b"plain")],                                  False, False),
    ("a compressed page",              [PAGE.replace(HTML, HTML + b"Content-Encoding: gzip\r\n")],         False, False),
    ("a head in parts",                [PAGE[:30], PAGE[30:]],                                             False, True),
    ("a byte at a time",               [PAGE[at:at + 1] for at in range(len(PAGE))],                       False, True),
    ("more than the answer",           [PAGE + b"HTTP/1.1"],                                               False, True),
    ("more than the answer, later",    [PAGE, b"HTTP/1.1"],                                                False, False),
    ("chunks",                         [OK + HTML + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"], False, True),
    ("a body until the end",           [OK + HTML + b"\r\nabc", b"d"],                                     True,  True),
    ("a body that is cut off",         [PAGE[:-1]],                                                        True,  True),
    ("an end before the answer",       [],                                                                 True,  True),
    ("an end within the head",         [PAGE[:20]],                                                        True,  True),
    ("to be closed",                   [PAGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")],      False, True),
    ("an interim answer",              [b"HTTP/1.1 103 Early Hints\r\n\r\n" + PAGE],                       False, True),
    ("HTTP/1.0",                       [PAGE.replace(b"1.1", b"1.0")],                                     False, True),
    ("two lengths",                    [PAGE.replace(b"\r\n\r\n", b"\r\nContent-Length: 4\r\n\r\n")],      False, True),
    ("no length",                      [PAGE.replace(b"Length: 3", b"Length: x")],                         False, True),
    ("no HTTP",                        [b"SSH-2.0-OpenSSH_9.6\r\n\r\n"],                                   False, True),
    ("too many headers",               [OK + b"X: a\r\n" * 1_001],                                         False, True),
    ("no content",                     [b"HTTP/1.1 204 No Content\r\n\r\n"],                               False, True),
]  # fmt: skip


@pytest.mark.parametrize(("what", "parts", "ends", "left"), ANSWERS, ids=[row[0] for row in ANSWERS])
def test_the_same_comes_of_an_answer(
    monkeypatch: pytest.MonkeyPatch, left_to_scrapy: list[str], what: str, parts: list[bytes], *, ends: bool, left: bool
) -> None:
    short = answer(Fetching(monkeypatch), *parts, ends=ends)
    assert bool(left_to_scrapy) is left
    assert short == answer(Fetching(monkeypatch, is_short=False), *parts, ends=ends)


@pytest.mark.parametrize("data", [PAGE, ANSWERS[13][1][0]], ids=["page", "chunks"])
@pytest.mark.parametrize("ends", [False, True])
def test_the_same_comes_of_an_answer_cut_anywhere(monkeypatch: pytest.MonkeyPatch, data: bytes, *, ends: bool) -> None:
    for at in range(1, len(data)):
        parts = [data[:at]] if ends else [data[:at], data[at:]]
        short, long = (answer(Fetching(monkeypatch, is_short=is_short), *parts, ends=ends) for is_short in (True, False))
        assert short == long, at


LIMITS = [
    # settings, meta; bytes of the body; content type; left to Scrapy
    ({},                          {},                         10, b"text/html",       False),
    ({"DOWNLOAD_MAXSIZE": 9},     {},                         10, b"text/html",       True),
    ({"DOWNLOAD_MAXSIZE": 10},    {},                         10, b"text/html",       False),
    ({"DOWNLOAD_MAXSIZE": 0},     {},                         10, b"text/html",       False),
    ({},                          {"download_maxsize": 9},    10, b"text/html",       True),
    ({"DOWNLOAD_WARNSIZE": 9},    {},                         10, b"text/html",       True),
    ({"DOWNLOAD_WARNSIZE": 0},    {},                         10, b"text/html",       False),
    ({},                          {"download_warnsize": 9},   10, b"text/html",       True),
    ({},                          {},                    LARGEST, b"text/html",       False),
    ({},                          {},                LARGEST + 1, b"text/html",       True),
    ({"DOWNLOAD_MAXSIZE": 0},     {},                LARGEST + 1, b"text/html",       True),
    ({},                          {},                         10, b"application/pdf", True),
    ({},                          {},                      1_001, b"application/pdf", True),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "meta", "size", "kind", "left"), LIMITS)
def test_limits_are_scrapys(
    monkeypatch: pytest.MonkeyPatch,
    left_to_scrapy: list[str],
    settings: dict[str, Any],
    meta: dict[str, Any],
    size: int,
    kind: bytes,
    *,
    left: bool,
) -> None:
    parts = OK + b"Content-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind, size), b"a" * size
    short = answer(Fetching(monkeypatch, **settings), *parts, **meta)
    assert bool(left_to_scrapy) is left
    assert short == answer(Fetching(monkeypatch, is_short=False, **settings), *parts, **meta)


def hears_headers(**_: Any) -> None:
    """Somebody listens to the signal."""


def stops_at_headers(**_: Any) -> None:
    raise StopDownload(fail=False)


def fails_at_headers(**_: Any) -> None:
    raise StopDownload


LISTENERS = [
    # signal, who listens; left to Scrapy
    (signals.headers_received, hears_headers, True),
    (signals.headers_received, stops_at_headers, True),
    (signals.headers_received, fails_at_headers, True),
    (signals.bytes_received, hears_headers, True),
    (signals.bytes_received, stops_at_headers, True),
    (dispatcher.Any, hears_headers, True),
    (signals.item_scraped, hears_headers, False),
]


@pytest.mark.parametrize(("signal", "listener", "left"), LISTENERS)
def test_whoever_listens_hears_and_may_stop(
    monkeypatch: pytest.MonkeyPatch, left_to_scrapy: list[str], signal: Any, listener: Callable[..., None], *, left: bool
) -> None:
    outcomes = []
    for is_short in (True, False):
        fetching = Fetching(monkeypatch, is_short=is_short)
        fetching.signals.connect(listener, signal)
        outcomes.append(answer(fetching, PAGE))
    assert bool(left_to_scrapy) is left
    assert outcomes[0] == outcomes[1]


class Types:
    """Rules that take HTML only."""

    space = SimpleNamespace(at_headers=lambda kind: SimpleNamespace(admitted=kind.startswith("text/html")))

    def is_robots_txt(self, request: Request) -> bool:
        return False

    def checks_for(self, request: Request) -> None:
        return None


CHECKED = [
    # type of the page, how somebody else listens too; left to Scrapy
    (b"html", None, False),
    (b"css", None, True),
    (b"html", {"signal": signals.headers_received}, True),
    (b"html", {"signal": dispatcher.Any}, True),
    (b"html", {"signal": signals.headers_received, "sender": dispatcher.Any}, True),
]


@pytest.mark.parametrize(("kind", "also", "left"), CHECKED)
def test_our_check_of_the_type_is_made_on_the_way(
    monkeypatch: pytest.MonkeyPatch, left_to_scrapy: list[str], kind: bytes, also: dict[str, Any] | None, *, left: bool
) -> None:
    rules: Any = Types()
    outcomes = []
    for is_short in (True, False):
        fetching = Fetching(monkeypatch, is_short=is_short)
        middleware = RuleMiddleware(rules)
        fetching.signals.connect(middleware.headers_received, signals.headers_received)
        if also is not None:
            fetching.signals.connect(hears_headers, **also)
        outcomes.append(answer(fetching, PAGE.replace(b"html", kind)))
        if also is not None:
            fetching.signals.disconnect(hears_headers, **also)
    assert bool(left_to_scrapy) is left
    assert outcomes[0] == outcomes[1]
    assert outcomes[0]["flags"] == (["download_stopped"] if kind == b"css" else [])


def test_the_latency_counts_from_the_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where an answer is left to Scrapy."""
    monkeypatch.setattr(exchanges, "monotonic", lambda: monotonic() - 1_000)
    fetching = Fetching(monkeypatch)
    answer(fetching, PAGE[:20], PAGE[20:])
    assert fetching.request.meta["download_latency"] >= 1_000
