"""An index that several collections share and whose documents were pushed before owners were noted."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.owners import IN_DOUBT, NOBODY, SEVERAL, Has, OwnersUnknown, after_delete, after_push, unsettled
from crawlspace.model import Document, IndexOrder, Op

# whose it is -> whose it is when `mine` has deleted it (None: gone), and when `mine` has pushed it
STEPS = [
    (NOBODY, None, "mine"),
    ("mine", None, "mine"),
    ("theirs", "theirs", "mine"),
    (SEVERAL, IN_DOUBT, SEVERAL),
    (IN_DOUBT, IN_DOUBT, SEVERAL),
]


@pytest.mark.parametrize(("owner", "deleted", "pushed"), STEPS)
def test_whose_a_document_is(owner: str, deleted: str | None, pushed: str) -> None:
    assert (after_delete(owner, "mine"), after_push(owner, "mine")) == (deleted, pushed)


MINE, BOTH, THEIRS, NONES = (f"http://a.example/{name}" for name in ("mine", "both", "theirs", "none"))


class Collections:
    """Two collections that share an index, and the documents that each has."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.has = {"mine": {MINE, BOTH}, "theirs": {THEIRS, BOTH}}

    def start(self, name: str) -> EmbeddedIndex:
        """Open the index as a start does, after asking all who share it."""
        EmbeddedIndex(self.path, holders={each: self._asked(each) for each in self.has}).close()
        return EmbeddedIndex(self.path, owner=name)

    def give_up(self, name: str, *urls: str) -> None:
        with closing(self.start(name)) as index:
            self.has[name].difference_update(urls)  # a start asks before it judges by the rules
            index.send([IndexOrder(1, Op.DELETE, url) for url in urls])

    def left(self) -> list[str]:
        with closing(EmbeddedIndex(self.path, read_only=True)) as index:
            assert index.search("words", limit=9).total == index.count()
            return list(index.urls())

    def _asked(self, name: str) -> Has:
        return lambda urls: self.has[name].intersection(urls)


def push(url: str) -> IndexOrder:
    return IndexOrder(1, Op.PUSH, url, Document(url, title="Words"))


@pytest.fixture(params=[1, 2])
def old(tmp_path: Path, request: pytest.FixtureRequest) -> Collections:
    """An index as version 1 left it, or as version 2 made it of that."""
    path = tmp_path / "shared.db"
    with closing(EmbeddedIndex(path)) as index:
        index.send([push(url) for url in (MINE, BOTH, THEIRS, NONES)])
    with closing(apsw.Connection(str(path))) as db:
        db.execute("DROP INDEX in_doubt")
        if request.param == 1:
            db.execute("ALTER TABLE documents DROP COLUMN owner")
        db.pragma("user_version", request.param)
    return Collections(path)


def test_nothing_is_written_to_it_before_its_collections_are_asked(old: Collections) -> None:
    before = old.path.read_bytes()
    with pytest.raises(OwnersUnknown, match="crawl a collection"):
        EmbeddedIndex(old.path, owner="mine")
    assert (unsettled(old.path), old.left(), old.path.read_bytes()) == (4, sorted([MINE, BOTH, THEIRS, NONES]), before)
    old.start("mine").close()
    assert unsettled(old.path) == 0
    EmbeddedIndex(old.path, owner="mine").close()


# who gives up what, in this order -> what is left once everybody has started again
HISTORIES: list[tuple[str, list[tuple[str, list[str]]], list[str]]] = [
    ("one that another has", [("mine", [BOTH])], [MINE, BOTH, THEIRS, NONES]),
    ("and the other one", [("theirs", [BOTH])], [MINE, BOTH, THEIRS, NONES]),
    ("one that both had", [("mine", [BOTH]), ("theirs", [BOTH])], [MINE, THEIRS, NONES]),
    ("the other way round", [("theirs", [BOTH]), ("mine", [BOTH])], [MINE, THEIRS, NONES]),
    ("one of its own", [("mine", [MINE])], [BOTH, THEIRS, NONES]),
    ("one of another", [("mine", [THEIRS])], [MINE, BOTH, THEIRS, NONES]),
    ("one that nobody has, and whose deletion waited", [("mine", [NONES])], [MINE, BOTH, THEIRS]),
]


@pytest.mark.parametrize(("what", "steps", "left"), HISTORIES, ids=[row[0] for row in HISTORIES])
def test_what_is_left(old: Collections, what: str, steps: list[tuple[str, list[str]]], left: list[str]) -> None:
    for name, urls in steps:
        old.give_up(name, *urls)
    for name in old.has:
        old.start(name).close()
    assert old.left() == sorted(left)


def test_at_no_time_one_is_missing_that_somebody_has(old: Collections) -> None:
    def all_there() -> bool:
        return set.union(*old.has.values()) <= set(old.left())

    old.give_up("mine", BOTH)
    assert all_there()
    old.has["mine"].add(BOTH)
    with closing(old.start("mine")) as index:
        index.send([push(BOTH)])  # its page is back
    old.give_up("theirs", BOTH)
    assert all_there()
    old.give_up("mine", BOTH)
    old.start("mine").close()
    assert old.left() == sorted([MINE, THEIRS, NONES])


def test_a_page_that_has_changed_stays_that_of_both(old: Collections) -> None:
    with closing(old.start("mine")) as index:
        index.send([push(BOTH)])
    old.give_up("mine", BOTH)
    old.start("theirs").close()
    assert BOTH in old.left()


def test_one_that_another_left_behind_without_a_word_can_be_deleted(old: Collections) -> None:
    """A page with status 761 leaves a collection and not the index."""
    old.start("mine").close()
    old.has["mine"].discard(BOTH)
    old.give_up("theirs", BOTH)
    old.start("mine").close()
    assert old.left() == sorted([MINE, THEIRS, NONES])


def test_what_has_been_pushed_since_is_as_ever(old: Collections) -> None:
    new = "http://a.example/new"
    with closing(old.start("mine")) as mine, closing(old.start("theirs")) as theirs:
        mine.send([push(new), push(THEIRS)])
        theirs.send([push(new), IndexOrder(1, Op.DELETE, THEIRS)])
        mine.send([IndexOrder(1, Op.DELETE, new)])
        assert {new, THEIRS} <= set(old.left())
        theirs.send([IndexOrder(1, Op.DELETE, new)])
        assert new not in old.left()


def test_stopped_while_they_are_asked_it_is_as_it_was(old: Collections) -> None:
    def stop(urls: Collection[str]) -> Collection[str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        EmbeddedIndex(old.path, holders={"mine": lambda urls: urls, "theirs": stop})
    assert unsettled(old.path) == 4
    assert old.left() == sorted([MINE, BOTH, THEIRS, NONES])


def test_many_are_asked_for_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    urls = [f"http://a.example/{number}" for number in range(2_500)]
    with closing(EmbeddedIndex(path)) as index:
        index.send([push(url) for url in urls])
    with closing(apsw.Connection(str(path))) as db:
        db.execute("DROP INDEX in_doubt")
        db.pragma("user_version", 2)
    asked: list[int] = []

    def has(some: Collection[str]) -> Collection[str]:
        asked.append(len(some))
        return some

    EmbeddedIndex(path, holders={"mine": has}).close()
    assert asked == [1000, 1000, 500]
    with closing(apsw.Connection(str(path))) as db:
        assert [*db.execute("SELECT owner, count(*) FROM documents GROUP BY owner")] == [("mine", 2_500)]


# what stands at the path of an index -> nothing is to be asked for
NO_INDEX: list[tuple[str, Callable[[Path], object]]] = [
    ("nothing", lambda path: None),
    ("an empty file", lambda path: path.touch()),
    ("no database", lambda path: path.write_bytes(b"words " * 1000)),
    ("another database", lambda path: apsw.Connection(str(path)).execute("CREATE TABLE documents (name)").close()),
    ("an index of today", lambda path: EmbeddedIndex(path).close()),
]


@pytest.mark.parametrize(("what", "make"), NO_INDEX, ids=[row[0] for row in NO_INDEX])
def test_what_needs_no_settling(tmp_path: Path, what: str, make: Callable[[Path], object]) -> None:
    path = tmp_path / "index.db"
    make(path)
    assert unsettled(path) == 0
