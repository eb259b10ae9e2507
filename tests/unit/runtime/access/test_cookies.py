"""Cookies: those given by a file or by name and value, and those of a browser that are kept as a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from crawlspace.access.login_states import entry_hosts_of
from crawlspace.access.sessions import KeptCookie
from crawlspace.config.access import read_site_access
from crawlspace.config.sites import NO_RENDERING, SiteSettings, SiteTable
from crawlspace.errors import SettingError
from crawlspace.rules.limits import Limits
from crawlspace.runtime.access.cookies import (
    SessionCookies,
    cookies_for_page,
    cookies_of_entry,
    cookies_of_values,
    read_cookie_file,
)
from tests.unit.runtime.access.test_login_kinds import access_of


def sent(cookies: SessionCookies, url: str) -> str:
    request = Request(url)
    SessionCookies(cookies.dumped()).add_to(request)
    return (request.headers.get("Cookie") or b"").decode()


FILES = [
    ("wiki.example.com\tFALSE\t/\tTRUE\t0\tsid\tv", "https://wiki.example.com/", "sid=v"),
    ("wiki.example.com\tFALSE\t/\tTRUE\t0\tsid\tv", "http://wiki.example.com/", ""),
    ("wiki.example.com\tFALSE\t/\tFALSE\t0\tsid\tv", "https://a.wiki.example.com/", ""),
    ("#HttpOnly_.example.com\tTRUE\t/\tFALSE\t4102444800\tsid\tv", "https://wiki.example.com/", "sid=v"),
    ("example.com\tTRUE\t/\tFALSE\t0\tsid\tv", "https://wiki.example.com/", "sid=v"),  # as some extensions write it
    ("example.com\tTRUE\t/a\tFALSE\t0\tsid\tv", "https://wiki.example.com/b", ""),
    ("wiki\tFALSE\t/\tFALSE\t0\tsid\tv", "https://wiki/", "sid=v"),
    ("# a comment\r\n\r\nwiki.example.com\tFALSE\t/\tFALSE\t0\tsid\tv\r\n", "https://wiki.example.com/", "sid=v"),
]


@pytest.mark.parametrize(("content", "url", "header"), FILES)
def test_files(tmp_path: Path, content: str, url: str, header: str) -> None:
    path = tmp_path / "cookies.txt"
    path.write_text(content, newline="")
    cookies = SessionCookies()
    cookies.load(read_cookie_file("X['file']", str(path)))
    assert sent(cookies, url) == header


WRONG = [
    (b"wiki.example.com FALSE / FALSE 0 sid s3cret", "whose line 1 is not of Netscape's format: seven fields, apart by tabs"),
    (b"# x\na\tFALSE\t/\tFALSE\ts3cret\tsid\tv", "whose line 2 is not of Netscape's format"),
    (b"s3cret\tx\t/\tFALSE\t0\tsid\tv", "whose line 1 is not of Netscape's format"),
    (b"a\tFALSE\t/\tFALSE\t1e999\tsid\tv", "whose line 1 is not of Netscape's format"),
    (b"a\tFALSE\t/\tFALSE\t1\tsid\ts3cret", "which has no cookies that are good any more"),
    (b"", "which has no cookies that are good any more"),
    (b"\xff\xfes3cret", "which cannot be read: it is not in UTF-8"),
]


@pytest.mark.parametrize(("content", "sentence"), WRONG)
def test_files_that_cannot_be_used(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "cookies.txt"
    path.write_bytes(content)
    with pytest.raises(SettingError) as raised:
        read_cookie_file("X['file']", str(path))
    assert sentence in str(raised.value)
    assert "s3cret" not in f"{raised.value} {raised.value.__context__}"


GIVEN = [
    ("wiki.example.com", "https://wiki.example.com/", "sid=v"),
    ("wiki.example.com:8443", "https://wiki.example.com:8443/", "sid=v"),
    ("*.example.com", "https://wiki.example.com/", "sid=v"),
    ("wiki", "https://wiki/", "sid=v"),
    ("wiki:8080", "https://wiki:8080/", "sid=v"),
    ("wiki.example.com", "https://example.com/", ""),
]


@pytest.mark.parametrize(("pattern", "url", "header"), GIVEN)
def test_values_are_for_the_hosts_of_the_entry(pattern: str, url: str, header: str) -> None:
    access = read_site_access(
        "X", pattern, {"login": {"type": "cookies", "cookies": {"sid": "v"}, "logged_out": {"text": "Log in"}}}
    )
    assert access is not None
    cookies = SessionCookies()
    cookies.load(cookies_of_values(access, {"sid": "v"}))
    assert sent(cookies, url) == header


WIKI = "https://wiki.example.com/a/b"
SET = [
    # what a page at WIKI sets, and what is sent to it afterwards (RFC 6265, 5.2 and 5.3)
    ("sid=v", "sid=v"),
    ("sid=v; Secure", "sid=v"),
    ("sid=v; Secure=true", "sid=v"),
    ("sid=v; SECURE = 1; HttpOnly=true; SameSite=odd", "sid=v"),
    ("sid=v; Version=one; Port=none; Comment; Discard=x; CommentURL=y", "sid=v"),
    ("sid=v; Max-Age", "sid=v"),
    ("sid=v; Max-Age=soon", "sid=v"),
    ("sid=v; Max-Age=1.5", "sid=v"),
    ("sid=v; Max-Age=3600; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "sid=v"),
    ("sid=v; Max-Age=99999999999999999999999", "sid=v"),
    ("sid=v; Max-Age=0", ""),
    ("sid=v; Max-Age=-99999999999999999999999", ""),
    ("sid=v; Expires", "sid=v"),
    ("sid=v; Expires=never", "sid=v"),
    ("sid=v; Expires=Fri, 31-Dec-2100 23:59:59 GMT", "sid=v"),
    ("sid=v; Expires=31 december 2100 23:59:59", "sid=v"),
    ("sid=v; Expires=Wed, 09 Jun 2021 10:18:14 GMT", ""),
    ("sid=v; Expires=09-Jun-21 10:18:14", ""),
    ("sid=v; Expires=Wed Jun  9 10:18:14 2021", ""),
    ("sid=v; Expires=Wed, 09 Jun 2021 25:18:14 GMT", "sid=v"),
    ("sid=v; Domain", "sid=v"),
    ("sid=v; Domain=", "sid=v"),
    ("sid=v; Domain=.EXAMPLE.com", "sid=v"),
    ("sid=v; Domain=wiki.example.com", "sid=v"),
    ("sid=v; Domain=other.example.com", ""),
    ("sid=v; Domain=other.example.com; Domain=example.com", "sid=v"),
    ("sid=v; Domain=com", ""),
    ("sid=v; Path", "sid=v"),
    ("sid=v; Path=a", "sid=v"),
    ("sid=v; Path=/b", ""),
    ("sid=v; Path=/b; Path=/a", "sid=v"),
    ("sid=v; Path=/a/", "sid=v"),
    ("sid=v; Path=/a/b/c", ""),
    ("sid = v ;;; =; Secure=;", "sid=v"),
    ('sid="a b"', 'sid="a b"'),
    ("sid=a=b", "sid=a=b"),
    ("sid=", "sid="),
    ("sid", "sid"),
    ("=v", "v"),
    ("; Secure", ""),
    ("", ""),
    ("sid=v\x01", ""),
]


@pytest.mark.parametrize(("header", "cookie"), SET)
def test_every_attribute_is_read_as_a_browser_does(header: str, cookie: str) -> None:
    cookies, request = SessionCookies(), Request(WIKI)
    cookies.take_from(Response(WIKI, headers={"Set-Cookie": header}), request)
    assert sent(cookies, WIKI) == cookie


ONE_AFTER_THE_OTHER = [
    (["a=1", "a=2"], "a=2"),
    (["a=1", "a=; Max-Age=0"], ""),
    (["a=; Max-Age=0", "a=1"], "a=1"),
    (["a=1; Path=/", "a=; Max-Age=0"], "a=1"),
]


@pytest.mark.parametrize(("headers", "cookie"), ONE_AFTER_THE_OTHER)
def test_cookies_are_set_one_after_the_other(headers: list[str], cookie: str) -> None:
    cookies, request = SessionCookies(), Request(WIKI)
    cookies.take_from(Response(WIKI, headers={"Set-Cookie": headers}), request)
    assert sent(cookies, WIKI) == cookie


HOSTS = [
    # a cookie, the URL that sets it, another one, whether that gets it
    ("a=1; Secure=x", "https://wiki.example.com/", "http://wiki.example.com/", False),
    ("a=1", "https://wiki.example.com/", "http://wiki.example.com/", True),
    ("a=1", "https://wiki.example.com/", "https://a.wiki.example.com/", False),
    ("a=1; Domain=wiki.example.com", "https://wiki.example.com/", "https://a.wiki.example.com/", True),
    ("a=1; Domain=", "https://wiki.example.com/", "https://a.wiki.example.com/", False),
    ("a=1; Domain=wiki", "http://wiki/", "http://wiki/b", True),
    ("a=1", "http://wiki/", "http://other/", False),
    ("a=1; Domain=127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1/b", True),
    ("a=1; Domain=0.1", "http://127.0.0.1/", "http://127.0.0.1/b", False),
]


@pytest.mark.parametrize(("header", "url", "other", "gets_it"), HOSTS)
def test_who_gets_a_cookie(header: str, url: str, other: str, gets_it: bool) -> None:
    cookies = SessionCookies()
    cookies.take_from(Response(url, headers={"Set-Cookie": header}), Request(url))
    assert bool(sent(cookies, other)) is gets_it


# --- cookies of a browser -------------------------------------------------------------------------------------------


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


WIKI_HOST, ALL = "wiki.example.com", "*.example.com"
SENT = [
    (WIKI_HOST, cookie(WIKI_HOST), "https://wiki.example.com/a", True),
    (WIKI_HOST, cookie(WIKI_HOST), "https://sub.wiki.example.com/", False),
    (WIKI_HOST, cookie("." + WIKI_HOST), "https://sub.wiki.example.com/", True),
    (WIKI_HOST, cookie(".example.com"), "https://wiki.example.com/", True),
    (WIKI_HOST, cookie("sso.example.com"), None, False),
    (WIKI_HOST, cookie(".sso.example.com"), None, False),
    (WIKI_HOST, cookie(".iki.example.com"), None, False),
    (WIKI_HOST, cookie(WIKI_HOST, path="/a"), "https://wiki.example.com/a/b", True),
    (WIKI_HOST, cookie(WIKI_HOST, path="/a"), "https://wiki.example.com/b", False),
    (WIKI_HOST, cookie(WIKI_HOST, secure=True), "http://wiki.example.com/", False),
    (WIKI_HOST, cookie(WIKI_HOST, secure=True), "https://wiki.example.com/", True),
    (WIKI_HOST, cookie(WIKI_HOST, expires=FAR + 0.5), "https://wiki.example.com/", True),
    (WIKI_HOST, cookie(WIKI_HOST, expires=1_000_000_000.5), "https://wiki.example.com/", False),
    ("wiki.example.com:8443", cookie(WIKI_HOST), "https://wiki.example.com:8443/", True),
    ("WIKI.example.com:8443", cookie(".example.com"), "https://wiki.example.com:8443/", True),
    (ALL, cookie(WIKI_HOST), "https://wiki.example.com/", True),
    (ALL, cookie("." + WIKI_HOST), "https://wiki.example.com/", True),
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


SET_IN_BROWSER = [
    # Set-Cookie, what is kept: whether a script sees it, SameSite
    ("x=v", False, ""),
    ("x=v; HttpOnly", True, ""),
    ("x=v; httponly; SameSite=Strict", True, "Strict"),
    ("x=v; samesite=None; Secure", False, "None"),
]


@pytest.mark.parametrize(("header", "http_only", "same_site"), SET_IN_BROWSER)
def test_a_session_keeps_what_a_server_has_set_for_its_cookies(header: str, http_only: bool, same_site: str) -> None:
    cookies, request = SessionCookies(), Request("https://a.example/")
    cookies.take_from(Response("https://a.example/", headers={"Set-Cookie": header}), request)
    (found,) = SessionCookies(cookies.dumped()).kept()
    assert (found.http_only, found.same_site) == (http_only, same_site)


def test_cookies_of_a_session_that_an_earlier_version_has_kept_are_seen_by_no_script() -> None:
    (found,) = SessionCookies('[["x","v","a.example",false,"/",false,null]]').kept()
    assert (found.name, found.http_only, found.same_site) == ("x", True, "")
