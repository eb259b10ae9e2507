"""Orders that are sent on a thread of their own, while more are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from threading import Event

import pytest

from crawlspace.admin import sending
from crawlspace.admin.delivery import SentElsewhere
from crawlspace.admin.sending import MOST_TRIES, Sending
from crawlspace.clock import FakeClock, SystemClock
from crawlspace.document import IndexOrder
from crawlspace.errors import IndexUnavailable, StoreLocked
from crawlspace.index.marks import BatchMark
from crawlspace.index.outbox import Drain
from crawlspace.index.sink import Sent
from tests.contract.conftest import Known
from tests.contract.memory.store import MemoryStore
from tests.contract.sinks import MemorySink
from tests.notifications import LONGEST_WAIT_S

URLS = [f"a.example/{n}" for n in range(10)]


class SlowSink(MemorySink):
    """Waits with each batch until `may_send` is set."""

    def __init__(self) -> None:
        super().__init__("index")
        self.may_send = Event()
        self.may_send.set()

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        assert self.may_send.wait(LONGEST_WAIT_S)
        return super().send(orders, mark)


class Lock:
    """Who may send; a crawl may have it for so many times."""

    def __init__(self) -> None:
        self.crawl_has_it = 0
        self.held = 0

    @contextmanager
    def alone(self) -> Iterator[Callable[[], object]]:
        if self.crawl_has_it:
            self.crawl_has_it -= 1
            raise StoreLocked("a crawl runs")
        self.held += 1
        try:
            yield lambda: None
        finally:
            self.held -= 1


@pytest.fixture
def known() -> Known:
    known = Known(MemoryStore(sinks=("index",)))
    known.discover(*URLS)
    known.record(*(known.page(url, url) for url in URLS))
    return known


@pytest.fixture
def sink() -> SlowSink:
    return SlowSink()


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Lock:
    monkeypatch.setattr(sending, "PAUSE_S", 0)
    return Lock()


def opened(known: Known, sink: SlowSink, lock: Lock) -> closing[Sending]:
    return closing(Sending(Drain(known.store, sink, FakeClock(), batch=3), lock.alone))


def sent(sink: SlowSink) -> list[str]:
    return [line.partition("//")[2] for line in sink.log]


def test_all_are_sent_in_their_order(known: Known, sink: SlowSink, lock: Lock) -> None:
    with opened(known, sink, lock) as sends:
        sends.until(0)
    assert sent(sink) == URLS
    assert (known.orders(), lock.held) == ([], 0)


def test_who_orders_does_not_wait_while_few_wait(known: Known, sink: SlowSink, lock: Lock) -> None:
    sink.may_send.clear()
    with opened(known, sink, lock) as sends:
        sends.until(10)
        sends.until(10)
        assert (len(known.orders()), sent(sink), lock.held) == (10, [], 1), "a batch is under way"
        sink.may_send.set()
        sends.until(8)
        assert len(known.orders()) == 7
        sends.until(0)
    assert sent(sink) == URLS


def test_who_is_busy_for_long_lets_others_send(known: Known, sink: SlowSink, lock: Lock) -> None:
    with opened(known, sink, lock) as sends:
        sends.settle()
        sends.until(10)
        assert lock.held == 1
        sends.settle()
        assert (len(known.orders()), sent(sink), lock.held) == (7, URLS[:3], 0)


def test_a_batch_that_was_not_acknowledged_is_sent_again(known: Known, sink: SlowSink, lock: Lock) -> None:
    with opened(known, sink, lock) as sends:
        sends.until(10)
    assert (sent(sink), len(known.orders()), lock.held) == (URLS[:3], 10, 0)
    with opened(known, sink, lock) as sends:
        sends.until(0)
    assert sent(sink) == URLS[:3] + URLS


def test_while_a_crawl_sends_it_waits_until_few_wait(known: Known, sink: SlowSink, lock: Lock) -> None:
    lock.crawl_has_it = 3
    with opened(known, sink, lock) as sends:
        sends.until(7)
        assert (lock.crawl_has_it, sent(sink)[:3]) == (0, URLS[:3])
        sends.until(0)
        lock.crawl_has_it = 2
        known.record(known.page(URLS[0], "new"))
        sends.until(0)
    assert len(known.orders()) == 1, "the crawl sends what is left"


def test_an_index_that_takes_nothing_ends_it(known: Known, sink: SlowSink, lock: Lock) -> None:
    sink.failures = [IndexUnavailable("the disk is full")]
    with opened(known, sink, lock) as sends, pytest.raises(IndexUnavailable, match="the disk is full"):
        sends.until(0)
    assert (len(known.orders()), lock.held) == (10, 0)


class BusySink(SlowSink):
    """Takes nothing so many times, for a reason that may pass."""

    def __init__(self, busy: int) -> None:
        super().__init__()
        self.busy = busy
        self.batches: list[int] = []

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        self.batches.append(len(orders))
        if self.busy:
            self.busy -= 1
            return Sent(later=orders, why_later="too many requests", is_slow=True)
        return super().send(orders, mark)


def test_an_index_that_is_busy_is_waited_for_with_smaller_batches(known: Known, lock: Lock) -> None:
    sink = BusySink(2)
    drain = Drain(known.store, sink, SystemClock(), batch=8, first_wait_s=0.001, max_wait_s=0.001)
    with closing(Sending(drain, lock.alone)) as sends:
        sends.until(0)
    assert (sink.batches, sent(sink), lock.held) == ([8, 4, 2, 4, 4], URLS, 0)


def test_not_for_ever(known: Known, lock: Lock) -> None:
    sink = BusySink(99)
    drain = Drain(known.store, sink, SystemClock(), batch=8, first_wait_s=0.001, max_wait_s=0.001)
    with closing(Sending(drain, lock.alone)) as sends, pytest.raises(IndexUnavailable, match="too many requests"):
        sends.until(0)
    assert (len(sink.batches), len(known.orders()), lock.held) == (MOST_TRIES, 10, 0)


def test_what_another_machine_sends_is_not_waited_for(known: Known, sink: SlowSink) -> None:
    @contextmanager
    def elsewhere() -> Iterator[Callable[[], object]]:
        raise SentElsewhere(", which is at host:/log: the next crawl there sends them")
        yield lambda: None

    with closing(Sending(Drain(known.store, sink, FakeClock()), elsewhere)) as sends:
        with pytest.raises(IndexUnavailable, match="orders wait for the sink index, which is at host:/log"):
            sends.until(0)
