"""When known URLs are due, in SQLite: changes to many of them, in steps (`hastening.py` has the same of one row)."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Sequence

import apsw

from crawlspace.asked import Asked
from crawlspace.model import Queue, Source, State
from crawlspace.state.by_age import NOT_BY_AGE
from crawlspace.state.hastening import AT_ONCE, CLOCKS_DIFFER_S, LOOKED_AT, Hastened, hastened
from crawlspace.state.sqlite.part import SqlitePart
from crawlspace.state.sqlite.rows import SET_ASIDE, integers

_SOURCES = tuple(Source)
_TIME = f"(next_fetch & {SET_ASIDE - 1})"
"""When a URL is due, also one that is for the next run. That is looked at again when its new time has come."""
_SOME = (
    "SELECT url.id, site.site, waits_in, shift, {time} FROM url NOT INDEXED CROSS JOIN site ON site.id = url.site"
    f" WHERE url.id > ?1 AND url.id <= ?2 AND state <> {int(State.PENDING)} AND next_fetch IS NOT NULL AND {{which}} ORDER BY url.id LIMIT ?3"
)
_IDS = "id IN (SELECT value FROM carray(?1))"
_FETCHED_BY = "(?5 IS NULL OR fetched_at IS NULL OR fetched_at <= ?5)"
_HASTEN = _SOME.format(time="?4", which=f"{_TIME} > ?4 AND {_TIME} < ?6 AND {_FETCHED_BY}")
_SCHEDULE = _SOME.format(time="?4", which=f"NOT asked AND retries = 0 AND ({_FETCHED_BY} OR fetched_at > ?4 + {CLOCKS_DIFFER_S})")
_WITH_AGE = _SOME.format(time=f"min({_TIME} - {NOT_BY_AGE}, ?4)", which=f"{_TIME} >= {NOT_BY_AGE}")
_WITHOUT_AGE = _SOME.format(
    time=f"{_TIME} + {NOT_BY_AGE}",
    which=f"{_TIME} < {NOT_BY_AGE} AND fetched_at < {_TIME} AND NOT asked AND retries = 0 AND state <> {int(State.FAILED)}",
)
_Row = tuple[int, str, int, int, int]


class SqliteDueTimes(SqlitePart):
    """The part of the store that changes when known URLs are due."""

    def hasten(
        self, latest: int, *, after: int = 0, limit: int = AT_ONCE, fetched_by: int | None = None, until: int | None = None
    ) -> Hastened:
        with self._writing() as db:
            return _hasten(db, latest, after=after, limit=limit, fetched_by=fetched_by, until=until)

    def schedule(self, at: int, *, fetched_by: int, after: int = 0, limit: int = AT_ONCE) -> Hastened:
        with self._writing() as db:
            return _schedule(db, at, after=after, limit=limit, fetched_by=fetched_by)

    def set_age_counts(self, *, counts: bool, latest: int, after: int = 0, limit: int = AT_ONCE) -> Hastened:
        with self._writing() as db:
            return _set_age_counts(db, counts=counts, latest=latest, after=after, limit=limit)


def _hasten(db: apsw.Connection, latest: int, *, after: int, limit: int, fetched_by: int | None, until: int | None) -> Hastened:
    found, end, newest = _some(db, _HASTEN, after, limit, latest, fetched_by, SET_ASIDE if until is None else until)
    db.execute(f"UPDATE url SET next_fetch = ?2 WHERE {_IDS}", (_ids(found), latest))
    return _changed(found, end, newest, limit)


def _schedule(db: apsw.Connection, at: int, *, after: int, limit: int, fetched_by: int) -> Hastened:
    found, end, newest = _some(db, _SCHEDULE, after, limit, at, fetched_by)
    db.execute(f"UPDATE url SET next_fetch = ?2, asked = {int(Asked.BY_SCHEDULE)} WHERE {_IDS}", (_ids(found), at))
    return _changed([(id, site, int(Source.INDEX), shift, at) for id, site, _, shift, _ in found], end, newest, limit)


def _set_age_counts(db: apsw.Connection, *, counts: bool, latest: int, after: int, limit: int) -> Hastened:
    if counts:
        found, end, newest = _some(db, _WITH_AGE, after, limit, latest)
        db.execute(f"UPDATE url SET next_fetch = min({_TIME} - {NOT_BY_AGE}, ?2) WHERE {_IDS}", (_ids(found), latest))
    else:
        found, end, newest = _some(db, _WITHOUT_AGE, after, limit)
        db.execute(f"UPDATE url SET next_fetch = {_TIME} + {NOT_BY_AGE} WHERE {_IDS}", (_ids(found),))
    return _changed(found, end, newest, limit)


def _some(db: apsw.Connection, statement: str, after: int, limit: int, *values: int | None) -> tuple[list[_Row], int, int]:
    """Return some rows, the last id of those that were looked at, and the last id of all."""
    newest = db.execute("SELECT coalesce(max(id), 0) FROM url").get
    end = min(after + LOOKED_AT, newest)
    return list(db.execute(statement, (after, end, limit, *values))), end, newest


def _ids(found: Sequence[_Row]) -> apsw.CArrayBinding | None:
    return integers(row[0] for row in found)


def _changed(found: Sequence[_Row], end: int, newest: int, limit: int) -> Hastened:
    last = found[-1][0] if len(found) == limit else end
    places = ((site, Queue(_SOURCES[source], shift), at) for _, site, source, shift, at in found)
    return hastened(len(found), 0 if last >= newest else last, places)
