"""What of robots.txt is kept in memory, and what a question costs: neither the store nor a whole file is read for it again."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from crawlspace.clock import FakeClock
from crawlspace.frontier.robots import Robots, RobotsVerdict
from crawlspace.state.views import RobotsEntry
from tests.contract.memory.store import MemoryStore
from tests.quick import some

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
    return robots.check(f"http://{site.removesuffix(':80')}{path}", site=site)


def rules(site: str, count: int) -> str:
    return "\n".join(["User-agent: *", *(f"Disallow: /{site}/{number * 7919 % 100_003:06}/" for number in range(count))])


CROWDS = [
    # sites that are asked in turn, rules of each
    (4, 16_000),
    (8, 16_000),
    (40, 2_500),
    (2_000, 80),
    (20_000, 0),
]


@pytest.mark.full
@pytest.mark.parametrize(("sites", "count"), some(CROWDS, 1))
def test_sites_used_in_turn_stay_in_memory(sites: int, count: int, read: list[str]) -> None:
    names = [f"{number}.example:80" for number in range(sites)]
    store = CountingStore().holding({site: rules(site, count) for site in names})
    robots = robots_of(store)
    for site in names:
        assert ask(robots, site) is RobotsVerdict.ALLOWED
    store.reads = 0
    read.clear()
    for site in names:
        assert ask(robots, site, f"/{site}/007919/x") is (RobotsVerdict.FORBIDDEN if count else RobotsVerdict.ALLOWED)
    assert store.reads == 0
    assert read == [], "parsed again"


def test_recently_used_rules_stay_in_memory() -> None:
    names = [f"{number}.example:80" for number in range(100)]
    store = CountingStore().holding({site: rules(site, 100) for site in names})
    robots = robots_of(store, memory=500_000)
    for site in names[1:]:
        ask(robots, names[0])
        ask(robots, site)
    for site, reads in ((names[0], 0), (names[99], 0), (names[1], 1)):
        store.reads = 0
        ask(robots, site)
        assert store.reads == reads, site


def test_one_that_is_larger_than_the_memory_counts_and_is_kept_until_the_next() -> None:
    store = CountingStore().holding({f"{name}.example:80": rules("x", 1000) for name in "ab"})
    robots = robots_of(store, memory=1000)
    reads = []
    for name in "aabba":
        store.reads = 0
        assert ask(robots, f"{name}.example:80", "/x/007919/") is RobotsVerdict.FORBIDDEN
        reads.append(store.reads)
    assert reads == [1, 0, 1, 0, 1]


class StoreOfNothing(MemoryStore):
    """Stores no robots.txt, so that only the cache takes memory."""

    def save_robots(self, entry: RobotsEntry) -> None:
        pass


SIZES = ["Disallow: /section{}/some-folder/", "Disallow: /s{}", "Disallow: /section{}/some-folder/*x$", "Disallow: /*{}"]


@pytest.mark.full
@pytest.mark.parametrize("rule", some(SIZES, 2))
def test_memory_is_bounded(rule: str) -> None:
    body = "User-agent: *\n" + "\n".join(rule.format(number) for number in range(500))
    robots = robots_of(StoreOfNothing(), memory=2_000_000)
    robots.save("first.example:80", "http", status=200, body=body)
    tracemalloc.start()
    try:
        for number in range(50):
            robots.save(f"{number}.example:80", "http", status=200, body=body)
        gc.collect()  # the objects of Protego refer to each other
        assert 500_000 < tracemalloc.get_traced_memory()[0] < 2_500_000
    finally:
        tracemalloc.stop()


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
