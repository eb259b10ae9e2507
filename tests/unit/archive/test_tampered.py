"""An archive that somebody has changed: each reader needs little memory and ends, and checking names what is wrong."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from crawlspace.admin.archive import compact
from crawlspace.archive import reader as module
from crawlspace.archive.files import archive_files, close_abandoned, place_of
from crawlspace.archive.members import faults_of
from crawlspace.archive.reader import ArchiveReader
from crawlspace.archive.records import digest_of
from crawlspace.clock import FakeClock
from crawlspace.model import State
from crawlspace.state.changes import Change
from tests.contract.conftest import NOW, new
from tests.contract.memory.store import MemoryStore

URL = "http://a.example/"
MIB = 1 << 20
LARGE = 64
"""MiB that a hostile member inflates to."""
MOST_MIB = 24
"""Far less than that; a part of a member, and what Python needs beside it."""
HTTP = b"HTTP/1.1 200 OK\r\n\r\n"


def member(*parts: bytes, zeros: int = 0) -> bytes:
    """A gzip member of parts and so many MiB of zeros."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    made = [deflate.compress(part) for part in parts]
    made += [deflate.compress(bytes(MIB)) for _ in range(zeros)]
    return b"".join((*made, deflate.flush()))


def head(length: object, kind: str = "response", **fields: str) -> bytes:
    named = {"WARC-Record-ID": "<urn:uuid:1>", "WARC-Date": "2026-01-01T00:00:00Z", "WARC-Target-URI": URL, **fields}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items() if value)
    return f"WARC/1.1\r\nWARC-Type: {kind}\r\n{lines}Content-Length: {length}\r\n\r\n".encode()


def response(body: bytes, **fields: str) -> bytes:
    block = HTTP + body
    return member(head(len(block), WARC_Payload_Digest=digest_of(body), **fields), block, b"\r\n\r\n")


NESTED = b'{"url": "u", "fields": {"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}}"
DAMAGED = "damaged, or cut off, after byte 0 of"
ROWS: list[tuple[str, Callable[[], bytes], str, int]] = [
    # what, what makes the file, what checking it finds, and how many versions of the page are read
    ("a member that is no record", lambda: member(zeros=LARGE), DAMAGED, 0),
    ("fields without an end", lambda: member(b"WARC/1.1\r\n" + b"a: b\r\n" * 3 * MIB), DAMAGED, 0),
    ("more than the record says", lambda: member(head(len(HTTP)), HTTP, zeros=LARGE), DAMAGED, 0),
    ("less than the record says", lambda: member(head(1 << 40), HTTP), DAMAGED, 0),
    ("more than is read", lambda: member(head(len(HTTP) + LARGE * MIB), HTTP, zeros=LARGE), "does not hold", 0),
    ("a document of more than is read", lambda: member(head(LARGE * MIB, "metadata"), zeros=LARGE), "", 0),
    ("a document that is nested", lambda: member(head(len(NESTED), "metadata", WARC_Refers_To="<urn:uuid:1>"), NESTED) + response(b"x"), "", 1),
    ("a length of many digits", lambda: member(head("9" * 5_000), HTTP), DAMAGED, 0),
    ("a length that is none", lambda: member(head("²"), HTTP), DAMAGED, 0),
    ("headers without an end", lambda: member(head(6 * MIB), b"\r\nX: yzz" * (6 * MIB // 8)), "does not hold", 0),
    ("headers that are too many", lambda: member(head(6 * MIB), b"X: y\r\n" * (MIB - 1), b"\r\n".ljust(6)), "does not hold", 0),
    ("a status that is none", lambda: member(head(20, WARC_Payload_Digest=digest_of(b"   ")), "HTTP/1.1 ²00\r\n\r\n".encode().ljust(20)), "", 1),
    ("a version before itself", lambda: response(b"x", Crawlspace_Previous="demo.warc.gz 0"), "", 1),
    ("a version before in another folder", lambda: response(b"x", Crawlspace_Previous="../other/demo.warc.gz 0"), "", 1),
    ("a version before at no number", lambda: response(b"x", Crawlspace_Previous="demo.warc.gz ²"), "", 1),
    ("a version before far beyond", lambda: response(b"x", Crawlspace_Previous=f"demo.warc.gz {'9' * 15}"), "", 1),
    ("a response without an id", lambda: response(b"x", WARC_Record_ID=""), "", 1),
]  # fmt: skip


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_MIB * MIB
    finally:
        tracemalloc.stop()


@cache
def content_of(make: Callable[[], bytes]) -> bytes:
    """Return what each test of a row has in its file: some take half a second to make."""
    return make()


@pytest.fixture(params=ROWS, ids=[row[0] for row in ROWS])
def tampered(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str, int]:
    """A folder with a file, what is found in it, and how many versions are read."""
    monkeypatch.setattr(module, "MOST_BYTES", 7 * MIB)
    monkeypatch.setattr(module, "MOST_DOCUMENT", 2 * MIB)
    folder, other = tmp_path / "archive", tmp_path / "other"
    for place in (folder, other):
        place.mkdir()
    _, make, fault, versions = request.param
    (folder / "demo.warc.gz").write_bytes(content_of(make))
    (other / "demo.warc.gz").write_bytes(response(b"secret"))
    return folder, fault, versions


def test_checking(tampered: tuple[Path, str, int]) -> None:
    folder, fault, _ = tampered
    (path,) = archive_files(folder)
    with little_memory():
        found = list(faults_of(path))
    assert [fault in one for one in found] == ([True] if fault else [])


def test_reading(tampered: tuple[Path, str, int]) -> None:
    folder, _, versions = tampered
    reader = ArchiveReader(folder, {1: "demo.warc.gz"})
    try:
        place = place_of(1, 0)
        with little_memory():
            reader.is_at(place, URL)
            reader.original(place, URL)
            assert reader.document(place, URL) is None
            assert (reader.page(place, URL) is not None) is (versions > 0)
            assert len(list(islice(reader.versions(place, URL), 10))) == versions
            location = reader.location(place)
            assert location is not None
            for _ in reader.raw_fetch(location, URL):
                pass
    finally:
        reader.close()


def test_compacting_and_the_start_after_a_kill(tampered: tuple[Path, str, int]) -> None:
    folder, fault, _ = tampered
    (path,) = archive_files(folder)
    size, store = path.stat().st_size, MemoryStore()
    store.discover([new("a.example/")], now=NOW)
    state = store.get(URL)
    assert state is not None
    state.state = State.DONE
    store.record([Change(state, archived=place_of(store.add_archive_file(path.name), 0))], now=NOW)
    with little_memory():
        compact(store, folder, collection="demo", clock=FakeClock(NOW), max_bytes=1)
    assert path.exists() or fault != DAMAGED
    for left in archive_files(folder):
        left.rename(f"{left}.open")
    with little_memory():
        close_abandoned(folder)
    assert sum(left.stat().st_size for left in archive_files(folder)) <= size + 1_000
