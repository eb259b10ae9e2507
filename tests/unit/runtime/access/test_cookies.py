"""Cookies that are given: by a file, or by name and value."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy import Request
from scrapy.http import Response

from crawlspace.config.access import read_site_access
from crawlspace.errors import SettingError
from crawlspace.runtime.access.cookies import SessionCookies, cookies_of_values, read_cookie_file


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
