"""Who may crawl: one at a time, and before commands that send to the index."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from crawlspace.errors import StoreLocked
from crawlspace.runtime.stores.places import StateFile
from crawlspace.state.sqlite import crawl_lock
from crawlspace.state.sqlite.crawl_lock import CrawlLock, is_awaited
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.who_crawls import Crawler

Meanwhile = Callable[[Callable[[], Crawler | None]], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    SqliteStore(tmp_path / "state.db").close()
    return tmp_path / "state.db"


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Has something done each time that a crawl that waits looks whether another one has begun."""

    def set_up(done: Callable[[], Crawler | None]) -> None:
        monkeypatch.setattr(crawl_lock, "who_crawls", lambda _: done())

    return set_up


def test_a_crawl_begins_as_soon_as_a_command_makes_way(path: Path, meanwhile: Meanwhile) -> None:
    held = ExitStack()
    place = StateFile("demo", path)
    with place.changing() as opened:
        assert opened is not None

        def ends_its_batch() -> None:
            assert is_awaited(path)
            held.close()
            with pytest.raises(StoreLocked), opened.alone(path):
                pass

        held.enter_context(opened.alone(path))
        meanwhile(ends_its_batch)
        with closing(SqliteStore.open_for_crawl(path)):
            assert not is_awaited(path)
        with opened.alone(path):
            pass


def test_it_does_not_wait_for_another_crawl(path: Path, meanwhile: Meanwhile) -> None:
    crawled: list[Crawler | None] = [None, Crawler(4711, 0)]
    meanwhile(lambda: crawled.pop(0))
    with closing(CrawlLock(path)), pytest.raises(StoreLocked, match="is being crawled by"):
        SqliteStore.open_for_crawl(path)
    assert crawled == []


def test_one_crawl_waits(path: Path, meanwhile: Meanwhile) -> None:
    held = CrawlLock(path)

    def another_begins() -> None:
        with pytest.raises(StoreLocked):
            CrawlLock(path, waits=True)
        held.close()

    meanwhile(another_begins)
    SqliteStore.open_for_crawl(path).close()


def test_who_does_not_wait_is_refused_at_once(path: Path) -> None:
    with closing(CrawlLock(path)), pytest.raises(StoreLocked):
        CrawlLock(path)
    CrawlLock(path).close()
