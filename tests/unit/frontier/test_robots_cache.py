"""The cache of robots.txt: what an answer means, how long it is valid, and what is kept in memory."""

from __future__ import annotations

import gc
import logging
import math
import re
import tracemalloc

import pytest

from crawlspace.clock import FakeClock
from crawlspace.frontier.robots import (
    MAX_SIZE,
    MAX_WILDCARD_TEXT,
    MOMENT_S,
    RobotsVerdict,
    bounded,
    lines_for,
    whole_lines,
)
from crawlspace.state.views import RobotsEntry
from tests.contract.memory.store import MemoryStore
from tests.quick import some
from tests.unit.frontier.conftest import ALLOWED, DAY_S, FORBIDDEN, SITE, UNKNOWN, CountingStore, ask, reading, robots_of

# --- what an answer means -----------------------------------------------------------------------------------------

BARRED = "User-agent: *\nDisallow: /"


STATUSES = [
    # status of robots.txt, what may be fetched then
    (200, FORBIDDEN),
    (203, FORBIDDEN),
    # what is left of redirects leads nowhere, and says nothing
    (300, UNKNOWN),
    (301, UNKNOWN),
    (304, UNKNOWN),
    (308, UNKNOWN),
    (400, ALLOWED),
    (401, ALLOWED),
    (403, ALLOWED),
    (404, ALLOWED),
    (410, ALLOWED),
    (418, ALLOWED),
    (429, UNKNOWN),
    (451, ALLOWED),
    (499, ALLOWED),
    (500, UNKNOWN),
    (503, UNKNOWN),
    (599, UNKNOWN),
    (612, UNKNOWN),
    (613, UNKNOWN),
    (680, UNKNOWN),
    (741, UNKNOWN),
    (3020, UNKNOWN),
    (101, UNKNOWN),
    (0, UNKNOWN),
]


@pytest.mark.parametrize(("status", "answer"), STATUSES)
def test_statuses(status: int, answer: RobotsVerdict) -> None:
    store = MemoryStore()
    robots = robots_of(store)
    assert robots.save(SITE, "http", status=status, body=BARRED) is (answer is not UNKNOWN)
    assert ask(robots) is answer
    assert (store.robots(SITE, "http") is None) is (answer is UNKNOWN)


def test_an_error_does_not_take_the_place_of_what_was_read() -> None:
    robots = reading("User-agent: *\nDisallow: /b")
    assert robots.save(SITE, "http", status=503, body="") is False
    assert (ask(robots, "/a"), ask(robots, "/b")) == (ALLOWED, FORBIDDEN)


def test_each_site_and_scheme_has_its_own() -> None:
    robots = reading(BARRED)
    assert robots.check("https://www.example.com/a", site="www.example.com:443") is UNKNOWN
    assert robots.check("https://www.example.com:80/a", site=SITE) is UNKNOWN
    assert robots.check("http://www.example.com:8080/a", site="www.example.com:8080") is UNKNOWN


# --- how long it is believed --------------------------------------------------------------------------------------

AGES = [
    # seconds since it was read, whether it is believed
    (0.0, True),
    (DAY_S - 1, True),
    (DAY_S, False),
    (DAY_S * 30, False),
    # the clock has been set back
    (-MOMENT_S, True),
    (-MOMENT_S - 1, False),
    (-DAY_S, False),
]


@pytest.mark.parametrize(("age", "believed"), AGES)
@pytest.mark.parametrize("restarted", [False, True])
def test_ages(age: float, *, believed: bool, restarted: bool) -> None:
    store, clock = MemoryStore(), FakeClock()
    robots = robots_of(store, clock)
    robots.save(SITE, "http", status=200, body=BARRED)
    clock.advance(age)
    if restarted:
        robots = robots_of(store, clock)
    assert ask(robots) is (FORBIDDEN if believed else UNKNOWN)
    robots.save(SITE, "http", status=404, body="")
    assert ask(robots) is ALLOWED


def test_it_can_be_believed_for_ever() -> None:
    store, clock = MemoryStore(), FakeClock()
    robots_of(store, clock).save(SITE, "http", status=200, body=BARRED)
    clock.advance(DAY_S * 10_000)
    assert ask(robots_of(store, clock, ttl_s=math.inf)) is FORBIDDEN


def test_what_another_process_has_read_meanwhile_is_taken() -> None:
    store, clock = CountingStore(), FakeClock()
    ours, others = robots_of(store, clock), robots_of(store, clock)
    ours.save(SITE, "http", status=200, body=BARRED)
    clock.advance(DAY_S)
    assert ask(ours) is UNKNOWN
    others.save(SITE, "http", status=200, body="User-agent: *\nDisallow: /b\nCrawl-delay: 3")
    assert ask(ours) is ALLOWED
    assert ours.delay_of(SITE, "http") == 3.0
    reads = store.reads
    assert ask(ours, "/b") is FORBIDDEN
    assert store.reads == reads


def test_a_host_that_is_not_there_is_passed_over_for_a_moment() -> None:
    store, clock = MemoryStore(), FakeClock()
    robots = robots_of(store, clock)
    robots.allow_briefly(SITE, "http")
    assert ask(robots) is ALLOWED
    assert robots.delay_of(SITE, "http") == 0.0
    assert store.robots(SITE, "http") is None
    clock.advance(MOMENT_S)
    assert ask(robots) is UNKNOWN


def test_after_the_moment_what_was_read_before_counts() -> None:
    clock = FakeClock()
    robots = robots_of(clock=clock)
    robots.save(SITE, "http", status=200, body=BARRED)
    clock.advance(60)
    robots.allow_briefly(SITE, "http")
    assert ask(robots) is ALLOWED
    clock.advance(MOMENT_S)
    assert ask(robots) is FORBIDDEN


@pytest.mark.parametrize("read_ago_s", [90_000, -90_000], ids=["long ago", "in the future, the clock has been set back"])
def test_a_host_that_is_not_there_any_more_answers_one_question_however_late(read_ago_s: int) -> None:
    store, clock = MemoryStore(), FakeClock()
    store.save_robots(RobotsEntry(SITE, "http", 200, BARRED, round(clock.now()) - read_ago_s))
    robots = robots_of(store, clock)
    assert ask(robots) is UNKNOWN
    robots.allow_briefly(SITE, "http")
    clock.advance(60)  # its rest after failures in a row
    assert ask(robots) is ALLOWED, "else it would be asked for its robots.txt for ever"
    assert ask(robots) is UNKNOWN


# --- files that are too large, or made to hold up the crawl -------------------------------------------------------

LINES = "0123456\n" * 10


CUTS = [
    # bytes that are read, how many of the ten lines of eight bytes
    (80, 10),
    (79, 10),
    (78, 9),
    (72, 9),
    (71, 9),
    (70, 8),
    (8, 1),
    (7, 1),
    (6, 0),
]


@pytest.mark.parametrize(("most", "lines"), CUTS)
@pytest.mark.parametrize("end", ["\n", "\r"])
def test_half_a_line_is_not_read(most: int, lines: int, end: str) -> None:
    assert whole_lines(LINES.replace("\n", end), most).splitlines() == ["0123456"] * lines


def test_the_size_is_that_in_bytes() -> None:
    assert whole_lines("ä\nä\nä\n", 6).splitlines() == ["ä", "ä"]
    assert whole_lines("\ufeffä\n", 3) == "ä\n"
    assert whole_lines("a\ud800\n", 100) == "a?\n"


def test_500_kib_of_a_file_are_read() -> None:
    head = "User-agent: *\nDisallow: /a\n"
    body = head + "#" * (MAX_SIZE - len(head) - len("\nDisallow: /b\n")) + "\nDisallow: /b\nDisallow: /c\n"
    store = MemoryStore()
    robots = robots_of(store)
    robots.save(SITE, "http", status=200, body=body)
    assert [ask(robots, path) for path in ("/a", "/b", "/c")] == [FORBIDDEN, FORBIDDEN, ALLOWED]
    entry = store.robots(SITE, "http")
    assert entry is not None
    assert len(entry.body) <= MAX_SIZE
    robots.save(SITE, "http", status=200, body=body.replace("/b\n", "/bcd\n"))
    assert [ask(robots, path) for path in ("/a", "/b", "/bcd")] == [FORBIDDEN, ALLOWED, ALLOWED]


def test_rules_for_many_names_are_kept_once() -> None:
    """Protego has names times rules of them: here 100 million."""
    names = "".join(f"User-agent: a{number}\n" for number in range(10_000))
    rules = [f"Disallow: /{number}" for number in range(10_000)]
    body = f"{names}User-agent: crawlspace\nUser-agent: *\n" + "\n".join(rules)
    assert lines_for("crawlspace", body) == rules
    assert ask(reading(body), "/9999") is FORBIDDEN


def test_rules_of_others_are_not_kept() -> None:
    body = "User-agent: a\nDisallow: /\nUser-agent: *\nAllow: /b\nSitemap: http://www.example.com/s.xml\nHost: a\nCrawl-delay: 1"
    assert lines_for("crawlspace", body) == ["Allow: /b", "Crawl-delay: 1"]


WILDCARDS = [
    # lines, how many of them are left out
    ([], 0),
    ([f"Disallow: /{number}" for number in range(40_000)], 0),
    ([f"Disallow: /*{number}?sort=" for number in range(1_500)], 0),
    (["Disallow: /*?sort="] * 40_000, 0),
    ([f"Disallow: /*{number:04}{'a' * 1008}" for number in range(64)], 0),
    ([f"Disallow: /*{number:04}{'a' * 1008}" for number in range(70)], 6),
    (["Disallow: /" + "*a" * 250_000], 1),
    (["Disallow: /" + "*a" * 250_000, "Disallow: /*?sort="], 1),
    ([f"Disallow: /*{number:04}{'a' * 1008}" for number in range(70)] + ["Disallow: /a"], 6),
    ([f"Disallow: /%25{number:04}{'a' * 1008}$" for number in range(70)], 0),
]


@pytest.mark.parametrize(("lines", "left_out"), WILDCARDS)
def test_only_so_many_rules_with_wildcards_count(lines: list[str], left_out: int) -> None:
    kept, count = bounded(lines)
    assert count == left_out == len(set(lines)) - len(kept)
    assert [line for line in kept if "*" not in line] == [line for line in lines if "*" not in line]
    assert sum(len(line) for line in kept if "*" in line) <= MAX_WILDCARD_TEXT


def test_rules_that_are_left_out_are_named_when_they_are_read(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    robots = robots_of(store)
    body = "User-agent: *\nDisallow: /a\n" + "".join(f"Disallow: /*{number:04}\n" for number in range(10_000))
    with caplog.at_level(logging.WARNING):
        robots.save(SITE, "http", status=200, body=body)
        assert ask(robots_of(store)) is FORBIDDEN
    assert [record.getMessage() for record in caplog.records] == [
        f"the robots.txt of {SITE} has more than 65536 characters of rules with *: {10_000 - 65_536 // 16} of them are not obeyed"
    ]


# --- memory and cost ------------------------------------------------------------------------------------------------


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
        assert ask(robots, site=site) is ALLOWED
    store.reads = 0
    read.clear()
    for site in names:
        assert ask(robots, f"/{site}/007919/x", site=site) is (FORBIDDEN if count else ALLOWED)
    assert store.reads == 0
    assert read == [], "parsed again"


def test_recently_used_rules_stay_in_memory() -> None:
    names = [f"{number}.example:80" for number in range(100)]
    store = CountingStore().holding({site: rules(site, 100) for site in names})
    robots = robots_of(store, memory=500_000)
    for site in names[1:]:
        ask(robots, site=names[0])
        ask(robots, site=site)
    for site, reads in ((names[0], 0), (names[99], 0), (names[1], 1)):
        store.reads = 0
        ask(robots, site=site)
        assert store.reads == reads, site


def test_one_that_is_larger_than_the_memory_counts_and_is_kept_until_the_next() -> None:
    store = CountingStore().holding({f"{name}.example:80": rules("x", 1000) for name in "ab"})
    robots = robots_of(store, memory=1000)
    reads = []
    for name in "aabba":
        store.reads = 0
        assert ask(robots, "/x/007919/", site=f"{name}.example:80") is FORBIDDEN
        reads.append(store.reads)
    assert reads == [1, 0, 1, 0, 1]


class StoreOfNothing(MemoryStore):
    """Stores no robots.txt, so that only the cache takes memory."""

    def save_robots(self, entry: RobotsEntry) -> None:
        pass


SIZES = [
    "Disallow: /{}/section{}/some-folder/",
    "Disallow: /{}s{}",
    "Disallow: /{}/section{}/some-folder/*x$",
    "Disallow: /*{}-{}",
]
"""A rule; each site has others, because equal patterns are compiled once."""


@pytest.mark.full
@pytest.mark.parametrize("rule", some(SIZES, 2))
def test_memory_is_bounded(rule: str) -> None:
    robots = robots_of(StoreOfNothing(), memory=2_000_000)

    def save(site: int) -> None:
        body = "User-agent: *\n" + "\n".join(rule.format(site, number) for number in range(500))
        robots.save(f"{site}.example:80", "http", status=200, body=body)

    save(0)
    tracemalloc.start()
    try:
        for site in range(1, 51):
            save(site)
        re.purge()  # else the last patterns would be counted too
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
        ask(robots, site=site)
    store.reads = 0
    assert robots.delay_of(SITE, "http") == 7.0
    assert store.reads == 0
    ask(robots, site=SITE)
    assert store.reads == 1


def test_a_delay_changes_with_what_is_read() -> None:
    store, clock = CountingStore(), FakeClock()
    ours, others = robots_of(store, clock), robots_of(store, clock)
    assert ours.delay_of(SITE, "http") == 0.0
    others.save(SITE, "http", status=200, body="User-agent: *\nCrawl-delay: 3")
    assert ask(ours) is ALLOWED
    assert ours.delay_of(SITE, "http") == 3.0
    clock.advance(DAY_S)
    others.save(SITE, "http", status=200, body="User-agent: *\nCrawl-delay: 4")
    assert ask(ours) is ALLOWED
    assert ours.delay_of(SITE, "http") == 4.0
    ours.save(SITE, "http", status=404, body="")
    assert ours.delay_of(SITE, "http") == 0.0
