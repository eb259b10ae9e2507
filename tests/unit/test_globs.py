"""Patterns with stars against whole texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.globs import compile_glob

MATCHES = [
    ("a", "a", True),
    ("a", "ab", False),
    ("", "", True),
    ("", "a", False),
    ("*", "", True),
    ("a*", "abc", True),
    ("*c", "abc", True),
    ("a*c", "ac", True),
    ("ab*bc", "abc", False),  # no character counts twice
    ("a*b*c", "a-b-c", True),
    ("a*b*c", "a-c-b", False),
    ("a**c", "abc", True),
]


@pytest.mark.parametrize("pattern,text,expected", MATCHES)
def test_a_pattern_matches_the_whole_text(pattern: str, text: str, expected: bool) -> None:
    assert compile_glob(pattern).matches(text) is expected


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_a_star_is_any_run_of_characters(pattern: str, text: str) -> None:
    assert compile_glob(pattern).matches(text) is bool(re.fullmatch(pattern.replace("*", ".*"), text))
