"""Which URL goes out next, and when: over the memory store, with a clock that stands still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import inf

import pytest
from msgspec import structs

from crawlspace.clock import FakeClock
from crawlspace.frontier.frontier import Frontier
from crawlspace.frontier.site_queue import Backoff, Pace
from crawlspace.frontier.source_weights import DEFAULT_WEIGHTS
from crawlspace.model import NewUrl, Source, State
from crawlspace.state.changes import Change
from crawlspace.urls import url_key
from tests.contract.memory.store import MemoryStore
from tests.site_delays import FixedDelays


def new(url: str, source: Source = Source.INDEX_FOLLOW, shift: int = 0) -> NewUrl:
    site = url.split("/")[2] + ":80"
    return NewUrl(url_key(url), url, site, source, shift, 0, 0, 1)


class World(FixedDelays):
    """A store, a clock and the frontier between them; it is itself what says how fast sites may be asked."""

    def __init__(
        self,
        *urls: NewUrl,
        delay: float = 1.0,
        concurrency: int = 1,
        lease_s: int = 600,
        weights: Mapping[Source, int] = DEFAULT_WEIGHTS,
        max_sites: int | None = None,
        max_pages_in_turn: int | None = None,
    ) -> None:
        super().__init__(delay, concurrency)
        self.clock = FakeClock()
        self.weights = weights
        self.max_sites = max_sites
        self.max_pages_in_turn = max_pages_in_turn
        self.store = MemoryStore()
        self.store.discover(urls, now=self.now)
        self.lease_s = lease_s
        self.frontier = self.open()

    def open(self) -> Frontier:
        return Frontier(
            self.store,
            clock=self.clock,
            site_delays=self,
            lease_s=self.lease_s,
            weights=self.weights,
            max_sites=self.max_sites,
            max_pages_in_turn=self.max_pages_in_turn,
            backoff=Backoff(5.0, 60.0),
        )

    @property
    def now(self) -> int:
        return int(self.clock.now())

    def add(self, *urls: NewUrl) -> None:
        self.store.discover(urls, now=self.now)
        self.frontier.discovered([(url.site, url.queue) for url in urls])

    def next(self) -> str | None:
        state = self.frontier.next()
        return None if state is None else state.url

    def fetch(self) -> str | None:
        """Take the next URL, finish it, and go on to the site's next turn."""
        state = self.frontier.next()
        if state is None:
            return None
        done = structs.replace(state, state=State.DONE, status=200, next_fetch=self.now + 10**6, lease_until=None)
        self.store.record([Change(done)], now=self.now)
        self.frontier.due(done.site, done.queue, self.now + 10**6)
        self.frontier.finished(state)
        self.clock.advance(self.pace.delay_s)
        return state.url

    def fetch_at_once(self) -> str | None:
        """Take the next URL and finish it, without waiting for the next turn."""
        state = self.frontier.next()
        if state is not None:
            self.frontier.finished(state)
        return None if state is None else state.url

    def fetch_all(self) -> list[str]:
        urls = []
        while (url := self.fetch()) is not None:
            urls.append(url)
        return urls


ORDER = [
    # what is pending, in order of discovery; the order of fetches
    ("first in, first out", [("http://a/1", 3, 0), ("http://a/2", 3, 0)], ["http://a/1", "http://a/2"]),
    ("a smaller shift first", [("http://a/1", 3, 1), ("http://a/2", 3, -2), ("http://a/3", 3, 0)], ["http://a/2", "http://a/3", "http://a/1"]),
    ("a shift never crosses sources", [("http://a/1", 3, -2), ("http://a/2", 1, 2)], ["http://a/2", "http://a/1"]),
    ("user before redir before index", [("http://a/1", 2, 0), ("http://a/2", 1, 0), ("http://a/3", 0, 0)], ["http://a/3", "http://a/2", "http://a/1"]),
    ("across sites too", [("http://a/1", 3, 0), ("http://b/1", 0, 0)], ["http://b/1", "http://a/1"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "pending", "order"), ORDER, ids=[row[0] for row in ORDER])
def test_order(name: str, pending: list[tuple[str, int, int]], order: list[str]) -> None:
    world = World(*(new(url, Source(source), shift) for url, source, shift in pending))
    assert world.fetch_all() == order


def test_a_site_gets_no_request_before_its_delay_is_over() -> None:
    world = World(new("http://a/1"), new("http://a/2"), new("http://b/1"), delay=2.0, concurrency=2)
    assert [world.next(), world.next(), world.next()] == ["http://a/1", "http://b/1", None]
    assert world.frontier.wake_in() == 2.0
    world.clock.advance(1.9)
    assert world.next() is None
    world.clock.advance(0.1)
    assert world.next() == "http://a/2"


def test_a_site_has_no_more_requests_under_way_than_it_bears() -> None:
    world = World(*(new(f"http://a/{n}") for n in range(5)), delay=0.0, concurrency=2)
    first = world.frontier.next()
    assert first is not None
    assert [first.url, world.next(), world.next()] == ["http://a/0", "http://a/1", None]
    world.frontier.finished(first)
    assert [world.next(), world.next()] == ["http://a/2", None]


def test_a_slow_site_does_not_hold_up_the_others() -> None:
    giant = [new(f"http://giant/{n}") for n in range(500)]
    world = World(*giant, *(new(f"http://small{n}/") for n in range(20)), delay=10.0)
    first = [world.next() for _ in range(21)]
    assert first[0] == "http://giant/0"
    assert set(first[1:]) == {f"http://small{n}/" for n in range(20)}


def test_new_urls_of_a_higher_rank_go_before_the_buffered_ones() -> None:
    world = World(*(new(f"http://a/{n}") for n in range(20)))
    assert world.fetch() == "http://a/0"
    world.add(new("http://a/target", Source.REDIR))
    assert [world.fetch(), world.fetch()] == ["http://a/target", "http://a/1"]


def test_a_url_put_back_keeps_its_turn() -> None:
    world = World(new("http://a/1"), delay=5.0)
    state = world.frontier.next()
    assert state is not None
    world.frontier.put_back(state)
    assert world.frontier.in_flight == 0
    assert world.next() == "http://a/1"


def test_a_held_site_waits_for_its_robots_and_for_its_delay() -> None:
    world = World(new("http://a/1"), new("http://a/2"), delay=5.0, concurrency=2)
    state = world.frontier.next()
    assert state is not None
    world.frontier.put_back(state)
    world.frontier.block("a:80")
    assert world.next() is None
    world.frontier.unblock("a:80")
    assert world.next() is None
    world.clock.advance(5.0)
    assert world.next() == "http://a/1"


def test_done_only_when_nothing_is_pending_under_way_or_to_be_retried() -> None:
    world = World(new("http://a/1"), delay=0.0)
    assert not world.frontier.is_done()
    state = world.frontier.next()
    assert state is not None
    assert not world.frontier.is_done()
    retry_at = world.now + 10
    failed = structs.replace(state, state=State.FAILED, retries=1, next_fetch=retry_at, lease_until=None)
    world.store.record([Change(failed)], now=world.now)
    world.frontier.due("a:80", failed.queue, retry_at, retry=True)
    world.frontier.finished(state)
    assert world.next() is None
    assert not world.frontier.is_done()
    assert world.frontier.wake_in() == pytest.approx(10, abs=1)
    world.clock.advance(10)
    assert world.fetch() == "http://a/1"
    assert world.next() is None
    assert world.frontier.is_done()


def test_a_refresh_in_the_future_is_not_waited_for() -> None:
    world = World(new("http://a/1"))
    assert world.fetch_all() == ["http://a/1"]
    assert world.frontier.is_done()


def test_a_site_given_up_does_not_keep_the_crawl_going() -> None:
    world = World(*(new(f"http://a/{n}") for n in range(3)), new("http://b/1"))
    world.frontier.give_up("a:80")
    assert world.fetch_all() == ["http://b/1"]
    assert world.frontier.is_done()
    assert world.store.counts().by_state == {"pending": 3, "done": 1}


def test_closing_releases_urls_that_were_not_requested() -> None:
    world = World(*(new(f"http://a/{n}") for n in range(5)))
    assert world.fetch() == "http://a/0"
    world.frontier.close()
    assert world.store.counts().by_state == {"pending": 4, "done": 1}


def test_a_requested_wait_is_kept_across_a_restart() -> None:
    world = World(new("http://a/1"))
    world.frontier.wait_site("a:80", 100)
    world.frontier.close()
    world.frontier = world.open()
    assert world.next() is None
    world.clock.advance(100)
    assert world.next() == "http://a/1"


def test_an_expired_lease_comes_back() -> None:
    world = World(new("http://a/1"), lease_s=40)
    assert world.next() == "http://a/1"
    world.frontier = world.open()  # the one that held it was killed
    assert world.next() is None
    world.clock.advance(41)
    assert world.next() == "http://a/1"


def test_many_redirects_do_not_pile_up_leases() -> None:
    world = World(*(new(f"http://a/{n}") for n in range(200)))
    for n in range(50):
        assert world.fetch() is not None
        world.add(new(f"http://a/target{n}", Source.REDIR))
    world.fetch()
    assert world.store.counts().by_state["leased"] <= 16


def test_a_fetch_longer_than_its_lease_is_not_returned_again() -> None:
    world = World(new("http://a/1"), new("http://a/2"), lease_s=40, delay=0.0)
    state = world.frontier.next()
    assert state is not None
    world.clock.advance(100)
    assert world.next() == "http://a/2" or world.next() is None
    world.frontier.finished(state)
    assert world.next() in ("http://a/2", None)


def test_more_sites_than_can_be_buffered_all_get_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawlspace.frontier.leases.MAX_BUFFERED", 2)
    world = World(*(new(f"http://s{site}/{n}") for site in range(30) for n in range(30)), delay=1.0)
    asked = set()
    for _ in range(60):
        while (url := world.next()) is not None:
            asked.add(url.split("/")[2])
            state = world.store.get(url)
            assert state is not None
            world.frontier.finished(state)
        world.clock.advance(1.0)
    assert len(asked) == 30


INDEXED, BOTH, FOLLOWED = Source.INDEX, Source.INDEX_FOLLOW, Source.FOLLOW
FULL = [(INDEXED, 5_000), (BOTH, 500), (FOLLOWED, 50)]


@pytest.mark.parametrize(("sites", "delay"), [(1, 0.0), (40, 0.0), (40, 0.5)], ids=["one site", "sites", "sites with a delay"])
def test_picks_are_in_proportion_to_weight(sites: int, delay: float) -> None:
    """5,550 picks while all three sources are full; with a delay more sites are there than are asked at a time."""
    urls = [new(f"http://s{n % sites}/{source}/{n}", source) for source, count in FULL for n in range(count + 400)]
    world = World(*urls, delay=delay, concurrency=1 if delay else 8)
    picked: Counter[Source] = Counter()
    while picked.total() < 5_550:
        for _ in range(20):  # as many as the crawler bears at a time
            state = world.frontier.next()
            if state is None:
                break
            picked[state.source] += 1
            world.frontier.finished(state)
        world.clock.advance(1.0)
    for source, count in FULL:
        assert abs(picked[source] - count) <= count * 0.02, picked


def test_a_source_that_had_nothing_for_long_does_not_make_up_for_it() -> None:
    world = World(*(new(f"http://a/{n}", FOLLOWED) for n in range(300)), delay=0.0)
    for _ in range(200):
        world.fetch()
    world.add(*(new(f"http://a/refresh{n}", BOTH) for n in range(300)))
    urls = [world.fetch() or "" for _ in range(44)]
    assert 38 <= sum("refresh" in url for url in urls) <= 42, "ten to one, also at once"


def test_a_weight_of_0_pauses_a_source() -> None:
    world = World(new("http://a/1", FOLLOWED), new("http://a/2"), new("http://b/1", FOLLOWED), weights={BOTH: 100, FOLLOWED: 0})
    assert world.fetch_all() == ["http://a/2"]
    assert world.frontier.is_done()
    assert world.store.counts().by_state == {"pending": 2, "done": 1}


def test_due_urls_do_not_delay_new_ones_beyond_their_weight() -> None:
    world = World(*(new(f"http://a/known{n}") for n in range(50)), delay=0.0)
    known = world.store.lease("a:80", 50, now=world.now, until=world.now + 9)
    world.store.record([Change(structs.replace(one, state=State.DONE, next_fetch=world.now)) for one in known], now=world.now)
    world.store.discover([new(f"http://a/new{n}") for n in range(250)], now=world.now)
    world.frontier = world.open()
    urls = [world.fetch() or "" for _ in range(202)]
    assert sum("known" in url for url in urls) == 2, "1 to 100"
    assert len(world.fetch_all()) == 98


def test_so_many_sites_are_crawled_at_a_time() -> None:
    world = World(*(new(f"http://{site}/{n}") for n in range(2) for site in "abcd"), delay=1.0, max_sites=2)
    rounds = []
    while not world.frontier.is_done():
        rounds.append("")
        while (state := world.frontier.next()) is not None:
            rounds[-1] += state.site[0]
            world.frontier.finished(state)
        world.clock.advance(1.0)
    assert [*filter(None, rounds)] == ["ab", "abcd", "cd"], "a and b are done in the second round"


TURNS = [
    # pages in turn, sites at a time, requests at a time -> the sites in the order of their requests
    (None, 1, 1, "aaabbbccc"),
    (1, 1, 1, "abcabcabc"),
    (2, 1, 1, "aabbccabc"),
    (2, 3, 1, "abcabcabc"),
    (2, 1, 2, "aabbccabc"),
]


@pytest.mark.parametrize(("pages", "sites", "together", "expected"), TURNS)
def test_a_site_has_its_place_for_so_many_pages_while_others_wait(
    pages: int | None, sites: int, together: int, expected: str
) -> None:
    urls = [new(f"http://{site}/{n}") for n in range(3) for site in "abc"]
    world = World(*urls, delay=0.0 if together > 1 else 1.0, concurrency=together, max_sites=sites, max_pages_in_turn=pages)
    order = ""
    while not world.frontier.is_done():
        flying = []
        while (state := world.frontier.next()) is not None:
            flying.append(state)
        order += "".join(state.site[0] for state in flying)
        for state in flying:
            world.frontier.finished(state)
            world.store.record([Change(structs.replace(state, state=State.DONE, next_fetch=None))], now=world.now)
            world.frontier.recorded([state.id])
        world.clock.advance(1.0)
    assert order == expected


def test_a_waiting_site_makes_room_for_another() -> None:
    world = World(new("http://a/1"), new("http://b/1"), max_sites=1)
    world.frontier.wait_site("a:80", 3600)
    assert world.next() == "http://b/1"


def test_a_pace_may_change_while_sites_wait() -> None:
    world = World(new("http://a/1"), new("http://a/2"), new("http://b/1"), delay=3600.0)
    world.changes = world.clock.now() + 10
    world.frontier = world.open()
    assert [world.fetch_at_once(), world.fetch_at_once(), world.next()] == ["http://a/1", "http://b/1", None]
    assert world.frontier.wake_in() == 10
    world.pace, world.changes = Pace(1.0, 1), inf
    world.clock.advance(10)
    assert world.next() == "http://a/2"


def test_while_suspended_nothing_is_requested_and_the_crawl_is_not_done() -> None:
    world = World(new("http://a/1"))
    world.pace, world.changes = Pace(1.0, 1, suspended=True), world.clock.now() + 600
    world.frontier = world.open()
    assert (world.next(), world.frontier.is_done(), world.frontier.wake_in()) == (None, False, 600)
    world.pace, world.changes = Pace(1.0, 1), inf
    world.clock.advance(600)
    assert world.next() == "http://a/1"


FAILURES = [(1, 1.0), (2, 1.0), (3, 5.0), (4, 10.0), (5, 20.0), (6, 40.0), (7, 60.0), (50, 60.0)]


@pytest.mark.parametrize(("in_a_row", "wait_s"), FAILURES)
def test_failures_in_a_row_widen_the_delay(in_a_row: int, wait_s: float) -> None:
    world = World(*(new(f"http://a/{n}") for n in range(60)))
    wait: float | None = None
    for number in range(1, in_a_row + 1):
        state = world.frontier.next()
        assert state is not None
        assert world.frontier.finished(state, failed=True).in_row == number
        assert world.next() is None
        wait = world.frontier.wake_in()
        assert wait is not None
        if number < in_a_row:
            world.clock.advance(wait)
    assert wait is not None
    assert wait == wait_s
    world.clock.advance(wait)
    state = world.frontier.next()
    assert state is not None
    world.frontier.finished(state, failed=False)
    assert world.frontier.wake_in() == 1.0


def test_a_site_with_nothing_left_is_not_remembered_beyond_its_delay() -> None:
    world = World(*(new(f"http://s{n}/") for n in range(100)), delay=1.0)
    while (state := world.frontier.next()) is not None:
        world.frontier.finished(state)
    assert len(world.frontier._sites) == 100
    world.clock.advance(2.0)
    assert world.next() is None
    assert len(world.frontier._sites) == 0
