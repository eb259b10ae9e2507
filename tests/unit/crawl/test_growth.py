"""The judge of how work grows is told both kinds."""

from __future__ import annotations

from tests.growth import is_linear


def test_looking_at_each_once_is_linear() -> None:
    assert is_linear(lambda size: sum(range(size)), 200_000)


def test_looking_for_each_among_all_is_not() -> None:
    assert not is_linear(lambda size: [n in list(range(size)) for n in range(size)], 300)
