"""The notes of a sink in the store: its server, and since when and why it accepts nothing."""

from __future__ import annotations

import pytest

from crawlspace.clock import FakeClock
from crawlspace.errors import IndexUnavailable
from crawlspace.index.notes import Server, Standstill, noted_server, noted_standstill, server_meta, standstill_meta
from crawlspace.index.outbox import Drain
from tests.contract.conftest import Known
from tests.contract.memory.store import MemoryStore
from tests.contract.sinks import MemorySink

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
