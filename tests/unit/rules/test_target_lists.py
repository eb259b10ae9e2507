"""Which lists of prefix targets apply to a URL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.rules.target_lists import TargetLists
from crawlspace.rules.targets import prefix_target

LISTS = [
    ["http://a.example/news/*", "https://a.example/news/"],
    ["http://*.example/"],
    ["http://a.example"],
    ["http://a.example/*/print?"],
]

# URL -> numbers of the lists
APPLYING = [
    ("http://a.example/news/1", (0, 1, 2)),
    ("https://a.example/news/", (0,)),
    ("http://a.example/", (1, 2)),
    ("http://b.example/x", (1,)),
    ("http://a.example/x/y/print?z=1", (1, 2, 3)),
    ("https://a.example/", ()),
    ("http://a.example.org/", ()),
]


@pytest.mark.parametrize(("url", "numbers"), APPLYING)
def test_lists_apply_where_one_of_their_targets_does(url: str, numbers: tuple[int, ...]) -> None:
    assert TargetLists([list(map(prefix_target, targets)) for targets in LISTS]).applying(url) == numbers


def test_an_empty_list_applies_everywhere() -> None:
    assert TargetLists([["http://a.example/"], []]).applying("http://b.example/") == (1,)
    assert TargetLists([["http://a.example/"], []]).applying("http://a.example/") == (0, 1)
    assert TargetLists([]).applying("http://a.example/") == ()


@given(st.lists(st.lists(st.text("ab*", min_size=1, max_size=4), min_size=1, max_size=3), max_size=8), st.text("ab", max_size=5))
def test_all_at_once_and_each_by_itself_agree(lists: list[list[str]], text: str) -> None:
    by_itself = tuple(number for number, patterns in enumerate(lists) if TargetLists([patterns]).applying(text))
    assert TargetLists(lists).applying(text) == by_itself
