"""The steps of a random walk that concern the sinks: orders that are done, parked, and sent again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from crawlspace.document import IndexOrder
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, SINKS
from tests.contract.memory.store import MemoryStore


class SinkSteps(RuleBasedStateMachine):
    model: MemoryStore

    def both(self, step: Callable[[Store], object]) -> None:
        raise NotImplementedError

    @rule()
    def acknowledge_all(self) -> None:
        for sink in SINKS:
            self.acknowledge(sink, 100)

    @rule(sink=st.sampled_from(SINKS), limit=st.integers(1, 5))
    def acknowledge(self, sink: str, limit: int) -> None:
        orders = self.model.orders(sink, limit, now=NOW)
        self.both(lambda store: store.acknowledge(sink, orders))

    @rule(sink=st.sampled_from(SINKS), limit=st.integers(1, 3))
    def park(self, sink: str, limit: int) -> None:
        for order in self.model.orders(sink, limit, now=NOW):
            self.both(partial(_park, sink=sink, order=order))

    @rule(sink=st.sampled_from(SINKS))
    def unpark(self, sink: str) -> None:
        self.both(lambda store: store.unpark(sink))


def _park(store: Store, *, sink: str, order: IndexOrder) -> None:
    store.park(sink, order, "too large")
