"""The frontier's queue in SQLite: what is pending or due, read off partial indexes, so that it costs time by sites and not by URLs."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import apsw

from crawlspace.model import Source, UrlState
from crawlspace.state import sqlite_tally
from crawlspace.state.sqlite_rows import URL_COLUMNS, integers, url_states
from crawlspace.state.sqlite_tally import Tally
from crawlspace.state.store import Site

# A partial index is used only where its own condition stands in the query, word for word.
_PENDING = "url INDEXED BY url_pending WHERE state = 0 AND lease_until IS NULL"
_DUE = "url INDEXED BY url_due WHERE next_fetch IS NOT NULL AND state <> 0 AND lease_until IS NULL"

# From one pair of site and source straight to the next one: as many looks into an index as there are pairs, not URLs.
_NEXT_PENDING = f"SELECT site, source, 0 FROM {_PENDING} AND (site, source) > (?, ?) ORDER BY site, source LIMIT 1"
_NEXT_DUE = (
    f"SELECT site, due_source, next_fetch FROM {_DUE} AND (site, due_source) > (?, ?)"
    " ORDER BY site, due_source, next_fetch LIMIT 1"
)


def sites(db: apsw.Connection) -> Iterator[Site]:
    """Every site that has something pending, due or asked to wait."""
    rows = list(db.execute("SELECT id, site, wait_until FROM site ORDER BY site"))
    pending: dict[int, tuple[Source, ...]] = {}
    for site_id, source, _ in _leap(db, _NEXT_PENDING):
        pending[site_id] = (*pending.get(site_id, ()), Source(source))
    due: dict[int, int] = {}
    for site_id, _, next_fetch in _leap(db, _NEXT_DUE):
        due[site_id] = min(due.get(site_id, next_fetch), next_fetch)
    for site_id, site, wait_until in rows:
        if site_id in pending or site_id in due or wait_until is not None:
            yield Site(site, site_id in pending, due.get(site_id), wait_until, pending.get(site_id, ()))


def lease(db: apsw.Connection, site: int, limit: int, *, now: int, until: int, source: Source | None) -> list[UrlState]:
    ids = _ready(db, site, limit, now, source)
    if not ids:
        return []
    db.execute("UPDATE url SET lease_until = ? WHERE id IN (SELECT value FROM carray(?))", (until, integers(ids)))
    return url_states(
        db.execute(
            f"SELECT {URL_COLUMNS} FROM carray(?) AS leased CROSS JOIN url ON url.id = leased.value"
            " CROSS JOIN site ON site.id = url.site",
            (integers(ids),),
        )
    )


def release(db: apsw.Connection, ids: Iterable[int]) -> None:
    db.execute("UPDATE url SET lease_until = NULL WHERE id IN (SELECT value FROM carray(?))", (integers(ids),))


def release_all(db: apsw.Connection) -> None:
    db.execute("UPDATE url INDEXED BY url_leased SET lease_until = NULL WHERE lease_until IS NOT NULL")


def reclaim(db: apsw.Connection, *, now: int, keep: Collection[int]) -> dict[str, int]:
    ended = dict(
        db.execute(
            "SELECT site.site, count(*) FROM url INDEXED BY url_leased JOIN site ON site.id = url.site"
            " WHERE lease_until <= ? AND url.id NOT IN (SELECT value FROM carray(?)) GROUP BY site.id",
            (now, integers(keep)),
        )
    )
    if ended:
        db.execute(
            "UPDATE url INDEXED BY url_leased SET lease_until = NULL"
            " WHERE lease_until <= ? AND id NOT IN (SELECT value FROM carray(?))",
            (now, integers(keep)),
        )
    return ended


def next_due(db: apsw.Connection, site: int | None) -> int | None:
    firsts = [
        db.execute(f"SELECT min(next_fetch) FROM {_DUE} AND site = ? AND due_source = ?", (site, source)).get for source in Source
    ]
    return min((first for first in firsts if first is not None), default=None)


def note_pending(db: apsw.Connection, site: int, status: int | None) -> None:
    tally = Tally()
    for old, count in db.execute(
        f"SELECT status, count(*) FROM {_PENDING} AND site = ? AND status IS NOT ? GROUP BY status", (site, status)
    ):
        if old is not None:
            tally[f"status {old}"] -= count
        if status is not None:
            tally[f"status {status}"] += count
    db.execute(
        "UPDATE url INDEXED BY url_pending SET status = ?1"
        " WHERE state = 0 AND lease_until IS NULL AND site = ?2 AND status IS NOT ?1",
        (status, site),
    )
    sqlite_tally.add(db, tally)


def hasten(db: apsw.Connection, latest: int) -> int:
    db.execute("UPDATE url NOT INDEXED SET next_fetch = ?1 WHERE next_fetch > ?1 AND state <> 0", (latest,))
    return db.changes()


def _ready(db: apsw.Connection, site: int, limit: int, now: int, source: Source | None) -> list[int]:
    """Ids in the order in which they are to be leased."""
    only = "" if source is None else f" AND source = {int(source)}"
    ids = [
        id
        for (id,) in db.execute(f"SELECT id FROM {_PENDING} AND site = ?{only} ORDER BY source, shift, id LIMIT ?", (site, limit))
    ]
    for waits_in in Source if source is None else (source,):
        if len(ids) >= limit:
            break
        due = db.execute(
            f"SELECT id FROM {_DUE} AND site = ? AND due_source = ? AND next_fetch <= ? ORDER BY next_fetch, id LIMIT ?",
            (site, waits_in, now, limit - len(ids)),
        )
        ids.extend(id for (id,) in due)
    return ids


def _leap(db: apsw.Connection, statement: str) -> Iterator[tuple[int, int, int]]:
    """Run a statement that finds the next pair of site and source, until there is none."""
    row = db.execute(statement, (0, -1)).fetchone()
    while row:
        yield row
        row = db.execute(statement, row[:2]).fetchone()
