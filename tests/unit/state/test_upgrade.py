"""A file that an older version has written: who may bring it up to date, what it is then, and what it is when that is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from crawlspace.clock import FakeClock
from crawlspace.crawl.generation import generation
from crawlspace.errors import StoreError, StoreFull, StoreLocked, StoreVersionError
from crawlspace.model import Held, Queue, Source
from crawlspace.state.site_health import Health
from crawlspace.state.sqlite import file as sqlite_file
from crawlspace.state.sqlite import rekey
from crawlspace.state.sqlite.file import CrawlLock, Upgrade, is_older, upgrade
from crawlspace.state.sqlite.rows import unpack_keys
from crawlspace.state.sqlite.schema import MIGRATIONS
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.who_crawls import who_crawls
from crawlspace.urls import url_key
from tests.command_line import ROOT
from tests.contract.conftest import NOW, Known, full, key
from tests.unit.state.older import URLS_OF_2, key_of_before, of_version_2
from tests.unit.state.sqlite.test_file import assert_refused, in_a_fork, of_version_1

LAST = len(MIGRATIONS)


def nobody(upgrade: Upgrade) -> None:
    """Told of what nobody waits for."""


def unexpected(upgrade: Upgrade) -> None:
    pytest.fail(str(upgrade))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "demo").mkdir()
    return of_version_2(tmp_path / "demo" / "state.db", more=7)


def version(path: Path) -> int:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        return int(db.pragma("user_version"))


def rows(path: Path) -> list[tuple[object, ...]]:
    """All that a file of an older version says."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        return [(table, *row) for table in tables for row in db.execute(f"SELECT * FROM {table}")]


# --- a file of version 2 goes on ----------------------------------------------------------------------------------


@pytest.fixture(params=[3, 10_000], ids=["in many parts", "in one part"])
def store(path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    monkeypatch.setattr(rekey, "_IDS", request.param)
    with closing(SqliteStore(path)) as opened:
        yield opened


def test_urls_are_what_they_were(store: SqliteStore) -> None:
    known = Known(store)
    found = [known.get(row[0]) for row in URLS_OF_2]
    assert [(int(state.state), state.status, int(state.source), state.next_fetch, state.retries) for state in found] == [
        row[1:6] for row in URLS_OF_2
    ]
    assert [(state.checksum, state.indexed, state.held and int(state.held)) for state in found] == [
        (row[6], bool(row[10]), row[11]) for row in URLS_OF_2
    ]
    assert [state.held for state in store.urls(held=True)] == [Held.MANY]
    assert known.get("a.example/copy").duplicate_of == known.get("a.example/main").id
    assert store.health("a.example:80") == Health(40, 12)
    store.check()


def test_each_key_is_that_of_today(store: SqliteStore) -> None:
    assert all(state.key == url_key(state.url) for state in store.urls())
    copy = store.get(full("a.example/copy"))
    assert copy is not None
    assert copy.canonical == key("a.example/main")
    db = store._file.db
    assert [*unpack_keys(db.execute("SELECT targets FROM links WHERE id = 1").get)] == [
        key("a.example/copy"),
        key_of_before("elsewhere.example/"),
        key("a.example/"),
    ]
    assert [*db.execute("SELECT key FROM outbox ORDER BY sequence")] == [(key("a.example/away"),), (key("a.example/main"),)]
    assert generation(store) == 6, "each page is asked for whole once"
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'rekeyed'").get == 0


def test_what_is_due_waits_in_its_source(store: SqliteStore) -> None:
    assert store.due("a.example:80") == [(Queue(Source.INDEX_FOLLOW), NOW - 60), (Queue(Source.REFRESH), NOW + 60)]
    assert store.due("b.example:80") == [(Queue(Source.REFRESH), NOW - 60)]
    assert [state.url for state in store.lease("b.example:80", 9, now=NOW, until=NOW + 9)] == [full("b.example/")]


def test_what_is_pending_waits_as_it_did(store: SqliteStore) -> None:
    assert [site.pending for site in store.sites()] == [(Queue(Source.INDEX_FOLLOW),), ()]
    leased = store.lease("a.example:80", 9, now=NOW - 61, until=NOW, queue=Queue(Source.INDEX_FOLLOW))
    assert [state.url for state in leased] == [full("a.example/new"), *(full(f"a.example/more/{number}") for number in range(7))]


def test_what_follows_from_a_change_is_as_ever(store: SqliteStore) -> None:
    known = Known(store)
    assert known.orders() == [("delete", "a.example/away"), ("push", "a.example/main")]
    known.record(known.change("a.example/main", forget=True))
    assert known.orders() == [("delete", "a.example/away"), ("delete", "a.example/main"), ("push", "a.example/copy")]
    texts = [order.document.text for order in store.orders("index", 9, now=NOW) if order.document]
    assert texts == ["text of a.example/copy"]
    assert (store.counts().indexed, store.counts().by_state["pending"]) == (5, 8)
    known.discover("a.example/")
    assert store.counts().by_state["pending"] == 8, "a URL that was known is known"


# --- who may --------------------------------------------------------------------------------------------------------

OPENERS: list[tuple[str, Callable[[Path], object]]] = [
    ("a command that changes", SqliteStore),
    ("a command that looks", lambda path: upgrade(path, nobody)),
    ("a crawl", SqliteStore.open_for_crawl),
]


@pytest.mark.parametrize(("title", "opener"), OPENERS, ids=[row[0] for row in OPENERS])
def test_nobody_while_it_is_crawled(path: Path, title: str, opener: Callable[[Path], object]) -> None:
    """The older version took the same lock, and signed in the same table."""
    with closing(apsw.Connection(str(path))) as db:
        db.execute("INSERT INTO crawl VALUES (1, 4711, ?)", (NOW,))
    before = rows(path)
    with closing(CrawlLock(path)):
        assert_refused(lambda: opener(path), StoreLocked, "demo is being crawled by process 4711 since 2025-06-15", path)
    assert (version(path), rows(path)) == (2, before)


@pytest.mark.parametrize(("title", "opener"), OPENERS, ids=[row[0] for row in OPENERS])
def test_anybody_while_it_is_not(path: Path, title: str, opener: Callable[[Path], object]) -> None:
    opened = opener(path)
    assert version(path) == LAST
    if isinstance(opened, SqliteStore):
        opened.close()
    CrawlLock(path).close()
    assert who_crawls(path) is None
    assert "upgrading" not in {row[1] for row in rows(path) if row[0] == "meta"}


def test_one_at_a_time_and_the_others_are_told_who(path: Path) -> None:
    said: list[str] = []

    def hears(upgrade: Upgrade) -> None:
        for _, opener in OPENERS:
            with pytest.raises(StoreLocked) as caught:
                opener(path)
            said.append(str(caught.value))

    upgrade(path, hears)
    assert version(path) == LAST
    assert len(said) == 2 * len(OPENERS)
    assert all(f"demo is being brought up to date by process {os.getpid()} since 20" in one for one in said)


def test_a_mark_that_a_killed_one_left_is_not_believed(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute("INSERT INTO meta VALUES ('upgrading', '4712'); INSERT INTO crawl VALUES (1, 4711, 0)")
    with closing(CrawlLock(path)):
        assert_refused(lambda: SqliteStore(path), StoreLocked, "is being crawled by process 4711", path)
    SqliteStore(path).close()
    assert (version(path), who_crawls(path)) == (LAST, None)


def test_a_new_file_and_one_of_today_need_no_lock(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    with closing(CrawlLock(file)):
        SqliteStore(file).close()
        SqliteStore(file).close()
        upgrade(file, unexpected)
    assert not is_older(file)
    assert not is_older(tmp_path / "nothing.db")


def test_who_changes_a_file_notices_that_a_newer_version_has_taken_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state.db"
    with closing(SqliteStore(file)) as command:
        Known(command).discover("a.example/")
        monkeypatch.setattr(sqlite_file, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE later (id INTEGER)"))
        upgrade(file, nobody)
        assert version(file) == LAST + 1
        assert_refused(lambda: Known(command).discover("b.example/"), StoreVersionError, "by a newer version", file)
        assert command.counts().by_state == {"pending": 1}


# --- what is told, and what it is when it is stopped ----------------------------------------------------------------


def test_it_says_how_far_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rekey, "_IDS", 6)
    heard: list[Upgrade] = []
    upgrade(path, heard.append)
    assert [one.done for one in heard] == [0, 6, 12, 15]
    assert str(heard[0]) == f"{path} is being brought up to version {LAST}: 15 URLs, this is done once"


@pytest.mark.parametrize("make", [of_version_2, lambda path: of_version_1(path.parent)], ids=["version 2", "version 1"])
@pytest.mark.parametrize("begun", [False, True], ids=["at its beginning", "in its middle"])
def test_ctrl_c_leaves_it_as_it_was(tmp_path: Path, make: Callable[[Path], Path], begun: bool) -> None:
    path = make(tmp_path / "state.db")
    was, before = version(path), rows(path)

    def stop(upgrade: Upgrade) -> None:
        if bool(upgrade.done) is begun:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        upgrade(path, stop)
    assert (version(path), rows(path)) == (was, before)
    SqliteStore.open_for_crawl(path, clock=FakeClock()).close()
    assert version(path) == LAST


def test_ctrl_c_is_heard_within_a_statement(path: Path) -> None:
    before = rows(path)
    with child(path, "endless") as process:
        try:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            process.kill()
    assert (version(path), rows(path)) == (2, before)


def test_a_kill_leaves_it_as_it_was(path: Path) -> None:
    """But for what the killed one signed before it began."""

    def without_signs() -> list[tuple[object, ...]]:
        return [row for row in rows(path) if row[0] != "crawl" and row[1] != "upgrading"]

    before = without_signs()
    with child(path, "killed") as process:
        assert process.wait(30) == -signal.SIGKILL
    assert (version(path), without_signs()) == (2, before)
    with closing(SqliteStore(path)) as store:
        store.check()
        assert store.counts().by_state["pending"] == 8


def child(path: Path, mode: str) -> subprocess.Popen[bytes]:
    """A process that brings a file up to date, and has said that it is about it."""
    process = subprocess.Popen([sys.executable, "-m", __name__, str(path), mode], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    return process


def test_a_full_disk_leaves_it_as_it_was(path: Path) -> None:
    before = rows(path)

    def fill(upgrade: Upgrade) -> None:
        if upgrade.done:
            raise apsw.FullError("database or disk is full")

    assert_refused(lambda: upgrade(path, fill), StoreFull, "could not be brought up to date", path)
    assert (version(path), rows(path)) == (2, before)


# journal mode, rights of the folder, of the file -> what it says. In WAL mode a sealed folder keeps the file from being read, too
SEALED = [
    (
        "wal",
        0o777,
        0o444,
        "an older version of crawlspace has written {}, and it could not be brought up to date: {} cannot be written",
    ),
    (
        "delete",
        0o555,
        0o444,
        "an older version of crawlspace has written {}, and it could not be brought up to date: {} cannot be ",
    ),
    ("wal", 0o555, 0o444, "{} cannot be "),
]


@pytest.mark.parametrize(("journal", "folder", "file", "says"), SEALED)
def test_one_that_may_not_be_written_is_said_to_be(tmp_path: Path, journal: str, folder: int, file: int, says: str) -> None:
    path = tmp_path / "demo" / "state.db"
    path.parent.mkdir()
    of_version_2(path)
    with closing(apsw.Connection(str(path))) as db:
        db.pragma("journal_mode", journal)
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.getuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o055)
    path.parent.chmod(folder)
    path.chmod(file)
    said = in_a_fork(lambda: upgrade(path, nobody))
    assert said.startswith(says.format(path, path)), said
    assert "writable for this user" in said or "allowed to write there" in said
    path.parent.chmod(0o755)
    assert version(path) == 2


def test_one_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    file.write_bytes(b"no database at all, " * 100)
    with pytest.raises(StoreError):
        upgrade(file, nobody)
    assert not (tmp_path / "state.db.lock").exists()


def say_so() -> int:
    print("begun", flush=True)
    return 1


def killed(upgrade: Upgrade) -> None:
    if upgrade.done:
        os.kill(os.getpid(), signal.SIGKILL)
    say_so()


if __name__ == "__main__":
    if sys.argv[2] == "endless":
        endless = "WITH RECURSIVE n (n) AS (SELECT say_so() UNION ALL SELECT n + 1 FROM n) SELECT max(n) FROM n"
        vars(sqlite_file)["MIGRATIONS"] = (*MIGRATIONS[:2], endless)
        apsw.connection_hooks.append(lambda db: db.create_scalar_function("say_so", lambda *_: say_so(), 0))
    try:
        upgrade(Path(sys.argv[1]), killed if sys.argv[2] == "killed" else nobody)
    except KeyboardInterrupt:
        sys.exit(130)
