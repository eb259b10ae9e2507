"""Which of two documents fits a query better by title, headings and URL."""

from __future__ import annotations

import re

import pytest

from crawlspace.index.closeness import Closeness
from crawlspace.index.words import read_query

BETTER = (
    ("leave", ("Leave", "", ""), ("Annual leave", "", "")),
    ("annual leave", ("Annual leave - Intranet", "", ""), ("Annual leave of all staff - Intranet", "", "")),
    ("annual leave", ("Leave", "Annual leave", ""), ("Leave", "Annual report\nSick leave", "")),
    ("annual leave", ("", "", "h.test/annual leave.html"), ("", "", "h.test/annual report.html")),
    ("leave", ("", "", "h.test/staff/leave.html"), ("", "", "leave.test/index.html")),
    ("annual leave", ("Annual leave", "", ""), ("", "", "h.test/annual leave.html")),
    ("leave", ("Leave", "", ""), ("Leaves", "", "")),
    ("leave", ("Leaves", "", ""), ("Leaves of absence", "", "")),
    ("holi*", ("Holidays", "", ""), ("Annual holidays", "", "")),
    ("annual holi*", ("Annual holidays", "", ""), ("Annual report", "", "")),
)


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def forms(word: str) -> list[str]:
    return {"leave": ["leaves"]}.get(word, [])


@pytest.mark.parametrize(("words", "better", "worse"), BETTER)
def test_what_fits_better(words: str, better: tuple[str, str, str], worse: tuple[str, str, str]) -> None:
    closeness = Closeness(read_query(words, tokens, forms).wanted, tokens)
    assert closeness.of(*better) > closeness.of(*worse)


def test_nothing_in_common() -> None:
    assert Closeness(read_query("leave", tokens, forms).wanted, tokens).of("Travel", "By train\nBy plane", "h.test/travel") == 0
    assert Closeness(read_query("leave", tokens, forms).wanted, tokens).of("", "", "") == 0
