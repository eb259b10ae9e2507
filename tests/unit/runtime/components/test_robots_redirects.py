"""Robots.txt files that many hosts have in one place: who is asked when, beside the pages of that place."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from crawlspace.clock import FakeClock
from crawlspace.crawl.run import FetchRobots
from crawlspace.frontier.frontier import Frontier
from crawlspace.model import NewUrl, Source
from crawlspace.runtime.components.robots import ANOTHERS_S, PATIENCE_S, SUSPENDED_S, RobotsSlots
from crawlspace.state.site_pauses import SitePause
from crawlspace.urls import url_key
from tests.contract.memory.store import MemoryStore
from tests.site_delays import FixedDelays

STEP_S = 0.05


class World(FixedDelays):
    """A frontier and the robots.txt beside it; it is itself what says how fast sites may be asked."""

    def __init__(self, *pages: str, delay: float = 1.0) -> None:
        super().__init__(delay)
        self.clock = FakeClock()
        store = self.store = MemoryStore()
        found = [NewUrl(url_key(url), url, url.split("/")[2] + ":80", Source.INDEX_FOLLOW, 0, 0, 0, 1) for url in pages]
        store.discover(found, now=int(self.clock.now()))
        self.frontier = Frontier(store, clock=self.clock, site_delays=self, lease_s=600)
        self.frontier.discovered([(one.site, one.queue) for one in found])
        self.turns = RobotsSlots(self.frontier, self)
        self.began = self.clock.monotonic()

    def is_suspended(self, site: str) -> bool:
        return self.pace.suspended

    def redirect(self, sites: int, to: str) -> None:
        for number in range(sites):
            self.turns.put(FetchRobots(f"{number}.example:80", "http", f"http://{to}/robots.txt", 1), self.clock.monotonic())

    def crawl(self, seconds: float) -> list[tuple[float, str]]:
        """Ask for all that may be asked, as the scheduler does, and return the moments and what was asked for."""
        asked = []
        for _ in range(round(seconds / STEP_S)):
            while (fetch := self.turns.take(self.clock.monotonic())) is not None:
                asked.append((self.passed, f"robots.txt of {fetch.site}"))
            while (state := self.frontier.next()) is not None:
                asked.append((self.passed, state.url))
                self.frontier.finished(state)
            self.clock.advance(STEP_S)
        return asked

    @property
    def passed(self) -> float:
        return self.clock.monotonic() - self.began


def gaps(asked: list[tuple[float, str]]) -> list[float]:
    return [later - earlier for (earlier, _), (later, _) in pairwise(asked)]


def test_one_site_is_requested_at_its_delay() -> None:
    world = World()
    world.redirect(20, "shared.example")
    asked = world.crawl(25)
    assert [what for _, what in asked] == [f"robots.txt of {number}.example:80" for number in range(20)]
    assert asked[0][0] == 0.0, "nothing is known that it would have to wait for"
    assert min(gaps(asked)) >= 1.0 - 1e-6
    assert world.turns.soonest_in(world.clock.monotonic()) is None


def test_other_sites_go_on_meanwhile() -> None:
    world = World("http://other.example/")
    world.redirect(3, "shared.example")
    world.redirect(2, "second.example")
    assert sorted(what for at, what in world.crawl(1) if at == 0.0) == [
        "http://other.example/",
        "robots.txt of 0.example:80",
        "robots.txt of 0.example:80",
    ]


def test_the_pages_of_the_site_keep_their_distance_and_have_turns_in_between() -> None:
    pages = [f"http://shared.example/{number}" for number in range(5)]
    world = World(*pages)
    world.crawl(STEP_S)  # the first page
    world.redirect(20, "shared.example")
    asked = world.crawl(12)
    assert min(gaps(asked)) >= 1.0 - 1e-6
    assert asked[0][0] >= 1.0 - 1e-6, "it was asked for a page before"
    assert [what for _, what in asked if what.startswith("http")] == pages[1:]


def test_a_site_that_must_wait_gets_no_request() -> None:
    world = World()
    world.frontier.wait_site("shared.example:80", 30)
    world.redirect(2, "shared.example")
    assert world.turns.soonest_in(world.clock.monotonic()) == 30
    assert [round(at) for at, _ in world.crawl(32)] == [30, 31]


def test_nothing_is_requested_while_all_is_suspended() -> None:
    world = World()
    world.pace = replace(world.pace, suspended=True)
    world.redirect(1, "shared.example")
    assert world.crawl(60) == []
    world.pace = replace(world.pace, suspended=False)
    assert len(world.crawl(SUSPENDED_S + STEP_S)) == 1


def test_without_a_delay_all_go_out_at_once() -> None:
    world = World(delay=0.0)
    world.redirect(50, "shared.example")
    assert [at for at, _ in world.crawl(STEP_S)] == [0.0] * 50


def test_a_site_of_another_process_is_waited_for() -> None:
    world = World()
    ours: set[str] = set()
    world.turns = RobotsSlots(world.frontier, world, holds=ours.__contains__)
    world.redirect(3, "shared.example")
    assert world.crawl(5) == []
    assert world.turns.soonest_in(world.clock.monotonic()) == pytest.approx(0.0, abs=ANOTHERS_S)
    assert world.turns.waiting() == {"shared.example:80"}
    world.frontier.arrived("shared.example:80", [], last_request_ago_s=0.1, wait_s=0.0)
    ours.add("shared.example:80")
    world.turns.begin("shared.example:80")
    assert not world.turns.has_requested("shared.example:80")
    asked = world.crawl(5)
    assert len(asked) == 3
    assert asked[0][0] >= 5.9 - 1e-6, "when it was asked by the other one counts"
    assert asked[0][0] > 5.95, "and its pages come first"
    assert min(gaps(asked)) >= 1.0 - 1e-6
    assert world.turns.has_requested("shared.example:80")


def test_a_site_is_needed_until_it_has_answered() -> None:
    world = World("http://0.example/")
    world.turns = RobotsSlots(world.frontier, world, holds=lambda _: True)
    world.frontier.block("0.example:80")
    world.redirect(1, "shared.example")
    assert len(world.crawl(1)) == 1
    assert world.turns.waiting() == {"shared.example:80"}
    assert world.turns.is_requesting("shared.example:80")
    world.frontier.unblock("0.example:80")
    assert world.turns.waiting() == set()
    assert not world.turns.is_requesting("shared.example:80")
    assert world.frontier.next_slot_in("shared.example:80") == pytest.approx(1.0), "it may have been asked only just now"


def test_a_site_that_does_not_come_is_not_waited_for_for_ever() -> None:
    """Two workers may each wait for a site of the other's, which cannot go because it is being asked for its robots.txt."""
    world = World()
    world.turns = RobotsSlots(world.frontier, world, holds=lambda _: False)
    world.redirect(2, "shared.example")
    world.crawl(PATIENCE_S - 1)
    assert world.turns.given_up() == []
    world.crawl(PATIENCE_S + 2)
    assert [fetch.site for fetch in world.turns.given_up()] == ["0.example:80", "1.example:80"]
    assert world.turns.given_up() == []
    assert world.turns.waiting() == set()
    assert world.turns.soonest_in(world.clock.monotonic()) is None


def test_a_robots_txt_at_a_paused_host_is_not_requested() -> None:
    """It is reported once, also one that has been waiting for a while; the paused host is not needed from other workers."""
    world = World()
    world.redirect(3, "shared.example")
    assert [what for _, what in world.crawl(0.5)] == ["robots.txt of 0.example:80"]
    world.store.set_site_pause("shared.example", SitePause("ada", 0))
    world.frontier.recheck_sites()
    assert world.turns.waiting() == set()
    assert world.crawl(10) == []
    assert [fetch.site for fetch in world.turns.paused()] == ["1.example:80", "2.example:80"]
    assert world.turns.paused() == []
    assert world.turns.soonest_in(world.clock.monotonic()) is None
