"""A dead link costs one request in a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.model import State
from crawlspace.state.store import Store
from tests.unit.crawl.test_engine_life import DAY, HOME, Web
from tests.unit.crawl.timed.test_cycles import work

DEAD, LAST = f"{HOME}dead", f"{HOME}last"


@pytest.fixture
def web(local_store: Store, tmp_path: Path) -> Web:
    made = Web(tmp_path, local_store)
    made.pages = {HOME: "home", DEAD: "alive", LAST: "last"}
    made.links = {HOME: [DEAD, LAST], LAST: [DEAD]}
    made.crawl()
    made.pages |= {HOME: "home 2", LAST: "last 2", DEAD: 404}
    return made


def test_a_url_that_ended_in_a_run_is_not_entered_again_in_it(web: Web) -> None:
    web.crawl(after=40)
    assert sorted(url for url, _ in web.asked) == [HOME, DEAD, LAST]
    assert web.store.get(DEAD) is None
    assert web.indexed == {"", "last"}


def test_it_is_found_again_later(web: Web) -> None:
    web.crawl(after=40)
    web.pages[DEAD] = "alive again"
    for _ in range(3):  # pages that have not changed are fetched whole, because a link of theirs is lost
        web.crawl(after=40)
    assert web.indexed == {"", "last", "dead"}


@pytest.mark.parametrize(("cycle", "days"), [("0", 1), ("30d", 30)])
def test_a_start_url_that_is_gone_is_fetched_again_in_a_continuous_crawl(web: Web, cycle: str, days: int) -> None:
    """Once an interval, or in each cycle; its document leaves the index, and comes back with the page."""
    web.settings |= {"CRAWLSPACE_CONTINUOUS": True, "CRAWLSPACE_REFRESH_CYCLE": cycle}
    web.pages[HOME] = 404
    web.clock.advance(40 * DAY)
    engine = web.open().engine
    for _ in range(3):
        web.asked = []
        work(web, engine)
        assert "" not in web.indexed
        web.clock.advance(days * DAY - 7_200)
        work(web, engine)
        assert web.asked_for(HOME) == 1
        web.clock.advance(7_300)
    web.pages[HOME] = "home again"
    work(web, engine)
    engine.close()
    assert "" in web.indexed


def test_a_crawl_that_goes_on_enters_it_again(web: Web) -> None:
    web.settings["CRAWLSPACE_CONTINUOUS"] = True
    web.clock.advance(40 * 86_400)
    engine = web.open().engine
    web.asked = []
    web.work(engine)
    engine.close()
    assert web.asked_for(DEAD) == 2
    state = web.store.get(DEAD)
    assert state is not None
    assert state.state is State.GONE
