"""How a cycle begins while a crawl goes on: in steps of bounded size, between which pages are fetched."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import FetchPage
from crawlspace.crawl.timed.refreshes import CYCLE_BEGAN
from crawlspace.model import State
from crawlspace.state.changes import Change
from crawlspace.state.due_times import AT_ONCE
from crawlspace.state.store import Store
from tests.conftest import assert_same
from tests.contract.conftest import new
from tests.unit.crawl.test_engine_life import DAY, HOME, Web

PAGES = AT_ONCE + 200


@pytest.fixture
def web(local_store: Store, tmp_path: Path) -> Web:
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
def test_no_step_concerns_more_urls_than_it_may_and_pages_are_fetched_meanwhile(web: Web, mode: str) -> None:
    web.settings["CRAWLSPACE_REFRESH_MODE"] = mode
    engine = crawled(web)
    numbers = [due(web)]
    fetched = False
    while not fetched or engine.has_steps:
        engine._update()
        numbers.append(due(web))
        fetched = fetched or (numbers[-1] < PAGES and isinstance(engine.next_fetch(), FetchPage))
        web.clock.advance(1)
    assert numbers[0] == 0
    assert numbers[-1] == PAGES
    assert max(after - before for before, after in pairwise(numbers)) <= AT_ONCE


def test_a_page_is_fetched_once_in_a_cycle_although_it_begins_in_steps(web: Web) -> None:
    engine = crawled(web)
    work(web, engine)
    assert_same(sorted(url for url, _ in web.asked), sorted(web.pages))
    web.asked = []
    web.clock.advance(9 * DAY)
    work(web, engine)
    assert web.asked == []


def test_what_is_fetched_before_its_step_is_not_fetched_again(web: Web) -> None:
    """A pending URL with a large id is fetched while the steps are still at small ones."""
    engine = crawled(web)
    late = f"{HOME}late"
    web.pages[late] = "late"
    web.store.discover([new(late)], now=int(web.clock.now()))
    engine._update()
    engine.frontier.recheck_sites()
    web.clock.advance(1)
    work(web, engine)
    assert web.asked_for(late) == 1


def test_one_that_was_killed_half_way_begins_once_more(web: Web) -> None:
    engine = crawled(web)
    assert engine.next_fetch() is None
    assert engine.has_steps
    web.clock.advance(1)
    web.work(web.open().engine)
    assert_same(sorted(url for url, _ in web.asked), sorted(web.pages))


def test_the_cycle_of_another_worker_is_this_ones_too(web: Web) -> None:
    engine = crawled(web)
    assert engine.next_fetch() is None
    assert engine.has_steps
    other = web.open().engine  # its start makes all steps
    assert due(web) == PAGES
    for _ in range(3):
        web.clock.advance(1)
        engine._update()
    assert not engine.has_steps
    assert engine.policy.next_cycle == other.policy.next_cycle


def test_what_one_worker_has_found_is_not_lost_because_another_is_still_forgetting(web: Web) -> None:
    web.settings["CRAWLSPACE_REFRESH_MODE"] = "scratch"
    engine = crawled(web, 3)
    web.clock.advance(-8 * DAY)
    late = web.open().engine
    web.clock.advance(8 * DAY)
    late._update()
    found = f"{HOME}found"
    web.pages[found] = "new"
    web.links[f"{HOME}1"] = [found]
    while web.store.get(found) is None:
        if isinstance(fetch := engine.next_fetch(), FetchPage):
            engine.fetched(web._answer(fetch))
        engine.commit()
        web.clock.advance(1)
    while late.has_steps:
        web.clock.advance(1)
        late._update()
    work(web, late)
    work(web, engine)
    assert web.asked_for(found) > 0


def test_scratch_forgets_what_is_pending_before_anything_is_fetched_again(web: Web) -> None:
    web.settings["CRAWLSPACE_REFRESH_MODE"] = "scratch"
    engine = crawled(web, 400)
    gone = [f"{HOME}gone{number}" for number in range(600)]
    web.store.discover([new(url) for url in gone], now=int(web.clock.now()))
    web.links[HOME] = [*web.links[HOME], gone[-1]]
    web.pages[gone[-1]] = "linked after all"
    engine._update()
    assert 0 < web.store.counts().by_state["pending"] < len(gone)
    while web.store.counts().by_state.get("pending", 0):
        assert due(web) == 0
        web.clock.advance(1)
        engine._update()
    work(web, engine)
    assert_same(sorted(url for url, _ in web.asked), sorted(web.pages))
    assert {conditional for _, conditional in web.asked} == {False}
