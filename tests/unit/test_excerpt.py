"""What is shown of a text from outside."""

from __future__ import annotations

import pytest

from crawlspace.excerpt import excerpt

EXCERPTS = [
    # text, what is shown
    ("", ""),
    ("http://a.example/?q=ä b", "http://a.example/?q=ä b"),
    ("a" * 200, "a" * 200),
    ("a" * 3_000_000, "a" * 200 + "…"),
    ("a\nb\x1b[2J\x00", r"a\nb\x1b[2J\x00"),
    ("a\x85\u202eb\U000e0001", r"a\x85\u202eb\U000e0001"),
    ("\udcff", r"\udcff"),
]


@pytest.mark.parametrize(("text", "shown"), EXCERPTS)
def test_excerpts(text: str, shown: str) -> None:
    assert excerpt(text) == shown
