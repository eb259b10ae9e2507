"""A run that ends fetches each URL once, however soon it is due again; what must be right at its end is fetched again all the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from crawlspace.crawl.run import FetchPage
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.store import Store
from crawlspace.status import Status
from tests.unit.crawl.test_engine_life import HOME, Web

PAGES = [f"{HOME}{n}" for n in range(6)]
OLD, NEW = f"{HOME}old", f"{HOME}new"


class SlowWeb(Web):
    """Each answer takes longer than the refresh interval."""

    def _answer(self, fetch: FetchPage) -> Outcome:
        self.clock.advance(3)
        state = fetch.state
        if state.url == OLD:
            return Outcome(state.id, state.url, OutcomeKind.REDIRECTED, 302, redirect_to=NEW)
        return super()._answer(fetch)


@pytest.fixture
def web(tmp_path: Path, store: Store) -> SlowWeb:
    made = SlowWeb(tmp_path, store, CRAWLSPACE_REFRESH_MIN=1, CRAWLSPACE_REFRESH_MAX=2)
    made.pages = {HOME: "home", NEW: "new", **{url: url[-1] for url in PAGES}}
    made.links = {HOME: [*PAGES, OLD], PAGES[0]: PAGES, PAGES[1]: [HOME, OLD]}
    return made


EVERYTHING = dict.fromkeys([HOME, *PAGES, OLD, NEW], 1)


def asked(web: SlowWeb) -> dict[str, int]:
    return dict(Counter(url for url, _ in web.asked))


def test_each_url_is_fetched_once_in_each_run(web: SlowWeb) -> None:
    for _ in range(3):
        web.crawl(after=1)
        assert asked(web) == EVERYTHING


def test_retries_are_of_this_run(web: SlowWeb) -> None:
    web.pages[PAGES[2]] = Status.TIMEOUT
    for _ in range(2):
        web.crawl(after=1)
        assert asked(web) == {**EVERYTHING, PAGES[2]: 2}


@pytest.mark.parametrize("step", [-100_000, -2, 100_000])
def test_a_clock_that_is_set_in_a_run(web: SlowWeb, step: int) -> None:
    engine = web.open().engine
    for _ in range(4):
        fetch = engine.next_fetch() or (engine.commit() and engine.next_fetch())
        assert isinstance(fetch, FetchPage)
        web.asked.append((fetch.state.url, False))
        engine.fetched(web._answer(fetch))
    web.clock.set(web.clock.now() + step)
    web.work(engine)
    engine.close()
    assert asked(web) == EVERYTHING


def test_what_came_nearer_is_fetched_again(web: SlowWeb) -> None:
    """Its links were too far away before; that they are not any more is found in the same run."""
    web.settings["DEPTH_LIMIT"] = 2
    far, child = f"{HOME}far", f"{HOME}child"
    web.pages |= {far: "far", child: "child"}
    web.links = {HOME: [PAGES[0], PAGES[1]], PAGES[0]: [far], far: [child]}
    web.crawl()
    assert child not in asked(web)
    web.links[HOME] = [*PAGES[:2], far]
    web.pages[HOME] = "home again"
    web.crawl()
    assert asked(web)[child] == 1
    assert asked(web)[HOME] == 1


def test_a_crawl_that_goes_on_fetches_again_and_again(web: SlowWeb) -> None:
    web.settings["CRAWLSPACE_CONTINUOUS"] = True
    engine = web.open().engine
    while len(web.asked) < 40:
        fetch = engine.next_fetch()
        if fetch is None:
            engine.commit()
            web.clock.advance(1)
            continue
        assert isinstance(fetch, FetchPage)
        web.asked.append((fetch.state.url, False))
        engine.fetched(web._answer(fetch))
    engine.close()
    assert min(asked(web).values()) >= 3
