"""Totals over all URLs that no store keeps count of, for metrics: counted while a snapshot is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from crawlspace.model import State, UrlState

QUANTILES = (0.5, 0.9, 1.0)
_STEP_S = 60
"""Times are counted by minute, so that a million documents take little memory."""


class Totals(msgspec.Struct):
    """What was counted at the time of a snapshot."""

    queue: dict[str, int] = msgspec.field(default_factory=dict)
    """URLs that could be fetched and were not leased, by source."""
    overdue: int = 0
    fetched_at: dict[str, int] = msgspec.field(default_factory=dict)
    """The time of the last fetch of documents in the index, by the share of them that are younger; empty without any."""


class TotalsCounter:
    """Counts URLs, of which each is added once."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._queue: Counter[str] = Counter()
        self._overdue = 0
        self._fetched: Counter[int] = Counter()

    def add(self, state: UrlState) -> None:
        if state.lease_until is None:
            if state.state is State.PENDING:
                self._queue[state.queue.source.label] += 1
            elif state.next_fetch is not None and state.next_fetch <= self._now:
                self._queue[state.queue.source.label] += 1
                self._overdue += 1
        if state.indexed and state.fetched_at is not None:
            self._fetched[state.fetched_at // _STEP_S] += 1

    def as_json(self) -> str:
        return msgspec.json.encode(Totals(dict(self._queue), self._overdue, dict(self._quantiles()))).decode()

    def _quantiles(self) -> Iterator[tuple[str, int]]:
        total, younger, left = self._fetched.total(), 0, list(QUANTILES)
        for minute in sorted(self._fetched, reverse=True):
            younger += self._fetched[minute]
            while left and younger >= left[0] * total:
                yield f"{left.pop(0):g}", minute * _STEP_S


def totals_of(written: str) -> Totals:
    """Return the totals of a snapshot; none at all if they cannot be read."""
    try:
        return msgspec.json.decode(written, type=Totals)
    except (msgspec.MsgspecError, RecursionError):
        return Totals()
