"""Changes of due times in memory: the functions of one row are the model of what SQLite and Redis do by statement and script."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from crawlspace.model import Requester, Source, State, UrlState
from crawlspace.state.due_times import AT_ONCE, CLOCKS_DIFFER_S, NOT_DUE_BY_AGE, Due, DueChanges, due_changes, is_due_by_age


class MemoryDueTimes:
    """The part of the store that changes the times of many URLs. `_urls` are the store's."""

    _urls: dict[int, UrlState]

    def make_due_by(
        self, latest: int, *, after: int = 0, limit: int = AT_ONCE, fetched_by: int | None = None, until: int | None = None
    ) -> DueChanges:
        return self._change(lambda row: _hasten_row(row, latest, fetched_by=fetched_by, until=until), after, limit)

    def make_retries_due_by(self, latest: int) -> int:
        waiting = [row for row in self._urls.values() if row.queue.source is not Source.REFRESH and row.lease_until is None]
        return sum(_hasten_row(row, latest, fetched_by=None, until=None) for row in waiting)

    def schedule(self, at: int, *, fetched_by: int, after: int = 0, limit: int = AT_ONCE) -> DueChanges:
        return self._change(lambda row: _schedule_row(row, at, fetched_by=fetched_by), after, limit)

    def set_due_by_age(self, *, counts: bool, latest: int, after: int = 0, limit: int = AT_ONCE) -> DueChanges:
        return self._change(lambda row: _set_age_of_row(row, latest, counts=counts), after, limit)

    def _change(self, change: Callable[[UrlState], bool], after: int, limit: int) -> DueChanges:
        return _change_some((self._urls[id] for id in sorted(self._urls) if id > after), change, limit=limit)


def _hasten_row(row: UrlState, latest: int, *, fetched_by: int | None, until: int | None) -> bool:
    """Make one URL due sooner; return whether that is a change. Of what is not known all is a change."""
    is_late = row.state is not State.PENDING and row.next_fetch is not None and row.next_fetch > latest
    if not is_late or not _was_fetched_by(row, fetched_by) or (until is not None and (row.next_fetch or 0) >= until):
        return False
    row.next_fetch = latest
    return True


def _schedule_row(row: UrlState, at: int, *, fetched_by: int) -> bool:
    """Have one URL wait in source index; return whether that is a change."""
    is_wanted = row.state is not State.PENDING and row.next_fetch is not None and not (row.requested_by or row.retries)
    is_ahead = row.fetched_at is not None and row.fetched_at > at + CLOCKS_DIFFER_S
    if not is_wanted or not (is_ahead or _was_fetched_by(row, fetched_by)):
        return False
    row.requested_by, row.next_fetch = Requester.SCHEDULE, at
    return True


def _set_age_of_row(row: UrlState, latest: int, *, counts: bool) -> bool:
    """Have one URL be due by its age, or not; return whether that is a change."""
    if not counts and is_due_by_age(row) and row.next_fetch is not None:
        row.next_fetch += NOT_DUE_BY_AGE
        return True
    if counts and row.state is not State.PENDING and row.next_fetch is not None and row.next_fetch >= NOT_DUE_BY_AGE:
        row.next_fetch = min(row.next_fetch - NOT_DUE_BY_AGE, latest)
        return True
    return False


def _was_fetched_by(row: UrlState, time: int | None) -> bool:
    return time is None or row.fetched_at is None or row.fetched_at <= time


def _change_some(rows: Iterable[UrlState], change: Callable[[UrlState], bool], *, limit: int) -> DueChanges:
    """Change some rows, in order of their ids."""
    found: list[UrlState] = []
    last = 0
    for row in rows:
        if len(found) == limit:
            return due_changes(limit, last, map(_place, found))
        last = row.id
        if change(row):
            found.append(row)
    return due_changes(len(found), 0, map(_place, found))


def _place(row: UrlState) -> Due:
    assert row.next_fetch is not None
    return row.site, row.queue, row.next_fetch
