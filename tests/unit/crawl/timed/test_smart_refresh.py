"""Smart refresh turned off: nothing is due by its age, and all else is as before; and turned on again."""

from __future__ import annotations

from msgspec import structs

from crawlspace.admin.url_changes import UrlChanges
from crawlspace.crawl.timed.refreshes import AGE
from crawlspace.model import Held, State
from crawlspace.state.changes import Change
from crawlspace.state.due_times import AT_ONCE, is_due_by_age, real_time
from crawlspace.status import Status
from tests.contract.conftest import new
from tests.unit.crawl.test_engine_life import HOME
from tests.unit.crawl.timed.web import ALL, RefreshedWeb

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
