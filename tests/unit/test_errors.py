"""How a mistake in a file is shown, and what an unknown name is answered with."""

from __future__ import annotations

import pytest

from crawlspace.errors import Mistake, did_you_mean

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
def test_a_mistake_is_shown_at_its_place(text: str, column: int, shown: str, at: str) -> None:
    first, second, third = str(Mistake("crawl.rules", 7, column, "wrong", text)).split("\n")
    assert first == f"crawl.rules:7:{column}: wrong"
    assert second == f"    {shown}"
    assert third.strip() == "^"
    assert second[third.index("^") :][:1] == at


MEANT = [
    # unknown word, question
    ("paht", "did you mean 'path'?"),
    ("PATH", "did you mean 'path'?"),
    ("query", "did you mean 'Query'?"),
    ("zzz", "it is path or Query"),
]


@pytest.mark.parametrize(("word", "question"), MEANT)
def test_the_known_name_that_was_meant(word: str, question: str) -> None:
    assert did_you_mean(word, ["path", "Query"], "it is path or Query") == question


def test_a_question_without_quotation_marks() -> None:
    assert did_you_mean("paht", ["path"], is_quoted=False) == "did you mean path?"
    assert not did_you_mean("paht", ["path"], cutoff=0.99)
