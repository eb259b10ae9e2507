"""Who stands for a group of equal documents, and what the index has to do when that changes."""

from __future__ import annotations

import pytest

from crawlspace.model import UrlState
from crawlspace.state.groups import NOBODY, NOTED, Standing, ranked, settle, standing


def member(id: int, *, redirects: int = 0, path: int = 1, names: int | None = None) -> UrlState:
    """A member whose key is ten times its id."""
    return UrlState(id, id * 10, f"http://a/{id}", "a:80", redirects=redirects, path_length=path, canonical=names)


# members -> the winner, then the others, best first
STANDINGS = [
    ([], NOBODY),
    ([member(1)], Standing(1, ())),
    ([member(2), member(1)], Standing(1, (2,))),
    ([member(1, path=9), member(2, path=8), member(3, path=10)], Standing(2, (1, 3))),
    ([member(1, redirects=1), member(2, path=9)], Standing(2, (1,))),
    ([member(1), member(2, path=9, redirects=3), member(3, names=20)], Standing(2, (1, 3))),
    ([member(1, names=990), member(2)], Standing(1, (2,))),
    ([member(1, names=20, path=5), member(2, names=10, path=9), member(3)], Standing(1, (2, 3))),
]


@pytest.mark.parametrize(("members", "expected"), STANDINGS)
def test_standing(members: list[UrlState], expected: Standing) -> None:
    assert standing(members) == expected


def test_only_so_many_are_noted() -> None:
    assert ranked(range(1, 500)) == Standing(1, tuple(range(2, NOTED + 2)))


ALONE, PAIR, OTHER = Standing(1, ()), Standing(1, (2,)), Standing(2, (1,))

# before, after, whose documents changed -> pushed, deleted
SETTLEMENTS = [
    ({b"g": NOBODY}, {b"g": ALONE}, {1}, [1], []),
    ({b"g": ALONE}, {b"g": ALONE}, set(), [], []),
    ({b"g": ALONE}, {b"g": ALONE}, {1}, [1], []),
    ({b"g": PAIR}, {b"g": PAIR}, {2}, [], []),
    ({b"g": ALONE}, {b"g": NOBODY}, set(), [], [1]),
    ({b"g": ALONE}, {b"g": PAIR}, {2}, [1], []),
    ({b"g": PAIR}, {b"g": ALONE}, set(), [1], []),
    ({b"g": PAIR}, {b"g": OTHER}, set(), [2], [1]),
    ({b"g": Standing(1, (2, 3))}, {b"g": Standing(1, (3, 2))}, set(), [], []),
    ({b"g": ALONE, b"h": NOBODY}, {b"g": NOBODY, b"h": ALONE}, {1}, [1], []),
    ({b"g": ALONE, b"h": Standing(2, ())}, {b"g": NOBODY, b"h": OTHER}, {1}, [2], [1]),
    ({b"g": PAIR, b"h": NOBODY}, {b"g": Standing(2, ()), b"h": ALONE}, {1}, [1, 2], []),
]


@pytest.mark.parametrize(("before", "after", "changed", "push", "delete"), SETTLEMENTS)
def test_settle(
    before: dict[bytes, Standing], after: dict[bytes, Standing], changed: set[int], push: list[int], delete: list[int]
) -> None:
    assert settle(before, after, changed) == (push, delete)
