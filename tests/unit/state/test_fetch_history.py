"""The last ten fetches of a URL, and their encoding in few bytes."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from msgspec import structs

from crawlspace.model import State, UrlState
from crawlspace.state.fetch_history import MOST, DocumentChange, PastFetch, fetches, history_after
from crawlspace.status import Status

NOW = 1_750_000_000
NEW = UrlState(1, 7, "http://a/", "a:80")
NONE, CHANGED = DocumentChange.NONE, DocumentChange.CHANGED


def fetched(
    state: UrlState, status: int, *, at: int = NOW, took_s: float | None = None, change: DocumentChange = NONE
) -> UrlState:
    history = history_after(state, now=at, status=status, took_s=took_s, change=change)
    return structs.replace(state, history=history, fetched_at=at, status=status)


def test_the_last_ten_are_kept_the_newest_first() -> None:
    state = NEW
    assert fetches(state) == []
    for number in range(12):
        state = fetched(state, 200 + number, at=NOW + number, took_s=0.1, change=DocumentChange(number % 4))
        assert len(state.history or b"") <= 47
    assert [(one.at - NOW, one.status, one.change) for one in fetches(state)] == [
        (number, 200 + number, DocumentChange(number % 4)) for number in range(11, 1, -1)
    ]
    assert len(fetches(state)) == MOST


@pytest.mark.parametrize("status", [*map(int, HTTPStatus), *map(int, Status), 100, 599, 999])
def test_every_status_comes_back(status: int) -> None:
    assert [one.status for one in fetches(fetched(NEW, status))] == [status]


@pytest.mark.parametrize("status", [0, 99, 1000, 2003, 4000, -1])
def test_a_status_of_another_version_is_unknown(status: int) -> None:
    assert [one.status for one in fetches(fetched(NEW, status))] == [None]


@pytest.mark.parametrize(
    "took_s", [0.0, 0.001, 0.0159, 0.016, 0.03, 0.05, 0.1, 0.24, 0.4, 0.9, 1.7, 3.3, 7.0, 12.0, 29.0, 60.0, 90.0]
)
def test_durations_are_right_within_a_factor(took_s: float) -> None:
    (one,) = fetches(fetched(NEW, 200, took_s=took_s))
    assert one.took_s is not None
    assert max(took_s, 0.008) / 1.5 <= one.took_s <= max(took_s, 0.008) * 1.5


def test_longer_and_unknown_durations() -> None:
    assert [one.took_s for one in fetches(fetched(NEW, 200, took_s=100_000.0))] == [pytest.approx(185.364)]
    assert [one.took_s for one in fetches(fetched(NEW, 200))] == [None]


def test_what_an_earlier_version_fetched_last_comes_first() -> None:
    before = structs.replace(NEW, state=State.DONE, status=301, fetched_at=NOW - 9)
    assert fetches(before) == [PastFetch(NOW - 9, 301, None, NONE)]
    assert fetches(fetched(before, 200, change=CHANGED)) == [
        PastFetch(NOW, 200, None, CHANGED),
        PastFetch(NOW - 9, 301, None, NONE),
    ]


@pytest.mark.parametrize("history", [b"", b"1", b"123", b"123456", bytes(48)])
def test_of_a_damaged_history_the_last_fetch_is_known(history: bytes) -> None:
    state = structs.replace(NEW, history=history, fetched_at=NOW, status=404)
    assert fetches(state) == [PastFetch(NOW, 404, None, NONE)]
