"""A scheduled refresh: what is fetched, when, once, and what becomes of it when it is killed."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import structs

from crawlspace.crawl.run import FetchPage
from crawlspace.crawl.timed.refreshes import RUNNING
from crawlspace.model import Requester, Source, State
from crawlspace.state.changes import Change
from crawlspace.state.due_times import AT_ONCE
from tests.contract.conftest import new
from tests.unit.crawl.test_engine import HOME
from tests.unit.crawl.timed.conftest import ALL, RefreshedWeb, at

AT_TWO: dict[str, object] = {"CRAWLSPACE_SMART_REFRESH": False, "CRAWLSPACE_REFRESH_SCHEDULE": "0 2 * * *"}


def test_the_first_start_fetches_what_is_new_and_refreshes_nothing(web: RefreshedWeb) -> None:
    assert web.run() == ALL
    assert web.run("2026-05-04 13:00", **AT_TWO) == []
    assert web.run("2026-05-05 01:59") == []
    assert web.run("2026-05-05 02:00") == ALL


def test_a_start_makes_up_for_times_that_were_missed_once(web: RefreshedWeb) -> None:
    web.run(**AT_TWO)
    assert web.run("2026-05-20 12:00") == ALL
    assert web.run("2026-05-20 13:00") == []
    assert web.run("2026-05-21 02:30") == ALL


def test_it_is_conditional_and_in_source_index(web: RefreshedWeb) -> None:
    web.run(**AT_TWO)
    web.go_to("2026-05-05 12:00")
    engine = web.open().engine
    engine._update()
    assert {(state.requested_by, state.queue.source) for state in web.store.urls()} == {(Requester.SCHEDULE, Source.INDEX)}
    web.finish(engine)
    assert web.asked == [(url, True) for url in web.pages]
    assert {state.requested_by for state in web.store.urls()} == {Requester.NOBODY}


def test_with_smart_refresh_pages_have_their_own_intervals_too(web: RefreshedWeb) -> None:
    web.run(**AT_TWO, CRAWLSPACE_REFRESH_MIN=60)
    web.settings["CRAWLSPACE_SMART_REFRESH"] = True
    web.settings["CRAWLSPACE_REFRESH_SCHEDULE"] = "@yearly"
    assert web.run("2026-06-30 12:00") == ALL
    assert (
        web.run("2027-01-01 00:00", CRAWLSPACE_REFRESH_MIN="400d", CRAWLSPACE_REFRESH_MAX="400d", CRAWLSPACE_START_REFRESH="400d")
        == ALL
    )


def test_another_expression_or_zone_makes_up_for_nothing(web: RefreshedWeb) -> None:
    web.run(**AT_TWO)
    assert web.run("2026-05-04 23:00", CRAWLSPACE_REFRESH_SCHEDULE="0 22 * * *") == []
    assert web.run("2026-05-05 21:30", CRAWLSPACE_TIMEZONE="Europe/Berlin") == []
    assert web.run("2026-05-06 20:00") == ALL


def test_taken_away_and_set_again_it_makes_up_for_nothing(web: RefreshedWeb) -> None:
    web.run(**AT_TWO)
    assert web.run("2026-05-20 12:00", CRAWLSPACE_REFRESH_SCHEDULE="") == []
    assert web.run("2026-05-21 12:00", **AT_TWO) == []
    assert web.run("2026-05-22 12:00") == ALL


def test_the_clock_set_back_makes_up_for_nothing_and_the_schedule_goes_on(web: RefreshedWeb) -> None:
    web.run(**AT_TWO)
    web.clock.set(web.clock.now() - 30 * 86_400)
    assert web.run() == []
    web.clock.advance(86_400)
    assert web.run() == ALL


@pytest.mark.parametrize(
    ("before", "after"),
    [("2026-03-28 12:00", "2026-03-29 12:00"), ("2026-10-24 12:00", "2026-10-25 12:00")],
    ids=["lost", "twice"],
)
def test_a_time_that_does_not_exist_or_comes_twice_comes_once(web: RefreshedWeb, before: str, after: str) -> None:
    web.clock.set(web.clock.now() - 100 * 86_400)
    web.go_to(before)
    web.settings |= {
        **AT_TWO,
        "CRAWLSPACE_REFRESH_SCHEDULE": "30 2 * * *",
        "CRAWLSPACE_TIMEZONE": "Europe/Berlin",
        "CRAWLSPACE_CONTINUOUS": True,
    }
    engine = web.open().engine
    web.work_on(engine)
    web.asked = []
    while web.clock.now() < at(after):
        web.clock.advance(600)
        web.work_on(engine)
    assert web.paths == ALL


def test_a_crawl_that_goes_on_refreshes_at_each_time(web: RefreshedWeb) -> None:
    web.settings |= {**AT_TWO, "CRAWLSPACE_CONTINUOUS": True}
    engine = web.open().engine
    web.finish(engine)
    for day in (5, 6):
        web.go_to(f"2026-05-{day:02} 01:59")
        web.finish(engine)
        assert web.asked == []
        web.go_to(f"2026-05-{day:02} 02:00")
        web.finish(engine)
        assert web.paths == ALL


def test_documents_in_error_and_excluded_pages_are_refreshed_like_others_and_what_is_outside_is_not(web: RefreshedWeb) -> None:
    web.pages[f"{HOME}1"] = 404
    web.run(**AT_TWO)
    web.write(start=HOME, rules=f"forbid prefix {HOME}2")
    web.pages[f"{HOME}1"] = "there after all"
    assert web.run("2026-05-05 12:00") == ["", "0", "1", "3"]
    assert "1" in web.indexed


def test_a_page_that_is_gone_leaves_the_index_with_the_refresh(web: RefreshedWeb) -> None:
    web.run(**AT_TWO)
    web.pages[f"{HOME}1"] = 404
    web.run("2026-05-05 12:00")
    assert web.store.get(f"{HOME}1") is None
    assert "1" not in web.indexed


def prepared(web: RefreshedWeb, pages: int) -> None:
    """Have so many pages be known and fetched, and the time of a refresh come."""
    web.run(**AT_TWO)
    now = int(web.clock.now())
    urls = [f"{HOME}many/{n}" for n in range(pages)]
    web.pages |= dict.fromkeys(urls, "same")
    web.store.discover([new(url) for url in urls], now=now)
    done = {"state": State.DONE, "status": 200, "fetched_at": now, "next_fetch": now + 8, "interval_s": 8, "rules": 1}
    web.store.record([Change(structs.replace(state, **done)) for state in web.store.urls() if "many" in state.url], now=now)
    web.go_to("2026-05-05 02:00")


def scheduled(web: RefreshedWeb) -> int:
    return sum(state.requested_by is Requester.SCHEDULE for state in web.store.urls())


def test_no_step_puts_more_into_the_queue_than_it_may_and_pages_are_fetched_meanwhile(web: RefreshedWeb) -> None:
    prepared(web, 2 * AT_ONCE)
    engine = web.open().engine
    engine._update()
    assert scheduled(web) == AT_ONCE
    assert isinstance(engine.next_fetch(), FetchPage)
    assert not engine.is_done()
    web.clock.advance(0.2)
    engine._update()
    assert scheduled(web) == 2 * AT_ONCE


def test_killed_half_way_it_is_completed_and_nothing_is_fetched_twice(web: RefreshedWeb) -> None:
    prepared(web, 2 * AT_ONCE)
    engine = web.open().engine
    engine._update()
    first = []
    for _ in range(300):
        fetch = engine.next_fetch()
        assert isinstance(fetch, FetchPage)
        engine.fetched(web._answer(fetch))
        first.append(fetch.state.url)
    engine.commit()
    assert scheduled(web) == AT_ONCE - len(first)
    web.clock.advance(700)
    web.store.reclaim(now=int(web.clock.now()))
    web.run()  # as after a kill: nothing of the other engine is used any more
    fetched = Counter([*first, *(url for url, _ in web.asked)])
    assert fetched == dict.fromkeys(web.pages, 1)
    assert web.store.get_meta(RUNNING) == ""
    assert web.run("2026-05-05 12:00") == []


@pytest.mark.parametrize("store", ["redis"], indirect=True)
def test_of_two_workers_one_begins_and_the_other_goes_on_when_it_is_killed(web: RefreshedWeb) -> None:
    prepared(web, 2 * AT_ONCE)
    web.settings["CRAWLSPACE_CONTINUOUS"] = True
    web.clock.advance(-3600)
    first, second = web.open().engine, web.open().engine
    web.clock.advance(3600)
    for engine in (first, second):
        engine._update()
    began = web.store.get_meta(RUNNING)
    web.clock.advance(1.1)
    for engine in (first, second):
        engine._update()
    assert (web.store.get_meta(RUNNING) or "").split()[0] == (began or "").split()[0], "the same refresh"
    for _ in range(400):  # the first one is no more
        web.clock.advance(0.2)
        second._update()
    assert scheduled(web) == 2 * AT_ONCE + len(ALL)
    assert not second.has_steps
    first._update()
    web.clock.advance(2)
    first._update()
    assert scheduled(web) == 2 * AT_ONCE + len(ALL)


def test_a_page_with_the_mark_keeps_it_until_its_fetch_is_complete(web: RefreshedWeb) -> None:
    web.run(**AT_TWO)
    well, web.pages[f"{HOME}1"] = web.pages[f"{HOME}1"], 503
    web.go_to("2026-05-05 12:00")
    engine = web.open().engine
    engine._update()
    state = web.of(f"{HOME}1")
    while isinstance(fetch := engine.next_fetch(), FetchPage):
        engine.fetched(web._answer(fetch))
    engine.commit()
    state = web.of(f"{HOME}1")
    assert (state.retries, state.queue.source) == (1, Source.INDEX)
    web.pages[f"{HOME}1"] = well
    web.work_on(engine)
    assert {state.requested_by for state in web.store.urls()} == {Requester.NOBODY}
