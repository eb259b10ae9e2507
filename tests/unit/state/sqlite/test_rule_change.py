"""What a change of the rules costs in SQLite: the memory of a batch must not grow with the documents that wait to be sent."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from crawlspace.state.changes import Reclassified
from crawlspace.state.sqlite.store import SqliteStore
from tests.contract.conftest import NOW, Known

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
