"""What a sink has refused is sent again, and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial

import pytest

from crawlspace.admin.parked import SentAgain, send_again
from crawlspace.admin.sending import Sending
from crawlspace.clock import FakeClock
from crawlspace.errors import IndexUnavailable, StoreLocked
from crawlspace.index.outbox import Drain
from tests.contract.conftest import Known
from tests.contract.memory.store import MemoryStore
from tests.contract.sinks import MemorySink
from tests.draining import drain_all


@pytest.fixture
def known() -> Known:
    """Three documents of which the sink has refused two, and a fourth that waits."""
    known = Known(MemoryStore(sinks=("search",)))
    known.discover("a.example/", "b.example/", "c.example/", "d.example/")
    known.record(*(known.page(f"{name}.example/", name) for name in "abc"))
    sink = MemorySink("search")
    sink.poison = {"http://a.example/", "http://b.example/"}
    drain_all(Drain(known.store, sink, FakeClock()))
    assert len(known.store.parked("search")) == 2
    known.record(known.page("d.example/", "d"))
    return known


@contextmanager
def free() -> Iterator[Callable[[], object]]:
    yield lambda: None


@contextmanager
def crawled() -> Iterator[Callable[[], object]]:
    raise StoreLocked("a crawl runs")
    yield lambda: None


DOWN = IndexUnavailable("it is down")
# What the sink still fails on, whether it is down, whether a crawl sends -> what is counted, and said
CASES = [
    ("", None, free, SentAgain("search", 2, 0, 0, ""), "search: 2 orders sent again, 2 taken, 0 refused"),
    (
        "a",
        None,
        free,
        SentAgain("search", 2, 1, 0, ""),
        "search: 2 orders sent again, 1 taken, 1 refused (`scrapy sinks demo --parked search` shows why)",
    ),
    ("", DOWN, free, SentAgain("search", 2, 0, 3, "it is down"), "search: 2 orders sent again; 3 orders wait: it is down"),
    (
        "",
        None,
        crawled,
        SentAgain("search", 2, 0, 3, ""),
        "search: 2 orders sent again; the running crawl sends the waiting orders",
    ),
]


@pytest.mark.parametrize(("poison", "failure", "alone", "expected", "sentence"), CASES)
def test_what_was_refused_is_sent_again(
    known: Known,
    poison: str,
    failure: Exception | None,
    alone: Callable[[], object],
    expected: SentAgain,
    sentence: str,
) -> None:
    sink = MemorySink("search")
    sink.poison = {f"http://{name}.example/" for name in poison}
    sink.failures = [failure] if failure is not None else []
    with closing(Sending(Drain(known.store, sink, FakeClock()), alone)) as sending:  # type: ignore[arg-type]
        sent = send_again(known.store, "search", partial(sending.until, 0))
    assert sent == expected
    assert sent.sentence("demo") == sentence
    assert sent.is_done is (not poison and failure is None)
