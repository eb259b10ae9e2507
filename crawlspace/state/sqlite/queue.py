"""The frontier's queue in SQLite: leases, and changes of due times.

Pending and due URLs are read from partial indexes, so that it costs time by sites and not by URLs.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import apsw

from crawlspace.model import Queue, Requester, Source, State, UrlState
from crawlspace.state.due_times import AT_ONCE, CLOCKS_DIFFER_S, LOOKED_AT, NOT_DUE_BY_AGE, DueChanges, due_changes
from crawlspace.state.sqlite.rows import DEFERRED, URL_COLUMNS, url_states
from crawlspace.state.sqlite.schema import readable
from crawlspace.state.sqlite.transaction import integers
from crawlspace.state.views import Site, WaitingUrls

# A partial index is used only where its own condition stands in the query, word for word.
_PENDING = "url INDEXED BY url_pending WHERE state = 0 AND lease_until IS NULL"
_DUE = "url INDEXED BY url_due WHERE next_fetch IS NOT NULL AND state <> 0 AND lease_until IS NULL"

# Pending URLs are in segments of so many ids, and in each by queue: site, source and shift in one number. So new URLs go into the pages of
# the last segment, which are few, however many URLs wait. A queue is looked up in each segment, of which ten million URLs have 77. The order
# of the loops is fixed (CROSS JOIN, INDEXED BY), so ids come in order without a sort, which would have to read all of a queue.
_READY = (
    "SELECT url.id FROM carray(?) AS wanted CROSS JOIN url INDEXED BY url_pending ON segment = wanted.value"
    " WHERE state = 0 AND lease_until IS NULL AND queue_number = ? LIMIT ?"
)
_FIRST_SEGMENT = f"SELECT segment FROM {_PENDING} ORDER BY segment LIMIT 1"
_LAST_SEGMENT = f"SELECT segment FROM {_PENDING} ORDER BY segment DESC LIMIT 1"
# From one queue straight to the next one: as many look-ups in the index as there are queues, not URLs.
_NEXT_QUEUE = (
    f"(SELECT queue_number FROM {_PENDING} AND segment = ?1 AND queue_number > {{after}} AND queue_number < ?3"
    " ORDER BY queue_number LIMIT 1)"
)
_PENDING_QUEUES = (
    f"WITH RECURSIVE found (last) AS (SELECT {_NEXT_QUEUE.format(after='?2')}"
    f" UNION ALL SELECT {_NEXT_QUEUE.format(after='last')} FROM found WHERE last IS NOT NULL)"
    " SELECT last FROM found WHERE last IS NOT NULL"
)

# The same for what is due. Each condition compares one column, and the first that finds a row ends it: of
# `(site, waits_in, shift) > (?, ?, ?)` SQLite looks up the equal ones, and so goes through all URLs of a queue to find the next.
_NEXT_DUE = (
    f"SELECT * FROM (SELECT site, waits_in, shift, next_fetch FROM {_DUE} AND site = ?1 AND waits_in = ?2 AND shift > ?3"
    " ORDER BY shift, next_fetch LIMIT 1)"
    f" UNION ALL SELECT * FROM (SELECT site, waits_in, shift, next_fetch FROM {_DUE} AND site = ?1 AND waits_in > ?2"
    " ORDER BY waits_in, shift, next_fetch LIMIT 1)"
    f" UNION ALL SELECT * FROM (SELECT site, waits_in, shift, next_fetch FROM {_DUE} AND site > ?1"
    " ORDER BY site, waits_in, shift, next_fetch LIMIT 1)"
    " LIMIT 1"
)
_COUNT_PENDING = f"SELECT count(*) FROM {_PENDING} AND segment = ?1 AND queue_number > ?2 AND queue_number < ?3"
_COUNT_DUE = f"SELECT count(*) FROM {_DUE} AND site = ? AND waits_in = ? AND shift = ? AND next_fetch <= ?"
_LATE = f"SELECT id FROM {_DUE} AND site = ? AND waits_in = ? AND shift = ? AND next_fetch > ?"
# Known URLs deferred to the next run: see `due_times.py`. Their time is moved so far ahead that it is never reached, and their ids are noted.
_DUE_NOW = (
    "SELECT id, fetched_at >= ?5 AND next_fetch > fetched_at"
    f" FROM {_DUE} AND site = ?1 AND waits_in = ?2 AND shift = ?3 AND next_fetch <= ?4 ORDER BY next_fetch, id LIMIT ?6"
)
_RESTORED = 2_000

_SOURCES = tuple(Source)
_FIRST = (-1, -9)
"""Before every source and shift."""
_BEYOND = 1 << 50
"""No id of a site is as large."""

# Changes of many due times, in steps: see `due_times.py`.
_TIME = f"(next_fetch & {DEFERRED - 1})"
"""Due time of a URL, deferred ones included: these are checked again at their new time."""
_SOME = (
    "SELECT url.id, site.site, waits_in, shift, {time} FROM url NOT INDEXED CROSS JOIN site ON site.id = url.site"
    f" WHERE url.id > ?1 AND url.id <= ?2 AND state <> {int(State.PENDING)} AND next_fetch IS NOT NULL AND {{which}} ORDER BY url.id LIMIT ?3"
)
_IDS = "id IN (SELECT value FROM carray(?1))"
_FETCHED_BY = "(?5 IS NULL OR fetched_at IS NULL OR fetched_at <= ?5)"
_MAKE_DUE = _SOME.format(time="?4", which=f"{_TIME} > ?4 AND {_TIME} < ?6 AND {_FETCHED_BY}")
_SCHEDULE = _SOME.format(
    time="?4", which=f"NOT requested_by AND retries = 0 AND ({_FETCHED_BY} OR fetched_at > ?4 + {CLOCKS_DIFFER_S})"
)
_WITH_AGE = _SOME.format(time=f"min({_TIME} - {NOT_DUE_BY_AGE}, ?4)", which=f"{_TIME} >= {NOT_DUE_BY_AGE}")
_WITHOUT_AGE = _SOME.format(
    time=f"{_TIME} + {NOT_DUE_BY_AGE}",
    which=f"{_TIME} < {NOT_DUE_BY_AGE} AND fetched_at < {_TIME} AND NOT requested_by AND retries = 0 AND state <> {int(State.FAILED)}",
)
_Row = tuple[int, str, int, int, int]


def sites(db: apsw.Connection) -> Iterator[Site]:
    """Yield every site that has pending or due URLs, or must wait."""
    rows = list(db.execute("SELECT id, site, wait_until, wait_s FROM site ORDER BY site"))
    pending: dict[int, tuple[Queue, ...]] = {}
    for site_id, queue in _pending(db):
        pending[site_id] = (*pending.get(site_id, ()), queue)
    later: dict[int, tuple[tuple[Queue, int], ...]] = {}
    for site_id, queue, next_fetch in _due(db):
        later[site_id] = (*later.get(site_id, ()), (queue, next_fetch))
    for site_id, site, wait_until, wait_s in rows:
        if site_id in pending or site_id in later or wait_until is not None:
            yield Site(
                site, pending.get(site_id, ()), later.get(site_id, ()), wait_until, wait_s if wait_until is not None else 0
            )


def lease(
    db: apsw.Connection, site: int, limit: int, *, now: int, until: int, queue: Queue | None, run_began: int | None = None
) -> list[UrlState]:
    """Lease the next URLs of a site that may be fetched now, of one queue or of all."""
    if queue is not None:
        ids = _ready(db, site, limit, now, queue, run_began)
    else:
        waiting = {*(found for _, found in _pending(db, site)), *(found for found, _ in due(db, site))}
        ids = []
        for each in sorted(waiting):
            ids += _ready(db, site, limit - len(ids), now, each, run_began)
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


def reclaim(db: apsw.Connection, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
    """End expired leases except for those to keep; return their number by site."""
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
    return [(queue, next_fetch) for _, queue, next_fetch in _due(db, site)]


def waiting_urls(db: apsw.Connection, site: int, *, now: int) -> WaitingUrls:
    """Return how many URLs of a site are pending, and due. Costs time by these."""
    bounds = _queue_number(site), _queue_number(site + 1)
    counting = readable(_COUNT_PENDING, db)
    pending = sum(db.execute(counting, (segment, *bounds)).get for segment in _segments(db))
    due = sum(db.execute(_COUNT_DUE, (site, *queue, now)).get for _, queue, at in _due(db, site) if at <= now)
    return WaitingUrls(pending, due)


def make_retries_due_by(db: apsw.Connection, latest: int) -> int:
    """Make all unleased URLs that wait in another source than refresh due by a time. Costs time by queues and changed URLs."""
    queues = [(site, *queue, latest) for site, queue, _ in _due(db) if queue.source is not Source.REFRESH]
    late = [id for values in queues for (id,) in db.execute(_LATE, values)]
    db.execute("UPDATE url SET next_fetch = ? WHERE id IN (SELECT value FROM carray(?))", (latest, integers(late)))
    return len(late)


def release_deferred(db: apsw.Connection) -> bool:
    """Make some deferred URLs due at their time again; return whether there may be more."""
    ids = integers(id for (id,) in db.execute("SELECT id FROM deferred ORDER BY id LIMIT ?", (_RESTORED,)))
    db.execute(
        f"UPDATE url SET next_fetch = next_fetch - {DEFERRED}"
        f" WHERE id IN (SELECT value FROM carray(?)) AND next_fetch >= {DEFERRED}",
        (ids,),
    )
    db.execute("DELETE FROM deferred WHERE id IN (SELECT value FROM carray(?))", (ids,))
    return ids is not None


def make_due_by(
    db: apsw.Connection,
    latest: int,
    *,
    after: int = 0,
    limit: int = AT_ONCE,
    fetched_by: int | None = None,
    until: int | None = None,
) -> DueChanges:
    """Make known URLs due by a time at the latest, in steps."""
    found, end, newest = _some(db, _MAKE_DUE, after, limit, latest, fetched_by, DEFERRED if until is None else until)
    db.execute(f"UPDATE url SET next_fetch = ?2 WHERE {_IDS}", (_ids(found), latest))
    return _changed(found, end, newest, limit)


def schedule(db: apsw.Connection, at: int, *, fetched_by: int, after: int = 0, limit: int = AT_ONCE) -> DueChanges:
    found, end, newest = _some(db, _SCHEDULE, after, limit, at, fetched_by)
    db.execute(f"UPDATE url SET next_fetch = ?2, requested_by = {int(Requester.SCHEDULE)} WHERE {_IDS}", (_ids(found), at))
    return _changed([(id, site, int(Source.INDEX), shift, at) for id, site, _, shift, _ in found], end, newest, limit)


def set_due_by_age(db: apsw.Connection, *, counts: bool, latest: int, after: int = 0, limit: int = AT_ONCE) -> DueChanges:
    if counts:
        found, end, newest = _some(db, _WITH_AGE, after, limit, latest)
        db.execute(f"UPDATE url SET next_fetch = min({_TIME} - {NOT_DUE_BY_AGE}, ?2) WHERE {_IDS}", (_ids(found), latest))
    else:
        found, end, newest = _some(db, _WITHOUT_AGE, after, limit)
        db.execute(f"UPDATE url SET next_fetch = {_TIME} + {NOT_DUE_BY_AGE} WHERE {_IDS}", (_ids(found),))
    return _changed(found, end, newest, limit)


def _ready(db: apsw.Connection, site: int, limit: int, now: int, queue: Queue, run_began: int | None) -> list[int]:
    """Return ids in the order in which they are to be leased."""
    ids = [id for (id,) in db.execute(_READY, (integers(_segments(db)), _queue_number(site, queue), limit))]
    if len(ids) < limit:
        ids += _due_now(db, site, limit - len(ids), now, queue, run_began)
    return ids


def _due_now(db: apsw.Connection, site: int, limit: int, now: int, queue: Queue, run_began: int | None) -> list[int]:
    began = run_began if queue.source is Source.REFRESH else None  # retries and a person's requests wait in other sources
    while True:
        found = list(db.execute(_DUE_NOW, (site, *queue, now, began, limit)))
        deferred = [id for id, is_for_next_run in found if is_for_next_run]
        if not deferred:
            return [id for id, _ in found]
        db.execute(
            f"UPDATE url SET next_fetch = next_fetch + {DEFERRED} WHERE id IN (SELECT value FROM carray(?))",
            (integers(deferred),),
        )
        db.execute("INSERT OR IGNORE INTO deferred SELECT value FROM carray(?)", (integers(deferred),))


def _queue_number(site: int, queue: Queue | None = None) -> int:
    """Return the number of a queue, as its column computes it; without a queue, one before all of its site."""
    return site << 8 if queue is None else (site << 8) + (queue.source << 5) + queue.shift + 16


def _queue_of(number: int) -> tuple[int, Queue]:
    """Return the site and the queue of a queue number."""
    return number >> 8, Queue(_SOURCES[number >> 5 & 7], (number & 31) - 16)


def _segments(db: apsw.Connection) -> range:
    """Return the segments from the first to the last that holds pending URLs."""
    first = db.execute(_FIRST_SEGMENT).get
    return range(0) if first is None else range(first, db.execute(_LAST_SEGMENT).get + 1)


def _pending(db: apsw.Connection, site: int | None = None) -> list[tuple[int, Queue]]:
    """Return each site and queue with pending URLs, in order; optionally of one site only."""
    first, end = (0, _BEYOND) if site is None else (site, site + 1)
    numbers: set[int] = set()
    for segment in _segments(db):
        bounds = segment, _queue_number(first), _queue_number(end)
        numbers.update(number for (number,) in db.execute(readable(_PENDING_QUEUES, db), bounds))
    return [_queue_of(number) for number in sorted(numbers)]


def _due(db: apsw.Connection, site: int | None = None) -> Iterator[tuple[int, Queue, int]]:
    """Yield each site and queue in which known URLs wait, and when the first one is due; optionally of one site only."""
    row = db.execute(_NEXT_DUE, (site or 0, *_FIRST)).fetchone()
    while row and site in (None, row[0]):
        found, source, shift, next_fetch = row
        if next_fetch < DEFERRED:
            yield found, Queue(_SOURCES[source], shift), next_fetch
        row = db.execute(_NEXT_DUE, (found, source, shift)).fetchone()


def _some(db: apsw.Connection, statement: str, after: int, limit: int, *values: int | None) -> tuple[list[_Row], int, int]:
    """Return some rows, the last id of those that were read, and the last id of all."""
    newest = db.execute("SELECT coalesce(max(id), 0) FROM url").get
    end = min(after + LOOKED_AT, newest)
    return list(db.execute(statement, (after, end, limit, *values))), end, newest


def _ids(found: Sequence[_Row]) -> apsw.CArrayBinding | None:
    return integers(row[0] for row in found)


def _changed(found: Sequence[_Row], end: int, newest: int, limit: int) -> DueChanges:
    last = found[-1][0] if len(found) == limit else end
    queues = ((site, Queue(_SOURCES[source], shift), at) for _, site, source, shift, at in found)
    return due_changes(len(found), 0 if last >= newest else last, queues)
