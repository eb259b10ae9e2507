"""What a request carries for its site, and that it carries nothing of it to another one."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.http import Response

from crawlspace.access.login_states import Logins
from crawlspace.clock import FakeClock
from crawlspace.config.sites import read_sites
from crawlspace.runtime.access.cookies import SessionCookies, cookies_of_values
from crawlspace.runtime.access.middleware import SiteAccessMiddleware
from crawlspace.runtime.components.requests import OWN, detached
from tests.contract.memory.store import MemoryStore

ENTRIES: dict[str, dict[str, object]] = {
    "wiki.example.com": {
        "login": {"type": "form", "url": "https://wiki.example.com/login", "fields": {"user": "a", "password": "b"}},
        "headers": {"X-Api-Key": "k"},
    },
    "api.example.com": {
        "login": {"type": "oauth2", "url": "https://api.example.com/t", "client_id": "a", "client_secret": "b"},
    },
    "old.example.com": {"login": {"type": "digest", "user": "a", "password": "b"}},
}


def made() -> tuple[SiteAccessMiddleware, Logins]:
    settings = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 4, "CRAWLSPACE_SITES": ENTRIES}
    logins = Logins(read_sites(settings), MemoryStore(), FakeClock())
    cookies = SessionCookies()
    cookies.load(cookies_of_values(logins.entry("wiki.example.com"), {"sid": "v"}))
    logins.sessions.add(logins.entry("wiki.example.com"), cookies.dumped())
    logins.sessions.add(logins.entry("api.example.com"), '{"token": "t"}')
    return SiteAccessMiddleware(logins), logins


def carried(request: Request) -> set[str]:
    return {name.decode() for name in request.headers}


CARRIES = [
    ("https://wiki.example.com/", {"X-Api-Key", "Cookie"}),
    ("https://api.example.com/", {"Authorization"}),
    ("https://old.example.com/", {"Authorization"}),
]


@pytest.mark.parametrize(("url", "names"), CARRIES)
@pytest.mark.parametrize("other", ["https://other.example.com/", "http://wiki.example.com/"])
def test_nothing_goes_along_to_another_site(url: str, names: set[str], other: str) -> None:
    access, _ = made()
    request = Request(url, meta={OWN: "own"})
    access.process_request(request)
    if "old" in url:
        challenge = {"WWW-Authenticate": 'Digest realm="a", nonce="n"'}
        again = access.process_response(request, Response(url, status=401, headers=challenge))
        assert isinstance(again, Request)
        access.process_request(again)
        request = again
    assert carried(request) == names
    redirected = request.replace(url=other)
    access.process_request(redirected)
    assert carried(redirected) == set()
    answer = Response(other, status=403, headers={"Set-Cookie": "a=b"})
    assert access.process_response(redirected, answer) is answer
    copied = detached(request).replace(url=other)
    assert carried(copied) == set()


def test_headers_of_a_request_itself_stay() -> None:
    access, _ = made()
    request = Request("https://wiki.example.com/", headers={"X-Api-Key": "mine", "X-Other": "o"}, meta={OWN: "own"})
    access.process_request(request)
    access.process_request(request)
    assert request.headers["X-Api-Key"] == b"mine"
    assert carried(detached(request)) == {"X-Api-Key", "X-Other"}
