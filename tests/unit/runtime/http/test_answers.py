"""Answers, however they are sent, and their headers Location and Retry-After."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from protego import Protego
from scrapy import Request
from scrapy.exceptions import DownloadCancelledError, DownloadTimeoutError, ResponseDataLossError
from scrapy.http import HtmlResponse, Response

from crawlspace.runtime.components.logformat import make_libraries_printable
from crawlspace.runtime.http.causes import Cause
from crawlspace.runtime.http.errors import AnswerFailed, HeadersTooLarge
from crawlspace.runtime.http.headers import location_of
from crawlspace.runtime.http.retry_after import retry_after_s
from crawlspace.runtime.http.transfer import MAX_HEADER_BYTES
from crawlspace.text import MESSAGE
from crawlspace.urls import join
from tests.unit.runtime.http.fetching import END, HTML, OK, PAGE, RESET, WAIT, Answer, crawling, fetched, loopback, serving

KIB = 1024
CHUNKED = OK + HTML + b"Transfer-Encoding: chunked\r\n\r\n"


def head(lines: int, *, rest: bytes = b"Content-Length: 0\r\n\r\n") -> bytes:
    """An answer with so many header lines."""
    return OK + b"".join(b"X-%d: a\r\n" % number for number in range(lines - 1)) + rest


ANSWERS: list[tuple[str, Answer, tuple[int, bytes] | type[Exception] | Cause]] = [
    # what                             parts of the answer                                                       status and body, or what it fails with
    ("a page",                         [PAGE],                                                                   (200, b"abc")),
    ("a body in parts",                [PAGE[:-3], b"a", b"b", b"c"],                                            (200, b"abc")),
    ("a byte at a time",               [PAGE[at:at + 1] for at in range(len(PAGE))],                             (200, b"abc")),
    ("no body",                        [OK + HTML + b"Content-Length: 0\r\n\r\n"],                               (200, b"")),
    ("a redirect",                     [b"HTTP/1.1 301 Moved\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n"],     (301, b"")),
    ("unchanged",                      [b"HTTP/1.1 304 Not Modified\r\nETag: a\r\n\r\n"],                        (304, b"")),
    ("no content",                     [b"HTTP/1.1 204 No Content\r\n\r\n"],                                     (204, b"")),
    ("an error",                       [PAGE.replace(b"200 OK", b"500 Error")],                                  (500, b"abc")),
    ("no reason after the status",     [PAGE.replace(b"200 OK", b"200")],                                        (200, b"abc")),
    ("a status that HTTP has not",     [PAGE.replace(b"200 OK", b"999 Go")],                                     (999, b"abc")),
    ("chunks",                         [CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"],                          (200, b"abcde")),
    ("chunks with trailers",           [CHUNKED + b"3\r\nabc\r\n0\r\nX: y\r\n\r\n"],                             (200, b"abc")),
    ("chunks with extensions",         [CHUNKED + b"3;a=b\r\nabc\r\n0\r\n\r\n"],                                 (200, b"abc")),
    ("chunks of padded sizes",         [CHUNKED + b"0003 \r\nabc\r\n0\r\n\r\n"],                                 (200, b"abc")),
    ("chunks cut off",                 [CHUNKED + b"3\r\nabc\r\n2\r\nd", END],                                   ResponseDataLossError),
    ("chunks without an end",          [CHUNKED + b"3\r\nabc\r\n", END],                                         ResponseDataLossError),
    ("no chunk",                       [CHUNKED + b"z\r\n", END],                                                ResponseDataLossError),
    ("a version that there is not",    [b"HTTP/9.9 200 OK\r\n\r\n", END],                                        Cause.NO_HTTP),
    ("a body until the end",           [OK + HTML + b"\r\nabc", b"d", END],                                      (200, b"abcd")),
    ("a body that is cut off",         [PAGE[:-1], END],                                                         ResponseDataLossError),
    ("a reset within the body",        [PAGE[:-1], RESET],                                                       Cause.RESET),
    ("an end before the answer",       [END],                                                                    Cause.CLOSED),
    ("a reset before the answer",      [RESET],                                                                  Cause.RESET),
    ("to be closed",                   [PAGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), END],       (200, b"abc")),
    ("interim answers",                [b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" * 3 + PAGE],              (200, b"abc")),
    ("HTTP/1.0",                       [PAGE.replace(b"1.1", b"1.0"), END],                                      (200, b"abc")),
    ("the same length twice",          [PAGE.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n")],            (200, b"abc")),
    ("a length that is none",          [PAGE.replace(b"Length: 3", b"Length: x"), END],                          Cause.NO_HTTP),
    ("no HTTP",                        [b"SSH-2.0-OpenSSH_9.6\r\n\r\n", END],                                    Cause.NO_HTTP),
    ("a NUL in a header",              [PAGE.replace(b"html;", b"ht\0ml;")],                                     Cause.NO_HTTP),
    ("a name that is no token",        [PAGE.replace(b"\r\n\r\n", b"\r\nX (a)@b: c\r\n\r\n")],                   (200, b"abc")),
    ("a compressed body",              [PAGE.replace(HTML, HTML + b"Content-Encoding: gzip\r\n")],               (200, b"abc")),
]  # fmt: skip


@pytest.mark.parametrize(("what", "answer", "outcome"), ANSWERS, ids=[row[0] for row in ANSWERS])
def test_answers(what: str, answer: Answer, outcome: tuple[int, bytes] | type[Exception] | Cause) -> None:
    found = fetched(answer)
    if isinstance(outcome, tuple):
        assert isinstance(found, Response), found
        assert (found.status, found.body, found.flags) == (*outcome, [])
    elif isinstance(outcome, Cause):
        assert isinstance(found, AnswerFailed), found
        assert found.cause is outcome
    else:
        assert isinstance(found, outcome), found


def test_what_a_response_has() -> None:
    found = fetched(
        [PAGE.replace(b"\r\n\r\n", b"\r\nset-cookie: a\r\nSet-Cookie:  b \r\nX-Folded: c\r\n d\r\nLocation: /\xfc\r\n\r\n")]
    )
    assert isinstance(found, HtmlResponse)
    assert (str(found.ip_address), found.protocol, found.certificate) == ("127.0.0.1", "HTTP/1.1", None)
    assert found.headers.getlist("Set-Cookie") == [b"a", b"b"]
    assert (found.headers["X-Folded"], found.headers["Location"]) == (b"c d", b"/\xfc")


@pytest.mark.parametrize(
    ("method", "body"), [("HEAD", b""), ("POST", b""), ("POST", b"x" * 2_000_000), ("DELETE", b""), ("GET", b"q")]
)
async def test_methods(method: str, body: bytes) -> None:
    """No body is waited for after HEAD, and no `100 Continue` before one is sent."""
    async with loopback([PAGE[:-3] if method == "HEAD" else PAGE]) as (server, crawl):
        response = await crawl.fetch(Request(server.url(), method=method, body=body))
    [sent] = server.requests
    assert sent.startswith(method.encode() + b" / HTTP/1.1\r\n")
    assert sent.endswith(b"\r\n\r\n" + body)
    assert b"expect" not in sent.lower()
    assert response.body == (b"" if method == "HEAD" else b"abc")


HEADS = [
    # what                                   bytes                                                              too large
    ("usual headers",                        head(20),                                                          False),
    ("1,000 lines",                          head(1_000),                                                       False),
    ("1,001 lines",                          head(1_001),                                                       True),
    ("90 KiB in one header",                 OK + b"X: " + b"a" * 90 * KIB + b"\r\nContent-Length: 0\r\n\r\n",  False),
    ("257 KiB in one header",                OK + b"X: " + b"a" * 257 * KIB + b"\r\nContent-Length: 0\r\n\r\n", True),
    ("250 KiB in many headers",              OK + (b"X: " + b"a" * KIB + b"\r\n") * 250 + b"Content-Length: 0\r\n\r\n", False),
    ("257 KiB in many headers",              OK + (b"X: " + b"a" * KIB + b"\r\n") * 257,                        True),
    ("a header that does not end",           OK + b"X: " + b"a" * 1024 * KIB,                                   True),
    ("a status line that does not end",      b"HTTP/1.1 200 " + b"a" * 1024 * KIB,                              True),
    ("400 interim answers",                  b"HTTP/1.1 103 Early Hints\r\n\r\n" * 400 + head(2),               False),
    ("1,200 interim answers",                b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1_200 + head(2),             True),
    ("interim answers without end",          b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20_000,                      True),
    ("999 trailers",                         head(1, rest=b"Transfer-Encoding: chunked\r\n\r\n0\r\n") + b"X-B: b\r\n" * 999 + b"\r\n", False),
    ("1,001 trailers after a header",        head(1, rest=b"Transfer-Encoding: chunked\r\n\r\n0\r\n") + b"X-B: b\r\n" * 1_001 + b"\r\n", True),
]  # fmt: skip


@pytest.mark.parametrize(("what", "sent", "too_large"), HEADS, ids=[row[0] for row in HEADS])
def test_headers_have_bounds(what: str, sent: bytes, *, too_large: bool) -> None:
    found = fetched([sent])
    assert isinstance(found, HeadersTooLarge if too_large else Response), found


@pytest.mark.parametrize("line", [b"X-A: a\r\n", b" a\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"a" * 100])
async def test_endless_headers_end_their_connection(line: bytes) -> None:
    start = line if line.startswith(b"HTTP") else OK + b"X: a\r\n" + line
    async with (
        serving([start, *[line * 1_000] * (10 * MAX_HEADER_BYTES // len(line) // 1_000)]) as server,
        crawling() as crawl,
    ):
        with pytest.raises(HeadersTooLarge):
            await crawl.fetch(server.url())
        await server.until_closed(1)


async def test_a_chunk_with_extensions_without_end_ends_its_connection() -> None:
    async with loopback([CHUNKED + b"3;a=", *[b"b" * 65_536] * 10_000]) as (server, crawl):
        with pytest.raises(HeadersTooLarge):
            await crawl.fetch(server.url())
        await server.until_closed(1)


SIZES = [
    # settings, meta, headers of a body of 10 bytes; what is raised, and told
    ({},                       {},                       b"Content-Length: 10\r\n", None,                   ""),
    ({"DOWNLOAD_MAXSIZE": 9},  {},                       b"Content-Length: 10\r\n", DownloadCancelledError, "the answer of 10 bytes is larger than 9 bytes"),
    ({"DOWNLOAD_MAXSIZE": 10}, {},                       b"Content-Length: 10\r\n", None,                   ""),
    ({"DOWNLOAD_MAXSIZE": 0},  {},                       b"Content-Length: 10\r\n", None,                   ""),
    ({},                       {"download_maxsize": 9},  b"Content-Length: 10\r\n", DownloadCancelledError, "the answer of 10 bytes is larger than 9 bytes"),
    ({"DOWNLOAD_MAXSIZE": 9},  {"download_maxsize": 0},  b"Content-Length: 10\r\n", None,                   ""),
    ({"DOWNLOAD_MAXSIZE": 9},  {},                       b"",                       DownloadCancelledError, "the answer is larger than DOWNLOAD_MAXSIZE"),
    ({"DOWNLOAD_WARNSIZE": 9}, {},                       b"Content-Length: 10\r\n", None,                   "its body has 10 bytes or more, which is over DOWNLOAD_WARNSIZE"),
    ({},                       {"download_warnsize": 9}, b"",                       None,                   "its body has 10 bytes or more, which is over DOWNLOAD_WARNSIZE"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "meta", "length", "error", "told"), SIZES)
async def test_bodies_have_bounds(
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, Any],
    meta: dict[str, Any],
    length: bytes,
    error: type[Exception] | None,
    told: str,
) -> None:
    async with loopback([OK + length + b"\r\n" + b"a" * 10, END], **settings) as (server, crawl):
        if error is None:
            assert (await crawl.fetch(server.url(), **meta)).body == b"a" * 10
            assert told in caplog.text
        else:
            with pytest.raises(error) as raised:
                await crawl.fetch(server.url(), **meta)
            assert told in str(raised.value)
    assert bool(caplog.messages) is ("WARNSIZE" in told)


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("by_meta", [True, False])
async def test_a_body_that_is_cut_off_may_be_taken(*, fails: bool, by_meta: bool) -> None:
    settings = {} if by_meta else {"DOWNLOAD_FAIL_ON_DATALOSS": fails}
    meta = {"download_fail_on_dataloss": fails} if by_meta else {}
    async with loopback([PAGE[:-1], END], **settings) as (server, crawl):
        if fails:
            with pytest.raises(ResponseDataLossError):
                await crawl.fetch(server.url(), **meta)
        else:
            found = await crawl.fetch(server.url(), **meta)
            assert (found.body, found.flags) == (b"ab", ["dataloss"])


@pytest.mark.parametrize("parts", [[], [OK], [PAGE[:-1]]])
async def test_the_time_of_a_request_has_an_end(parts: list[bytes]) -> None:
    async with loopback([*parts, WAIT]) as (server, crawl):
        with pytest.raises(DownloadTimeoutError, match=r"^Getting http://127.0.0.1:[0-9]+/ took longer than 0.1 seconds\.$"):
            await crawl.fetch(server.url(), download_timeout=0.1)


async def test_a_cancelled_request_ends_its_connection() -> None:
    asked = asyncio.Event()

    async def wait() -> None:
        asked.set()

    async with loopback([wait, WAIT], [PAGE]) as (server, crawl):
        fetching = asyncio.ensure_future(crawl.fetch(server.url()))
        await asked.wait()
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        assert (await crawl.fetch(server.url())).body == b"abc"
        assert server.by_connection == [1, 2]


def test_log_messages_of_libraries_about_a_server_are_cut(caplog: pytest.LogCaptureFixture) -> None:
    make_libraries_printable()
    with caplog.at_level("DEBUG"):
        Protego.parse("User-agent: *\nCrawl-delay: \x1b[2J" + "a" * 100_000).crawl_delay("*")
    assert [len(shown) for shown in caplog.messages] == [MESSAGE]
    assert all(shown.isprintable() for shown in caplog.messages)


LOCATIONS = [
    # bytes -> what they lead to from http://a.example/x/
    (None, "", "http://a.example/x/"),
    (b"", "", "http://a.example/x/"),
    (b" \t/a ", "/a", "http://a.example/a"),
    (b"/a?b=c", "/a?b=c", "http://a.example/a?b=c"),
    ("/gr\u00fc\u00dfe".encode(), "/gr\u00fc\u00dfe", "http://a.example/gr%C3%BC%C3%9Fe"),
    ("/gr\u00fc\u00dfe".encode("latin-1"), "/gr%FC%DFe", "http://a.example/gr%FC%DFe"),
    ("/\u65e5\u672c".encode("shift_jis"), "/%93%FA%96{", "http://a.example/%93%FA%96%7B"),
    (b"/a%20b?q=\xe4", "/a%20b?q=%E4", "http://a.example/a%20b?q=%E4"),
    ("/\u00fc".encode() + b"/\xfc", "/%C3%BC/%FC", "http://a.example/%C3%BC/%FC"),
    (b"http://b.example/\xff", "http://b.example/%FF", "http://b.example/%FF"),
]


@pytest.mark.parametrize(("value", "location", "target"), LOCATIONS)
def test_location(value: bytes | None, location: str, target: str) -> None:
    assert location_of(value) == location
    assert join("http://a.example/x/", location) == target


NOW = 1_445_412_480.0  # Wed, 21 Oct 2015 07:28:00 GMT

FORMS = [
    ("120", 120.0),
    (" 0 ", 0.0),
    ("Wed, 21 Oct 2015 07:29:00 GMT", 60.0),
    ("Wed, 21 Oct 2015 07:00:00 GMT", 0.0),
    ("soon", None),
    ("", None),
    ("-5", None),
    ("99999999999999999999", 999999999.0),
    ("9" * 300_000, 999999999.0),
    ("Wed, " * 100_000, None),
]


@pytest.mark.parametrize(("value", "seconds"), FORMS)
def test_forms(value: str, seconds: float | None) -> None:
    assert retry_after_s(value, now=NOW) == seconds


DATES = [
    # all of RFC 9110 section 5.6.7, and such as are sent although they are none
    "Wed, 21 Oct 2015 07:29:00 GMT",
    "Wednesday, 21-Oct-15 07:29:00 GMT",
    "Wed Oct 21 07:29:00 2015",
    "Wed, 21 Oct 2015 07:29:00",
    "Wed, 21 Oct 2015 07:29:00 -0000",
    "Wed, 21 Oct 2015 07:29:00 +0000",
    "Wed, 21 Oct 2015 09:29:00 +0200",
]


@pytest.fixture(params=["UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT,M3.2.0,M11.1.0"])
def _local_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the local time of Windows is not a process's own")
@pytest.mark.usefixtures("_local_time")
@pytest.mark.parametrize("value", DATES)
def test_the_time_zone_of_the_machine_changes_no_date(value: str) -> None:
    assert retry_after_s(value, now=NOW) == 60.0
