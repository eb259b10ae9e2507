"""How a mistake in a file is shown."""

from __future__ import annotations

import pytest

from crawlspace.errors import Mistake

X = "x"

# line, column -> what is shown of it, and the character that the caret points to
SHOWN = [
    ("forbid domian x", 8, "forbid domian x", "d"),
    ("forbid\tdomian x", 8, "forbid domian x", "d"),
    (X * 120, 120, X * 120, "x"),
    ("y" + X * 500, 1, "y" + X * 119 + "…", "y"),
    (X * 500 + "y", 501, "…" + X * 119 + "y", "y"),
    (X * 500 + "y" + X * 500, 501, "…" + X * 60 + "y" + X * 59 + "…", "y"),
]


def test_a_mistake_without_a_line_is_one_line() -> None:
    assert str(Mistake("rules.xml", 1, 1, "the file is empty", "")) == "rules.xml:1:1: the file is empty"


@pytest.mark.parametrize(("text", "column", "shown", "at"), SHOWN)
def test_a_mistake_is_shown_where_it_stands(text: str, column: int, shown: str, at: str) -> None:
    first, second, third = str(Mistake("crawl.rules", 7, column, "wrong", text)).split("\n")
    assert first == f"crawl.rules:7:{column}: wrong"
    assert second == f"    {shown}"
    assert third.strip() == "^"
    assert second[third.index("^") :][:1] == at
