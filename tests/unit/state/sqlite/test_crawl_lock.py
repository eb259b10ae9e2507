"""Who may crawl a collection, one at a time, and who does, asked from outside the crawl."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from crawlspace.clock import FakeClock
from crawlspace.config.sinks import read_sinks
from crawlspace.errors import StoreLocked
from crawlspace.runtime.session.paths import StateFile
from crawlspace.state.sqlite import file as sqlite_file
from crawlspace.state.sqlite.file import CrawlLock, is_awaited, who_crawls
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.views import Crawler

Meanwhile = Callable[[Callable[[], Crawler | None]], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    SqliteStore(tmp_path / "state.db").close()
    return tmp_path / "state.db"


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Has something done each time that a crawl that waits looks whether another one has begun."""

    def set_up(done: Callable[[], Crawler | None]) -> None:
        monkeypatch.setattr(sqlite_file, "who_crawls", lambda _: done())

    return set_up


def test_a_crawl_begins_as_soon_as_a_command_makes_way(path: Path, meanwhile: Meanwhile) -> None:
    held = ExitStack()
    place = StateFile("demo", path, read_sinks(None, collection="demo", data_folder=path.parent))
    with place.changing() as opened:
        assert opened is not None

        def ends_its_batch() -> None:
            assert is_awaited(path)
            held.close()
            with pytest.raises(StoreLocked), opened.alone("embedded", ""):
                pass

        held.enter_context(opened.alone("embedded", ""))
        meanwhile(ends_its_batch)
        with closing(SqliteStore.open_for_crawl(path)):
            assert not is_awaited(path)
        with opened.alone("embedded", ""):
            pass


def test_it_does_not_wait_for_another_crawl(path: Path, meanwhile: Meanwhile) -> None:
    seen: list[Crawler | None] = [None, Crawler(4711, 0)]
    meanwhile(lambda: seen.pop(0) if len(seen) > 1 else seen[0])
    with closing(CrawlLock(path)), pytest.raises(StoreLocked, match="is being crawled by process 4711 since"):
        SqliteStore.open_for_crawl(path)
    assert len(seen) == 1


def test_it_does_not_wait_for_one_that_has_only_begun_to_make_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "WAIT_S", 1)
    path = tmp_path / "state.db"
    with closing(CrawlLock(path)):
        for _ in range(2):
            with pytest.raises(StoreLocked, match="is being crawled by another process"):
                SqliteStore.open_for_crawl(path)
            path.touch()


def test_a_command_with_much_to_send_makes_way(path: Path, meanwhile: Meanwhile) -> None:
    with (
        StateFile("demo", path, read_sinks(None, collection="demo", data_folder=path.parent)).changing() as opened,
        ExitStack() as held,
    ):
        assert opened is not None
        go_on = held.enter_context(opened.alone("embedded", ""))
        go_on()

        def has_sent_a_batch() -> None:
            with pytest.raises(StoreLocked):
                go_on()
            held.close()

        meanwhile(has_sent_a_batch)
        SqliteStore.open_for_crawl(path).close()


def test_one_crawl_waits(path: Path, meanwhile: Meanwhile) -> None:
    held = CrawlLock(path)

    def another_begins() -> None:
        meanwhile(lambda: None)  # for its message
        with pytest.raises(StoreLocked):
            CrawlLock(path, waits=True)
        held.close()

    meanwhile(another_begins)
    SqliteStore.open_for_crawl(path).close()


def test_who_does_not_wait_is_refused_at_once(path: Path) -> None:
    with closing(CrawlLock(path)), pytest.raises(StoreLocked):
        CrawlLock(path)
    CrawlLock(path).close()


NOW = 1_750_000_000


def test_a_crawl_is_seen_while_it_lasts(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    SqliteStore(file).close()
    assert who_crawls(file) is None
    with closing(SqliteStore.open_for_crawl(file, clock=FakeClock(NOW))):
        assert who_crawls(file) == Crawler(os.getpid(), NOW)
    assert who_crawls(file) is None


@pytest.mark.parametrize("process", [os.getpid(), 2**22 + 1], ids=["a number in use again", "a number of nobody"])
def test_a_crawl_that_was_killed_is_not_taken_for_one(tmp_path: Path, process: int) -> None:
    file = tmp_path / "state.db"
    SqliteStore.open_for_crawl(file).close()
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("INSERT INTO crawl VALUES (1, ?, ?)", (process, NOW))
    assert who_crawls(file) is None
