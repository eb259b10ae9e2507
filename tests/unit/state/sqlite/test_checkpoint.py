"""The log of a state file is taken into the file beside the crawl: it stays short, nothing waits for it, and a kill costs nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from crawlspace.model import NewUrl, Source
from crawlspace.state.sqlite import checkpoint
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import url_key
from tests.command_line import ROOT

NOW = 1_750_000_000
LOG, REST, MOST = 60, 10, 300
A_FEW = 20
FRAME_BYTES = 24 + 4096


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, pages in {"LOG_PAGES": LOG, "REST_PAGES": REST, "MOST_PAGES": MOST}.items():
        monkeypatch.setattr(checkpoint, name, pages)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open_for_crawl(tmp_path / "state.db")
    yield store
    store.close()


def urls(first: int, count: int = A_FEW) -> list[NewUrl]:
    found = [f"http://a.test/{number}/{number % 7}" for number in range(first, first + count)]
    return [NewUrl(url_key(url), url, "a.test:80", Source.INDEX_FOLLOW, 0, 0, 0, 1) for url in found]


def copiers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("checkpoint")]


def write(store: SqliteStore, first: int, times: int, *, wait: bool = True) -> int:
    """Add a few URLs many times, and return the pages of the longest log; `wait` for each copy, so that none is behind."""
    longest = 0
    for number in range(first, first + times):
        store.discover(urls(number * A_FEW), now=NOW)
        for copier in copiers() if wait else ():
            copier.join()
        longest = max(longest, log_pages(store.path))
    return longest


def log_pages(path: Path) -> int:
    """Pages that the log holds since it started over: frames with the salt of its header.

    See https://www.sqlite.org/fileformat2.html, "WAL File Format".
    """
    log = path.with_name(path.name + "-wal").read_bytes()
    salt, count = log[16:24], 0
    while log and log[32 + count * FRAME_BYTES + 8 :][:8] == salt:
        count += 1
    return count


def assert_whole(path: Path, count: int) -> None:
    store = SqliteStore(path)
    store.check()
    assert sum(store.counts().by_state.values()) >= count
    assert all(store.get(new.url) for new in urls(0, count))
    store.close()


def test_the_log_is_copied_and_begins_again(store: SqliteStore) -> None:
    assert LOG < write(store, 0, 100) < 2 * LOG
    assert_whole(store.path, 100 * A_FEW)


def test_after_a_writer_that_did_not_wait_for_the_copying_the_log_is_short_again(store: SqliteStore) -> None:
    write(store, 0, 300, wait=False)
    write(store, 300, 20)
    assert log_pages(store.path) < 2 * LOG
    assert_whole(store.path, 320 * A_FEW)


class NeverCatchesUp:
    """Copying that is done each time it is looked at, and has left more than the writer takes over."""

    copied, hindered = 0, False

    def __init__(self, path: Path, flushed: int) -> None: ...

    def is_busy(self) -> bool:
        return False

    def interrupt(self) -> None: ...

    def end(self) -> None: ...


@pytest.mark.full
def test_where_the_copying_never_catches_up_the_writer_copies_too(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "Copier", NeverCatchesUp)
    assert MOST <= write(store, 0, 300) < MOST + LOG
    assert_whole(store.path, 300 * A_FEW)


def test_copying_is_no_change_that_the_crawl_would_look_for(store: SqliteStore) -> None:
    version = store.version()
    write(store, 0, 30)
    assert store.version() == version


def test_while_somebody_reads_the_log_grows_and_afterwards_it_is_short_again(store: SqliteStore) -> None:
    write(store, 0, 1)
    reader = apsw.Connection(str(store.path))
    reader.execute("BEGIN")
    before = reader.execute("SELECT count(*) FROM url").get
    assert write(store, 1, 60) > 3 * LOG
    assert reader.execute("SELECT count(*) FROM url").get == before
    reader.execute("COMMIT")
    reader.close()
    write(store, 61, 20)
    assert log_pages(store.path) < 2 * LOG


def cannot_flush(_: int) -> None:
    raise OSError(28, "No space left on device")


def cannot_open(*_: object) -> int:
    raise OSError(24, "Too many open files")


@pytest.mark.parametrize(("name", "fails"), [("fdatasync", cannot_flush), ("open", cannot_open)])
def test_what_cannot_be_copied_is_copied_later(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, name: str, fails: object
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, name, fails)
        assert write(store, 0, 30) > LOG
    write(store, 30, 20)
    assert log_pages(store.path) < 2 * LOG
    assert_whole(store.path, 50 * A_FEW)


def test_closing_ends_the_copying_and_leaves_one_file(tmp_path: Path) -> None:
    store = SqliteStore.open_for_crawl(tmp_path / "state.db")
    while not copiers():
        write(store, store.counts().by_state.get("pending", 0) // A_FEW, 1, wait=False)
    store.close()
    assert not copiers()
    assert not (tmp_path / "state.db-wal").exists()


WRITES = """
import sys
from pathlib import Path
from crawlspace.state.sqlite import checkpoint as sqlite_checkpoint
from crawlspace.state.sqlite.store import SqliteStore
from tests.unit.state.sqlite.test_checkpoint import A_FEW, LOG, MOST, NOW, REST, urls
sqlite_checkpoint.LOG_PAGES, sqlite_checkpoint.REST_PAGES, sqlite_checkpoint.MOST_PAGES = LOG, REST, MOST
store = SqliteStore.open_for_crawl(Path(sys.argv[1]))
first = sum(store.counts().by_state.values())
while True:
    store.discover(urls(first), now=NOW)
    first += A_FEW
    print(first, flush=True)
"""


@pytest.mark.full
def test_a_kill_while_it_is_copied_costs_nothing(tmp_path: Path) -> None:
    path, told = tmp_path / "state.db", 0
    for more in (40, 47, 54, 61, 68):
        process = subprocess.Popen([sys.executable, "-c", WRITES, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        until = told + more * A_FEW
        while told < until:
            told = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        told = max([told, *map(int, process.stdout.read().split()[:-1])])
        process.wait()
        process.stdout.close()
        assert_whole(path, told)
