"""Headers of requests and answers: credentials, validators, cookies, and Content-Encoding."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from crawlspace.model import UrlState
from crawlspace.runtime.components.cookies import Cookies
from crawlspace.runtime.components.middlewares import ConditionalGet, Decompression, DefaultHeaders
from crawlspace.runtime.components.requests import CONDITIONAL, STATE
from crawlspace.runtime.http.errors import UndecodableBody
from tests.command_line import ROOT
from tests.components.conftest import NOTHING_IS_SENT, MakeCrawl, crawler_of_another
from tests.hostile.replies import LIBRARIES
from tests.notifications import LONGEST_WAIT_S

START = "https://wiki.example.com/"
SENT = [
    # URL, own headers of the request, whether Scrapy's proxies are on, headers that it is sent with
    (START, {}, True, {"Accept": "a", "Authorization": "secret", "Proxy-Authorization": "p"}),
    ("https://evil.example/", {}, True, {"Accept": "a", "Proxy-Authorization": "p"}),
    ("https://evil.example/", {}, False, {"Accept": "a"}),
    ("https://evil.example/", {"Authorization": "own"}, False, {"Accept": "a", "Authorization": "own"}),
    (START, {"Accept": "own"}, False, {"Accept": "own", "Authorization": "secret", "Proxy-Authorization": "p"}),
]


@pytest.mark.parametrize(("url", "own", "through_proxies", "expected"), SENT)
def test_headers_of_a_request(
    open_crawl: MakeCrawl, url: str, own: dict[str, str], expected: dict[str, str], *, through_proxies: bool
) -> None:
    headers = {"Accept": "a", b"Authorization": "secret", "Proxy-Authorization": "p", "Cookie": None}
    crawl = open_crawl(START, DEFAULT_REQUEST_HEADERS=headers, HTTPPROXY_ENABLED=through_proxies)
    request = Request(url, headers=own)
    DefaultHeaders.from_crawler(crawl.crawler).process_request(request)
    assert request.headers.to_unicode_dict() == expected


def test_other_spiders_have_scrapys_middleware() -> None:
    assert type(DefaultHeaders.from_crawler(crawler_of_another())) is DefaultHeadersMiddleware


URL = "http://a.example/"
STORED = [
    # ETag and Last-Modified as stored, conditional, headers of the request
    ('"a"', "Tue", True, {"If-None-Match": '"a"', "If-Modified-Since": "Tue"}),
    ('"a"', None, True, {"If-None-Match": '"a"'}),
    ('"a"', "Tue", False, {}),
    ("a" * 2_000, "Tue", True, {"If-Modified-Since": "Tue"}),
    ("a\x00", "T\x1b", True, {}),
]


@pytest.mark.parametrize(("etag", "modified", "conditional", "headers"), STORED)
def test_what_an_older_version_stored_without_bounds_is_not_sent(
    etag: str, modified: str | None, headers: dict[str, str], *, conditional: bool
) -> None:
    state = UrlState(1, 1, URL, "a.example:80", etag=etag, last_modified=modified)
    request = Request(URL, meta={STATE: state, CONDITIONAL: conditional})
    ConditionalGet().process_request(request)
    assert request.headers.to_unicode_dict() == headers


ONE_COOKIE = """
import socket, sys
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.misc import load_object

asked = []

def refuse(*arguments, **_):
    asked.append(arguments)
    raise OSError

socket.getaddrinfo = socket.create_connection = socket.socket.connect = refuse
middleware = load_object(sys.argv[1])()
request = Request("http://shop.example.co.uk/")
for cookie in ("a=1", "b=2; Domain=example.co.uk", "c=3; Domain=co.uk"):
    middleware.process_response(request, Response(request.url, headers={"Set-Cookie": cookie}))
another = Request("http://www.example.co.uk/")
middleware.process_request(another)
print(another.headers.get("Cookie"), bool(asked))
"""


WHOSE = [
    ("crawlspace.runtime.components.cookies.Cookies", False),
    ("scrapy.downloadermiddlewares.cookies.CookiesMiddleware", True),
]


@pytest.mark.parametrize(("middleware", "asks"), WHOSE)
def test_cookies_need_no_network_request(tmp_path: Path, middleware: str, *, asks: bool) -> None:
    """Scrapy alone asks: that this test notices a request is shown too."""
    env = {**os.environ, "TLDEXTRACT_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", ONE_COOKIE, middleware]
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=LONGEST_WAIT_S)
    assert ended.stdout == f"b'b=2' {asks}\n", ended.stderr


SET = [
    # cookies that are set one after the other, each with a path; those that are sent to /x afterwards
    ([("a", "1", "/")], ["a=1"]),
    ([("a", "1", "/"), ("a", "2", "/")], ["a=2"]),
    ([("a", "b" * 4_095, "/")], ["a=" + "b" * 4_095]),
    ([("a", "b" * 4_096, "/")], []),
    ([(f"a{n}", "1", "/") for n in range(900)], [f"a{n}=1" for n in range(850, 900)]),
    ([("a", "1", f"/{n}") for n in range(900)] + [("b", "1", "/x")], ["b=1"]),
]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("cookies", "sent"), SET)
def test_cookies_have_bounds(cookies: list[tuple[str, str, str]], sent: list[str], *, at_once: bool) -> None:
    middleware = Cookies.from_crawler(get_crawler(settings_dict=NOTHING_IS_SENT))
    request = Request("http://127.0.0.1/x")
    headers = [f"{name}={value}; Path={path}" for name, value, path in cookies]
    for given in [headers] if at_once else [[header] for header in headers]:
        middleware.process_response(request, Response(request.url, headers={"Set-Cookie": given}))
    middleware.process_request(request)
    assert sorted((request.headers.get("Cookie") or b"").decode().split("; ")) == sorted(sent or [""])
    assert len(middleware.jars[None]) <= 50


BODY = b"some words" * 100
RESPONSES = [
    # Content-Encoding headers, body as sent, body as read or what is raised
    ([], BODY, BODY),
    (["gzip"], gzip.compress(BODY, mtime=0), BODY),
    (["deflate"], zlib.compress(BODY), BODY),
    (["br"], LIBRARIES.brotli.compress(BODY), BODY),
    (["zstd"], LIBRARIES.zstd.compress(BODY), BODY),
    (["gzip, gzip"], gzip.compress(gzip.compress(BODY, mtime=0), mtime=0), BODY),
    (["identity"], BODY, BODY),
    (["rot13"], BODY, BODY),
    (["\u00ff\x1b"], BODY, BODY),
    (["gzip"], BODY, UndecodableBody),
    (["gzip"], b"", b""),
    (["deflate"], BODY, UndecodableBody),
    (["br"], BODY, UndecodableBody),
    (["zstd"], BODY, UndecodableBody),
    (["gzip"] * 6, gzip.compress(BODY, mtime=0), UndecodableBody),
    ([",".join(["gzip"] * 50_000)], gzip.compress(BODY, mtime=0), UndecodableBody),
    (["gzip"], gzip.compress(b" " * 10_000, mtime=0), IgnoreRequest),
]


@pytest.mark.parametrize(("encodings", "sent", "expected"), RESPONSES)
def test_bodies(encodings: list[str], sent: bytes, expected: bytes | type[Exception]) -> None:
    middleware = Decompression.from_crawler(get_crawler(settings_dict={**NOTHING_IS_SENT, "DOWNLOAD_MAXSIZE": 5_000}))
    request = Request("http://a.example/")
    headers = {"Content-Encoding": [encoding.encode("latin-1") for encoding in encodings]} if encodings else {}
    response = Response(request.url, headers=headers, body=sent)
    if isinstance(expected, bytes):
        read = middleware.process_response(request, response)
        assert isinstance(read, Response)
        assert read.body == expected
    else:
        with pytest.raises(expected):
            middleware.process_response(request, response)
