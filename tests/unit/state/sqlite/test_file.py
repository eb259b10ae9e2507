"""The state file: what is wrong with it is reported in a sentence, and files of earlier versions are brought up to date."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest
from msgspec import structs

from crawlspace.clock import FakeClock
from crawlspace.errors import StoreDamaged, StoreError, StoreFull, StoreLocked, StoreVersionError
from crawlspace.model import Requester, Source, State
from crawlspace.state.dump import UrlRecord
from crawlspace.state.near_duplicates import NEAR_META
from crawlspace.state.sqlite.dump import SqliteSide
from crawlspace.state.sqlite.file import IN_MEMORY
from crawlspace.state.sqlite.schema import APPLICATION_ID, DEVELOPMENT_IDS, VERSION
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.unreachable import UnreachableSite
from tests.command_line import ROOT
from tests.contract.conftest import NOW, Known, key, new
from tests.quick import some

OTHER = VERSION + 1


def statements(*lines: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        db = apsw.Connection(str(path))
        for line in lines:
            db.execute(line)
        db.close()

    return make


def text(content: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(content)

    return make


# what stands at the path -> the error, a part of its sentence
UNUSABLE = [
    ("garbage", text(b"this is not a database, " * 100), StoreDamaged, "put a backup in its place"),
    ("half a header", text(b"SQLite format 3\0"), StoreDamaged, "put a backup in its place"),
    ("another program's", statements("CREATE TABLE bookmarks (url)"), StoreDamaged, "another program"),
    ("another program's id", statements("PRAGMA application_id = 42"), StoreDamaged, "another program"),
    ("in WAL mode", statements("PRAGMA journal_mode = wal", "CREATE TABLE bookmarks (url)"), StoreDamaged, "another program"),
    (
        "another version's",
        statements(f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {OTHER}", "CREATE TABLE url (id)"),
        StoreVersionError,
        f"state version {OTHER}, this one reads {VERSION}): use that version, or move the file away and crawl again",
    ),
    (
        "a development version's",
        statements(f"PRAGMA application_id = {min(DEVELOPMENT_IDS)}", "PRAGMA user_version = 1", "CREATE TABLE url (id)"),
        StoreVersionError,
        f"state version 1 of development, this one reads {VERSION}): use that version, or move the file away and crawl again; the index goes",
    ),
]


@pytest.mark.parametrize("opener", [SqliteStore, SqliteStore.open_for_crawl], ids=["command", "crawl"])
@pytest.mark.parametrize(("title", "make", "error", "says"), UNUSABLE, ids=[row[0] for row in UNUSABLE])
def test_a_file_that_cannot_be_used_is_left_as_it_was(
    tmp_path: Path,
    title: str,
    make: Callable[[Path], None],
    error: type[StoreError],
    says: str,
    opener: Callable[[Path], SqliteStore],
) -> None:
    path = tmp_path / "state.db"
    make(path)
    before = path.read_bytes()
    assert_refused(lambda: opener(path), error, says, path)
    assert path.read_bytes() == before


def assert_refused(step: Callable[[], object], error: type[StoreError], says: str, path: Path) -> None:
    """The error is one sentence that names the file."""
    with pytest.raises(StoreError) as caught:
        step()
    message = str(caught.value)
    assert (type(caught.value), says in message, str(path) in message, "\n" in message) == (error, True, True, False), message


def test_no_file_and_no_folder(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere" / "state.db"
    assert_refused(lambda: SqliteStore(missing), StoreError, "folder must exist", missing)
    path = tmp_path / "state.db"
    assert_refused(lambda: SqliteStore(path, read_only=True), StoreError, "crawl the collection first", path)
    assert not path.exists()


def test_a_store_in_memory_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / str(IN_MEMORY)).write_bytes(b"not a database")
    store = SqliteStore(IN_MEMORY)
    store.discover([new("a.example/")], now=NOW)
    assert store.counts().by_state == {"pending": 1}
    assert SqliteStore(IN_MEMORY).counts().by_state == {}
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == [str(IN_MEMORY)]


def test_overwritten_pages(tmp_path: Path) -> None:
    path = filled(tmp_path, urls=2000)
    with path.open("r+b") as file:
        file.seek(60 * 4096)
        file.write(os.urandom(40 * 4096))
    store = SqliteStore(path)
    assert_refused(store.check, StoreDamaged, "put a backup in its place", path)
    assert_refused(lambda: list(store.urls()), StoreDamaged, "put a backup in its place", path)
    store.close()


def filled(folder: Path, *, urls: int = 3) -> Path:
    path = folder / "state.db"
    store = SqliteStore(path)
    Known(store).discover(*(f"a.example/{number}" for number in range(urls)))
    store.close()
    return path


def test_a_full_disk_loses_nothing_and_the_same_call_succeeds_later(tmp_path: Path) -> None:
    """SQLite itself reports the disk as full when a file reaches `max_page_count`."""
    store = SqliteStore(filled(tmp_path))
    known = Known(store)
    known.record(known.page("a.example/0", "zero"))
    before = list(store.urls()), store.counts(), store.orders("index", 10, now=NOW)
    large = known.page("a.example/1", "one", text="x" * 1_000_000, discovered=[new("new.example/")])
    store._file.db.pragma("max_page_count", store._file.db.pragma("page_count") + 2)
    assert_refused(lambda: known.record(large), StoreFull, "nothing is lost", store.path)
    assert_refused(lambda: known.discover(*(f"b.example/{n}" for n in range(3000))), StoreFull, "nothing is lost", store.path)
    assert (list(store.urls()), store.counts(), store.orders("index", 10, now=NOW)) == before
    store.check()
    store._file.db.pragma("max_page_count", 1_000_000)
    assert known.record(large).discovered == 1
    assert known.leased("new.example") == ["new.example/"]
    store.close()


def test_of_one_transaction_all_is_written_or_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")

    def fail_after_writing() -> None:
        with store.one_transaction():
            store.discover([new("a.example/a")], now=NOW)
            store.set_meta("name", "value")
            raise KeyError

    with pytest.raises(KeyError):
        fail_after_writing()
    assert (list(store.urls()), store.get_meta("name"), store.counts().hosts) == ([], None, 0)
    store.discover([new("a.example/a")], now=NOW)
    assert [state.site for state in store.urls()] == ["a.example:80"]
    store.close()


def test_a_read_only_store_reads(tmp_path: Path) -> None:
    path = filled(tmp_path)
    store = SqliteStore(path, read_only=True)
    assert store.counts().by_state == {"pending": 3}
    assert_refused(lambda: Known(store).discover("b.example/"), StoreError, "cannot be written", path)
    store.close()


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    """In a process without the rights of root, which may write everywhere."""
    folder = tmp_path / "sealed"
    folder.mkdir()
    path = filled(folder)
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.getuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o055)
    folder.chmod(0o555)
    path.chmod(0o444)
    before = path.read_bytes()
    said = in_a_fork(lambda: SqliteStore.open_for_crawl(path))
    assert "cannot be opened" in said or "cannot be written" in said, said
    assert "Traceback" not in said
    assert path.read_bytes() == before


def in_a_fork(step: Callable[[], object]) -> str:
    """Do something as nobody; return the StoreError it raised, or what else came of it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # a fork of a process with threads may wait for ever
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            step()
            said = "no error"
        except StoreError as error:
            said = str(error)
        except BaseException as error:  # noqa: BLE001 - the child must end here, whatever happens
            said = f"Traceback {error!r}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def test_a_command_that_writes_is_noticed(tmp_path: Path) -> None:
    path = filled(tmp_path)
    crawl, command = SqliteStore(path), SqliteStore(path)
    before = crawl.version()
    Known(crawl).discover("b.example/")
    assert crawl.version() == before
    Known(command).discover("c.example/")
    after = crawl.version()
    assert (after != before, crawl.version()) == (True, after)
    crawl.close()
    command.close()


def test_commands_work_while_a_crawl_runs(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    crawl, command, reader = SqliteStore.open_for_crawl(path), SqliteStore(path), SqliteStore(path, read_only=True)
    Known(crawl).discover("a.example/")
    assert reader.counts().by_state == {"pending": 1}
    Known(command).discover("b.example/", "a.example/2")
    Known(crawl).discover("a.example/3")
    assert [(state.id, state.url) for state in reader.urls()] == [
        (1, "http://a.example/"),
        (2, "http://b.example/"),
        (3, "http://a.example/2"),
        (4, "http://a.example/3"),
    ]
    for store in (crawl, command, reader):
        store.close()


def test_pending_moves_while_another_writes(tmp_path: Path) -> None:
    path = filled(tmp_path)
    store, other = SqliteStore(path), SqliteStore(path)
    store._file.db.set_busy_timeout(1)
    with other._file.writing():
        assert_refused(lambda: Known(store).discover("b.example/"), StoreLocked, "another process", path)
    assert Known(store).discover("b.example/").discovered == 1
    store.close()
    other.close()


def test_a_second_crawl_gets_an_error_with_who_crawls(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with child(path, "hold") as process:
        try:
            says = f"is being crawled by process {process.pid} since 20"
            assert_refused(lambda: SqliteStore.open_for_crawl(path), StoreLocked, says, path)
            leased = SqliteStore(path, read_only=True)
            assert leased.counts().by_state == {"leased": 1}
            leased.close()
        finally:
            process.kill()
    store = SqliteStore.open_for_crawl(path, clock=FakeClock())  # the lock died with its owner, and so did the leases
    assert store.counts().by_state == {"pending": 1}
    assert_refused(lambda: SqliteStore.open_for_crawl(path), StoreLocked, f"process {os.getpid()}", path)
    store.close()
    SqliteStore.open_for_crawl(path).close()


def child(path: Path, mode: str) -> subprocess.Popen[bytes]:
    """A process that has opened the store and said so."""
    process = subprocess.Popen([sys.executable, "-m", __name__, str(path), mode], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.parametrize("batches", some([7, 1, 40], 1))
def test_a_kill_in_the_middle_leaves_all_of_a_change_or_nothing(tmp_path: Path, batches: int) -> None:
    path = tmp_path / "state.db"
    with child(path, "record") as process:
        assert process.stdout is not None
        for _ in range(batches):
            assert process.stdout.readline() == b"recorded\n"
        process.send_signal(signal.SIGKILL)
    store = SqliteStore.open_for_crawl(path)
    store.check()
    pages = {state.url: state for state in store.urls()}
    done = [state for state in pages.values() if state.state is State.DONE]
    assert len(done) >= batches * 10
    assert {order.url for order in store.orders("index", 1_000_000, now=NOW)} == {state.url for state in done}
    assert all(state.indexed and f"{state.url}/child" in pages for state in done)
    assert sum(store.counts().by_state.values()) == len(pages)
    for state in done:
        children = store._file.db.execute("SELECT targets FROM links WHERE id = ?", (state.id,)).get
        assert children == key(f"{state.url}/child").to_bytes(8, "little", signed=True)
    store.close()


def hold(store: SqliteStore) -> None:
    Known(store).discover("a.example/")
    Known(store).leased("a.example")
    print("ready", flush=True)
    signal.pause()


def record(store: SqliteStore) -> None:
    known = Known(store)
    print("ready", flush=True)
    for batch in range(100_000):
        urls = [f"a.example/{batch}/{number}" for number in range(10)]
        known.discover(*urls)
        known.record(
            *(known.page(url, f"{url:0>16}"[-16:], links=[key(f"{url}/child")], discovered=[new(f"{url}/child")]) for url in urls)
        )
        print("recorded", flush=True)


if __name__ == "__main__":
    {"hold": hold, "record": record}[sys.argv[2]](SqliteStore.open_for_crawl(Path(sys.argv[1])))


# --- files of earlier versions --------------------------------------------------------------------------------------


OF_VERSION_6 = (
    "ALTER TABLE url DROP COLUMN history",
    "DROP TABLE near_band",
    "ALTER TABLE near_text RENAME TO new",
    "CREATE TABLE near_text (checksum BLOB PRIMARY KEY, signature BLOB NOT NULL) STRICT, WITHOUT ROWID",
    (
        "CREATE TABLE near_band (band INTEGER NOT NULL, simhash INTEGER NOT NULL, checksum BLOB NOT NULL,"
        " PRIMARY KEY (band, simhash, checksum)) STRICT, WITHOUT ROWID"
    ),
    "INSERT INTO near_text SELECT checksum, signature FROM new",
    "INSERT INTO near_band SELECT 1, 2, checksum FROM new",
    "DROP TABLE new",
    "PRAGMA user_version = 6",
)
OF_VERSION_5 = (
    *OF_VERSION_6,
    "DROP INDEX url_other_text",
    "DROP TABLE near_band",
    "DROP TABLE near_text",
    "ALTER TABLE url DROP COLUMN simhash",
    "CREATE INDEX url_alternate ON url (checksum) WHERE alternate = 2",
    "PRAGMA user_version = 5",
)
_OF_VERSION_4 = (
    *OF_VERSION_5,
    "DROP INDEX url_alternate",
    "ALTER TABLE url RENAME COLUMN alternate TO aside",
    "ALTER TABLE url RENAME COLUMN requested_by TO asked",
    "ALTER TABLE url RENAME COLUMN queue_number TO place",
    "ALTER TABLE representative RENAME TO incumbent",
    "ALTER TABLE deferred RENAME TO set_aside",
    "CREATE INDEX url_aside ON url (checksum) WHERE aside = 2",
    "PRAGMA user_version = 4",
)
OF_VERSION_3 = (
    *_OF_VERSION_4,
    "ALTER TABLE site DROP COLUMN shown",
    "ALTER TABLE url DROP COLUMN detail",
    "ALTER TABLE unreachable DROP COLUMN detail",
    "PRAGMA user_version = 3",
)
_OF_VERSION_2 = (
    *OF_VERSION_3,
    "DROP INDEX url_folded",
    "DROP INDEX url_canonical",
    "CREATE INDEX url_canonical ON url (canonical, grp) WHERE canonical IS NOT NULL AND grp IS NOT NULL",
    "PRAGMA user_version = 2",
)
OF_VERSION_1 = (
    *_OF_VERSION_2,
    "DROP INDEX url_due",
    "ALTER TABLE url DROP COLUMN waits_in",
    "ALTER TABLE url ADD COLUMN waits_in INTEGER AS (CASE WHEN asked THEN 0 WHEN retries > 0 THEN source ELSE 5 END) VIRTUAL",
    (
        "CREATE INDEX url_due ON url (site, waits_in, shift, next_fetch, id)"
        " WHERE next_fetch IS NOT NULL AND state <> 0 AND lease_until IS NULL"
    ),
    "PRAGMA user_version = 1",
)


def test_a_file_of_version_6_gets_other_bands_of_near_duplicates(tmp_path: Path) -> None:
    path = filled(tmp_path, urls=0)
    store = SqliteStore(path)
    store.set_meta(NEAR_META, "3")
    known = Known(store)
    known.discover("a.example/page")
    signature = bytes(range(140))
    known.record(known.page("a.example/page", "one", simhash=signature))
    store.close()
    statements(*OF_VERSION_6)(path)
    near = b"\x07" + signature[1:]
    for _ in range(2):
        store = SqliteStore(path)
        assert store.leading_text(near) == b"one"
        store.check()
        store.close()


def test_a_file_of_version_6_is_brought_up_to_date_when_it_is_written_to(tmp_path: Path) -> None:
    path = filled(tmp_path, urls=0)
    with closing(SqliteStore(path)) as store:
        Known(store).crawled(("a.example/page", "one"))
    statements(*OF_VERSION_6)(path)
    content = path.read_bytes()
    with closing(SqliteStore(path, read_only=True)) as reader:
        assert Known(reader).get("a.example/page").history is None
    assert path.read_bytes() == content, "who only reads changes nothing"
    for _ in range(2):
        with closing(SqliteStore(path)) as store:
            known = Known(store)
            known.record(known.change("a.example/page", history=b"12"))
            assert known.get("a.example/page").history == b"12"
            store.check()


def test_a_file_of_version_5_is_brought_up_to_date_when_it_is_written_to(tmp_path: Path) -> None:
    path = filled(tmp_path, urls=0)
    store = SqliteStore(path)
    known = Known(store)
    known.crawled(("a.example/page", "one"))
    store.close()
    statements(*OF_VERSION_5)(path)
    content = path.read_bytes()
    reader = SqliteStore(path, read_only=True)
    assert Known(reader).get("a.example/page").simhash is None
    reader.close()
    assert path.read_bytes() == content, "who only reads changes nothing"
    signature = bytes(140)
    for _ in range(2):
        store = SqliteStore(path)
        store.set_meta(NEAR_META, "3")
        known = Known(store)
        known.record(known.page("a.example/page", "one", simhash=signature))
        assert (known.get("a.example/page").simhash, store.leading_text(signature)) == (signature, b"one")
        store.check()
        store.close()


def test_a_file_of_version_3_is_brought_up_to_date_when_it_is_written_to(tmp_path: Path) -> None:
    path = filled(tmp_path, urls=0)
    store = SqliteStore(path)
    known = Known(store)
    known.discover("a.example/page")
    known.record(known.change("a.example/page", status=612, detail="connection refused"))
    row = UnreachableSite("a.example:80", 612, NOW, 1, NOW, "connection refused")
    store.set_unreachable(row.site, row)
    before = known.get("a.example/page")
    store.close()
    statements(*OF_VERSION_3)(path)
    content = path.read_bytes()
    reader = SqliteStore(path, read_only=True)
    without = structs.replace(before, detail=None)
    assert [Known(reader).get("a.example/page"), *reader.urls(), *reader.get_by_ids([before.id])] == [without] * 3
    assert reader.unreachable() == [replace(row, detail="")]
    reader.close()
    assert path.read_bytes() == content, "who only reads changes nothing"
    with closing(SqliteSide(path)) as side:
        assert [one.detail for one in side.records() if isinstance(one, UrlRecord)] == [None]
    for _ in range(2):
        store = SqliteStore(path)
        known = Known(store)
        known.record(known.change("a.example/page", status=612, detail="connection refused"))
        assert known.get("a.example/page").detail == "connection refused"
        store.set_unreachable(row.site, row)
        assert store.unreachable() == [row]
        store.check()
        store.close()


def test_a_file_of_version_2_is_brought_up_to_date_when_it_is_written_to(tmp_path: Path) -> None:
    path = filled(tmp_path, urls=0)
    store = SqliteStore(path)
    known = Known(store)
    known.discover("a.example/page", "a.example/copy")
    known.record(known.page("a.example/copy", "one", canonical=key("a.example/page")), known.page("a.example/page", "two"))
    store.close()
    statements(*_OF_VERSION_2)(path)
    before = path.read_bytes()
    reader = SqliteStore(path, read_only=True)
    assert Known(reader).get("a.example/copy").duplicate_of == Known(reader).get("a.example/page").id
    reader.close()
    assert path.read_bytes() == before, "who only reads changes nothing"
    for checksum in ("three", "four"):
        store = SqliteStore(path)
        known = Known(store)
        known.record(known.page("a.example/page", checksum))
        assert known.get("a.example/copy").duplicate_of == known.get("a.example/page").id, "it is found by the page that it names"
        store.check()
        store.close()
    db = apsw.Connection(str(path))
    assert db.pragma("user_version") == VERSION
    db.close()


def test_a_file_that_an_earlier_version_crawls_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with child(path, "hold") as process:
        try:
            statements(*_OF_VERSION_2)(path)
            assert_refused(lambda: SqliteStore(path), StoreLocked, "let that crawl end first, or stop it", path)
        finally:
            process.kill()
    SqliteStore(path).close()


def test_a_file_of_version_1_is_brought_up_to_date_when_it_is_written_to(tmp_path: Path) -> None:
    path = filled(tmp_path, urls=3)
    store = SqliteStore(path)
    ids = [state.id for state in store.urls()]
    known = Known(store)
    known.record(
        *(
            known.change(state.url, requested_by=asked, fetched_at=NOW, next_fetch=NOW)
            for state, asked in zip(store.urls(), Requester, strict=True)
        )
    )
    states = list(store.urls())
    store.close()
    statements(*OF_VERSION_1)(path)
    before = path.read_bytes()
    reader = SqliteStore(path, read_only=True)
    assert list(reader.urls()) == states
    reader.close()
    assert path.read_bytes() == before, "who only reads changes nothing"
    for _ in range(2):
        store = SqliteStore(path)
        found = [(queue.source, at) for queue, at in store.due(states[0].site)]
        assert found == [(Source.USER, NOW), (Source.INDEX, NOW), (Source.REFRESH, NOW)]
        assert [state.id for state in store.lease(states[0].site, 9, now=NOW, until=NOW + 9)] == [ids[1], ids[2], ids[0]]
        store.release(ids)
        store.check()
        store.close()
    db = apsw.Connection(str(path))
    assert db.pragma("user_version") == VERSION
    db.close()
