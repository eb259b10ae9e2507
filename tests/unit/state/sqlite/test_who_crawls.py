"""Who crawls a collection, asked from outside the crawl."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crawlspace.clock import FakeClock
from crawlspace.state.sqlite.file import who_crawls
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.views import Crawler

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
