"""An engine without a store: it gives the outcomes of archived pages to whoever records them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from crawlspace.clock import SystemClock
from crawlspace.config.collection import Collection
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.replay.remade import Remade
from crawlspace.crawl.startup import build_space
from crawlspace.index.marks import BatchMark
from crawlspace.index.sink import ALL_DONE, Sent
from crawlspace.model import IndexOrder, Outcome, UrlState
from crawlspace.state.memory.store import MemoryStore


class NoIndex:
    """Gets no orders."""

    name = EMBEDDED

    def mark(self) -> BatchMark | None:
        return None

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        return ALL_DONE

    def close(self) -> None:
        pass


class ReplayEngine(Engine):
    """`take` gets what came of each page that was begun."""

    def __init__(self, collection: Collection) -> None:
        self.memory = MemoryStore(sinks=(EMBEDDED,))
        once = replace(collection, continuous=False)
        super().__init__(once, build_space(collection), store=self.memory, sinks=[NoIndex()], clock=SystemClock())
        self.rendering = None  # what is archived of a rendered page is what the browser made of it
        self._begun: dict[int, UrlState] = {}
        """Not among the URLs in flight: no site has a turn for them."""
        self.take: Callable[[UrlState, Remade], None] = lambda _state, _remade: None

    def begin(self, state: UrlState) -> None:
        """A page is about to be made anew."""
        self._begun[state.id] = state

    def is_awaited(self, id: int) -> bool:
        return id in self._begun

    def fetched(self, outcome: Outcome) -> bool:
        """Take the outcome of a page that was begun. Return False when it is not awaited any more."""
        if (state := self._begun.pop(outcome.id, None)) is None:
            return False
        self.take(state, Remade.of(outcome, self.admission.canonical_key(state, outcome)))
        return True

    def keep(self, state: UrlState, why: str, *, is_missing: bool = False) -> None:
        """Nothing is made of a page that was begun, unless it has an outcome already."""
        if self._begun.pop(state.id, None) is not None:
            self.take(state, Remade(state.id, kept=why, is_missing=is_missing))
