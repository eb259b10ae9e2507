"""Look-ups of addresses: a few at a time, and whoever is not looked up just now is not in the way."""

from __future__ import annotations

import pytest

from crawlspace.clock import FakeClock
from crawlspace.crawl.addresses import Located, Locating
from crawlspace.frontier.frontier import UNCERTAIN_S, Frontier
from tests.contract.memory.store import MemoryStore
from tests.site_delays import FixedDelays
from tests.unit.frontier.test_frontier import new

MOST = 3


class World:
    """Twenty sites, and someone who looks them up; `asked` is whom he was asked for and has not answered."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore()
        self.store.discover([new(f"http://s{n}/") for n in range(20)], now=0)
        self.frontier = Frontier(self.store, clock=self.clock, site_delays=FixedDelays(1.0), lease_s=600)
        self.asked: dict[str, Located] = {}
        self.at_once = at_once
        self.depth = self.deepest = 0
        self.locating = Locating(self.frontier, self.locate, most=MOST)

    def locate(self, site: str, located: Located) -> None:
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self.at_once:
            located(site, "192.0.2.1")
        else:
            self.asked[site] = located
        self.depth -= 1

    def next(self) -> str | None:
        while (state := self.frontier.next()) is not None:
            if not self.locating.defers(state):
                return state.site
        return None

    def answer(self, site: str, address: str | None, *, certain: bool = True) -> None:
        self.asked.pop(site)(site, address, certain=certain)


def test_a_few_are_looked_up_at_a_time_and_all_in_the_end() -> None:
    world = World()
    assert world.next() is None
    seen = []
    while world.asked:
        assert len(world.asked) <= MOST
        site = next(iter(world.asked))
        seen.append(site)
        world.answer(site, None)
    assert len(set(seen)) == 20
    assert world.next() is not None


def test_a_site_is_crawled_as_soon_as_it_is_located_though_others_get_no_answer() -> None:
    world = World()
    assert world.next() is None
    assert world.frontier.wake_in() is None, "nothing to do until an answer comes"
    found = list(world.asked)[-1]
    world.answer(found, "192.0.2.1")
    assert world.next() == found


@pytest.mark.parametrize(("certain", "again"), [(True, False), (False, True)])
def test_only_a_look_up_without_an_answer_is_made_again(certain: bool, again: bool) -> None:
    world = World()
    world.next()
    site = next(iter(world.asked))
    world.answer(site, None, certain=certain)
    assert world.next() == site
    world.clock.advance(UNCERTAIN_S)
    assert world.frontier.is_located(site) is not again


def test_answers_that_come_at_once_are_no_deeper_for_being_many() -> None:
    world = World(at_once=True)
    assert world.next() is not None
    assert world.deepest == 1
