"""The third migration's other half: files of before hold keys that were spread evenly, now URLs of one folder have keys near to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import apsw

from crawlspace.state.sqlite.rows import integers, pack_keys, unpack_keys
from crawlspace.urls import url_key

VERSION = 3
_IDS = 10_000
"""As many at a time: what a statement keeps to undo it grows with the rows it changes."""
_PAGES = 1_000


def rekey(db: apsw.Connection, done: Callable[[int], None]) -> None:
    """Give every URL its key of today, wherever one stands, inside an open transaction. `done` hears how many have theirs.

    Of what is known only by its old key nothing can be told any more. So each page is asked for whole once.
    """
    db.create_scalar_function("url_key", lambda *urls: url_key(str(urls[0])), 1, deterministic=True)
    db.execute("CREATE TABLE rekeyed (old INTEGER PRIMARY KEY, new INTEGER NOT NULL); DROP INDEX url_key")
    count = 0
    for ids in _ranges(db):
        db.execute("INSERT OR IGNORE INTO rekeyed SELECT key, url_key(url) FROM url WHERE id BETWEEN ? AND ?", ids)
        db.execute("UPDATE url SET key = url_key(url) WHERE id BETWEEN ? AND ?", ids)
        count += db.changes()
        done(count)
    for ids in _ranges(db):
        db.execute(
            "UPDATE url SET canonical = ifnull((SELECT new FROM rekeyed WHERE old = canonical), canonical)"
            " WHERE canonical IS NOT NULL AND id BETWEEN ? AND ?",
            ids,
        )
    db.execute(
        "UPDATE outbox SET key = url_key(url);"
        "CREATE INDEX url_key ON url (key);"
        "INSERT INTO meta VALUES ('rules_generation', '2') ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
    )
    last = 0
    while new := [
        (pack_keys(_renewed(db, unpack_keys(targets))), id)
        for id, targets in db.execute("SELECT id, targets FROM links WHERE id > ? ORDER BY id LIMIT ?", (last, _PAGES))
    ]:
        db.executemany("UPDATE links SET targets = ? WHERE id = ?", new)
        last = new[-1][1]
    db.execute("DROP TABLE rekeyed")


def _ranges(db: apsw.Connection) -> Iterator[tuple[int, int]]:
    """Yield first and last id of one part of the URLs after the other; ids may be missing, and of many a stretch."""
    last = 0
    while True:
        end = db.execute("SELECT max(id) FROM (SELECT id FROM url WHERE id > ? ORDER BY id LIMIT ?)", (last, _IDS)).get
        if end is None:
            return
        yield last + 1, int(end)
        last = int(end)


def _renewed(db: apsw.Connection, keys: Sequence[int]) -> list[int]:
    new = dict(db.execute("SELECT old, new FROM rekeyed WHERE old IN (SELECT value FROM carray(?))", (integers(keys),)))
    return [new.get(key, key) for key in keys]
