"""Cookies need no list of public suffixes from the network."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.downloadermiddlewares import cookies
from scrapy.http import Response
from tldextract import TLDExtract

from crawlspace.runtime.cookies import use_bundled_suffixes


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
