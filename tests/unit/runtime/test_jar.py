"""Cookies that are given: by a file, or by name and value."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy import Request

from crawlspace.config.site_access import read_site_access
from crawlspace.errors import SettingError
from crawlspace.runtime.access.jar import SessionCookies, read_cookie_file
from crawlspace.runtime.download.cookies import use_bundled_suffixes


def sent(cookies: SessionCookies, url: str) -> str:
    use_bundled_suffixes()
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
    cookies.load_for_entry(access, {"sid": "v"})
    assert sent(cookies, url) == header
