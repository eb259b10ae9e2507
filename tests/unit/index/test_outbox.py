"""From the outbox to an index: the drain, the notes of a sink, versions of orders, and documents behind a log-in left out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crawlspace.clock import FakeClock
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.errors import IndexUnavailable, StoreDamaged
from crawlspace.index.login_exclusion import LoginExclusion, stand_in
from crawlspace.index.marks import BatchMark
from crawlspace.index.notes import Server, Standstill, noted_server, noted_standstill, server_meta, standstill_meta
from crawlspace.index.outbox import MAX_FAULTS, Drain, Drained
from crawlspace.index.sink import Refusal, Sent
from crawlspace.index.versions import MOST, Versions
from tests.contract.conftest import Known
from tests.contract.memory.store import MemoryStore
from tests.contract.sinks import MemorySink
from tests.draining import drain_all


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
    drained = drain_all(scene.drain)
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
    assert drain_all(scene.another()) == Drained(2)
    assert scene.sink.log == ["delete b", "push a"] * 2
    assert list(scene.sink.documents) == ["a"]


def test_an_order_replaced_while_its_batch_was_in_flight_is_sent_too() -> None:
    scene = Scene("+a")
    delivery = scene.drain.deliver(scene.drain.take())
    scene.outbox.give("-a")
    scene.drain.settle(delivery)
    assert drain_all(scene.drain) == Drained(1)
    assert scene.sink.log == ["push a", "delete a"]


def test_a_sink_that_fails_on_everything_is_waited_for_and_parks_few() -> None:
    given = " ".join(f"+u{number}" for number in range(100))
    scene = Scene(given, batch=100)
    scene.sink.poison = set(scene.outbox.waiting)
    drained = drain_all(scene.drain)
    assert drained == Drained(0, MAX_FAULTS, 1.0)


def test_a_damaged_index_is_nobodys_fault_but_its_own() -> None:
    scene = Scene("+a +b")
    scene.sink.failures = [StoreDamaged("broken")]
    with pytest.raises(StoreDamaged):
        scene.drain.step()
    assert (scene.drain.backlog(), scene.outbox.parked) == (2, {})


# --- notes of a sink in the store -----------------------------------------------------------------------------------


OLD, NEW = Server("Server 1.0"), Server("Server 2.0", "Server 2.0 was not tried")


class ServedSink(MemorySink):
    server: Server | None = None


def test_a_server_is_noted_and_one_that_was_not_tried_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    store, sink, clock = MemoryStore(sinks=("memory",)), ServedSink(), FakeClock()
    known, drain = Known(store), Drain(store, sink, clock)
    seen = []
    for number, server in enumerate((None, OLD, NEW, NEW, OLD, NEW)):
        sink.server = server
        known.discover(f"a.example/{number}")
        known.record(known.page(f"a.example/{number}", "x", text="x"))
        drain.step()
        seen.append((noted_server(store.get_meta(server_meta("memory"))), caplog.text.count("Server 2.0 was not tried")))
    assert seen == [(None, 0), (OLD, 0), (NEW, 1), (NEW, 1), (OLD, 1), (NEW, 2)]


def test_a_server_that_takes_nothing_is_noted() -> None:
    store, sink = MemoryStore(sinks=("memory",)), ServedSink()
    known, sink.server, sink.failures = Known(store), NEW, [IndexUnavailable("read-only")]
    known.discover("a.example/a")
    known.record(known.page("a.example/a", "x", text="x"))
    Drain(store, sink, FakeClock()).step()
    assert noted_server(store.get_meta(server_meta("memory"))) == NEW


@pytest.mark.parametrize("written", [None, "", "{", "[]", '{"product": 1}'])
def test_what_cannot_be_read_is_no_server(written: str | None) -> None:
    assert noted_server(written) is None


AWAY, READ_ONLY = "it is away", "it is read-only"


def noted(store: MemoryStore) -> Standstill | None:
    return noted_standstill(store.get_meta(standstill_meta("memory")))


def test_the_time_is_that_of_the_first_failure_and_the_reason_that_of_the_last() -> None:
    store, sink, clock = MemoryStore(sinks=("memory",)), MemorySink(), FakeClock()
    known, drain = Known(store), Drain(store, sink, clock)
    first = int(clock.now())
    seen = []
    for number, failure in enumerate((None, AWAY, READ_ONLY, None, AWAY)):
        known.discover(f"a.example/{number}")
        known.record(known.page(f"a.example/{number}", "x", text="x"))
        sink.failures = [] if failure is None else [IndexUnavailable(failure)]
        drain.step()
        found = noted(store)
        seen.append(None if found is None else (found.since - first, found.why))
        clock.advance(100)
    assert seen == [None, (100, AWAY), (100, READ_ONLY), None, (400, AWAY)]


def test_it_is_written_once_for_each_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    store, sink, clock = MemoryStore(sinks=("memory",)), MemorySink(), FakeClock()
    known, drain = Known(store), Drain(store, sink, clock)
    known.discover("a.example/a")
    known.record(known.page("a.example/a", "x", text="x"))
    written: list[str] = []
    set_meta = store.set_meta

    def counting(name: str, value: str) -> None:
        written.append(name)
        set_meta(name, value)

    monkeypatch.setattr(store, "set_meta", counting)
    for _ in range(3):
        sink.failures = [IndexUnavailable(AWAY)]
        drain.step()
        clock.advance(100)
    assert written.count(standstill_meta("memory")) == 1


def test_another_process_that_takes_over_goes_on_with_it() -> None:
    store, sink, clock = MemoryStore(sinks=("memory",)), MemorySink(), FakeClock()
    known, drain, other = Known(store), Drain(store, sink, clock), Drain(store, sink, clock)
    known.discover("a.example/a")
    known.record(known.page("a.example/a", "x", text="x"))
    since = int(clock.now())
    sink.failures = [IndexUnavailable(AWAY), IndexUnavailable(READ_ONLY)]
    drain.step()
    clock.advance(100)
    other.step()
    assert noted(store) == Standstill(since, READ_ONLY)
    clock.advance(100)
    other.step()
    assert noted(store) is None
    known.discover("a.example/b")
    known.record(known.page("a.example/b", "x", text="x"))
    sink.failures = [IndexUnavailable(AWAY)]
    drain.leave_to_others()
    drain.step()
    assert noted(store) == Standstill(since + 200, AWAY)


@pytest.mark.parametrize("written", [None, "", "{", "[]", '{"since": "x"}'])
def test_what_cannot_be_read_is_no_standstill(written: str | None) -> None:
    assert noted_standstill(written) is None


# --- versions of orders ---------------------------------------------------------------------------------------------


@pytest.fixture
def versions() -> Versions:
    return Versions(MemoryStore(sinks=("search",)), "search", FakeClock())


def version_of(versions: Versions, sequence: int) -> int:
    return versions.of([IndexOrder(sequence, Op.DELETE, "http://a.example/")])[0].version


def test_they_grow_with_the_orders(versions: Versions) -> None:
    first = version_of(versions, 7)
    assert (version_of(versions, 8), versions.least(7), versions.least(8)) == (first + 1, first, first + 1)


def test_after_they_were_raised_an_order_of_before_has_its_own(versions: Versions) -> None:
    before = version_of(versions, 7)
    versions.raise_above(before + 500, sequence=8, last=10)
    assert version_of(versions, 8) == before + 501
    assert [versions.least(sequence) for sequence in (7, 10)] == [before, before + 3], "they may have been sent before"
    assert versions.least(11) == version_of(versions, 11) == before + 504
    versions.raise_above(before + 400, sequence=8, last=10)
    assert version_of(versions, 8) == before + 501, "they never go down"


def test_there_is_always_room_above(versions: Versions) -> None:
    versions.raise_above(MOST, sequence=8, last=8)
    assert version_of(versions, 1_000_000) < MOST


def test_it_is_known_without_writing() -> None:
    store = MemoryStore(sinks=("search",))
    assert (Versions(store, "search", FakeClock()).least(7), store.get_meta("versions:search")) == (7, None)


def test_what_is_kept_of_former_ones_is_bounded(versions: Versions) -> None:
    first = version_of(versions, 0)
    for number in range(1, 200):
        versions.raise_above(first + number * 1_000, sequence=number, last=number)
    assert versions.least(0) > first
    assert versions.least(500) == version_of(versions, 500)


# --- sinks that leave out documents behind a log-in -----------------------------------------------------------------


EXCLUSION = LoginExclusion(lambda url: url.startswith("private"), "")
MARKED = {"requires_login": "true"}
ORDERS = (
    (IndexOrder(1, Op.DELETE, "public"), Op.DELETE),
    (IndexOrder(1, Op.PUSH, "public", Document("public")), Op.PUSH),
    (IndexOrder(1, Op.PUSH, "private", Document("private")), Op.DELETE),
    (IndexOrder(1, Op.PUSH, "public", Document("public", fields=MARKED)), Op.DELETE),
    (IndexOrder(1, Op.PUSH, "private", stand_in("private")), Op.DELETE),
)


@pytest.mark.parametrize(("order", "op"), ORDERS)
def test_a_push_of_what_is_left_out_is_a_deletion(order: IndexOrder, op: Op) -> None:
    sent = EXCLUSION.of(order)
    assert (sent.op, sent.url, sent.sequence) == (op, order.url, 1)
    assert (sent.document is None) == (op is Op.DELETE)


def test_a_document_does_not_name_what_is_left_out() -> None:
    document = Document("public", duplicates=["private/1", "public/2"])
    sent = EXCLUSION.of(IndexOrder(1, Op.PUSH, "public", document)).document
    assert sent is not None
    assert sent.duplicates == ["public/2"]
    assert document.duplicates == ["private/1", "public/2"], "for the other sinks"


class RefusingSink(MemorySink):
    """Refuses a deletion, which no server does, to see which order is named."""

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        refused = [Refusal(order, "no") for order in orders if order.url == "private/bad"]
        later = [order for order in orders if order.url == "private/later"]
        super().send([order for order in orders if order.url not in {"private/bad", "private/later"}], mark)
        return Sent(refused=refused, later=later)


def test_orders_are_done_or_parked_as_they_were_taken() -> None:
    outbox, sink = StrictOutbox("+public +private +private/bad +private/later"), RefusingSink()
    Drain(outbox, sink, FakeClock(), exclusion=EXCLUSION).step()
    assert set(sink.documents) == {"public"}
    assert set(outbox.waiting) == {"private/later"}
    assert set(outbox.parked) == {"private/bad"}


class StrictOutbox(Outbox):
    """Knows orders by what they do, as stores may."""

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        assert {order.op for order in orders} == {Op.PUSH}
        super().acknowledge(sink, orders)

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        assert order.op is Op.PUSH
        super().park(sink, order, reason)
