"""Who stands for a group of equal documents, and what the index has to do when that changes."""

from __future__ import annotations

import pytest

from crawlspace.model import State, UrlState
from crawlspace.state.duplicates import (
    NO_MEMBERS,
    NOTED,
    GroupRanking,
    Settlement,
    canonical_page,
    rank_members,
    rank_of,
    ranking_of,
    settle,
    stays_in_index,
)
from crawlspace.status import Status


def member(id: int, *, redirects: int = 0, path: int = 1, names: int | None = None, checksum: bytes | None = b"one") -> UrlState:
    """A member whose key is ten times its id."""
    url = "http://a" + "/" * path
    return UrlState(id, id * 10, url, "a:80", rank=rank_of(redirects, url), canonical=names, checksum=checksum)


# members -> the representative, then the others, best first
STANDINGS = [
    ([], NO_MEMBERS),
    ([member(1)], GroupRanking(1, ())),
    ([member(2), member(1)], GroupRanking(1, (2,))),
    ([member(1, path=9), member(2, path=8), member(3, path=10)], GroupRanking(2, (1, 3))),
    ([member(1, redirects=1), member(2, path=9)], GroupRanking(2, (1,))),
    ([member(1), member(2, path=9, redirects=3), member(3, names=20)], GroupRanking(2, (1, 3))),
    ([member(1, names=990), member(2)], GroupRanking(1, (2,))),
    ([member(1, names=20, path=5), member(2, names=10, path=9), member(3)], GroupRanking(1, (2, 3))),
]


@pytest.mark.parametrize(("members", "expected"), STANDINGS)
def test_ranking(members: list[UrlState], expected: GroupRanking) -> None:
    assert rank_members(members) == expected


# members, ids of alternates -> the representative, then those that are noted
ALTERNATE = [
    ([member(1, names=20), member(2, path=9)], {1}, GroupRanking(2, (1,))),
    ([member(1, names=30), member(2), member(3, path=9)], {1}, GroupRanking(3, (2, 1))),
    ([member(1, names=20, checksum=b"other"), member(2), member(3)], {1}, GroupRanking(2, (3,))),
    ([member(1, names=30, checksum=b"other"), member(2), member(3, path=9)], {1}, GroupRanking(3, (2,))),
]


@pytest.mark.parametrize(("members", "alternate", "expected"), ALTERNATE)
def test_a_page_of_another_group_never_wins(members: list[UrlState], alternate: set[int], expected: GroupRanking) -> None:
    assert rank_members(members, alternate) == expected


# stored URLs with the key that a page names -> the id of the one of which it is an alternate
CANONICAL = [
    ([], None),
    ([member(4)], 4),
    ([member(4, checksum=None)], None),
    ([member(4, names=10)], None),
    ([member(5), member(4)], 4),
    ([member(5), member(4, names=10), member(3, checksum=None)], 5),
]


@pytest.mark.parametrize(("stored", "expected"), CANONICAL)
def test_the_canonical_page(stored: list[UrlState], expected: int | None) -> None:
    page = canonical_page(stored)
    assert (page and page.id) == expected


LEFT = [
    (State.EXCLUDED, Status.EXCLUDED_HERE, True),
    (State.EXCLUDED, Status.EXCLUDED, False),
    (State.PENDING, None, True),
    (State.FAILED, 503, True),
    (State.GONE, 404, False),
    (State.DONE, 200, False),
    (State.REDIRECTED, 301, False),
]


@pytest.mark.parametrize(("state", "status", "expected"), LEFT)
def test_until_when_a_document_is_left_to_others(state: State, status: int | None, expected: bool) -> None:
    assert stays_in_index(UrlState(1, 10, "http://a/1", "a:80", state=state, status=status)) == expected


def test_only_so_many_are_noted() -> None:
    assert ranking_of(range(1, 500)) == GroupRanking(1, tuple(range(2, NOTED + 2)))


ALONE, PAIR, OTHER = GroupRanking(1, ()), GroupRanking(1, (2,)), GroupRanking(2, (1,))

# before, after, whose documents changed -> pushed, deleted
SETTLEMENTS = [
    ({b"g": NO_MEMBERS}, {b"g": ALONE}, {1}, [1], []),
    ({b"g": ALONE}, {b"g": ALONE}, set(), [], []),
    ({b"g": ALONE}, {b"g": ALONE}, {1}, [1], []),
    ({b"g": PAIR}, {b"g": PAIR}, {2}, [], []),
    ({b"g": ALONE}, {b"g": NO_MEMBERS}, set(), [], [1]),
    ({b"g": ALONE}, {b"g": PAIR}, {2}, [1], []),
    ({b"g": PAIR}, {b"g": ALONE}, set(), [1], []),
    ({b"g": PAIR}, {b"g": OTHER}, set(), [2], [1]),
    ({b"g": GroupRanking(1, (2, 3))}, {b"g": GroupRanking(1, (3, 2))}, set(), [], []),
    ({b"g": ALONE, b"h": NO_MEMBERS}, {b"g": NO_MEMBERS, b"h": ALONE}, {1}, [1], []),
    ({b"g": ALONE, b"h": GroupRanking(2, ())}, {b"g": NO_MEMBERS, b"h": OTHER}, {1}, [2], [1]),
    ({b"g": PAIR, b"h": NO_MEMBERS}, {b"g": GroupRanking(2, ()), b"h": ALONE}, {1}, [1, 2], []),
]


@pytest.mark.parametrize(("before", "after", "changed", "push", "delete"), SETTLEMENTS)
def test_settle(
    before: dict[bytes, GroupRanking], after: dict[bytes, GroupRanking], changed: set[int], push: list[int], delete: list[int]
) -> None:
    assert settle(before, after, changed) == Settlement(push, delete)
