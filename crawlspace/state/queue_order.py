"""In what order known URLs are handed out, and which may be: as plain functions, for the store that is the model of the others."""

from __future__ import annotations

from crawlspace.model import State, UrlState


def may_be_due(row: UrlState) -> bool:
    return row.state is not State.PENDING and row.next_fetch is not None and row.lease_until is None


def is_ready(row: UrlState, now: int) -> bool:
    if row.state is State.PENDING:
        return row.lease_until is None
    return may_be_due(row) and row.next_fetch is not None and row.next_fetch <= now


def queue_place(row: UrlState) -> tuple[int, int, int, int, int]:
    """By source and shift; in it what is pending in order of discovery, then what is due, earliest first."""
    if row.state is State.PENDING:
        return (*row.queue, 0, 0, row.id)
    return (*row.queue, 1, row.next_fetch or 0, row.id)
