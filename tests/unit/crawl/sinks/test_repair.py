"""Store and index that are not of the same moment: noticed at the start, brought together again, also when killed; without a network."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import FetchPage
from crawlspace.crawl.sinks.repair import RESENDING, Resending, Resent
from crawlspace.crawl.startup import open_engine
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.marks import Agreement, BatchMark, agreement, next_mark, note_mark, stored_mark
from crawlspace.model import Candidate, Source
from crawlspace.state.sqlite.store import SqliteStore
from tests.contract.conftest import Known
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.test_engine import HOME, Web

PAGES = [f"{HOME}{number}" for number in range(5)]


class Place(Web):
    """A collection whose store and index are files, with copies of both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(folder, SqliteStore(folder / "state.db", sinks=(EMBEDDED,)))
        self.pages = {HOME: "home", **{page: page for page in PAGES}}
        self.links = {HOME: PAGES}
        self.store.close()

    def run(self, *, after: int = 0, resend: bool = True, killed: int = -1) -> Resent | None:
        """One start with all that belongs to it; `killed` after so many of its writes."""
        self.clock.advance(after * 86_400)
        self.store = SqliteStore(self.folder / "state.db", sinks=(EMBEDDED,))
        index = EmbeddedIndex(self.folder / "index.db", owner="demo", clock=self.clock)
        self.sink = index  # type: ignore[assignment]
        try:
            store = self.store if killed < 0 else _Killing(self.store, killed)
            resending = Resending(store, index, owner="demo", now=int(self.clock.now()))  # type: ignore[arg-type]
            resent = resending.begin() if resend else None
            engine = self.open().engine
            resending.finish(lambda urls: enter(engine, urls))
            self.asked = []
            self.work(engine)
            engine.close()
            return resent
        finally:
            index.close()
            self.store.close()

    def keep(self, name: str) -> None:
        """Copy a file, and the log beside it if there is one."""
        for path in self.folder.glob(f"{name}.db*"):
            shutil.copy(path, self.folder / f"kept {path.name}")

    def put_back(self, name: str) -> None:
        for path in self.folder.glob(f"{name}.db*"):
            path.unlink()
        for path in self.folder.glob(f"kept {name}.db*"):
            shutil.copy(path, self.folder / path.name.removeprefix("kept "))

    def remove(self, name: str) -> None:
        for path in self.folder.glob(f"{name}.db*"):
            path.unlink()

    @property
    def documents(self) -> dict[str, str]:
        index = EmbeddedIndex(self.folder / "index.db", read_only=True)
        try:
            return {url: document.text for url in index.urls() if (document := index.get(url)) is not None}
        finally:
            index.close()

    def is_as_the_web(self) -> bool:
        return self.documents == {url: text for url, text in self.pages.items() if isinstance(text, str)}


class _Killing:
    """A store whose process dies after so many writes."""

    def __init__(self, store: SqliteStore, left: int) -> None:
        self._store, self._left = store, left

    def __getattr__(self, name: str) -> object:
        real = getattr(self._store, name)
        if name not in ("set_meta", "revise"):
            return real

        def call(*args: object, **more: object) -> object:
            if not self._left:
                raise KeyboardInterrupt
            self._left -= 1
            return real(*args, **more)

        return call


def enter(engine: Engine, urls: Sequence[str]) -> list[str]:
    return [one.url for one in engine.admit(Candidate(url, Source.INDEX_FOLLOW) for url in urls)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.run()
    assert made.is_as_the_web()
    return made


def changed(place: Place) -> None:
    """What happens between a copy and the day on which it is put back."""
    place.pages |= {PAGES[0]: "changed", f"{HOME}new": "new", PAGES[1]: 404}
    place.links[HOME] = [*PAGES, f"{HOME}new"]
    place.pages[HOME] = "home, with more links"
    place.run(after=31)
    assert place.is_as_the_web()


def test_nothing_is_sent_again_where_they_agree(place: Place) -> None:
    assert place.run(after=31) is None
    assert all(conditional for _, conditional in place.asked)


def test_an_older_index_gets_what_it_lacks(place: Place) -> None:
    place.keep("index")
    changed(place)
    place.put_back("index")
    assert not place.is_as_the_web()
    resent = place.run()
    assert resent == Resent(Agreement.INDEX_BEHIND, documents=5 + 1, deleted=1)
    assert place.is_as_the_web()
    assert place.run() is None


def test_a_lost_index_is_made_again(place: Place) -> None:
    changed(place)
    place.remove("index")
    assert place.run() == Resent(Agreement.INDEX_BEHIND, documents=6)
    assert place.is_as_the_web()
    assert place.run() is None


SENT_BY_HAND = [  # the index of before is put back, pages not taken by it, not in it afterwards
    (False, [], []),
    (True, [], []),
    (True, [f"{HOME}new"], [f"{HOME}new"]),  # as many documents as the store has, and one of them is another
]


@pytest.mark.parametrize(("is_older", "not_taken", "missing"), SENT_BY_HAND)
def test_what_a_person_has_sent_again_agrees(place: Place, *, is_older: bool, not_taken: list[str], missing: list[str]) -> None:
    place.keep("index")
    changed(place)
    place.remove("index")
    if is_older:
        place.put_back("index")
    store = SqliteStore(place.folder / "state.db", sinks=(EMBEDDED,))
    index = EmbeddedIndex(place.folder / "index.db", owner="demo", clock=place.clock)
    with closing(store), closing(index):
        sent = {url: text for url, text in place.pages.items() if isinstance(text, str) and url not in not_taken}
        index.send([IndexOrder(0, Op.PUSH, url, Document(url, text=text)) for url, text in sent.items()])
        Resending(store, index, owner="demo", now=int(place.clock.now())).sent_again(all_taken=not not_taken)
    assert place.documents == sent
    assert sorted(set(place.pages) - set(place.documents) - {PAGES[1]}) == missing
    assert place.run(resend=not not_taken) is None


def test_an_index_that_comes_back_after_another_was_made(place: Place) -> None:
    """It has the right name, and marks of its own."""
    place.keep("index")
    place.remove("index")
    place.run()
    place.pages[PAGES[2]] = 404
    place.run(after=31)
    place.put_back("index")
    assert place.run() is not None
    assert place.is_as_the_web()


def test_an_older_store_learns_what_the_index_has(place: Place) -> None:
    """Nothing is deleted but what its own page gives up."""
    place.keep("state")
    changed(place)
    place.pages[f"{HOME}new"] = 404
    place.pages[PAGES[1]] = "back"
    place.put_back("state")
    resent = place.run()
    assert resent is not None
    assert (resent.why, resent.documents, resent.deleted, resent.unknown) == (Agreement.STORE_BEHIND, 6, 0, 1)
    assert set(place.documents) == {HOME, *PAGES, f"{HOME}new"}
    assert place.run(after=1) is None
    assert place.is_as_the_web(), "what turned out to be gone is deleted by the next start"


def test_a_store_that_began_again(place: Place) -> None:
    changed(place)
    place.remove("state")
    del place.links[HOME]
    resent = place.run()
    assert resent is not None
    assert (resent.why, resent.unknown) == (Agreement.OTHERS, 5)
    assert place.is_as_the_web(), "also what nothing leads to any more"
    assert place.run() is None


@pytest.mark.parametrize("killed", range(6))
@pytest.mark.parametrize("what", ["index", "state"])
def test_killed_at_any_moment_the_next_start_goes_on(place: Place, what: str, killed: int) -> None:
    place.keep(what)
    changed(place)
    place.put_back(what)
    try:
        place.run(killed=killed)
    except KeyboardInterrupt:
        place.run()
    assert place.run(after=1) is None
    assert place.is_as_the_web()


def test_killed_between_the_index_and_what_the_store_notes_of_it(place: Place) -> None:
    """The batch is sent again, and nothing else."""
    place.pages[PAGES[0]] = "changed"
    place.clock.advance(31 * 86_400)
    place.store = SqliteStore(place.folder / "state.db", sinks=(EMBEDDED,))
    index = EmbeddedIndex(place.folder / "index.db", owner="demo")
    engine = open_engine(place.collection(), store=place.store, sinks=[index], clock=place.clock).engine
    while (fetch := engine.next_fetch()) is not None:
        assert isinstance(fetch, FetchPage)
        engine.fetched(place._answer(fetch))
    engine.commit()
    assert engine.deliveries.drains[0].deliver(engine.deliveries.drains[0].take()).done
    place.store.close()
    index.close()
    assert place.run() is None
    assert (place.asked, place.is_as_the_web()) == ([], True)


def test_documents_that_another_collection_has_replaced_are_not_lacking(place: Place) -> None:
    place.remove("index")
    assert place.run() is not None
    store = SqliteStore(place.folder / "state.db", sinks=(EMBEDDED,))
    index = EmbeddedIndex(place.folder / "index.db", owner="demo")
    other = EmbeddedIndex(place.folder / "index.db", owner="other")
    with closing(store), closing(index), closing(other):
        resending = Resending(store, index, owner="demo", now=int(place.clock.now()))
        assert not resending.lacks_documents()
        other.send([IndexOrder(0, Op.PUSH, url, Document(url, text="theirs")) for url in (*PAGES[:2], f"{HOME}theirs")])
        assert not resending.lacks_documents()
        other.send([IndexOrder(0, Op.DELETE, PAGES[0])])
        assert resending.lacks_documents(), "nobody has that one"
        index.send([IndexOrder(0, Op.PUSH, url, Document(url, text="ours")) for url in PAGES[:2]])
        assert not resending.lacks_documents()
    assert place.run() is None
    store = SqliteStore(place.folder / "state.db", sinks=(EMBEDDED,))
    with closing(store):
        assert store.get_meta(RESENDING) == ""


def test_two_collections_with_one_index_have_a_mark_each(place: Place, tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.db", owner="other")
    assert index.mark() is None
    index.send([], BatchMark("other", 1))
    index.close()
    assert place.run() is None


# marks of store and index (generation and batch), and the largest order that waits -> how they stand
COMPARED: list[tuple[tuple[str, int] | None, tuple[str, int] | None, int, Agreement]] = [
    (None, None, 0, Agreement.SAME),
    (("a", 0), None, 0, Agreement.SAME),
    (("a", 7), ("a", 7), 0, Agreement.SAME),
    (("a", 7), None, 0, Agreement.INDEX_BEHIND),
    (("a", 7), ("a", 6), 0, Agreement.INDEX_BEHIND),
    # killed between the commit of the index and what the store notes of it
    (("a", 7), ("a", 8), 3, Agreement.SAME),
    (("a", 0), ("a", 1), 3, Agreement.SAME),
    # a copy of the day before, with little to do a day
    (("a", 7), ("a", 8), 0, Agreement.STORE_BEHIND),
    (("a", 7), ("a", 9), 3, Agreement.STORE_BEHIND),
    (None, ("a", 1), 3, Agreement.OTHERS),
    (("a", 7), ("b", 7), 0, Agreement.OTHERS),
]


@pytest.mark.parametrize(("stored", "found", "waits", "expected"), COMPARED)
def test_how_marks_are_compared(
    stored: tuple[str, int] | None, found: tuple[str, int] | None, waits: int, expected: Agreement
) -> None:
    store = MemoryStore(sinks=(EMBEDDED,))
    if stored is not None:
        note_mark(store, EMBEDDED, BatchMark(*stored))
    known = Known(store)
    pages = [f"a.example/{number}" for number in range(waits)]
    known.discover(*pages)
    known.record(*(known.page(url, url) for url in pages))
    mark = None if found is None else BatchMark(*found, sequence=3)
    assert agreement(store, EMBEDDED, mark, now=0) is expected


def test_a_generation_is_noted_before_anything_is_sent() -> None:
    store = MemoryStore(sinks=(EMBEDDED,))
    known = Known(store)
    known.discover("a.example/")
    known.record(known.page("a.example/", "one"))
    first = next_mark(store, EMBEDDED, store.orders(EMBEDDED, 9, now=0))
    assert first == next_mark(store, EMBEDDED, store.orders(EMBEDDED, 9, now=0))
    assert stored_mark(store, EMBEDDED) == BatchMark(first.generation, 0)


def test_a_damaged_mark_counts_as_none() -> None:
    store = MemoryStore(sinks=(EMBEDDED,))
    store.set_meta(f"sent:{EMBEDDED}", "{")
    assert stored_mark(store, EMBEDDED) is None


# mark in the index, mark of a batch -> whether it may be written over it
FOLLOWING: list[tuple[BatchMark | None, BatchMark, bool]] = [
    (None, BatchMark("a", 1), True),
    (None, BatchMark("a", 2), False),
    (BatchMark("a", 4), BatchMark("a", 4), True),
    (BatchMark("a", 4), BatchMark("a", 5), True),
    (BatchMark("a", 4), BatchMark("a", 6), False),
    (BatchMark("a", 4), BatchMark("a", 3), False),
    (BatchMark("a", 4), BatchMark("b", 5), False),
]


@pytest.mark.parametrize(("there", "batch", "expected"), FOLLOWING)
def test_a_batch_that_is_sent_meanwhile_hides_no_difference(there: BatchMark | None, batch: BatchMark, *, expected: bool) -> None:
    assert batch.may_follow(there) is expected


def test_orders_that_a_command_sends_hide_no_difference(place: Place) -> None:
    place.keep("index")
    changed(place)
    place.put_back("index")
    place.pages[PAGES[3]] = "changed as well"
    place.run(after=31, resend=False)
    assert place.run() is not None
    assert place.is_as_the_web()
