"""Records are read in parts, and the end of a part may be anywhere in one: what is read is what was written."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from crawlspace.admin.archive import compact
from crawlspace.archive import members
from crawlspace.archive.files import archive_files, place_of
from crawlspace.archive.members import faults_of, records_of
from crawlspace.clock import FakeClock
from crawlspace.model import State
from crawlspace.state.changes import Change
from tests.contract.conftest import NOW, new
from tests.contract.memory.store import MemoryStore
from tests.quick import some
from tests.unit.archive.conftest import Archive, fetched

RANDOM = Random(1)
BODIES = {"stored": RANDOM.randbytes(300), "deflated": RANDOM.randbytes(700).hex().encode(), "empty": b""}


@pytest.mark.parametrize("at_once", ["_READ_AT_ONCE", "_INFLATED_AT_ONCE"])
@pytest.mark.parametrize("body", some(BODIES.values(), 2), ids=BODIES)
def test_parts_of_any_size(archive: Archive, monkeypatch: pytest.MonkeyPatch, at_once: str, body: bytes) -> None:
    (place,) = archive.write(fetched("/", body, title="A", dom=body))
    (path,) = archive_files(archive.folder)
    wrong = []
    for size in range(1, 2_500):
        monkeypatch.setattr(members, at_once, size)
        page = archive.reader.page(place, "http://a.example/")
        read = page and (page.document and page.document.title, page.response.body, page.response.dom)
        if read != ("A", body, body) or list(faults_of(path)):
            wrong.append(size)
    assert wrong == []


def test_copied_records_of_about_the_size_of_a_part(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = 600
    for name in ("_READ_AT_ONCE", "_COPIED_AT_ONCE"):
        monkeypatch.setattr(members, name, at_once)
    bodies = {f"http://a.example/{size:03}": RANDOM.randbytes(size) for size in range(150, 350)}
    store = MemoryStore()
    store.discover([new(url.removeprefix("http://")) for url in bodies], now=NOW)
    tickets = [fetched(url.removeprefix("http://a.example"), body, title=url) for url, body in bodies.items()]
    archive.write(fetched("/superseded", RANDOM.randbytes(at_once)), *tickets)
    for ticket in tickets:
        state = store.get(ticket.exchange.url)
        assert state is not None
        assert ticket.location is not None
        state.state = State.DONE
        place = place_of(store.add_archive_file(ticket.location.file), ticket.location.offset)
        store.record([Change(state, archived=place)], now=NOW)
    before = contents(archive)
    lengths = {len(record) for record in before}
    assert set(range(at_once - 30, at_once + 30)) <= lengths, "a part ends at each byte of the end of a record"

    compact(store, archive.folder, collection="demo", clock=FakeClock(NOW))

    assert contents(archive) == before[2:], "response and request of the superseded fetch have gone"
    assert [fault for path in archive_files(archive.folder) for fault in faults_of(path)] == []
    archive.reader.close()
    archive.reader.files = store.archive_files()
    pages = {state.url: archive.reader.page(state.archived or 0, state.url) for state in store.urls()}
    read = {url: (page.document and page.document.title, page.response.body) for url, page in pages.items() if page}
    assert read == {url: (url, body) for url, body in bodies.items()}


def contents(archive: Archive) -> list[bytes]:
    """The records of all files as they are, without the first of each file."""
    found = []
    for path in archive_files(archive.folder):
        ends = [record.end for _, record in records_of(path)]
        assert ends[-1] == path.stat().st_size
        found += [path.read_bytes()[begin:end] for begin, end in pairwise(ends)]
    return found
