"""Compaction: what is kept, and that a kill at any step leaves each place with its records."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from crawlspace.admin.archive import compact
from crawlspace.archive.compaction import Move
from crawlspace.archive.files import archive_files, open_files, size_of
from crawlspace.clock import FakeClock
from crawlspace.model import State, UrlState
from crawlspace.state.changes import Change
from tests.contract.conftest import NOW, new
from tests.contract.memory.store import MemoryStore
from tests.unit.archive.conftest import Archive, fetched

PATHS = [f"/{n}" for n in range(6)]


class Killed(BaseException):
    pass


class Killing(MemoryStore):
    """A store that is killed at one of the calls that a compaction makes, before or after it."""

    stop = 1_000

    def add_archive_file(self, name: str) -> int:
        self._step()
        number = super().add_archive_file(name)
        self._step()
        return number

    def move_archived(self, moves: Sequence[Move]) -> None:
        self._step()
        super().move_archived(moves)
        self._step()

    def _step(self) -> None:
        self.stop -= 1
        if self.stop < 0:
            raise Killed


def dom_of(path: str) -> bytes | None:
    """The DOM of the newer version of a page: every other one was rendered."""
    return f"<title>{path}</title>".encode() * 50 if int(path[1:]) % 2 else None


def filled(archive: Archive) -> Killing:
    """A store of six pages in two files, each of them with a version that is superseded."""
    store = Killing()
    store.discover([new(f"a.example{path}") for path in PATHS], now=NOW)
    for version in ("old", "new"):
        doms = {path: dom_of(path) if version == "new" else os.urandom(1_000) for path in PATHS}
        tickets = [fetched(path, os.urandom(3_000), title=f"{version} {path}", dom=doms[path]) for path in PATHS]
        archive.write(*tickets)
        for path, ticket in zip(PATHS, tickets, strict=True):
            if version == "new" or path in PATHS[:2]:
                assert ticket.location is not None
                number = store.add_archive_file(ticket.location.file)
                place = number << 32 | ticket.location.offset
                state = stored(store, path)
                state.state = State.DONE
                store.record([Change(state, archived=place)], now=NOW)
    return store


def stored(store: MemoryStore, path: str) -> UrlState:
    state = store.get(f"http://a.example{path}")
    assert state is not None
    return state


def titles(store: MemoryStore, archive: Archive) -> list[str]:
    """The titles of the documents at the places of all URLs."""
    archive.reader.close()
    archive.reader.files = store.archive_files()
    found = [archive.reader.document(state.archived or 0, state.url) for state in store.urls()]
    return [document.title for document in found if document is not None]


def pages(store: MemoryStore, archive: Archive) -> int:
    """How many responses there are, each with the DOM that belongs to it."""
    found = {state.url: archive.reader.response(state.archived or 0, state.url) for state in store.urls()}
    wrong = [
        url for url, stored in found.items() if stored is not None and stored.dom != dom_of(url.removeprefix("http://a.example"))
    ]
    assert wrong == []
    return sum(stored is not None for stored in found.values())


NEWEST = [f"new {path}" for path in PATHS]


def compacted(store: MemoryStore, archive: Archive, max_bytes: int | None = None) -> int:
    return compact(store, archive.folder, collection="demo", clock=FakeClock(NOW), max_bytes=max_bytes).freed_bytes


def test_superseded_versions_go(archive: Archive) -> None:
    store = filled(archive)
    before = size_of(archive.folder)
    freed = compacted(store, archive)
    assert (titles(store, archive), pages(store, archive)) == (NEWEST, 6)
    assert freed > 24_000
    assert size_of(archive.folder) < before - 24_000
    assert compacted(store, archive) == 0, "nothing is superseded any more"


@pytest.mark.parametrize("stop", range(9))
def test_a_kill_at_any_step_costs_nothing(archive: Archive, stop: int) -> None:
    store = filled(archive)
    store.stop = stop
    try:
        compacted(store, archive, 1)
    except Killed:
        assert titles(store, archive) == NEWEST
        pages(store, archive)
    store.stop = 1_000
    compacted(store, archive)
    assert titles(store, archive) == NEWEST
    assert open_files(archive.folder) == []


def test_pages_go_and_documents_stay(archive: Archive) -> None:
    store = filled(archive)
    compacted(store, archive, max_bytes=1)
    assert (titles(store, archive), pages(store, archive)) == (NEWEST, 0)
    assert size_of(archive.folder) < 6 * 1_500
    assert len(archive_files(archive.folder)) == 1


def test_a_damaged_file_is_left_as_it_is(archive: Archive) -> None:
    store = filled(archive)
    path = archive_files(archive.folder)[-1]
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 6_000)
    before, content = titles(store, archive), path.read_bytes()
    assert 2 <= len(before) < 6
    compacted(store, archive)
    assert (titles(store, archive), path.read_bytes()) == (before, content)
