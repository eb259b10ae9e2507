"""What a proxy has answered itself, as far as its answer tells, and what it has kept away."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.exceptions import CannotResolveHostError, DownloadFailedError, DownloadTimeoutError, ResponseDataLossError
from scrapy.http import Response
from twisted.internet import error as tx
from twisted.python.failure import Failure
from twisted.web.client import ResponseFailed

from crawlspace.runtime.http.errors import HeadersTooLarge, KeptConnectionClosed, ProxyFailed, TunnelRefused
from crawlspace.runtime.http.proxies import answered_by_proxy, failed_through_proxy, not_connected
from crawlspace.runtime.requests import set_proxy

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


def within(cause: BaseException) -> BaseException:
    """A failed download as the handler gets it."""
    error = DownloadFailedError("failed")
    error.__cause__ = ResponseFailed([Failure(cause)])
    return error


def unconnected(cause: BaseException) -> BaseException:
    error = not_connected(Failure(cause)).value
    assert error is not None
    return error


CONNECTION = "cannot be reached ({}): start it, or correct CRAWLSPACE_PROXY"
FAILURES: list[tuple[BaseException, str | None]] = [
    # what a request fails with, what is told of the proxy
    (unconnected(tx.ConnectionRefusedError()),       CONNECTION.format("connection refused")),
    (unconnected(tx.TimeoutError()),                 CONNECTION.format("no answer in time")),
    (unconnected(tx.DNSLookupError("x")),            CONNECTION.format("its name cannot be looked up")),
    (unconnected(CannotResolveHostError("x")),       CONNECTION.format("its name cannot be looked up")),
    (unconnected(tx.ConnectionDone()),               CONNECTION.format("the connection was lost")),
    (TunnelRefused(407),                             "asks for a log-in (407): set or correct the user and password of CRAWLSPACE_PROXY"),
    (unconnected(TunnelRefused(403)),                "(CRAWLSPACE_PROXY) refuses what is asked of a.example (403): have it allow the site"),
    (TunnelRefused(0),                               "does not answer as one: correct CRAWLSPACE_PROXY"),
    (within(tx.ConnectionLost()),                    "(CRAWLSPACE_PROXY) has cut the connection"),
    (ResponseDataLossError(),                        "(CRAWLSPACE_PROXY) has cut the connection"),
    (within(HeadersTooLarge()),                      None),
    (unconnected(HeadersTooLarge()),                 None),
    (KeptConnectionClosed(),                         None),
    (DownloadFailedError("x"),                       None),
    (ValueError("x"),                                None),
]  # fmt: skip


@pytest.mark.parametrize(("error", "sentence"), FAILURES)
def test_failures(error: BaseException, sentence: str | None) -> None:
    failed = failed_through_proxy(request(HTTPS), error)
    if sentence is None:
        assert failed is None
    else:
        assert isinstance(failed, ProxyFailed)
        assert str(failed).startswith(f"the proxy {PROXY} {sentence}")


def test_a_time_out_stays_one() -> None:
    failed = failed_through_proxy(request(HTTP), DownloadTimeoutError("Getting x took longer than 2 seconds."))
    assert isinstance(failed, DownloadTimeoutError)
    assert str(failed) == f"Getting x took longer than 2 seconds. (through the proxy {PROXY})"


def test_the_proxy_of_a_spiders_own_request() -> None:
    own = Request(HTTP, meta={"proxy": PROXY})
    assert 'of request.meta["proxy"]' in str(answered_by_proxy(own, Response(HTTP, status=407)))


def request(url: str) -> Request:
    made = Request(url)
    set_proxy(made, PROXY, "Basic abc", where="CRAWLSPACE_PROXY")
    return made
