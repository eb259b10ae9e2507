"""When known URLs are due, in memory: changes to many of them."""

from __future__ import annotations

from collections.abc import Callable

from crawlspace.model import Source, UrlState
from crawlspace.state.hastening import AT_ONCE, Hastened, change_some, hasten_row, schedule_row, set_age_of_row


class MemoryDueTimes:
    """The part of the store that changes the times of many URLs. `_urls` are the store's."""

    _urls: dict[int, UrlState]

    def hasten(
        self, latest: int, *, after: int = 0, limit: int = AT_ONCE, fetched_by: int | None = None, until: int | None = None
    ) -> Hastened:
        return self._change(lambda row: hasten_row(row, latest, fetched_by=fetched_by, until=until), after, limit)

    def hasten_retries(self, latest: int) -> int:
        waiting = [row for row in self._urls.values() if row.queue.source is not Source.REFRESH and row.lease_until is None]
        return sum(hasten_row(row, latest, fetched_by=None, until=None) for row in waiting)

    def schedule(self, at: int, *, fetched_by: int, after: int = 0, limit: int = AT_ONCE) -> Hastened:
        return self._change(lambda row: schedule_row(row, at, fetched_by=fetched_by), after, limit)

    def set_age_counts(self, *, counts: bool, latest: int, after: int = 0, limit: int = AT_ONCE) -> Hastened:
        return self._change(lambda row: set_age_of_row(row, latest, counts=counts), after, limit)

    def _change(self, change: Callable[[UrlState], bool], after: int, limit: int) -> Hastened:
        return change_some((self._urls[id] for id in sorted(self._urls) if id > after), change, limit=limit)
