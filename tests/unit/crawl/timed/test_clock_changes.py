"""A clock that was set back under a crawl: what is due too late is due sooner, a part at a time."""

from __future__ import annotations

from msgspec import structs

from crawlspace.clock import FakeClock
from crawlspace.crawl.timed.work import ClockWatch
from crawlspace.model import State
from crawlspace.state.changes import Change
from crawlspace.state.due_times import AT_ONCE
from crawlspace.state.views import RobotsEntry
from tests.contract.conftest import new
from tests.contract.memory.store import MemoryStore

DAY = 86_400


def test_a_glance_concerns_no_more_urls_than_it_may() -> None:
    clock, store = FakeClock(), MemoryStore(sinks=())
    now = int(clock.now())
    store.discover([new(f"a.example/{number}") for number in range(AT_ONCE + 200)], now=now)
    store.record([Change(structs.replace(row, state=State.DONE, next_fetch=now + 3 * DAY)) for row in store.urls()], now=now)
    watch = ClockWatch(store, clock, longest_s=DAY)
    assert watch.check() == 0, "nothing is wrong with the clock"
    clock.advance(301)
    clock.set(now - DAY)
    steps: list[int] = []
    while not steps or watch.has_steps:
        watch.step()
        steps.append(sum(row.next_fetch == now for row in store.urls()))
        clock.advance(1)
    assert steps == [AT_ONCE, AT_ONCE + 200, AT_ONCE + 200]
    assert {row.next_fetch for row in store.urls()} == {now}


def test_what_was_read_later_than_now_is_no_robots_txt_any_more() -> None:
    clock, store = FakeClock(), MemoryStore(sinks=())
    now = int(clock.now())
    for site, ago in (("a.example:80", 2 * DAY), ("b.example:80", 0)):
        store.save_robots(RobotsEntry(site, "http", 200, "User-agent: *\nDisallow: /\n", now - ago))
    watch = ClockWatch(store, clock, longest_s=DAY)
    watch.check()
    assert store.robots("b.example:80", "http") is not None
    clock.set(now - DAY)
    watch.check()
    assert store.robots("a.example:80", "http") is not None
    assert store.robots("b.example:80", "http") is None
