"""Cookies need no list of public suffixes from the network, and have bounds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from crawlspace.runtime.components.cookies import Cookies
from tests.command_line import ROOT
from tests.components.opened import NOTHING_IS_SENT
from tests.notifications import LONGEST_WAIT_S

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
