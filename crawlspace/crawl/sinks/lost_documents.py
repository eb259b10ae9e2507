"""Send documents again that another collection has deleted from a shared index.

The index knows which documents a collection has lost (`index/overwritten.py`). Each is fetched with an unconditional GET, at the usual pace,
and sent whether changed or not. The index forgets the loss when it has the document, or when the collection wants none. So after a
kill at any moment the next start finds the same documents again, and those that wait for their fetch already are left as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from crawlspace.crawl.outcomes import DAY_S
from crawlspace.crawl.sinks.index_repair import UNSENT, unsent
from crawlspace.crawl.timed.steps import Steps
from crawlspace.errors import IndexUnavailable
from crawlspace.plural import counted
from crawlspace.state.once_a_run import at_once

if TYPE_CHECKING:
    from crawlspace.crawl.engine import Engine
    from crawlspace.model import UrlState
    from crawlspace.state.changes import Change, Effects

logger = logging.getLogger(__name__)

_BATCH = 500


class LostStore(Protocol):
    def get(self, url: str) -> UrlState | None: ...
    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects: ...


class SharedIndex(Protocol):
    """An index that other collections use too."""

    def lost(self, *, after: str = "", limit: int) -> list[str]: ...
    def give_up_lost(self, urls: Sequence[str]) -> None: ...


class LostDocuments:
    """Makes lost documents due: at a start, and once a day in a crawl that does not end. Raises StoreError."""

    def __init__(self, engine: Engine, index: SharedIndex) -> None:
        self._engine = engine
        self._store: LostStore = engine.store
        self._index = index
        self._steps: Steps[int] = Steps(engine.clock)
        self._looked_at = engine.clock.monotonic()

    def start(self) -> None:
        """Make all of them due."""
        self._report(sum(self._all()))

    def go_on(self) -> None:
        """Make some of them due, if a day has passed since the last time or some are left of then."""
        now = self._engine.clock.monotonic()
        if not self._steps.are_left and now - self._looked_at >= DAY_S:
            self._looked_at = now
            self._steps.begin(self._all())
        self._report(self._steps.next() or 0)

    def _all(self) -> Iterator[int]:
        """Make them due in batches; yield how many those were."""
        after = ""
        with suppress(IndexUnavailable):  # the index has them for the next time
            while urls := self._index.lost(after=after, limit=_BATCH):
                yield self._fetch(urls)
                after = urls[-1]

    def _fetch(self, urls: Sequence[str]) -> int:
        now = int(self._engine.clock.now())
        states = {url: self._store.get(url) for url in urls}
        due: dict[int, UrlState] = {}

        def change(state: UrlState) -> Change | None:
            """Return the change of a URL as it is now; a store asks again about one that was changed meanwhile."""
            due.pop(state.id, None)
            # One that is being fetched is found again at the next start.
            if not state.indexed or state.lease_until is not None or state.fields_mark == UNSENT:
                return None
            made = unsent(state, now=at_once(now, state.fetched_at))
            if made is not None:
                due[state.id] = made.state
            return made

        self._store.revise([state.id for state in states.values() if state is not None], change, now=now)
        for state in due.values():
            if state.next_fetch is not None:
                self._engine.frontier.due(state.site, state.queue, state.next_fetch, retry=True)
        self._index.give_up_lost([url for url, state in states.items() if state is None or not state.indexed])
        return len(due)

    def _report(self, number: int) -> None:
        if number:
            logger.warning(
                "%s: %s deleted from the shared index by another collection that had pushed the same URL; fetched and sent again",
                self._engine.collection.name,
                counted(number, "document was", "documents were"),
            )
