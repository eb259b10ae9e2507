"""A move there and back again, and one that is killed at any moment."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crawlspace.errors import StoreError
from crawlspace.state.dump import BYTES, CopyMark, Record, encode, refuse_unfinished_copy
from tests.contract.conftest import NOW, Known, new
from tests.contract.move.stores import NAME, PLACES, WAYS, Stopping, Stores, all_of, fill, looking, seen
from tests.quick import some


@pytest.mark.parametrize(("here", "there"), WAYS)
def test_there_and_back_again(stores: Stores, here: str, there: str) -> None:
    with looking(stores, here) as store:
        fill(store)
        before = seen(store)
    assert stores.move(here, there) == 14
    assert all_of(stores, there) == before
    assert all_of(stores, here) == before, "the source is as it was"
    stores.remove(here)
    stores.move(there, here)
    assert all_of(stores, here) == before


@pytest.mark.parametrize(("here", "there"), WAYS)
def test_the_schemes_of_a_site_are_moved(stores: Stores, here: str, there: str) -> None:
    with looking(stores, here) as store:
        store.discover([new("https://a.example:8443/"), new("a.example/")], now=NOW)
    stores.move(here, there)
    with looking(stores, there) as store:
        assert [store.schemes(site) for site in ("a.example:8443", "a.example:80")] == [{"https"}, {"http"}]


@pytest.mark.parametrize(("here", "there"), WAYS)
def test_what_was_leased_is_pending_or_due_again(stores: Stores, here: str, there: str) -> None:
    with looking(stores, here) as store:
        fill(store)
        store.lease("a.example:80", 3, now=NOW, until=NOW + 600)
        stores.move(here, there)
        store.release(range(100))
        assert all_of(stores, there) == seen(store)


@pytest.mark.parametrize("late", some([False, True], 1))
@pytest.mark.parametrize(("here", "there"), WAYS)
def test_a_move_that_was_killed_goes_on_where_it_was(stores: Stores, here: str, there: str, *, late: bool) -> None:
    with looking(stores, here) as store:
        fill(store)
        before = seen(store)
    at_once: list[int] = []
    while True:
        first = stores.stopped(here, there, stop=len(at_once), late=late)
        if first is None:
            break
        at_once.append(first)
        with looking(stores, there) as copy:
            is_marked = copy.get_meta("moving") is not None
            if is_marked:
                with pytest.raises(StoreError, match=r"here only in part, because copying it from .* has not ended"):
                    refuse_unfinished_copy(copy, NAME)
        if is_marked or not (late or first):
            rest = stores.stopped(here, there, stop=-1)
            assert rest is None
            assert stores.urls + first == len(before["states"]), "nothing is copied twice"  # type: ignore[arg-type]
        assert all_of(stores, there) == before
        stores.remove(there)
    assert len(at_once) > 10
    assert set(at_once) == {0, 3, 6, 9, 12, 14}


def test_large_texts_are_moved_few_at_a_time(stores: Stores, filled: tuple[str, str]) -> None:
    here, there = filled
    with looking(stores, here) as store:
        known = Known(store)
        known.record(*(known.page(place, f"large {place}", text="x" * (BYTES // 3)) for place in PLACES[:6]))
    sizes: list[int] = []

    class Sizes(Stopping):
        def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
            sizes.append(sum(len(encode(one)) for one in batch))
            super().write(batch, mark)

    stores.move(here, there, records=100, watch=Sizes)
    assert max(sizes) <= BYTES
    assert all_of(stores, there) == all_of(stores, here)
