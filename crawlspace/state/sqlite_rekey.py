"""The third migration's other half: files of before hold keys that were spread evenly, now URLs of one folder have keys near to each other."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from crawlspace.state.sqlite_rows import integers, pack_keys, unpack_keys
from crawlspace.urls import url_key

VERSION = 3
_BATCH = 1_000


def rekey(db: apsw.Connection) -> None:
    """Give every URL its key of today, wherever one stands, inside an open transaction.

    Of what is known only by its old key nothing can be told any more. So each page is asked for whole once.
    """
    db.create_scalar_function("url_key", lambda *urls: url_key(str(urls[0])), 1, deterministic=True)
    db.execute(
        "CREATE TABLE rekeyed (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);"
        "INSERT OR IGNORE INTO rekeyed SELECT key, url_key(url) FROM url;"
        "UPDATE url SET canonical = ifnull((SELECT new FROM rekeyed WHERE old = canonical), canonical) WHERE canonical IS NOT NULL;"
        "UPDATE outbox SET key = url_key(url);"
        "DROP INDEX url_key;"
        "UPDATE url SET key = url_key(url);"
        "CREATE INDEX url_key ON url (key);"
        "INSERT INTO meta VALUES ('rules_generation', '2') ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
    )
    last = 0
    while new := [
        (pack_keys(_renewed(db, unpack_keys(targets))), id)
        for id, targets in db.execute("SELECT id, targets FROM links WHERE id > ? ORDER BY id LIMIT ?", (last, _BATCH))
    ]:
        db.executemany("UPDATE links SET targets = ? WHERE id = ?", new)
        last = new[-1][1]
    db.execute("DROP TABLE rekeyed")


def _renewed(db: apsw.Connection, keys: Sequence[int]) -> list[int]:
    new = dict(db.execute("SELECT old, new FROM rekeyed WHERE old IN (SELECT value FROM carray(?))", (integers(keys),)))
    return [new.get(key, key) for key in keys]
