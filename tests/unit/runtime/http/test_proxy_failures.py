"""What a proxy has answered itself, as far as its answer tells, and what it has kept away."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from scrapy.http import Response

from crawlspace.runtime.components.requests import set_proxy
from crawlspace.runtime.http.causes import Cause
from crawlspace.runtime.http.codes import PROXY_HANDSHAKE
from crawlspace.runtime.http.errors import AnswerFailed, HeadersTooLarge, KeptConnectionClosed, NoConnectionInTime, ProxyFailed
from crawlspace.runtime.http.proxies import ProxyServer, Reached, answered_by_proxy, failed_through_proxy, proxy_server

PROXY = "http://proxy.example.com:3128"
HTTP, HTTPS = "http://a.example/", "https://a.example/"

ANSWERS: list[tuple[str, int, dict[str, str], bool]] = [
    # URL, status and headers of an answer, whether it is the proxy's own
    (HTTP,  200, {},                                       False),
    (HTTP,  200, {"Server": "squid/5.7", "Via": "1.1 p"},  False),
    (HTTP,  302, {},                                       False),
    (HTTP,  407, {},                                       True),
    (HTTPS, 407, {},                                       False),
    (HTTP,  403, {},                                       False),
    (HTTP,  403, {"X-Squid-Error": "ERR_ACCESS_DENIED 0"}, True),
    (HTTPS, 403, {"X-Squid-Error": "ERR_ACCESS_DENIED 0"}, False),
    (HTTP,  403, {"Server": "tinyproxy/1.11.1"},           True),
    (HTTP,  404, {"Server": "nginx"},                      False),
    (HTTP,  404, {"Proxy-Status": "p; error=dns_error"},   True),
    (HTTP,  404, {"Proxy-Status": "p; next-hop=x"},        False),
    (HTTP,  500, {},                                       False),
    (HTTP,  502, {},                                       True),
    (HTTP,  503, {},                                       True),
    (HTTP,  503, {"Retry-After": "60"},                    False),
    (HTTP,  504, {},                                       True),
]  # fmt: skip


@pytest.mark.parametrize(("url", "status", "headers", "is_of_proxy"), ANSWERS)
def test_answers(url: str, status: int, headers: dict[str, str], *, is_of_proxy: bool) -> None:
    failed = answered_by_proxy(request(url), Response(url, status=status, headers=headers))
    assert (failed is not None) is is_of_proxy
    assert failed is None or f"the proxy {PROXY}" in str(failed)


NOWHERE = Reached(code=7, is_connected=False, tunnel_status=0, proxy_error=0)
AT_PROXY = Reached(code=56, is_connected=True, tunnel_status=0, proxy_error=0)
AT_SITE = AT_PROXY._replace(tunnel_status=200)


def tunnel(status: int) -> Reached:
    return AT_PROXY._replace(tunnel_status=status)


def socks(proxy_error: int) -> Reached:
    return Reached(code=PROXY_HANDSHAKE, is_connected=True, tunnel_status=0, proxy_error=proxy_error)


FAILED = DownloadFailedError("x")
CONNECTION = "cannot be reached ({}): start it, or correct CRAWLSPACE_PROXY"
CUT = "(CRAWLSPACE_PROXY) has cut the connection"
FAILURES: list[tuple[str, BaseException, Reached, str | None]] = [
    # URL, what a request fails with, how far it has come, what is told of the proxy
    (HTTPS, DownloadConnectionRefusedError("x"), NOWHERE,     CONNECTION.format("connection refused")),
    (HTTPS, NoConnectionInTime("x"),             NOWHERE,     CONNECTION.format("no answer in time")),
    (HTTPS, CannotResolveHostError("x"),         NOWHERE,     CONNECTION.format("its name cannot be looked up")),
    (HTTPS, AnswerFailed(Cause.CLOSED),          NOWHERE,     CONNECTION.format("the connection was lost")),
    (HTTPS, AnswerFailed(Cause.CLOSED),          AT_PROXY,    CONNECTION.format("the connection was lost")),
    (HTTPS, FAILED,                              tunnel(407), "asks for a log-in (407): set or correct the user and password of CRAWLSPACE_PROXY"),
    (HTTPS, FAILED,                              tunnel(403), "(CRAWLSPACE_PROXY) refuses what is asked of a.example (403): have it allow the site"),
    (HTTPS, FAILED,                              tunnel(504), "(CRAWLSPACE_PROXY) does not reach a.example (504)"),
    (HTTPS, AnswerFailed(Cause.NO_HTTP),         AT_PROXY,    "does not answer as one: correct CRAWLSPACE_PROXY"),
    (HTTPS, AnswerFailed(Cause.RESET),           AT_SITE,     CUT),
    (HTTPS, ResponseDataLossError(),             AT_SITE,     CUT),
    (HTTP,  AnswerFailed(Cause.CLOSED),          AT_PROXY,    CUT),
    (HTTP,  FAILED,                              socks(33),   "asks for a log-in: set or correct the user and password of CRAWLSPACE_PROXY"),
    (HTTP,  FAILED,                              socks(19),   "(CRAWLSPACE_PROXY) does not reach a.example (connection refused)"),
    (HTTP,  FAILED,                              socks(23),   "(CRAWLSPACE_PROXY) refuses what is asked of a.example: have it allow the site"),
    (HTTP,  FAILED,                              socks(2),    "does not answer as one: correct CRAWLSPACE_PROXY"),
    (HTTPS, AnswerFailed(Cause.NO_HTTP),         AT_SITE,     None),
    (HTTPS, AnswerFailed(Cause.EXPIRED),         AT_SITE,     None),
    (HTTPS, HeadersTooLarge(),                   AT_SITE,     None),
    (HTTPS, KeptConnectionClosed(),              AT_SITE,     None),
    (HTTPS, FAILED,                              AT_SITE,     None),
    (HTTPS, ValueError("x"),                     AT_SITE,     None),
]  # fmt: skip


@pytest.mark.parametrize(("url", "error", "reached", "sentence"), FAILURES)
def test_failures(url: str, error: BaseException, reached: Reached, sentence: str | None) -> None:
    failed = failed_through_proxy(request(url), error, reached)
    if sentence is None:
        assert failed is None
    else:
        assert isinstance(failed, ProxyFailed)
        assert str(failed).startswith(f"the proxy {PROXY} {sentence}")


def test_a_certificate_that_is_refused_is_that_of_the_proxy_unless_there_is_a_tunnel() -> None:
    asked = request(HTTPS)
    asked.meta["proxy"] = "https://proxy.example.com:3129"
    error = AnswerFailed(Cause.SELF_SIGNED)
    failed = failed_through_proxy(asked, error, AT_PROXY)
    assert "cannot be reached (the TLS handshake with it failed: the certificate is self-signed" in str(failed)
    assert "correct its certificate or CRAWLSPACE_PROXY" in str(failed)
    assert failed_through_proxy(asked, error, AT_SITE) is None


def test_a_time_out_stays_one() -> None:
    failed = failed_through_proxy(request(HTTP), DownloadTimeoutError("Getting x took longer than 2 seconds."), AT_PROXY)
    assert isinstance(failed, DownloadTimeoutError)
    assert str(failed) == f"Getting x took longer than 2 seconds. (through the proxy {PROXY})"


SERVERS = [
    ("http://proxy.example.com:3128", ProxyServer("http", "proxy.example.com", 3128)),
    ("proxy.example.com:3128",        ProxyServer("http", "proxy.example.com", 3128)),
    ("https://proxy.example.com",     ProxyServer("https", "proxy.example.com", 443)),
    ("socks5://[::1]",                ProxyServer("socks5", "::1", 1080)),
    ("ftp://proxy.example.com",       None),
    ("http://",                       None),
]  # fmt: skip


@pytest.mark.parametrize(("url", "server"), SERVERS)
def test_where_a_proxy_is(url: str, server: ProxyServer | None) -> None:
    if server is not None:
        assert proxy_server(url) == server
        return
    with pytest.raises(ValueError, match="is no proxy"):
        proxy_server(url)


def test_the_proxy_of_a_spiders_own_request() -> None:
    own = Request(HTTP, meta={"proxy": PROXY})
    assert 'of request.meta["proxy"]' in str(answered_by_proxy(own, Response(HTTP, status=407)))


def request(url: str) -> Request:
    made = Request(url)
    set_proxy(made, PROXY, "Basic abc", where="CRAWLSPACE_PROXY")
    return made
