"""Cookies need no list of public suffixes from the network, and have bounds."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.downloadermiddlewares import cookies
from scrapy.http import Response
from tldextract import TLDExtract

from crawlspace.runtime.download.cookies import use_bundled_suffixes
from middlewares.cookies import Cookies


@pytest.mark.parametrize("bundled", [True, False])
def test_nothing_is_asked_of_the_network_for_a_cookie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, bundled: bool) -> None:
    """Without it, as Scrapy has it: that this notices a request is shown too."""
    asked: list[object] = []

    def refuse(*arguments: object, **_: object) -> None:
        asked.append(arguments)
        raise OSError

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(cookies, "_split_domain", TLDExtract(cache_dir=str(tmp_path)))
    if bundled:
        use_bundled_suffixes()
    middleware = cookies.CookiesMiddleware()
    request = Request("http://shop.example.co.uk/")
    for cookie in ("a=1", "b=2; Domain=example.co.uk", "c=3; Domain=co.uk"):
        middleware.process_response(request, Response(request.url, headers={"Set-Cookie": cookie}))
    another = Request("http://www.example.co.uk/")
    middleware.process_request(another)
    assert another.headers.get("Cookie") == b"b=2"
    assert bool(asked) is not bundled


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
    use_bundled_suffixes()
    middleware = Cookies()
    request = Request("http://127.0.0.1/x")
    headers = [f"{name}={value}; Path={path}" for name, value, path in cookies]
    for given in [headers] if at_once else [[header] for header in headers]:
        middleware.process_response(request, Response(request.url, headers={"Set-Cookie": given}))
    middleware.process_request(request)
    assert sorted((request.headers.get("Cookie") or b"").decode().split("; ")) == sorted(sent or [""])
    assert len(middleware.jars[None]) <= 50


def test_a_project_sets_limits_of_its_own() -> None:
    class Fewer(Cookies):
        most_cookies = 2
        most_characters = 3

    use_bundled_suffixes()
    middleware = Fewer()
    request = Request("http://127.0.0.1/")
    middleware.process_response(request, Response(request.url, headers={"Set-Cookie": ["a=1", "b=2", "c=3", "d=1234"]}))
    middleware.process_request(request)
    assert request.headers.get("Cookie") == b"b=2; c=3"
