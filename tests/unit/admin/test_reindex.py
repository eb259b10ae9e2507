"""Reindexing as its store sees it: in bounded batches, and going on where it was stopped."""

from __future__ import annotations

import pytest

from crawlspace.admin import reindex
from crawlspace.admin.reindex import REINDEXING, UNKNOWN, IndexState, Reindexing, meta_of
from crawlspace.document import Document
from crawlspace.model import Held, State
from tests.contract.conftest import NOW, Known, full
from tests.contract.memory.store import MemoryStore


class Archived:
    """An archive that has the documents of places above 0."""

    def document(self, place: int, url: str) -> Document | None:
        return Document(url, text="archived") if place > 1 else None


class Stopped(Exception):
    pass


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    monkeypatch.setattr(reindex, "BATCH", 3)
    known = Known(MemoryStore(sinks=("index",)))
    urls = [f"a.example/{n}" for n in range(10)]
    known.discover(*urls)
    known.record(*(known.page(url, url, archived=2) for url in urls))
    known.store.acknowledge("index", known.store.orders("index", 100, now=NOW))
    return known


SAME = IndexState(1, 10)


def run(known: Known, *, stop_at: int = 100, index: IndexState = SAME) -> tuple[int, int, int]:
    """Reindex, and stop before a number of URLs is delivered; return what was sent, is fetched, and is left."""
    seen = 0

    def progress(done: int, total: int) -> None:
        nonlocal seen
        seen = done
        assert total == 10

    def deliver(most: int) -> None:
        if seen >= stop_at:
            raise Stopped
        known.store.acknowledge("index", known.store.orders("index", 100, now=NOW))

    done = Reindexing(known.store, Archived(), index, NOW, deliver=deliver, progress=progress).run()
    return done.sent, done.fetched, done.left


def test_all_documents_are_sent(known: Known) -> None:
    assert run(known) == (10, 0, 0)
    assert known.store.get_meta(REINDEXING) == ""


def test_one_that_was_stopped_goes_on(known: Known) -> None:
    with pytest.raises(Stopped):
        run(known, stop_at=6)
    assert known.orders() == [("push", f"a.example/{n}") for n in (3, 4, 5)]
    assert run(known) == (10, 0, 0)
    assert run(known) == (10, 0, 0), "the next one starts over"


# the index after the stop -> URLs that are ordered before the next stop
OTHER_INDEX = [
    ("the same, a batch later", IndexState(2, 10), (6, 7, 8)),
    ("it was lost", IndexState(0, 0), (0, 1, 2)),
    ("it is another one without documents", IndexState(1, 2), (0, 1, 2)),
    ("it is an older copy", IndexState(0, 10), (0, 1, 2)),
]


@pytest.mark.parametrize(("title", "index", "ordered"), OTHER_INDEX, ids=[row[0] for row in OTHER_INDEX])
def test_one_that_was_stopped_begins_again_with_another_index(
    known: Known, title: str, index: IndexState, ordered: tuple[int, ...]
) -> None:
    with pytest.raises(Stopped):
        run(known, stop_at=6)
    known.store.acknowledge("index", known.store.orders("index", 100, now=NOW))
    with pytest.raises(Stopped):
        run(known, stop_at=1, index=index)
    assert known.orders() == [("push", f"a.example/{n}") for n in ordered]


def test_one_sink_is_sent_all_alone_and_each_goes_on_by_itself(known: Known) -> None:
    store = known.store
    store.use_sinks(("index", "log"))

    def run_for(sink: str, *, stop_at: int) -> int:
        """Return how many documents were sent, or the number of calls before the stop."""
        left = stop_at

        def deliver(most: int) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Stopped
            store.acknowledge(sink, store.orders(sink, 100, now=NOW))

        arguments = (store, Archived(), UNKNOWN, NOW)
        return Reindexing(*arguments, deliver=deliver, progress=lambda *_: None, sink=sink).run().sent

    with pytest.raises(Stopped):
        run_for("log", stop_at=1)
    assert (known.orders(), known.orders("log")) == ([], [("push", f"a.example/{n}") for n in (3, 4, 5)])
    assert run_for("index", stop_at=99) == 10
    assert run_for("log", stop_at=99) == 10
    assert (store.backlog("index"), store.backlog("log")) == (0, 0)
    assert store.get_meta(meta_of("log")) == ""


# fields of a page without a record -> sent, fetched, left; due afterwards
WITHOUT = [
    ("a document", {}, (9, 1, 0), NOW),
    ("its deletion is held by the rules", {"held": Held.RULES, "next_fetch": None}, (9, 0, 1), None),
    ("it is no document", {"checksum": None, "state": State.GONE, "status": 404}, (9, 0, 0), NOW + 99),
]


@pytest.mark.parametrize(("title", "fields", "done", "due"), WITHOUT, ids=[row[0] for row in WITHOUT])
def test_what_has_no_record_is_due(
    known: Known, title: str, fields: dict[str, object], done: tuple[int, int, int], due: int | None
) -> None:
    url = "a.example/4"
    known.record(known.change(url, **{"next_fetch": NOW + 99, **fields}, archived=1))
    known.store.acknowledge("index", known.store.orders("index", 100, now=NOW))
    assert run(known) == done
    state = known.store.get(full(url))
    assert state is not None
    assert state.next_fetch == due
    assert (state.rules, known.orders()) == (0, [])
