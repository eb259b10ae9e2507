"""Which cookies of a browser are kept as a session, and to which requests they go then."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from crawlspace.access.login_states import entry_hosts_of
from crawlspace.access.sessions import KeptCookie
from crawlspace.config.sites import NO_RENDERING, SiteSettings, SiteTable
from crawlspace.rules.limits import Limits
from crawlspace.runtime.access.cookies import SessionCookies, cookies_for_page, cookies_of_entry
from tests.unit.runtime.access.test_login_kinds import access_of

FAR = 4_000_000_000


def cookie(domain: str, *, path: str = "/", secure: bool = False, expires: float = -1) -> dict[str, object]:
    return {
        "name": "sid",
        "value": "v",
        "domain": domain,
        "path": path,
        "secure": secure,
        "expires": expires,
        "httpOnly": True,
        "sameSite": "Lax",
    }


WIKI, ALL = "wiki.example.com", "*.example.com"
SENT = [
    (WIKI, cookie(WIKI), "https://wiki.example.com/a", True),
    (WIKI, cookie(WIKI), "https://sub.wiki.example.com/", False),
    (WIKI, cookie("." + WIKI), "https://sub.wiki.example.com/", True),
    (WIKI, cookie(".example.com"), "https://wiki.example.com/", True),
    (WIKI, cookie("sso.example.com"), None, False),
    (WIKI, cookie(".sso.example.com"), None, False),
    (WIKI, cookie(".iki.example.com"), None, False),
    (WIKI, cookie(WIKI, path="/a"), "https://wiki.example.com/a/b", True),
    (WIKI, cookie(WIKI, path="/a"), "https://wiki.example.com/b", False),
    (WIKI, cookie(WIKI, secure=True), "http://wiki.example.com/", False),
    (WIKI, cookie(WIKI, secure=True), "https://wiki.example.com/", True),
    (WIKI, cookie(WIKI, expires=FAR + 0.5), "https://wiki.example.com/", True),
    (WIKI, cookie(WIKI, expires=1_000_000_000.5), "https://wiki.example.com/", False),
    ("wiki.example.com:8443", cookie(WIKI), "https://wiki.example.com:8443/", True),
    ("WIKI.example.com:8443", cookie(".example.com"), "https://wiki.example.com:8443/", True),
    (ALL, cookie(WIKI), "https://wiki.example.com/", True),
    (ALL, cookie("." + WIKI), "https://wiki.example.com/", True),
    (ALL, cookie(".example.com"), "https://wiki.example.com/", True),
    (ALL, cookie("example.com"), None, False),
    (ALL, cookie(".example.org"), None, False),
    ("intranet", cookie("intranet"), "https://intranet/", True),
]


@pytest.mark.parametrize(("pattern", "given", "url", "is_sent"), SENT)
def test_where_cookies_of_the_browser_go(pattern: str, given: dict[str, object], url: str | None, is_sent: bool) -> None:
    access = access_of(pattern)
    sites = SiteTable(
        SiteSettings(0.0, 1, Limits()), {pattern: SiteSettings(0.0, 1, Limits(), access=access, rendering=NO_RENDERING)}
    )
    kept = cookies_of_entry([given], access, entry_hosts_of(sites, access))
    assert bool(kept) == (url is not None)
    if url is None:
        return
    first = SessionCookies()
    first.load(kept)
    request = Request(url)
    SessionCookies(first.dumped()).add_to(request)
    assert (request.headers.get("Cookie") == b"sid=v") == is_sent


def kept(name: str, domain: str, **others: Any) -> KeptCookie:
    values: dict[str, Any] = {"path": "/", "secure": False, "http_only": False} | others
    return KeptCookie(name, "v", domain, domain.startswith("."), expires=None, **values)


IN_BROWSER = [
    # URL, cookies of the jar, the request's header: what the browser gets
    (
        "https://a.example/",
        [kept("x", "a.example", path="/deep", secure=True, http_only=True, same_site="strict")],
        "",
        [("x", "a.example", "/deep", True, True, "Strict")],
    ),
    ("https://w.a.example/", [kept("x", ".a.example")], "x=v", [("x", ".a.example", "/", False, False, "Lax")]),
    ("https://a.example/", [kept("x", "b.example")], "", []),
    ("https://a.example/", [kept("x", ".a.example")], "", [("x", ".a.example", "/", False, False, "Lax")]),
    (
        "https://a.example/",
        [kept("x", "a.example", secure=True, same_site="None")],
        "",
        [("x", "a.example", "/", True, False, "None")],
    ),
    ("http://a.example/", [kept("x", "a.example", same_site="None")], "", [("x", "a.example", "/", False, False, "Lax")]),
    ("http://intranet/", [kept("x", "intranet.local")], "", [("x", "intranet", "/", False, False, "Lax")]),
    ("http://printer.local/", [kept("x", "printer.local")], "", [("x", "printer.local", "/", False, False, "Lax")]),
    (
        "https://a.example/",
        [],
        "y=1; z",
        [("y", "a.example", "/", True, True, "Lax"), ("z", "a.example", "/", True, True, "Lax")],
    ),
]


@pytest.mark.parametrize(("url", "jar", "header", "expected"), IN_BROWSER)
def test_cookies_of_a_page_in_the_browser(
    url: str, jar: list[KeptCookie], header: str, expected: list[tuple[object, ...]]
) -> None:
    names = ("name", "domain", "path", "secure", "httpOnly", "sameSite")
    assert [tuple(one[name] for name in names) for one in cookies_for_page(url, header, jar)] == expected


SET = [
    # Set-Cookie, what is kept: whether a script sees it, SameSite
    ("x=v", False, ""),
    ("x=v; HttpOnly", True, ""),
    ("x=v; httponly; SameSite=Strict", True, "Strict"),
    ("x=v; samesite=None; Secure", False, "None"),
]


@pytest.mark.parametrize(("header", "http_only", "same_site"), SET)
def test_a_session_keeps_what_a_server_has_set_for_its_cookies(header: str, http_only: bool, same_site: str) -> None:
    cookies, request = SessionCookies(), Request("https://a.example/")
    cookies.take_from(Response("https://a.example/", headers={"Set-Cookie": header}), request)
    (found,) = SessionCookies(cookies.dumped()).kept()
    assert (found.http_only, found.same_site) == (http_only, same_site)


def test_cookies_of_a_session_that_an_earlier_version_has_kept_are_seen_by_no_script() -> None:
    (found,) = SessionCookies('[["x","v","a.example",false,"/",false,null]]').kept()
    assert (found.name, found.http_only, found.same_site) == ("x", True, "")
