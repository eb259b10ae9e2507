"""The look-up keys of the stores: whole numbers that SQLite can hold, near to each other for URLs of one folder."""

from __future__ import annotations

from collections import Counter

import pytest

from crawlspace.urls import parse, url_key

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
