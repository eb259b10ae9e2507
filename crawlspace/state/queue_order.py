"""In what order known URLs are handed out, and which may be: as plain functions, for the store that is the model of the others."""

from __future__ import annotations

from crawlspace.model import Source, State, UrlState


def may_be_due(row: UrlState) -> bool:
    return row.state is not State.PENDING and row.next_fetch is not None and row.lease_until is None


def is_ready(row: UrlState, now: int) -> bool:
    if row.state is State.PENDING:
        return row.lease_until is None
    return may_be_due(row) and row.next_fetch is not None and row.next_fetch <= now


def waits_in(row: UrlState) -> Source:
    return row.source if row.state is State.PENDING or row.retries else Source.REFRESH


def queue_place(row: UrlState) -> tuple[int, int, int, int]:
    if row.state is State.PENDING:
        return (0, row.source, row.shift, row.id)
    return (1, waits_in(row), row.next_fetch or 0, row.id)
