"""What of robots.txt is cached: the store is not read for it again, and equal rules are parsed once."""

from __future__ import annotations

import pytest

from crawlspace.clock import FakeClock
from crawlspace.frontier.robots import Robots, RobotsVerdict
from crawlspace.state.views import RobotsEntry
from tests.contract.memory.store import MemoryStore

SITE = "www.example.com:80"
DAY_S = 86_400.0


class CountingStore(MemoryStore):
    """Counts how often a robots.txt is read from it."""

    reads = 0

    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        self.reads += 1
        return super().robots(site, scheme)

    def holding(self, bodies: dict[str, str]) -> CountingStore:
        for site, body in bodies.items():
            self.save_robots(RobotsEntry(site, "http", 200, body, round(FakeClock().now())))
        return self


def robots_of(store: MemoryStore, *, memory: int = 64 << 20, clock: FakeClock | None = None) -> Robots:
    return Robots(store, clock=clock or FakeClock(), user_agent="crawlspace/0.1", ttl_s=DAY_S, memory=memory)


def ask(robots: Robots, site: str, path: str = "/a") -> RobotsVerdict:
    return robots.ask(f"http://{site.removesuffix(':80')}{path}", site=site)


def rules(site: str, count: int) -> str:
    return "\n".join(["User-agent: *", *(f"Disallow: /{site}/{number * 7919 % 100_003:06}/" for number in range(count))])


CROWDS = [
    # sites that are asked in turn, rules of each
    (4, 8_000),
    (40, 500),
    (1_000, 20),
    (20_000, 0),
]


@pytest.mark.parametrize(("sites", "count"), CROWDS)
def test_sites_used_in_turn_stay_in_memory(sites: int, count: int) -> None:
    names = [f"{number}.example:80" for number in range(sites)]
    store = CountingStore().holding({site: rules(site, count) for site in names})
    robots = robots_of(store)
    for site in names:
        assert ask(robots, site) is RobotsVerdict.ALLOWED
    store.reads = 0
    for site in names:
        assert ask(robots, site, f"/{site}/007919/x") is (RobotsVerdict.FORBIDDEN if count else RobotsVerdict.ALLOWED)
    assert store.reads == 0


def test_equal_rules_of_many_sites_are_parsed_once(read: list[str]) -> None:
    names = [f"{number}.example:80" for number in range(100)]
    robots = robots_of(CountingStore().holding({site: rules("x", 100) for site in names}))
    for site in names:
        assert ask(robots, site, "/x/007919/") is RobotsVerdict.FORBIDDEN
    assert len(read) == 1


def test_recently_used_rules_stay_in_memory() -> None:
    names = [f"{number}.example:80" for number in range(100)]
    store = CountingStore().holding({site: rules(site, 100) for site in names})
    robots = robots_of(store, memory=50_000)
    for site in names[1:]:
        ask(robots, names[0])
        ask(robots, site)
    for site, reads in ((names[0], 0), (names[99], 0), (names[1], 1)):
        store.reads = 0
        ask(robots, site)
        assert store.reads == reads, site


def test_one_that_is_larger_than_the_memory_counts_and_is_kept_until_the_next() -> None:
    store = CountingStore().holding({"a.example:80": rules("x", 1000), "b.example:80": rules("x", 1000)})
    robots = robots_of(store, memory=1000)
    reads = []
    for site in ("a.example:80", "a.example:80", "b.example:80", "b.example:80", "a.example:80"):
        store.reads = 0
        assert ask(robots, site, "/x/007919/") is RobotsVerdict.FORBIDDEN
        reads.append(store.reads)
    assert reads == [1, 0, 1, 0, 1]


DELAYS = [
    # a robots.txt, the delay, what Protego has to read for it
    ("User-agent: *\nDisallow: /delayed/\nDisallow: /b\n", 0.0, []),
    ("User-agent: x\nCrawl-delay: 9\n\nUser-agent: *\nDisallow: /a\n", 0.0, []),
    ("User-agent: *\nDisallow: /a\nCrawl-delay: 7\n" + "Disallow: /*x\n" * 1000, 7.0, ["User-agent: *\nCrawl-delay: 7"]),
    ("User-agent: *\nRequest rate 1/5\nAllow: /a\nVisit-time: 0600-0845", 5.0, ["User-agent: *\nRequest rate 1/5\nVisit-time: 0600-0845"]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "seconds", "reads"), DELAYS)
def test_for_a_delay_nothing_else_is_read(body: str, seconds: float, reads: list[str], read: list[str]) -> None:
    store = CountingStore().holding({SITE: body})
    robots = robots_of(store)
    assert [robots.delay_of(SITE, scheme) for scheme in ("http", "http", "https", "https")] == [seconds, seconds, 0.0, 0.0]
    assert read == reads
    assert store.reads == 2, "one for each scheme; that there is none is known then, too"


def test_a_delay_is_known_when_the_rules_have_left_the_memory() -> None:
    store = CountingStore().holding({SITE: "User-agent: *\nCrawl-delay: 7\nDisallow: /b", "b.example:80": rules("x", 1000)})
    robots = robots_of(store, memory=1000)
    for site in (SITE, "b.example:80"):
        ask(robots, site)
    store.reads = 0
    assert robots.delay_of(SITE, "http") == 7.0
    assert store.reads == 0
    ask(robots, SITE)
    assert store.reads == 1


def test_a_delay_changes_with_what_is_read() -> None:
    store, clock = CountingStore(), FakeClock()
    ours, others = robots_of(store, clock=clock), robots_of(store, clock=clock)
    assert ours.delay_of(SITE, "http") == 0.0
    others.save(SITE, "http", status=200, body="User-agent: *\nCrawl-delay: 3")
    assert ask(ours, SITE) is RobotsVerdict.ALLOWED
    assert ours.delay_of(SITE, "http") == 3.0
    clock.advance(DAY_S)
    others.save(SITE, "http", status=200, body="User-agent: *\nCrawl-delay: 4")
    assert ask(ours, SITE) is RobotsVerdict.ALLOWED
    assert ours.delay_of(SITE, "http") == 4.0
    ours.save(SITE, "http", status=404, body="")
    assert ours.delay_of(SITE, "http") == 0.0
