"""Changes when known URLs are due, in steps: each call changes, and reads, a bounded number of rows.

SQLite does it by statement (`sqlite/queue.py`) and Redis by function (`lua/queue.lua`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from crawlspace.model import Queue

AT_ONCE = 500
"""Rows that a call changes at most."""
LOOKED_AT = 10_000
"""Rows that a call looks at, at most."""
CLOCKS_DIFFER_S = 60
"""By so much the clocks of workers may differ; what was fetched later than that was fetched before the clock was set back."""


Due = tuple[str, Queue, int]
"""A site, a queue, and when something there is due."""


class Hastened(NamedTuple):
    """What one call did. `last` is the id of the last URL that was read; 0 where none follows it."""

    number: int
    last: int
    due: Sequence[Due]
    """The sites and queues of those whose time changed, each once, and the first of the new times."""


class HasteningStore(Protocol):
    def hasten(
        self, latest: int, *, after: int = 0, limit: int = AT_ONCE, fetched_by: int | None = None, until: int | None = None
    ) -> Hastened: ...


def hasten_all(store: HasteningStore, latest: int) -> int:
    """Make every known URL that is due later than `latest` due then, in many transactions; return their number."""
    total, after, has_more = 0, 0, True
    while has_more:
        number, after, _ = store.hasten(latest, after=after)
        total, has_more = total + number, after > 0
    return total


def hastened(number: int, last: int, places: Iterable[Due]) -> Hastened:
    """Return the result of a call that changed so many URLs, which are now due at these places."""
    first: dict[tuple[str, Queue], int] = {}
    for site, queue, at in places:
        first[site, queue] = min(first.get((site, queue), at), at)
    return Hastened(number, last, [(*place, at) for place, at in sorted(first.items())])
