"""Two collections crawl one URL into one index: who loses a document because the other one deletes it sends it again at its next start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.depths.end_of_run import end_run
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.sinks.repair import LostDocuments
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from tests.conftest import assert_same
from tests.contract.memory.store import MemoryStore
from tests.draining import drain_all
from tests.histories.fate import Countdown, Killed
from tests.servers import emptied
from tests.stores import KINDS, store_of
from tests.unit.crawl.test_engine import DAY, HOME, Web

ONE, TWO = f"{HOME}1", f"{HOME}2"


class Side(Web):
    """One of two collections that share an index."""

    def __init__(self, folder: Path, store: Store, index: EmbeddedIndex) -> None:
        folder.mkdir()
        super().__init__(folder, store)
        self.index = index
        self.sink = index  # type: ignore[assignment]
        self.pages = {HOME: "home", ONE: "one", TWO: "two"}
        self.links = {HOME: [ONE, TWO]}

    def crawl(self, *, after: int = 0) -> Engine:
        self.clock.advance(after * DAY)
        engine = self.open().engine
        LostDocuments(engine, self.index).start()
        self.asked = []
        self.work(engine)
        end_run(engine)
        drain_all(engine.deliveries.drains[0])
        engine.close()
        return engine

    def lost(self) -> list[str]:
        return self.index.lost(limit=100)

    def says_indexed(self) -> set[str]:
        return {state.url for state in self.store.urls() if state.indexed}


@pytest.fixture(params=KINDS)
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Side, Side]]:
    with ExitStack() as stack:
        if request.param == "redis":
            emptied().close()
        made = []
        for name in ("a", "b"):
            store = stack.enter_context(closing(store_of(request.param, tmp_path / f"{name}.db", name=name)))
            index = stack.enter_context(closing(EmbeddedIndex(tmp_path / "index.db", owner=name)))
            made.append(Side(tmp_path / name, store, index))
        yield made[0], made[1]


def documents(side: Side) -> set[str]:
    return set(side.index.urls())


def test_a_document_that_the_other_collection_deleted_is_sent_again(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.crawl()
    b.crawl()
    b.write(start=HOME, rules=f"forbid prefix {ONE}")
    b.crawl()
    assert documents(a) == {HOME, TWO}
    assert a.lost() == [ONE]
    a.crawl()
    assert_same(a.asked, [(ONE, False)])
    assert documents(a) == {HOME, ONE, TWO}
    for side in (a, b, a, b):  # and neither of the two does it again
        side.crawl()
        assert (side.asked, side.lost()) == ([], [])
    assert a.says_indexed() == {HOME, ONE, TWO}
    assert b.says_indexed() == {HOME, TWO}


def test_it_is_so_for_a_page_that_is_gone_for_the_other_collection(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.crawl()
    b.crawl()
    del b.pages[ONE]
    b.crawl(after=20)
    assert documents(a) == {HOME, TWO}
    a.crawl()
    assert_same(a.asked, [(ONE, False)])
    assert documents(a) == {HOME, ONE, TWO}


def test_two_collections_that_both_keep_a_page_send_nothing_to_and_fro(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.crawl()
    b.crawl()
    assert (a.index.count(of="a"), a.index.count(of="b")) == (0, 3)
    for side in (a, b, a, b):
        side.crawl()
        assert (side.asked, side.lost()) == ([], [])
    assert (a.index.count(of="a"), a.index.count(of="b")) == (0, 3), "nobody has pushed anything"
    a.pages[ONE] = "another text"
    a.crawl(after=31)
    assert a.index.count(of="a") == 1
    b.crawl()
    assert (b.asked, b.lost()) == ([], [])


GONE: tuple[tuple[str, str | int | None, str], ...] = (
    # what became of the page meanwhile, as the loser sees it; rules that it has now
    ("it is gone", None, ""),
    ("it is excluded", "one", f"forbid prefix {ONE}"),
)


@pytest.mark.parametrize(("what", "page", "rules"), GONE, ids=[row[0] for row in GONE])
def test_what_the_loser_does_not_want_either_is_forgotten(
    sides: tuple[Side, Side], what: str, page: str | None, rules: str
) -> None:
    a, b = sides
    a.crawl()
    b.crawl()
    b.write(start=HOME, rules=f"forbid prefix {ONE}")
    b.crawl()
    if page is None:
        del a.pages[ONE]
    a.write(start=HOME, rules=rules)
    a.crawl()
    assert (documents(a), a.says_indexed(), a.lost()) == ({HOME, TWO}, {HOME, TWO}, [])


def test_a_page_that_fails_is_not_asked_for_at_each_start(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.crawl()
    b.crawl()
    b.write(start=HOME, rules=f"forbid prefix {ONE}")
    b.crawl()
    a.pages[ONE] = 503
    a.crawl()
    assert a.asked_for(ONE) == 2, "once, and a retry"
    assert a.lost() == [ONE], "the index still lacks it, and says so"
    a.crawl()
    assert a.asked_for(ONE) == 0
    a.pages[ONE] = "one"
    a.crawl(after=20)
    assert documents(a) == {HOME, ONE, TWO}
    assert a.lost() == []


def test_one_that_is_unknown_is_forgotten(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.crawl()
    b.crawl()
    b.write(start=HOME, rules=f"forbid prefix {ONE}")
    b.crawl()
    a.store = MemoryStore(sinks=(EMBEDDED,))  # its state was thrown away
    LostDocuments(a.open().engine, a.index).start()
    assert a.lost() == []


def test_a_crawl_that_does_not_end_looks_once_a_day(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.settings["CRAWLSPACE_CONTINUOUS"] = True
    engine = a.open().engine
    lost = LostDocuments(engine, a.index)
    lost.start()
    a.work(engine)
    b.crawl()
    b.write(start=HOME, rules=f"forbid prefix {ONE}")
    b.crawl()
    a.asked = []
    for hours in (1, 22):
        a.clock.advance(hours * 3600)
        lost.resume()
        a.work(engine)
    assert ONE not in documents(a)
    a.clock.advance(3600)
    lost.resume()
    a.work(engine)
    assert_same(a.asked, [(ONE, False)])
    assert documents(a) == {HOME, ONE, TWO}
    engine.close()


@pytest.mark.full
def test_many_are_made_due_in_batches(tmp_path: Path) -> None:
    pages = [f"{HOME}{number}" for number in range(1_201)]
    with ExitStack() as stack:
        a, b = (
            Side(
                tmp_path / name,
                MemoryStore(sinks=(EMBEDDED,)),
                stack.enter_context(closing(EmbeddedIndex(tmp_path / "index.db", owner=name))),
            )
            for name in ("a", "b")
        )
        for side in (a, b):
            side.settings["CRAWLSPACE_MAX_DELETIONS"] = 5_000
            side.pages = {HOME: "home", **{page: page for page in pages}}
            side.links = {HOME: pages}
            side.crawl()
        b.write(start=HOME, rules=f"forbid prefix {HOME}1")
        b.crawl()
        a.crawl()
        assert {url for url, _ in a.asked} == {page for page in pages if page.startswith(f"{HOME}1")}
        assert documents(a) == {HOME, *pages}


@pytest.mark.full
def test_after_a_kill_at_any_moment_it_is_sent_again(tmp_path: Path) -> None:
    with closing(EmbeddedIndex(tmp_path / "index.db", owner="b")) as index:
        b = Side(tmp_path / "b", MemoryStore(sinks=(EMBEDDED,)), index)
        number = 1
        while _is_killed(number, b, tmp_path):
            number += 1
        assert number > 5


def _is_killed(number: int, b: Side, folder: Path) -> bool:
    """Lose a document to `b`, and kill the start that notices it after so many statements; return whether it had so many."""
    folder /= str(number)
    folder.mkdir()
    is_killed = False
    with closing(EmbeddedIndex(folder.parent / "index.db", owner=f"a{number}")) as index:
        a = Side(folder / "a", MemoryStore(sinks=(EMBEDDED,)), index)
        a.store = store = SqliteStore(folder / "a.db", sinks=(EMBEDDED,))
        a.crawl()
        b.write(start=HOME)
        b.pages[ONE] = f"one {number}"
        b.crawl(after=31)
        b.write(start=HOME, rules=f"forbid prefix {ONE}")
        b.crawl()
        assert a.lost() == [ONE]
        engine = a.open().engine
        store._file.db.exec_trace = index._db.exec_trace = Countdown(number).statement
        try:
            LostDocuments(engine, index).start()
        except Killed:
            is_killed = True
        store._file.db.exec_trace = index._db.exec_trace = None
        if is_killed:
            store._close_files()
        else:
            engine.close()
            store.close()
        a.store = SqliteStore(folder / "a.db", sinks=(EMBEDDED,))
        a.crawl()
        assert documents(a) == {HOME, ONE, TWO}, f"killed after {number} statements"
        a.store.close()
    return is_killed
