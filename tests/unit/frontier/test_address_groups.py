"""Sites that share an address keep the delay among them, and none of them is left out."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from crawlspace.clock import FakeClock
from crawlspace.frontier.frontier import Frontier
from crawlspace.frontier.site_queue import Backoff, Pace
from crawlspace.model import NewUrl, Source, UrlState
from crawlspace.state.changes import Change
from crawlspace.urls import url_key
from tests.contract.memory.store import MemoryStore
from tests.site_delays import FixedDelays

EPSILON = 1e-6


class World(FixedDelays):
    """Sites with delays of their own, some at one address; `asked` is what was asked when."""

    def __init__(self, sites: dict[str, tuple[str | None, float, int]], *, urls: int) -> None:
        """`sites`: address, delay, concurrency."""
        super().__init__()
        self.sites = sites
        self.clock = FakeClock()
        self.store = MemoryStore()
        self.asked: list[tuple[float, str]] = []
        self.store.discover([_new(site, number) for site in sites for number in range(urls)], now=int(self.clock.now()))
        self.frontier = Frontier(self.store, clock=self.clock, site_delays=self, lease_s=10_000, backoff=Backoff(5.0, 60.0))

    def add(self, site: str) -> None:
        one = _new(site, 1)
        self.store.discover([one], now=int(self.clock.now()))
        self.frontier.discovered([(site, one.queue)])

    def of(self, site: str) -> Pace:
        _, delay, concurrency = self.sites.get(site, (None, 0.0, 1))
        return Pace(delay, concurrency)

    def next(self) -> UrlState | None:
        while (state := self.frontier.next()) is not None:
            if not self.frontier.is_located(state.site):
                self.frontier.await_address(state)
                self.frontier.locate(state.site, self.sites[state.site][0])
                continue
            self.asked.append((self.clock.monotonic(), state.site))
            return state
        return None

    def finish(self, state: UrlState, *, failed: bool = False) -> None:
        self.frontier.finished(state, failed=failed)
        self.store.record([Change(state, forget=True)], now=int(self.clock.now()))
        self.frontier.recorded([state.id])

    def crawl(self, *, seconds: float = 10_000.0) -> list[str]:
        """Fetch until nothing is left, each in no time; return the sites in the order in which they were asked."""
        until = self.clock.monotonic() + seconds
        while self.clock.monotonic() <= until and not self.frontier.is_done():
            while (state := self.next()) is not None:
                self.finish(state)
            wait = self.frontier.wake_in()
            if wait is None:
                break
            self.clock.advance(max(wait, 0.001))
        return [site for _, site in self.asked]


def _new(site: str, number: int) -> NewUrl:
    url = f"http://{site}/{number}"
    return NewUrl(url_key(url), url, site, Source.INDEX_FOLLOW, 0, 0, 0, 1)


# address, delay, concurrency of each site -> seconds of a crawl of three URLs of each
LASTS: list[tuple[dict[str, tuple[str | None, float, int]], float]] = [
    ({"a:80": (None, 1, 1), "b:80": (None, 1, 1)}, 2),
    ({"a:80": ("1", 1, 1), "b:80": ("2", 1, 1)}, 2),
    ({"a:80": ("1", 1, 1), "b:80": ("1", 1, 1)}, 5),
    ({"a:80": ("1", 1, 1), "b:80": ("1", 1, 1), "c:80": ("1", 1, 1)}, 8),
    ({"a:80": ("1", 1, 1), "b:80": ("1", 1, 1), "c:80": ("2", 1, 1)}, 5),
    ({"a:80": ("1", 0, 1), "b:80": ("1", 0, 1)}, 0),  # no delay, nothing to share
    ({"a:80": ("1", 0, 1), "b:80": ("1", 1, 1)}, 2),
    ({"a:80": ("1", 1, 4), "b:80": ("1", 1, 4)}, 5),
    ({"a:80": ("1", 1, 1), "b:80": ("1", 3, 1)}, 15),  # after and before the slow one its delay is kept; by turns a b a b a b
]


@pytest.mark.parametrize(("sites", "lasts"), LASTS)
def test_how_long_a_crawl_takes(sites: dict[str, tuple[str | None, float, int]], lasts: float) -> None:
    world = World(sites, urls=3)
    began = world.clock.monotonic()
    assert len(world.crawl()) == 3 * len(sites)
    assert world.asked[-1][0] - began == pytest.approx(lasts, abs=0.1)
    assert world.frontier.is_done()


def test_the_sites_of_an_address_take_turns() -> None:
    world = World({f"{name}:80": ("1", 1, 1) for name in "abc"}, urls=4)
    asked = world.crawl()
    assert [Counter(asked[start : start + 3]) for start in range(0, 12, 3)] == [Counter({f"{n}:80": 1 for n in "abc"})] * 4


def test_one_that_fails_does_not_hold_up_its_neighbours() -> None:
    world = World({"a:80": ("1", 1, 1), "b:80": ("1", 1, 1)}, urls=10)
    for _ in range(400):
        state = world.next()
        if state is not None:
            world.finish(state, failed=state.site == "a:80")
        world.clock.advance(0.1)
    asked = Counter(site for _, site in world.asked)
    assert asked["b:80"] == 10
    assert asked["a:80"] < 8, "it rests"


def test_a_site_that_waits_or_is_given_up_leaves_its_turn_to_the_others() -> None:
    world = World({"a:80": ("1", 1, 1), "b:80": ("1", 1, 1), "c:80": ("1", 1, 1)}, urls=3)
    state = world.next()
    assert state is not None
    world.finish(state)
    others = [site for site in world.sites if site != state.site]
    world.frontier.wait_site(others[0], 50)
    world.frontier.give_up(state.site)
    began = world.clock.monotonic()
    world.crawl(seconds=10)
    assert [site for _, site in world.asked[1:]] == [others[1]] * 3
    assert world.asked[-1][0] - began <= 3.1
    world.crawl()
    assert Counter(site for _, site in world.asked)[others[0]] == 3


def test_a_machine_is_remembered_when_its_sites_are_not() -> None:
    world = World({"a:80": ("1", 1, 1), "slow:80": ("1", 30, 1)}, urls=0)
    world.add("a:80")
    world.crawl()
    world.clock.advance(5)
    assert world.next() is None
    world.add("slow:80")
    asked = world.crawl()
    assert asked == ["a:80", "slow:80"]
    assert world.asked[1][0] - world.asked[0][0] >= 30 - EPSILON


def test_robots_txt_is_requested_in_the_turn_of_its_site() -> None:
    world = World({"a:80": ("1", 1, 1), "b:80": ("1", 1, 1)}, urls=2)
    state = world.next()
    assert state is not None
    world.frontier.block(state.site)
    world.frontier.put_back(state)
    world.clock.advance(5)
    assert world.next() is None, "it is still asking"
    world.frontier.unblock(state.site)
    assert world.next() is None
    world.clock.advance(1)
    following = world.next()
    assert following is not None
    assert following.site != state.site


@pytest.mark.parametrize("seed", range(30))
def test_a_walk_keeps_every_delay_and_leaves_nothing(seed: int) -> None:
    chance = random.Random(seed)
    sites: dict[str, tuple[str | None, float, int]] = {
        f"{number}:80": (chance.choice([None, "1", "2"]), chance.choice([0.0, 0.5, 2.0]), chance.choice([1, 1, 3]))
        for number in range(8)
    }
    world = World(sites, urls=6)
    in_flight: list[tuple[float, UrlState]] = []
    talking: Counter[str] = Counter()
    for _ in range(20_000):
        state = world.next()
        if state is not None:
            address, delay, _ = sites[state.site]
            if delay and address:
                talking[address] += 1
                assert talking[address] == 1 or all(
                    site.site == state.site for _, site in in_flight if _shares(sites, site, address)
                )
            in_flight.append((world.clock.monotonic() + chance.choice([0.0, 0.1, 3.0]), state))
            continue
        if world.frontier.is_done():
            break
        wait = world.frontier.wake_in()
        ends = min((at for at, _ in in_flight), default=None)
        if wait is None or (ends is not None and ends <= world.clock.monotonic() + wait):
            assert ends is not None, "nothing will happen any more"
            world.clock.advance(max(0.0, ends - world.clock.monotonic()))
            for ended in [one for one in in_flight if one[0] <= world.clock.monotonic() + EPSILON]:
                in_flight.remove(ended)
                if sites[ended[1].site][1] and sites[ended[1].site][0]:
                    talking[str(sites[ended[1].site][0])] -= 1
                world.finish(ended[1], failed=chance.random() < 0.1)
        else:
            world.clock.advance(max(wait, 0.001))
    assert Counter(site for _, site in world.asked) == dict.fromkeys(sites, 6)
    last: dict[str, tuple[float, float]] = {}
    for at, site in world.asked:
        address, delay, _ = sites[site]
        for key in filter(None, (site, address)) if delay else ():
            before, its_delay = last.get(key, (-1e9, 0.0))
            assert at - before >= max(delay, its_delay) - EPSILON
            last[key] = at, delay


def _shares(sites: dict[str, tuple[str | None, float, int]], state: UrlState, address: str) -> bool:
    return sites[state.site][0] == address and sites[state.site][1] > 0
