"""What counts as a difference between a store and an index while both change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from crawlspace.admin.audit import Audit, DifferenceKind
from crawlspace.clock import FakeClock
from crawlspace.index.sink import Entry
from crawlspace.index.versions import Versions
from tests.contract.conftest import NOW, Known, full
from tests.contract.memory.store import MemoryStore

A, B = "a.example/", "b.example/"


class SmallIndex:
    """An index of another program; `meanwhile` happens when it is asked for the time that is given."""

    def __init__(self) -> None:
        self.documents: dict[str, Entry] = {}
        self.meanwhile: dict[int, Callable[[], object]] = {}
        self._asked = 0

    def look_up(self, urls: Sequence[str]) -> dict[str, Entry]:
        self._asked += 1
        found = {url: self.documents[url] for url in urls if url in self.documents}
        self.meanwhile.get(self._asked, lambda: None)()
        return found

    def entries(self, *, owner: str) -> Iterator[list[Entry]]:
        yield [entry for entry in self.documents.values() if entry.owner == owner]


class Scene:
    def __init__(self) -> None:
        self.store = MemoryStore(sinks=("search",))
        self.known = Known(self.store)
        self.index = SmallIndex()
        self.versions = Versions(self.store, "search", FakeClock())
        self.known.discover(A, B)
        self.known.record(self.known.page(A, "one"), self.known.page(B, "two"))
        self.send()

    def send(self) -> None:
        orders = self.versions.of(self.store.orders("search", 10, now=NOW))
        for order in orders:
            self.index.documents.pop(order.url, None)
            if order.document is not None:
                self.index.documents[order.url] = Entry(order.url, order.version, "demo")
        self.store.acknowledge("search", orders)

    def audit(self) -> tuple[dict[str, DifferenceKind], Audit]:
        audit = Audit(self.store, "search", self.index, self.versions, "demo")
        return {one.url: one.kind for page in audit.differences() for one in page}, audit


@pytest.fixture
def scene() -> Scene:
    return Scene()


def change(scene: Scene, **entry: object) -> None:
    there = scene.index.documents[full(A)]
    scene.index.documents[full(A)] = Entry(**{"url": there.url, "version": there.version, "owner": there.owner, **entry})  # type: ignore[arg-type]


def test_equal(scene: Scene) -> None:
    found, audit = scene.audit()
    assert (found, audit.tallies.documents) == ({}, 2)


def test_missing_extra_and_outdated(scene: Scene) -> None:
    change(scene, version=1)
    del scene.index.documents[full(B)]
    scene.index.documents["http://c.example/"] = Entry("http://c.example/", 5, "demo")
    assert scene.audit()[0] == {
        full(A): DifferenceKind.OUTDATED,
        full(B): DifferenceKind.MISSING,
        "http://c.example/": DifferenceKind.EXTRA,
    }


def test_a_later_version_or_none_is_no_difference(scene: Scene) -> None:
    change(scene, version=scene.versions.least(1_000))
    assert scene.audit()[0] == {}
    change(scene, version=0)
    assert scene.audit()[0] == {}


def test_a_document_of_another_collection_is_counted(scene: Scene) -> None:
    change(scene, version=1, owner="other")
    found, audit = scene.audit()
    assert (found, audit.tallies.of_others) == ({}, 1)


def test_what_waits_or_is_refused_is_counted(scene: Scene) -> None:
    scene.known.record(scene.known.page(A, "new"), scene.known.page(B, "newer"))
    scene.index.documents.clear()
    scene.store.park("search", scene.store.orders("search", 1, now=NOW)[0], "no")
    found, audit = scene.audit()
    assert (found, audit.tallies.refused, audit.tallies.waiting) == ({}, 1, 1)


def test_a_deletion_that_waits_is_no_difference(scene: Scene) -> None:
    scene.known.record(scene.known.change(A, checksum=None))
    assert scene.audit()[0] == {}


def test_a_page_that_is_sent_between_two_looks_is_no_difference(scene: Scene) -> None:
    del scene.index.documents[full(A)]

    def push() -> None:
        scene.known.record(scene.known.page(A, "new"))
        scene.send()

    scene.index.meanwhile = {1: push}
    assert scene.audit()[0] == {}


def test_a_page_that_goes_while_it_is_looked_at_again_is_no_difference(scene: Scene) -> None:
    del scene.index.documents[full(A)]
    scene.index.meanwhile = {2: lambda: scene.known.record(scene.known.change(A, checksum=None))}
    assert scene.audit()[0] == {}


def test_a_page_that_comes_back_while_it_is_looked_at_again_is_no_extra(scene: Scene) -> None:
    scene.known.record(scene.known.change(A, checksum=None))
    scene.store.acknowledge("search", scene.store.orders("search", 10, now=NOW))  # and the index has it still
    assert scene.audit()[0] == {full(A): DifferenceKind.EXTRA}
    scene.index.meanwhile = {4: lambda: scene.known.record(scene.known.page(A, "back"))}
    assert scene.audit()[0] == {}
