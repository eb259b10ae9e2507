"""What is noted of the server of a sink."""

from __future__ import annotations

import pytest

from crawlspace.clock import FakeClock
from crawlspace.errors import IndexUnavailable
from crawlspace.index.notes import Server, noted_server, server_meta
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
