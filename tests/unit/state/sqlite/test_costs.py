"""What SQLite costs: steps of its virtual machine for the queue, and memory for a change of the rules."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from crawlspace.model import NewUrl, Source
from crawlspace.state.changes import Reclassified
from crawlspace.state.sqlite import transaction
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.sqlite.transaction import Tally
from tests.contract.conftest import NOW, SEGMENT, Known, new

FEW, MANY = 20, 4_000
GIANT = "giant.example:80"


def waiting(urls: int) -> list[NewUrl]:
    """All URLs but two of a site wait in the first of its three queues; another site has one URL."""
    inner = [new(f"giant.example/{number}", source=Source.INDEX) for number in range(urls)]
    outer = [new("giant.example/last", source=Source.INDEX, shift=2), new("giant.example/next", source=Source.FOLLOW)]
    return [*inner, *outer, new("small.example/")]


def pending(path: Path, urls: int) -> SqliteStore:
    store = SqliteStore(path)
    store.discover(waiting(urls), now=NOW)
    return store


def due(path: Path, urls: int) -> SqliteStore:
    """The same URLs, crawled once, so that all of them wait in source refresh, by their shifts."""
    store = pending(path, urls)
    known = Known(store)
    store.record([known.change(one.url, status=200, next_fetch=NOW + 60) for one in waiting(urls)], now=NOW)
    return store


# the URLs are -> what is asked of the store
COSTS: list[tuple[str, Callable[[Path, int], SqliteStore], Callable[[SqliteStore], object]]] = [
    ("pending, all sites", pending, lambda store: list(store.sites())),
    ("due, all sites", due, lambda store: list(store.sites())),
    ("due, what a site has", due, lambda store: store.due(GIANT)),
    ("pending, what a site has due", pending, lambda store: store.due(GIANT)),
    ("pending, a lease", pending, lambda store: store.lease(GIANT, 8, now=NOW, until=NOW + 60)),
    ("due, a lease", due, lambda store: store.lease(GIANT, 8, now=NOW + 60, until=NOW + 120)),
]


@pytest.mark.parametrize(("title", "fill", "ask"), COSTS, ids=[row[0] for row in COSTS])
def test_the_cost_is_that_of_few(
    tmp_path: Path, title: str, fill: Callable[[Path, int], SqliteStore], ask: Callable[[SqliteStore], object]
) -> None:
    few, many = (steps(fill(tmp_path / f"{urls}.db", urls), ask) for urls in (FEW, MANY))
    assert 0 < many <= few + 20, (few, many)


SEGMENTS, STEPS_A_SEGMENT = 50, 130


@pytest.mark.parametrize(("title", "ask"), [(title, ask) for title, fill, ask in COSTS if fill is pending], ids=range(3))
def test_a_queue_is_looked_for_in_each_segment_of_ids(tmp_path: Path, title: str, ask: Callable[[SqliteStore], object]) -> None:
    near, far = (steps(in_segments(tmp_path / f"{apart}.db", apart), ask) for apart in (0, SEGMENT))
    assert 0 < far <= near + SEGMENTS * STEPS_A_SEGMENT, (near, far)


def in_segments(path: Path, apart: int) -> SqliteStore:
    """As many discoveries as there are segments, and so many ids between one and the next."""
    store = SqliteStore(path)
    for number in range(SEGMENTS):
        store.discover([new(f"giant.example/{number}", source=Source.INDEX)], now=NOW)
        with store._file.writing() as db:
            transaction.add_counts(db, Tally(id=apart))
    return store


def steps(store: SqliteStore, ask: Callable[[SqliteStore], object]) -> int:
    """Return how many steps SQLite takes to answer."""
    taken = 0

    def count() -> bool:
        nonlocal taken
        taken += 1
        return False

    ask(store)  # statements are prepared once, which counts here and there
    store._file.db.set_progress_handler(count, 1)
    ask(store)
    store.close()
    return taken


TEXT_BYTES = 10_000


def peak_when_changed(path: Path, change: Callable[[list[int]], Reclassified], pages: int) -> int:
    """Return the most bytes in memory while so many pages whose documents wait to be sent are changed in one batch."""
    with closing(SqliteStore(path)) as store:
        known = Known(store)
        urls = [f"a.example/{number}" for number in range(pages)]
        known.discover(*urls)
        for first in range(0, pages, 500):
            known.record(*(known.page(url, url, text=url.ljust(TEXT_BYTES)) for url in urls[first : first + 500]))
        found = change([state.id for state in store.urls()])
        tracemalloc.start()
        try:
            store.reclassify(found, now=NOW)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert store.backlog("index") == pages
        orders = store.orders("index", 1, now=NOW)
        assert [(order.document.text if order.document else None) for order in orders] == [urls[0].ljust(TEXT_BYTES)]
    return peak


CHANGES = {
    "held": lambda ids: Reclassified(held=ids),
    "given_up": lambda ids: Reclassified(given_up=ids),
}


@pytest.mark.full
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_documents_that_wait_are_kept_a_few_at_a_time(tmp_path: Path, change: Callable[[list[int]], Reclassified]) -> None:
    few, many = (peak_when_changed(tmp_path / f"{pages}.db", change, pages) for pages in (500, 2_000))
    assert many < few * 1.5
