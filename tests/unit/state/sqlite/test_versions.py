"""State files of earlier versions: who only reads leaves them as they are, who writes brings them up to date."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
from msgspec import structs

from crawlspace.errors import StoreLocked
from crawlspace.model import Requester, Source
from crawlspace.state.dump import UrlRecord
from crawlspace.state.sqlite.dump import SqliteSide
from crawlspace.state.sqlite.schema import VERSION
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.unreachable import UnreachableSite
from tests.contract.conftest import NOW, Known, key
from tests.unit.state.sqlite.test_file import assert_refused, child, filled, statements

_OF_VERSION_4 = (
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
_OF_VERSION_1 = (
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
    statements(*_OF_VERSION_1)(path)
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
