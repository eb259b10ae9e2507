"""The order in which URLs are leased, and which may be: the model of what SQLite and Redis do by index and script."""

from __future__ import annotations

from collections.abc import Iterable

from crawlspace.model import State, UrlState
from crawlspace.state.due_times import is_for_next_run


def may_be_due(row: UrlState) -> bool:
    return row.state is not State.PENDING and row.next_fetch is not None and row.lease_until is None


def is_ready(row: UrlState, now: int) -> bool:
    if row.state is State.PENDING:
        return row.lease_until is None
    return may_be_due(row) and row.next_fetch is not None and row.next_fetch <= now


def queue_place(row: UrlState) -> tuple[int, int, int, int, int]:
    """Return the sort key: source and shift, then pending URLs in order of discovery, then due ones, earliest first."""
    if row.state is State.PENDING:
        return (*row.queue, 0, 0, row.id)
    return (*row.queue, 1, row.next_fetch or 0, row.id)


class Deferred:
    """The known URLs whose time has come, and that are left for the next run."""

    def __init__(self) -> None:
        self._began: int | None = None
        self._times: dict[int, int | None] = {}
        """When they were due, by id: one that is due at another time now is checked again."""

    def __contains__(self, row: UrlState) -> bool:
        return is_for_next_run(row, self._began) and self._times.get(row.id) == row.next_fetch

    def begin(self, at: int | None, *, resumes: bool) -> None:
        """Begin a run."""
        self._began = at
        if not resumes:
            self._times.clear()

    def put(self, rows: Iterable[UrlState]) -> None:
        """Defer those of the rows that are for the next run."""
        self._times.update((row.id, row.next_fetch) for row in rows if is_for_next_run(row, self._began))
