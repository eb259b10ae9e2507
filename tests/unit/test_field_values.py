"""Fields with several values, as they are stored and as an index gets them."""

from __future__ import annotations

import pytest

from crawlspace.field_values import packed, values_of

# The text that is stored, and the values that it stands for.
VALUES = (
    ("", ""),
    ("hr", "hr"),
    ('["hr"]', ["hr"]),
    ('["hr","board"]', ["hr", "board"]),
    ('["a, \\"b\\"", "é"]', ['a, "b"', "é"]),
    ('["hr", 1, "x"]', '["hr", 1, "x"]'),
    ("[1, 2]", "[1, 2]"),
    ("[]", "[]"),
    ('["hr', '["hr'),
    ('["one"] and ["two"]', '["one"] and ["two"]'),
)


@pytest.mark.parametrize(("stored", "values"), VALUES)
def test_values(stored: str, values: str | list[str]) -> None:
    assert values_of(stored) == values


@pytest.mark.parametrize("values", [["a", "b"], ["]", '"'], ["ü,\n", "\ud800"[:0], "x"]])
def test_packed_values_are_read_again(values: list[str]) -> None:
    assert values_of(packed(values)) == values
