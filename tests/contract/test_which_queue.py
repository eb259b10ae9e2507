"""Which queue a URL waits in is decided by `UrlState.queue`; SQLite's column and the script for Redis agree with it in all cases."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from msgspec import structs

from crawlspace.model import SHIFTS, Queue, Requester, Source, State, UrlState
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, Known, new

SITE = "a.example:80"
CASES = list(product(State, Requester, [0, 2], [Source.USER, Source.REDIR, Source.INDEX_FOLLOW], [-2, 1]))
"""State, asked, retries, source and shift."""


def fill(known: Known) -> list[int]:
    """Have a URL for each case, all due; return their ids."""
    urls = [f"a.example/{number}" for number in range(len(CASES))]
    known.discover(*(new(url) for url in urls))
    for url, (state, asked, retries, source, shift) in zip(urls, CASES, strict=True):
        given = structs.replace(known.get(url), state=state, requested_by=asked, retries=retries, source=source, shift=shift)
        given.next_fetch = None if state is State.PENDING else NOW
        known.record(Change(given))
    return [known.get(url).id for url in urls]


def by_queue(states: list[UrlState]) -> dict[Queue, list[int]]:
    return {queue: sorted(one.id for one in states if one.queue == queue) for queue in {one.queue for one in states}}


AFTERWARDS: list[tuple[str, Callable[[Known, list[int]], object]]] = [
    ("as recorded", lambda known, ids: None),
    ("held and returned", lambda known, ids: held_and_returned(known.store, ids)),
    ("returned", lambda known, ids: known.store.reclassify(Reclassified(returned=ids), now=NOW)),
    ("moved", lambda known, ids: known.store.reclassify(Reclassified(moved=[(id, Queue(Source.FOLLOW, 2)) for id in ids]), now=NOW)),
    ("not in the index", lambda known, ids: known.store.reclassify(Reclassified(unindexed=ids), now=NOW)),
    ("found by a better source", lambda known, ids: known.discover(*(new(url(known, id), source=Source.USER) for id in ids))),
    ("leased and released", lambda known, ids: leased_and_released(known.store, ids)),
]  # fmt: skip


def held_and_returned(store: Store, ids: list[int]) -> None:
    store.reclassify(Reclassified(held=ids), now=NOW)
    store.reclassify(Reclassified(returned=ids), now=NOW)


def leased_and_released(store: Store, ids: list[int]) -> None:
    assert len(store.lease(SITE, 1_000, now=NOW, until=NOW + 60)) == len(ids)
    store.release(ids)


def url(known: Known, id: int) -> str:
    state = known.store.get_by_id(id)
    assert state is not None
    return state.url


@pytest.mark.parametrize(("title", "afterwards"), AFTERWARDS, ids=[row[0] for row in AFTERWARDS])
def test_every_url_waits_in_its_queue(known: Known, title: str, afterwards: Callable[[Known, list[int]], object]) -> None:
    afterwards(known, fill(known))
    expected = by_queue(list(known.store.urls()))
    queues = [Queue(source, shift - 2) for source in Source for shift in range(SHIFTS)]
    found = {queue: [one.id for one in known.store.lease(SITE, 1_000, now=NOW, until=NOW + 60, queue=queue)] for queue in queues}
    assert {queue: sorted(ids) for queue, ids in found.items() if ids} == expected
