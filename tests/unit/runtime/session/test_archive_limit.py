"""The limit of an archive is kept while a crawl writes to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from crawlspace.archive.files import rotated_bytes, size_of
from crawlspace.clock import FakeClock
from crawlspace.config.collection import Collection
from crawlspace.crawl.commits import Archiving, Commits
from crawlspace.distributed.connection import connected
from crawlspace.document import Document
from crawlspace.model import State
from crawlspace.outcome import Exchange, Outcome, OutcomeKind
from crawlspace.runtime.session.archive_limit import RunningLimit, end_archive
from crawlspace.runtime.session.paths import store_location
from crawlspace.state.changes import Change
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import parse
from tests.contract.conftest import NOW, new
from tests.servers import emptied, redis_server
from tests.unit.lint.linted import DEFAULTS, RULES, START, reviewed

MOST = 1_000_000
BODY, AT_ONCE, TRANSACTIONS = 20_000, 10, 40
"""Of random bytes, which don't compress: 8 MB in all."""


@pytest.fixture(params=["file", "server"])
def settings(request: pytest.FixtureRequest) -> dict[str, object]:
    if request.param == "file":
        return DEFAULTS
    emptied().close()
    return {**DEFAULTS, "CRAWLSPACE_STORE_URL": f"redis://127.0.0.1:{redis_server().port}/0"}


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    own = f"CRAWLSPACE_DATA_DIR = {str(tmp_path)!r}\n"
    found = reviewed(tmp_path, "demo", {"start_urls.txt": START, "rules.txt": RULES, "settings.py": own})[1]
    assert found is not None
    found.data_folder.mkdir(parents=True, exist_ok=True)
    return found


@pytest.fixture
def store(settings: dict[str, object], collection: Collection) -> Iterator[SqliteStore | RedisStore]:
    is_shared = bool(settings["CRAWLSPACE_STORE_URL"])
    opened = RedisStore(connected(settings), "demo") if is_shared else SqliteStore.open_for_crawl(collection.store_file, sinks=())
    with closing(opened):
        opened.set_meta("crawled", "1")
        yield opened


@pytest.mark.full
def test_an_archive_is_small_while_it_is_written(
    store: SqliteStore | RedisStore, collection: Collection, settings: dict[str, object]
) -> None:
    """Above a quarter more than the limit the crawl waits: beyond it there is at most what was not recorded when the thread began."""
    folder, clock = collection.archive.folder, FakeClock(NOW)
    limit = RunningLimit(collection, store_location("demo", collection.store_file, settings, collection.sinks), MOST)
    archiving = Archiving(folder, store, collection="demo", clock=clock, rotated_bytes=rotated_bytes(MOST), limit=limit)
    commits, sizes = Commits(store, clock, archiving), list[int]()
    for first in range(0, TRANSACTIONS * AT_ONCE, AT_ONCE):
        urls = [new(f"www.example.com/{number}") for number in range(first, first + AT_ONCE)]
        store.discover(urls, now=NOW)
        for url in urls:
            fetch(store, commits, url.url)
        commits.begin(dict)
        commits.write()
        commits.end()
        sizes.append(size_of(folder))
    end_archive(archiving, collection, store, is_last=False)
    assert max(sizes) > MOST
    assert max(sizes) < 3 * MOST
    places = [state.archived for state in store.urls()]
    assert len(places) == TRANSACTIONS * AT_ONCE
    assert None not in places


def fetch(store: SqliteStore | RedisStore, commits: Commits, url: str) -> None:
    state = store.get(url)
    assert state is not None
    document = Document(url, title=f"Page {parse(url).path}")
    exchange = Exchange(url, "GET", [], 200, [(b"Content-Type", [b"text/html"])], os.urandom(BODY), NOW)
    outcome = Outcome(state.id, url, OutcomeKind.DOCUMENT, 200, document=document, exchange=exchange)
    state.state, state.status = State.DONE, 200
    commits.add(Change(state), outcome, state)
