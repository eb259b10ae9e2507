"""Due times of known URLs in a crawl: cycles, smart refresh turned off and on, and a clock that was set back."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.admin.url_changes import UrlChanges
from crawlspace.clock import FakeClock
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import FetchPage
from crawlspace.crawl.timed.refreshes import AGE, CYCLE_BEGAN
from crawlspace.crawl.timed.work import ClockWatch
from crawlspace.model import Held, State
from crawlspace.state.changes import Change
from crawlspace.state.due_times import AT_ONCE, is_due_by_age, real_time
from crawlspace.state.store import Store
from crawlspace.state.views import RobotsEntry
from crawlspace.status import Status
from tests.conftest import assert_same
from tests.contract.conftest import new
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.test_engine import DAY, HOME, Web
from tests.unit.crawl.timed.conftest import ALL, RefreshedWeb

PAGES = AT_ONCE + 200


@pytest.fixture
def cycling_web(local_store: Store, tmp_path: Path) -> Web:
    return Web(tmp_path, local_store, CRAWLSPACE_CONTINUOUS=True, CRAWLSPACE_REFRESH_CYCLE="10d")


def crawled(web: Web, pages: int = PAGES) -> Engine:
    """A crawl that goes on, everything known fetched in the first cycle, and the time for the next one come."""
    links = [f"{HOME}{number}" for number in range(pages - 1)]
    web.pages = {url: url.removeprefix(HOME) or "home" for url in (HOME, *links)}
    web.links = {HOME: links}
    now = int(web.clock.now())
    web.store.discover([new(url) for url in web.pages], now=now)
    done = {"state": State.DONE, "status": 200, "fetched_at": now, "next_fetch": now + 20 * DAY, "rules": 1}
    changes = [Change(structs.replace(state, **done, etag=web.pages[state.url])) for state in web.store.urls()]
    web.store.record(changes, now=now)
    web.store.set_meta(CYCLE_BEGAN, str(now))
    engine = web.open().engine
    web.clock.advance(10 * DAY)
    return engine


def work(web: Web, engine: Engine) -> None:
    """Fetch until nothing is left to do, steps of a cycle included."""
    engine._update()
    web.work(engine)
    while engine.has_steps:
        web.clock.advance(1)
        web.work(engine)


def due(web: Web) -> int:
    now = web.clock.now()
    return sum(state.next_fetch is not None and state.next_fetch <= now for state in web.store.urls())


@pytest.mark.parametrize("mode", ["append", "prioritized", "scratch", "soft"])
def test_no_step_concerns_more_urls_than_it_may_and_pages_are_fetched_meanwhile(cycling_web: Web, mode: str) -> None:
    cycling_web.settings["CRAWLSPACE_REFRESH_MODE"] = mode
    engine = crawled(cycling_web)
    numbers = [due(cycling_web)]
    fetched = False
    while not fetched or engine.has_steps:
        engine._update()
        numbers.append(due(cycling_web))
        fetched = fetched or (numbers[-1] < PAGES and isinstance(engine.next_fetch(), FetchPage))
        cycling_web.clock.advance(1)
    assert numbers[0] == 0
    assert numbers[-1] == PAGES
    assert max(after - before for before, after in pairwise(numbers)) <= AT_ONCE


def test_a_page_is_fetched_once_in_a_cycle_although_it_begins_in_steps(cycling_web: Web) -> None:
    engine = crawled(cycling_web)
    work(cycling_web, engine)
    assert_same(sorted(url for url, _ in cycling_web.asked), sorted(cycling_web.pages))
    cycling_web.asked = []
    cycling_web.clock.advance(9 * DAY)
    work(cycling_web, engine)
    assert cycling_web.asked == []


EARLY = [
    # whether cycles begin when idle, whether the crawl goes on, time since the last one began -> whether a cycle begins
    (True, True, 3_600, True),
    (True, True, 30, False),
    (False, True, 3_600, False),
    (True, False, 3_600, True),
    (False, False, 3_600, False),
]


@pytest.mark.parametrize(("when_idle", "continuous", "waited_s", "begins"), EARLY)
def test_a_cycle_may_begin_before_its_time_when_nothing_is_left_to_do(
    cycling_web: Web, when_idle: bool, continuous: bool, waited_s: int, begins: bool
) -> None:
    cycling_web.settings |= {"CRAWLSPACE_REFRESH_WHEN_IDLE": when_idle, "CRAWLSPACE_CONTINUOUS": continuous}
    engine = crawled(cycling_web, pages=5)
    work(cycling_web, engine)
    engine.close()
    cycling_web.asked = []
    cycling_web.store.set_meta(CYCLE_BEGAN, str(int(cycling_web.clock.now()) - waited_s))
    engine = cycling_web.open().engine
    work(cycling_web, engine)
    assert_same(sorted(url for url, _ in cycling_web.asked), sorted(cycling_web.pages) if begins else [])


def test_what_is_fetched_before_its_step_is_not_fetched_again(cycling_web: Web) -> None:
    """A pending URL with a large id is fetched while the steps are still at small ones."""
    engine = crawled(cycling_web)
    late = f"{HOME}late"
    cycling_web.pages[late] = "late"
    cycling_web.store.discover([new(late)], now=int(cycling_web.clock.now()))
    engine._update()
    engine.frontier.recheck_sites()
    cycling_web.clock.advance(1)
    work(cycling_web, engine)
    assert cycling_web.asked_for(late) == 1


def test_one_that_was_killed_half_way_begins_once_more(cycling_web: Web) -> None:
    engine = crawled(cycling_web)
    assert engine.next_fetch() is None
    assert engine.has_steps
    cycling_web.clock.advance(1)
    cycling_web.work(cycling_web.open().engine)
    assert_same(sorted(url for url, _ in cycling_web.asked), sorted(cycling_web.pages))


def test_the_cycle_of_another_worker_is_this_ones_too(cycling_web: Web) -> None:
    engine = crawled(cycling_web)
    assert engine.next_fetch() is None
    assert engine.has_steps
    other = cycling_web.open().engine  # its start makes all steps
    assert due(cycling_web) == PAGES
    for _ in range(3):
        cycling_web.clock.advance(1)
        engine._update()
    assert not engine.has_steps
    assert engine.policy.next_cycle == other.policy.next_cycle


def test_what_one_worker_has_found_is_not_lost_because_another_is_still_forgetting(cycling_web: Web) -> None:
    cycling_web.settings["CRAWLSPACE_REFRESH_MODE"] = "scratch"
    engine = crawled(cycling_web, 3)
    cycling_web.clock.advance(-8 * DAY)
    late = cycling_web.open().engine
    cycling_web.clock.advance(8 * DAY)
    late._update()
    found = f"{HOME}found"
    cycling_web.pages[found] = "new"
    cycling_web.links[f"{HOME}1"] = [found]
    while cycling_web.store.get(found) is None:
        if isinstance(fetch := engine.next_fetch(), FetchPage):
            engine.fetched(cycling_web._answer(fetch))
        engine.commit()
        cycling_web.clock.advance(1)
    while late.has_steps:
        cycling_web.clock.advance(1)
        late._update()
    work(cycling_web, late)
    work(cycling_web, engine)
    assert cycling_web.asked_for(found) > 0


def test_scratch_forgets_what_is_pending_before_anything_is_fetched_again(cycling_web: Web) -> None:
    cycling_web.settings["CRAWLSPACE_REFRESH_MODE"] = "scratch"
    engine = crawled(cycling_web, 400)
    gone = [f"{HOME}gone{number}" for number in range(600)]
    cycling_web.store.discover([new(url) for url in gone], now=int(cycling_web.clock.now()))
    cycling_web.links[HOME] = [*cycling_web.links[HOME], gone[-1]]
    cycling_web.pages[gone[-1]] = "linked after all"
    engine._update()
    assert 0 < cycling_web.store.counts().by_state["pending"] < len(gone)
    while cycling_web.store.counts().by_state.get("pending", 0):
        assert due(cycling_web) == 0
        cycling_web.clock.advance(1)
        engine._update()
    work(cycling_web, engine)
    assert_same(sorted(url for url, _ in cycling_web.asked), sorted(cycling_web.pages))
    assert {conditional for _, conditional in cycling_web.asked} == {False}


# --- smart refresh turned off, and on again -------------------------------------------------------------------------


OFF, ON = {"CRAWLSPACE_SMART_REFRESH": False}, {"CRAWLSPACE_SMART_REFRESH": True}
YEARS_LATER = "2036-05-04 12:00"


def recrawl(web: RefreshedWeb, *urls: str) -> None:
    UrlChanges(web.store, clock=web.clock).recrawl([state.id for state in web.store.urls() if state.url in urls])


def test_a_page_that_was_fetched_is_never_due(web: RefreshedWeb) -> None:
    assert web.run(**OFF) == ALL
    assert web.run("2026-06-20 12:00") == []
    assert web.run(YEARS_LATER) == []
    assert [real_time(state.next_fetch) for state in web.store.urls()] == [None] * len(ALL)


def test_turned_off_it_is_so_at_once_for_what_is_known_and_due(web: RefreshedWeb) -> None:
    web.run()
    assert web.run("2026-07-04 12:00", **OFF) == []
    assert web.run(YEARS_LATER) == []


def test_turned_on_again_all_is_due_as_if_it_had_been_on(web: RefreshedWeb) -> None:
    web.run(**OFF)
    assert web.run("2026-05-10 12:00", **ON) == []
    assert web.run("2026-07-04 12:00", **OFF) == []
    assert web.run("2026-07-04 13:00", **ON) == ALL
    assert web.run("2026-07-05 13:00") == []


def test_new_pages_are_fetched(web: RefreshedWeb) -> None:
    web.run(**OFF)
    web.store.discover([new(f"{HOME}new")], now=int(web.clock.now()))
    web.pages[f"{HOME}new"] = "new"
    assert web.run("2026-05-05 12:00") == ["new"]


def test_a_page_that_fails_is_tried_again_until_it_answers_or_leaves(web: RefreshedWeb) -> None:
    """As with smart refresh: within the run, and then at growing intervals."""
    web.run(**OFF, CRAWLSPACE_MAX_TEMPORARY_ERRORS=3)
    failing = f"{HOME}1"
    recrawl(web, failing)
    well, web.pages[failing] = web.pages[failing], int(Status.TIMEOUT)
    assert web.run() == ["1", "1"]
    assert web.run("2026-05-05 11:00") == []
    assert web.run("2026-05-05 13:00") == ["1", "1"]
    web.pages[failing] = well
    assert web.run("2026-05-08 13:00") == ["1"]
    assert web.run(YEARS_LATER) == []
    assert "1" in web.indexed


def test_a_page_that_goes_on_failing_leaves_the_index(web: RefreshedWeb) -> None:
    web.run(**OFF, CRAWLSPACE_MAX_TEMPORARY_ERRORS=2)
    failing = f"{HOME}1"
    recrawl(web, failing)
    web.pages[failing] = 500
    for day in range(5, 20):
        web.run(f"2026-05-{day:02} 13:00")
        web.store.discover([new(f"{HOME}well{day}")], now=int(web.clock.now()))  # the site answers something else
        web.pages[f"{HOME}well{day}"] = "well"
    assert web.store.get(failing) is None
    assert "1" not in web.indexed


def test_what_a_looser_rule_lets_in_is_found(web: RefreshedWeb) -> None:
    web.write(start=HOME, rules=f"forbid prefix {HOME}3")
    assert web.run(**OFF) == ["", "0", "1", "2"]
    web.write(start=HOME, rules="")
    assert web.run("2026-05-05 12:00") == ["", "3"]
    assert web.run(YEARS_LATER) == []


def test_what_a_looser_rule_made_due_stays_so_when_smart_refresh_is_turned_off(web: RefreshedWeb) -> None:
    web.write(start=HOME, rules=f"forbid prefix {HOME}3")
    web.run()
    web.write(start=HOME, rules="")
    web.go_to("2026-07-05 12:00")
    web.open()  # and killed before anything was fetched
    web.clock.advance(60)
    assert web.run(**OFF) == ["", "3"]


def test_a_command_has_a_page_fetched(web: RefreshedWeb) -> None:
    web.run(**OFF)
    recrawl(web, f"{HOME}2")
    assert web.run("2026-05-05 12:00") == ["2"]
    assert web.run(YEARS_LATER) == []


def test_the_clock_set_back_makes_nothing_due(web: RefreshedWeb) -> None:
    web.run(**OFF)
    web.clock.set(web.clock.now() - 400 * 86_400)
    assert web.run() == []
    assert web.run(YEARS_LATER) == []


def test_in_cycles_the_setting_has_no_effect(web: RefreshedWeb) -> None:
    web.run(**OFF)
    assert web.run("2026-06-01 12:00", CRAWLSPACE_REFRESH_CYCLE="10d") == ALL
    assert web.run("2026-06-05 12:00") == []
    assert web.run("2026-06-12 12:00") == ALL


def many(web: RefreshedWeb, number: int) -> None:
    """Know so many more pages, all of them due."""
    now = int(web.clock.now())
    urls = [f"{HOME}many/{n}" for n in range(number)]
    web.pages |= dict.fromkeys(urls, "same")
    web.store.discover([new(url) for url in urls], now=now)
    done = {"state": State.DONE, "status": 200, "fetched_at": now - 9, "next_fetch": now - 1, "interval_s": 8, "rules": 1}
    web.store.record([Change(structs.replace(state, **done)) for state in web.store.urls() if "many" in state.url], now=now)


def by_age(web: RefreshedWeb) -> int:
    return sum(map(is_due_by_age, web.store.urls()))


def test_no_step_changes_more_than_it_may_and_nothing_is_fetched_by_age_meanwhile(web: RefreshedWeb) -> None:
    web.run()
    many(web, 2 * AT_ONCE)
    web.settings |= OFF
    engine = web.open().engine
    before = by_age(web)
    assert before == 2 * AT_ONCE + len(ALL)
    while engine.has_steps:
        assert engine.next_fetch() is None
        engine.commit()
        assert before - by_age(web) <= AT_ONCE + 100, "and those that a call has taken up and passed over"
        before = by_age(web)
        web.clock.advance(0.2)
    assert before == 0


def test_killed_half_way_it_goes_on_and_back_it_undoes_what_was_done(web: RefreshedWeb) -> None:
    web.run()
    many(web, 2 * AT_ONCE)
    web.settings |= OFF
    engine = web.open().engine
    engine._update()
    assert by_age(web) == AT_ONCE + len(ALL)
    assert (web.store.get_meta(AGE) or "").startswith("off ")
    web.clock.advance(20)  # a turn of another worker would be over
    again = web.open().engine
    again._update()
    assert by_age(web) < AT_ONCE
    web.settings |= ON
    assert len(web.run()) == 2 * AT_ONCE
    assert web.store.get_meta(AGE) == "on"


def test_a_held_deletion_goes_on_being_checked(web: RefreshedWeb) -> None:
    web.run(**OFF)
    web.pages = dict.fromkeys(web.pages, 500)
    recrawl(web, *web.pages)
    web.run()
    assert set(web.held().values()) == {Held.HOST}
    web.pages = dict.fromkeys(web.pages, "back")
    assert web.run("2026-05-06 12:00") == ALL
    assert web.held() == {}


# --- a clock that was set back --------------------------------------------------------------------------------------


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
