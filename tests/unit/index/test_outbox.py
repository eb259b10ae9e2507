"""The drain between an outbox and an index: nothing lost, nothing acknowledged too early, nothing held up by one bad order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crawlspace.clock import FakeClock
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.errors import IndexUnavailable, StoreDamaged
from crawlspace.index.marks import BatchMark
from crawlspace.index.outbox import MAX_FAULTS, Drain, Drained
from crawlspace.index.sink import Sent
from tests.contract.sinks import MemorySink


class Outbox:
    """A store's outbox for one sink, in dictionaries: one order a URL, deletes first."""

    def __init__(self, written: str = "") -> None:
        self.waiting: dict[str, IndexOrder] = {}
        self.parked: dict[str, str] = {}
        self.given = 0
        self.meta: dict[str, str] = {}
        for part in written.split():
            self.give(part)

    def give(self, written: str) -> None:
        """`+a` pushes a, `+a=bad` pushes it titled bad, `-a` deletes it."""
        url, _, title = written[1:].partition("=")
        self.given += 1
        op = Op.PUSH if written[0] == "+" else Op.DELETE
        document = Document(url, title=title) if op is Op.PUSH else None
        self.waiting.pop(url, None)
        self.waiting[url] = IndexOrder(self.given, op, url, document)

    def orders(self, sink: str, limit: int, *, now: int, most_bytes: int = 0) -> list[IndexOrder]:
        assert sink == "memory"
        assert now >= 1_750_000_000
        return sorted(self.waiting.values(), key=lambda order: (order.op is not Op.DELETE, order.sequence))[:limit]

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        assert sink == "memory"
        for order in orders:
            if (waits := self.waiting.get(order.url)) is not None and waits.sequence == order.sequence:
                del self.waiting[order.url]

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        assert sink == "memory"
        self.waiting.pop(order.url)
        self.parked[order.url] = reason

    def get_meta(self, name: str) -> str | None:
        return self.meta.get(name)

    def set_meta(self, name: str, value: str) -> None:
        self.meta[name] = value

    def backlog(self, sink: str) -> int:
        assert sink == "memory"
        return len(self.waiting)


class Scene:
    def __init__(self, written: str, *, batch: int = 4) -> None:
        self.outbox, self.sink, self.clock = Outbox(written), MemorySink(), FakeClock()
        self.drain = self.another(batch=batch)

    def another(self, *, batch: int = 4) -> Drain:
        return Drain(self.outbox, self.sink, self.clock, batch=batch, max_wait_s=60)


# Orders given, titles refused by the sink and URLs that break it; then what the sink saw, and what was parked.
DRAINS = (
    ("", "", "", ""),
    ("+a +b +c", "", "push a|push b|push c", ""),
    ("+a -b +c -d", "", "delete b|delete d|push a|push c", ""),
    ("+a +b +a", "", "push b|push a", ""),
    ("+a +b=bad +c", "", "push a|push c", "b"),
    ("+a=bad", "", "", "a"),
    ("+a +b +c +d", "b", "push a|push c|push d", "b"),
    ("+a +b +c +d", "a d", "push b|push c", "a d"),
    ("-a +b=bad +c +d +e +f", "c", "delete a|push d|push e|push f", "b c"),
)


@pytest.mark.parametrize(("given", "poison", "log", "parked"), DRAINS)
@pytest.mark.parametrize("batch", [1, 4, 100])
def test_a_drain_sends_all_and_parks_what_is_refused(given: str, poison: str, log: str, parked: str, batch: int) -> None:
    scene = Scene(given, batch=batch)
    scene.sink.poison = set(poison.split())
    drained = scene.drain.drain_all()
    assert "|".join(scene.sink.log) == log
    assert " ".join(sorted(scene.outbox.parked)) == parked
    assert drained == Drained(len(scene.sink.log), len(scene.outbox.parked))
    assert scene.drain.backlog() == 0


def test_a_step_sends_one_batch() -> None:
    scene = Scene("+a +b +c", batch=2)
    assert [scene.drain.step().sent for _ in range(3)] == [2, 1, 0]


def test_an_index_that_is_down_costs_growing_waits_and_loses_nothing() -> None:
    scene = Scene("+a -b")
    waits = []
    for _ in range(8):
        scene.sink.failures = [IndexUnavailable("no answer")]
        waits.append(scene.drain.step().waiting_s)
        assert scene.drain.take() == ()
        assert scene.drain.step() == Drained(waiting_s=waits[-1])
        scene.sink.failures = []
        assert scene.drain.backlog() == 2
        scene.clock.advance(waits[-1] or 0)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert scene.drain.step() == Drained(2)
    scene.outbox.give("+c")
    scene.sink.failures = [IndexUnavailable("no answer")]
    assert scene.drain.step().waiting_s == 1


class FallingSink(MemorySink):
    """Breaks on a whole batch, takes the first half, then answers no more."""

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        if len(orders) > 2:
            raise ValueError("too many for me")
        if self.log:
            raise IndexUnavailable("gone")
        return super().send(orders, mark)


def test_what_was_durable_before_the_index_went_down_is_acknowledged() -> None:
    outbox = Outbox("+a +b +c +d")
    drain = Drain(outbox, FallingSink(), FakeClock())
    assert drain.step() == Drained(2, 0, 1.0)
    assert sorted(outbox.waiting) == ["c", "d"]


def test_a_kill_between_delivery_and_settlement_sends_again() -> None:
    scene = Scene("+a -b")
    scene.drain.deliver(scene.drain.take())
    assert scene.outbox.backlog("memory") == 2
    assert scene.another().drain_all() == Drained(2)
    assert scene.sink.log == ["delete b", "push a"] * 2
    assert list(scene.sink.documents) == ["a"]


def test_an_order_replaced_while_its_batch_was_in_flight_is_sent_too() -> None:
    scene = Scene("+a")
    delivery = scene.drain.deliver(scene.drain.take())
    scene.outbox.give("-a")
    scene.drain.settle(delivery)
    assert scene.drain.drain_all() == Drained(1)
    assert scene.sink.log == ["push a", "delete a"]


def test_a_sink_that_fails_on_everything_is_waited_for_and_parks_few() -> None:
    given = " ".join(f"+u{number}" for number in range(100))
    scene = Scene(given, batch=100)
    scene.sink.poison = set(scene.outbox.waiting)
    drained = scene.drain.drain_all()
    assert drained == Drained(0, MAX_FAULTS, 1.0)


def test_a_damaged_index_is_nobodys_fault_but_its_own() -> None:
    scene = Scene("+a +b")
    scene.sink.failures = [StoreDamaged("broken")]
    with pytest.raises(StoreDamaged):
        scene.drain.step()
    assert (scene.drain.backlog(), scene.outbox.parked) == (2, {})


def test_a_drain_stops_at_its_deadline() -> None:
    scene = Scene("+a +b +c", batch=1)
    assert scene.drain.drain_all(deadline=scene.clock.monotonic()) == Drained(1)
    assert scene.drain.drain_all(deadline=scene.clock.monotonic() + 1) == Drained(2)
