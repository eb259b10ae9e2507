"""The frontier's queue in SQLite: what is pending or due, read off partial indexes, so that it costs time by sites and not by URLs."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import apsw

from crawlspace.model import Queue, Source, UrlState
from crawlspace.state import sqlite_tally
from crawlspace.state.sqlite_rows import URL_COLUMNS, integers, url_states
from crawlspace.state.sqlite_tally import Tally
from crawlspace.state.store import Site

# A partial index is used only where its own condition stands in the query, word for word.
_PENDING = "url INDEXED BY url_pending WHERE state = 0 AND lease_until IS NULL"
_DUE = "url INDEXED BY url_due WHERE next_fetch IS NOT NULL AND state <> 0 AND lease_until IS NULL"

# From one queue of a site straight to the next one: as many looks into an index as there are queues, not URLs. Each condition
# compares one column, and the first that finds a row ends it. Of `(site, source, shift) > (?, ?, ?)` SQLite looks up the equal ones,
# and so goes through all URLs of a queue to find the next.
_NEXT = (
    "SELECT * FROM (SELECT site, {source}, shift, {first} FROM {queues} AND site = ?1 AND {source} = ?2 AND shift > ?3"
    " ORDER BY shift, {first} LIMIT 1)"
    " UNION ALL SELECT * FROM (SELECT site, {source}, shift, {first} FROM {queues} AND site = ?1 AND {source} > ?2"
    " ORDER BY {source}, shift, {first} LIMIT 1)"
    " UNION ALL SELECT * FROM (SELECT site, {source}, shift, {first} FROM {queues} AND site > ?1"
    " ORDER BY site, {source}, shift, {first} LIMIT 1)"
    " LIMIT 1"
)
_NEXT_PENDING = _NEXT.format(queues=_PENDING, source="source", first="id")
_NEXT_DUE = _NEXT.format(queues=_DUE, source="waits_in", first="next_fetch")
_SOURCES = tuple(Source)
_FIRST = (-1, -9)
"""Before every source and shift."""


def sites(db: apsw.Connection) -> Iterator[Site]:
    """Every site that has something pending, due or asked to wait."""
    rows = list(db.execute("SELECT id, site, wait_until FROM site ORDER BY site"))
    pending: dict[int, tuple[Queue, ...]] = {}
    for site_id, queue, _ in _leap(db, _NEXT_PENDING):
        pending[site_id] = (*pending.get(site_id, ()), queue)
    later: dict[int, tuple[tuple[Queue, int], ...]] = {}
    for site_id, queue, next_fetch in _leap(db, _NEXT_DUE):
        later[site_id] = (*later.get(site_id, ()), (queue, next_fetch))
    for site_id, site, wait_until in rows:
        if site_id in pending or site_id in later or wait_until is not None:
            yield Site(site, pending.get(site_id, ()), later.get(site_id, ()), wait_until)


def lease(db: apsw.Connection, site: int, limit: int, *, now: int, until: int, queue: Queue | None) -> list[UrlState]:
    if queue is not None:
        ids = _ready(db, site, limit, now, queue)
    else:
        waiting = {*(found for _, found, _ in _leap(db, _NEXT_PENDING, site)), *(found for found, _ in due(db, site))}
        ids = []
        for each in sorted(waiting):
            ids += _ready(db, site, limit - len(ids), now, each)
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


def due(db: apsw.Connection, site: int) -> list[tuple[Queue, int]]:
    return [(queue, next_fetch) for _, queue, next_fetch in _leap(db, _NEXT_DUE, site)]


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


def _ready(db: apsw.Connection, site: int, limit: int, now: int, queue: Queue) -> list[int]:
    """Ids in the order in which they are to be leased."""
    ids = [
        id
        for (id,) in db.execute(
            f"SELECT id FROM {_PENDING} AND site = ? AND source = ? AND shift = ? ORDER BY id LIMIT ?", (site, *queue, limit)
        )
    ]
    if len(ids) < limit:
        ids += (
            id
            for (id,) in db.execute(
                f"SELECT id FROM {_DUE} AND site = ? AND waits_in = ? AND shift = ? AND next_fetch <= ?"
                " ORDER BY next_fetch, id LIMIT ?",
                (site, *queue, now, limit - len(ids)),
            )
        )
    return ids


def _leap(db: apsw.Connection, statement: str, site: int | None = None) -> Iterator[tuple[int, Queue, int]]:
    """Run a statement that finds the next queue of a site, until there is none; of one site only, where it is named."""
    row = db.execute(statement, (site or 0, *_FIRST)).fetchone()
    while row and site in (None, row[0]):
        found, source, shift, value = row
        yield found, Queue(_SOURCES[source], shift), value
        row = db.execute(statement, (found, source, shift)).fetchone()
