"""Sites that a worker needs for something else than to crawl them: claims, and the robots.txt of another site."""

from __future__ import annotations

import time

import pytest

from crawlspace.clock import FakeClock
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import SiteRelease, Worker, WorkerExpired
from crawlspace.state.views import RobotsEntry
from tests.contract.conftest import NOW, Known
from tests.contract.workers.crawler import Crawler, expire, joined, take


def claimed(worker: Worker, *hosts: str) -> list[str]:
    """Claim these hosts; return those that came."""
    return [one.site.removesuffix(".example:80") for one in worker.claim([f"{host}.example:80" for host in hosts], now=NOW)]


def test_a_site_that_nobody_holds_is_its_who_claims_it(store: RedisStore, known: Known) -> None:
    """Also one of which no URL is known; and what else is known of it comes along."""
    known.discover("a.example/0")
    store.save_robots(RobotsEntry("a.example:80", "http", 200, "User-agent: *", NOW))
    store.server.now_ms = lambda: 10**12
    one, two = joined(store), joined(store)
    got = one.claim(["a.example:80", "unknown.example:80"], now=NOW)
    assert [(each.site, list(each.states)) for each in got] == [("a.example:80", []), ("unknown.example:80", [])]
    assert got[0].known is not None
    assert [entry.body for entry in got[0].known.robots] == ["User-agent: *"]
    assert claimed(one, "a") == ["a"], "the answer may have been lost"
    assert take(two) == {}
    assert claimed(two, "a", "unknown") == []
    assert not two.heartbeat().is_nothing_left
    assert take(one, a=5) == {"a": ["a.example/0"]}, "it may be crawled, too"
    one.release_sites([SiteRelease("unknown.example:80", 2.5)])
    known_of = two.claim(["unknown.example:80"], now=NOW)[0].known
    assert known_of is not None
    assert known_of.last_request_ago_s == 2.5


def test_the_owner_of_a_claimed_site_learns_of_it_and_the_claim_comes_before_others(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    now = 10**12
    store.server.now_ms = lambda: now
    holder, waiting, third = joined(store), joined(store), joined(store)
    assert list(take(holder, 1)) == ["a"]
    assert claimed(waiting, "a") == []
    assert waiting.heartbeat().claimed == []
    assert holder.heartbeat().claimed == ["a.example:80"]
    holder.release_sites([SiteRelease("a.example:80", ids=[known.get("a.example/0").id])])
    assert holder.heartbeat().claimed == []
    assert take(third) == {}, "it is kept for who waits"
    assert claimed(waiting, "a") == ["a"]
    waiting.release_sites([SiteRelease("a.example:80")])
    assert take(third) == {"a": ["a.example/0"]}


def test_a_site_that_was_claimed_in_vain_is_others_before_long(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    now = 10**12
    store.server.now_ms = lambda: now
    holder, waiting, third = joined(store), joined(store), joined(store)
    take(holder)
    assert claimed(waiting, "a") == []
    holder.release_sites([SiteRelease("a.example:80", ids=[known.get("a.example/0").id])])
    now += 2_999
    assert take(third) == {}
    now += 1
    assert take(third) == {"a": ["a.example/0"]}


@pytest.mark.parametrize("is_claimed", [True, False])
def test_a_site_that_rests_goes_on_resting_when_it_is_claimed(store: RedisStore, known: Known, *, is_claimed: bool) -> None:
    """As one that has failed several times in a row."""
    known.discover("a.example/0")
    now = 10**12
    store.server.now_ms = lambda: now
    holder, waiting = joined(store), joined(store)
    take(holder)
    if is_claimed:
        assert claimed(waiting, "a") == []
    holder.release_sites([SiteRelease("a.example:80", rest_s=60, ids=[known.get("a.example/0").id])])
    now += 1_000
    came = waiting.claim(["a.example:80"], now=NOW)[0].known
    assert came is not None
    assert came.wait_until == NOW + 59


def test_who_claims_a_site_first_gets_it_first(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    holder, first, second = joined(store), joined(store), joined(store)
    take(holder)
    for _ in range(3):
        assert claimed(first, "a") == []
        assert claimed(second, "a") == []
    holder.release_sites([SiteRelease("a.example:80", ids=[known.get("a.example/0").id])])
    assert claimed(second, "a") == []
    assert claimed(first, "a") == ["a"]
    assert first.heartbeat().claimed == ["a.example:80"]
    first.release_sites([SiteRelease("a.example:80")])
    assert claimed(second, "a") == ["a"]


def test_the_claim_of_an_expired_worker_is_removed(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    holder, dead = joined(store), joined(store)
    take(holder)
    assert claimed(dead, "a") == []
    expire(store, dead)
    holder.heartbeat()
    assert holder.heartbeat().claimed == []
    with pytest.raises(WorkerExpired):
        dead.claim(["a.example:80"], now=NOW)


def test_a_site_that_was_given_up_and_is_claimed_is_not_crawled(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    one, two = joined(store), joined(store)
    state = one.take(refill={}, new=1, limit=1, now=NOW, until=NOW + 300).sites[0].states[0]
    one.give_up("a.example:80")
    one.release_sites([SiteRelease("a.example:80", ids=[state.id])])
    assert claimed(two, "a") == ["a"]
    assert take(two, a=5) == {}


# --- sites needed for another site's robots.txt ---------------------------------------------------------------------


class RobotsOfOthers:
    """A request to the first site, which is made as soon as that may be asked, and again and again."""

    def __init__(self, crawler: Crawler) -> None:
        self.needed = {"a.example:80"}
        self.made = 0
        self._crawler = crawler
        self._has_requested = False
        crawler.others.requests = self

    def waiting(self) -> set[str]:
        return self.needed

    def is_requesting(self, site: str) -> bool:
        return False

    def begin(self, site: str) -> None:
        self._has_requested = False

    def has_requested(self, site: str) -> bool:
        return self._has_requested

    def tick(self) -> None:
        if self.needed and self._crawler.sites.holds("a.example:80"):
            self.made += 1
            self._has_requested = True


def on_one_clock(crawlers: tuple[Crawler, Crawler], clock: FakeClock) -> None:
    """The server goes by the clock of the test."""
    behind_ms = round(time.time() * 1000) - round(clock.now() * 1000)
    for each in crawlers:
        each.store.server.now_ms = lambda: behind_ms + round(clock.now() * 1000)


def test_a_site_that_is_needed_comes_from_the_other_worker_and_goes_back(
    crawlers: tuple[Crawler, Crawler], clock: FakeClock
) -> None:
    """As when the robots.txt of another site lies there."""
    one, two = crawlers
    on_one_clock(crawlers, clock)
    of_two = RobotsOfOthers(two)

    def pass_s(seconds: int) -> set[str]:
        """Return who crawled the site meanwhile."""
        crawled = set()
        for _ in range(2 * seconds):
            clock.advance(0.5)
            of_two.tick()
            for name, each in (("one", one), ("two", two)):
                each.tick()
                crawled |= {name for host in each.ask() if host == "a"}
                each.answered(*"bcd")
        return crawled

    assert pass_s(3) == set(), "a page of it is under way"
    assert of_two.made == 0
    one.answered("a")
    assert pass_s(6) == {"two"}, "it is crawled where it is needed"
    assert of_two.made > 0
    assert not one.sites.holds("a.example:80")


def test_two_workers_that_need_a_site_have_it_in_turn(crawlers: tuple[Crawler, Crawler], clock: FakeClock) -> None:
    on_one_clock(crawlers, clock)
    needs = [RobotsOfOthers(each) for each in crawlers]
    taken: list[int] = []
    for _ in range(200):
        clock.advance(0.5)
        for number, each in enumerate(crawlers):
            before = needs[number].made
            needs[number].tick()
            if needs[number].made > before and (not taken or taken[-1] != number):
                taken.append(number)
            each.tick()
            each.ask()
            each.answered(*"abcd")
    assert len(taken) > 10, "neither has to wait until the other needs it no more"
