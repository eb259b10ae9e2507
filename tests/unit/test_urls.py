"""URLs in normal form, and their look-up keys in the stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from crawlspace.urls import document_id, parse, url_key
from tests.growth import is_linear

UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
NORMAL_ESCAPES = "http://a.example/" + "".join(
    chr(code) if chr(code) in UNRESERVED else f"%{code:02X}" for code in range(0x21, 0x100)
)
# a URL, and its normal form
NORMAL = [
    ("http://a.example/%7e%c3%a4%41", "http://a.example/~%C3%A4A"),
    ("http://a.example/%%34%31", "http://a.example/A"),
    ("http://a.example/%%%3334%31%zz%2%", "http://a.example/41%zz%2%"),
    ("http://a.example/%2%%34%35/b", "http://a.example/b"),
    ("http://a.example/b/%2%%34%35%2%65/c?%2%65", "http://a.example/c?."),
    ("http://A.example:8080/b/%2%65?%2%65/#%2%65", "http://a.example:8080/b/?./"),
    ("".join(["http://a.example/", *(f"%{code:02x}" for code in range(0x21, 0x100))]), NORMAL_ESCAPES),
    ("".join(["http://a.example/", *(f"%{code:02X}" for code in range(0x21, 0x100))]), NORMAL_ESCAPES),
    ("http://a.example/b/.%2%65.%2%65", "http://a.example/b/...."),
]


@pytest.mark.parametrize("written,normal", NORMAL)
def test_escapes_made_of_escapes_are_in_normal_form_at_once(written: str, normal: str) -> None:
    url = parse(written)
    assert (url.text, parse(url.text).text) == (normal, normal)
    assert (url.path + (f"?{url.query}" if url.query else "")) == normal[normal.index("/", 8) :]


ROUTES = [
    # a URL, and its normal form where routes behind # are wanted
    ("http://a.example/#/about", "http://a.example/#/about"),
    ("http://a.example#/about", "http://a.example/#/about"),
    ("http://a.example/#!about", "http://a.example/#!about"),
    ("http://a.example/#!/about", "http://a.example/#!/about"),
    ("HTTP://A.example:80/b/../c?q#/x?tab=1#part", "http://a.example/c?q#/x?tab=1#part"),
    ("http://a.example/#/%7e%c3%a4%41", "http://a.example/#/~%C3%A4A"),
    ("http://a.example/#/ä b<c>`", "http://a.example/#/%C3%A4%20b%3Cc%3E%60"),
    ("http://a.example/ \n#/a\tb\n", "http://a.example/%20#/ab"),
    ("http://a.example/%2%%34%35/b#/r", "http://a.example/b#/r"),
    ("http://a.example/#/%%34%31", "http://a.example/#/A"),
    ("http://a.example/#/a/../b", "http://a.example/#/a/../b"),
    ("http://a.example/#", "http://a.example/"),
    ("http://a.example/#!", "http://a.example/"),
    ("http://a.example/#/", "http://a.example/"),
    ("http://a.example/#!/", "http://a.example/"),
    ("http://a.example/#top", "http://a.example/"),
    ("http://a.example/#about/us", "http://a.example/"),
    ("http://a.example/#%2Fabout", "http://a.example/"),
    ("mailto:me@a.example#/about", "mailto:me@a.example"),
]


@pytest.mark.parametrize(("written", "normal"), ROUTES)
def test_a_route_behind_a_hash_is_kept_where_it_is_wanted(written: str, normal: str) -> None:
    url, page = parse(written, routes=True), parse(written)
    assert (url.text, parse(url.text, routes=True).text) == (normal, normal)
    assert (page.text, page.fragment) == (normal.partition("#")[0], "")
    assert (url.page, url.fragment) == (page, normal.partition("#")[2])
    assert (url.path, url.query, url.site) == (page.path, page.query, page.site)


def test_a_route_and_its_page_are_two_urls() -> None:
    texts = ["http://a.example/", "http://a.example/#/about", "http://a.example/#!about"]
    assert len({parse(text, routes=True).key for text in texts}) == len({document_id(text) for text in texts}) == 3


def test_the_host_stays_as_it_was_written() -> None:
    assert parse("http://WWW.Example.com/a/%2%65").host_as_written == "WWW.Example.com"


@pytest.mark.parametrize(
    "rest",
    [
        lambda size: "%" * size + "3" * size + "4",
        lambda size: "%2%65/" * size,
        lambda size: "%%34%31" * size,
        lambda size: "%25" * size,
        lambda size: "../" * size,
    ],
)
def test_reading_a_url_takes_time_in_proportion_to_its_length(rest: Callable[[int], str]) -> None:
    assert is_linear(lambda size: parse(f"http://a.example/{rest(size)}"), 4_000)


HOME = "http://www.example.com/"

# two URLs, and whether they are of one folder
FOLDERS: list[tuple[str, str, bool]] = [
    (HOME, f"{HOME}a.html", True),
    (f"{HOME}docs/a", f"{HOME}docs/b", True),
    (f"{HOME}docs/a", f"{HOME}docs/", True),
    (f"{HOME}docs/a", f"{HOME}docs/a?page=2", True),
    (f"{HOME}docs/a?from=/x/y", f"{HOME}docs/a?from=/z/", True),
    (f"{HOME}docs/a", f"{HOME}docs/sub/a", False),
    (f"{HOME}docs/a", f"{HOME}doc/a", False),
    (f"{HOME}docs/a", "http://example.com/docs/a", False),
    (f"{HOME}docs/a", "https://www.example.com/docs/a", False),
]


KEYS = [5_842_067_104_053_902_845, 6_945_337_324_103_658_375]


@pytest.mark.parametrize(("one", "other", "near"), FOLDERS)
def test_urls_of_one_folder_have_keys_near_to_each_other(one: str, other: str, *, near: bool) -> None:
    assert url_key(one) != url_key(other)
    assert (url_key(one) >> 48 == url_key(other) >> 48) is near


def test_a_key_is_what_it_was() -> None:
    """It stands in files: another one would make their URLs unknown."""
    assert [url_key(url) for url in (HOME, f"{HOME}docs/a?b=/c")] == [parse(HOME).key, parse(f"{HOME}docs/a?b=/c").key]
    assert [url_key(url) for url in (HOME, f"{HOME}docs/a?b=/c")] == KEYS


def test_keys_are_spread_over_all_that_sqlite_can_hold() -> None:
    keys = {url_key(f"{HOME}{number // 10}/{number}") for number in range(10_000)}
    assert len(keys) == 10_000
    assert all(-(2**63) <= key < 2**63 for key in keys)
    assert max(Counter(key >> 60 for key in keys).values()) < 1_000, "of 16 parts each has its share"
