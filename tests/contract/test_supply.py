"""Sites that go from one worker to another while they are being asked."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from math import inf
from typing import Any

import pytest

from crawlspace.clock import FakeClock
from crawlspace.distributed.prefetch import LEAVING_S, OtherRequests, Prefetch
from crawlspace.distributed.shared_store import SharedStore
from crawlspace.errors import StoreAway
from crawlspace.frontier.frontier import Frontier
from crawlspace.frontier.site_queue import Pace
from crawlspace.model import Queue, Source, UrlState
from crawlspace.state.changes import Change, Effects
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import AcquiredSite
from crawlspace.state.unreachable import UnreachableSite
from tests.contract.conftest import NOW, SINKS, new
from tests.servers import another_client, emptied

PAGES = 40


class Calls:
    """Calls of the server, each made when it is its turn."""

    def __init__(self) -> None:
        self._jobs: deque[tuple[Callable[[], Any], Callable[[Any], None] | None]] = deque()

    def begin(self, failed: Callable[[BaseException], None]) -> None: ...
    def settle(self) -> None: ...
    def hurry(self) -> None: ...
    def finish(self) -> None: ...

    def do(self, job: Callable[[], Any], done: Callable[[Any], None] | None = None) -> None:
        self._jobs.append((job, done))

    def make(self) -> None:
        while self._jobs:
            job, done = self._jobs.popleft()
            found = job()
            if done is not None:
                done(found)


class NoOtherRequests:
    """Other requests of a worker, which a test may replace."""

    def __init__(self) -> None:
        self.requests: OtherRequests | None = None

    def waiting(self) -> Collection[str]:
        return self.requests.waiting() if self.requests else ()

    def is_asking(self, site: str) -> bool:
        return False

    def begin(self, site: str) -> None:
        if self.requests:
            self.requests.begin(site)

    def has_asked(self, site: str) -> bool:
        return self.requests is not None and self.requests.has_asked(site)


class Crawler:
    """One worker, which asks two pages of a site at once and keeps no delay."""

    def __init__(self, clock: FakeClock, *, timeout_s: float = 10**6) -> None:
        self.clock = clock
        self.calls = Calls()
        self.shared = SharedStore.open(another_client(), "shared", sinks=SINKS, background=self.calls, timeout_s=timeout_s)
        self.store, self.view, self.sites = self.shared.store, self.shared.view, self.shared.view.sites
        assert self.shared.worker.begin("rules") is None
        self.shared.worker.ready()
        self.frontier = Frontier(self.sites, clock=clock, site_delays=self, lease_s=600, others=self.sites)
        self.others = NoOtherRequests()
        self.prefetch = Prefetch(
            self,
            self.sites,
            self.shared.worker,
            self.calls,
            others=self.others,
            join_again=self.shared.join_again,
            clock=clock,
            lease_s=600,
        )
        self.in_flight: list[UrlState] = []
        self.unreachable: dict[str, UnreachableSite | None] = {}
        """What was known of the sites when they came."""
        self.changes = 0
        """How often the store may have come to know less."""

    def is_idle(self) -> bool:
        return True

    def is_in_flight(self, id: int) -> bool:
        return id in {state.id for state in self.in_flight}

    def site_acquired(self, one: AcquiredSite) -> None:
        if one.known is not None:
            self.view.learn(one.site, one.known)
            self.unreachable[one.site] = one.known.unreachable

    def store_changed(self) -> None:
        self.changes += 1

    def wake(self) -> None: ...

    def report(self) -> str:
        return ""

    def deletions(self) -> int:
        return 0

    def of(self, site: str) -> Pace:
        return Pace(0.0, 2)

    def change_at(self) -> float:
        return inf

    def phase(self) -> None:
        return None

    def tick(self) -> None:
        self.prefetch.tick()
        self.calls.make()

    def ask(self, most: int = 1000) -> list[str]:
        """Begin what may be asked now; return the sites."""
        began: list[str] = []
        while len(began) < most and (state := self.frontier.next()) is not None:
            self.in_flight.append(state)
            began.append(state.site.partition(".")[0])
        return began

    def not_asked(self) -> None:
        """Nothing that is under way was asked for after all, as Engine.not_asked has it."""
        began, self.in_flight = self.in_flight, []
        for state in began:
            self.sites.release([state.id])
            self.frontier.recorded([state.id])
            self.frontier.finished(state)
            self.frontier.discovered([(state.site, state.queue)])

    def answered(self, *hosts: str) -> None:
        """What is under way at these hosts is over, and nothing follows it."""
        for state in [state for state in self.in_flight if state.site.partition(".")[0] in hosts]:
            self.in_flight.remove(state)
            self.frontier.finished(state)


@pytest.fixture
def crawlers(clock: FakeClock) -> Iterator[tuple[Crawler, Crawler]]:
    """Two; the first one has taken four sites, and then the second one came. From each site two pages are under way."""
    emptied().close()
    with_urls = RedisStore(another_client(), "shared", sinks=SINKS)
    with_urls.discover([new(f"{host}.example/{number}") for number in range(PAGES) for host in "abcd"], now=NOW)
    with_urls.close()
    one = Crawler(clock)
    one.tick()
    assert sorted(one.ask()) == sorted("aabbccdd")
    two = Crawler(clock)
    yield one, two
    one.store.close()
    two.store.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


def test_a_site_goes_to_a_newcomer_as_soon_as_nothing_is_under_way_there(
    crawlers: tuple[Crawler, Crawler], clock: FakeClock
) -> None:
    one, two = crawlers
    clock.advance(2)
    one.tick()  # it hears of the other one
    two.tick()
    assert two.ask() == [], "all sites are being asked"
    one.answered(*"abcd")
    staying = set(one.ask(1000))
    assert len(staying) == 2, "of the others nothing more is asked"
    one.tick()
    clock.advance(2)
    two.tick()
    assert sorted({*staying, *two.ask()}) == ["a", "b", "c", "d"]
    assert not {state.id for state in one.in_flight} & {state.id for state in two.in_flight}


def test_a_site_that_nobody_holds_does_not_wait_until_a_busy_worker_has_nothing_left(
    crawlers: tuple[Crawler, Crawler], clock: FakeClock
) -> None:
    one, two = crawlers
    taken_for_dead(two, by=one)
    two.store.discover([new("e.example/0")], now=NOW)
    one.answered(*"abcd")
    assert one.frontier.wake_in() == 0.0, "it has more than enough to ask"
    for _ in range(2):
        clock.advance(2)
        one.tick()
    assert one.sites.holds("e.example:80")
    assert "e" in one.ask()


def test_a_site_that_is_to_go_and_answers_late_stays_and_others_go(crawlers: tuple[Crawler, Crawler], clock: FakeClock) -> None:
    one, two = crawlers
    clock.advance(2)
    one.tick()
    clock.advance(LEAVING_S + 1)
    one.tick()
    one.answered(*"abcd")
    staying = set(one.ask())
    assert len(staying) == 2
    one.tick()
    clock.advance(2)
    two.tick()
    assert set(two.ask()) == set("abcd") - staying
    assert len(set(one.ask() + two.ask())) == 0, "each is asked by one"


def test_what_was_not_asked_for_is_there_for_the_other_one(crawlers: tuple[Crawler, Crawler], clock: FakeClock) -> None:
    one, two = crawlers
    done: set[int] = set()
    clock.advance(2)
    for _ in range(200):
        for each in (one, two):
            each.tick()
            each.ask()
            done.update(state.id for state in each.in_flight)
            each.answered(*"abcd")
        clock.advance(0.5)
    assert len(done) == 4 * PAGES


def test_who_was_taken_for_dead_forgets_what_it_had_found(crawlers: tuple[Crawler, Crawler], clock: FakeClock) -> None:
    """It was passed over with the pages on which it was found, and these may be fetched by the same worker again."""
    one, two = crawlers
    two.shared.mark.save()
    two.tick()
    assert two.changes == 0
    one.store.scripts.command("ZADD", "workers", 0, two.shared.worker.name)
    for worker in (one, two, two):
        clock.advance(60)
        worker.tick()
    assert (one.changes, two.changes) == (0, 1)
    assert (one.prefetch.incarnation, two.prefetch.incarnation) == (0, 1)


def taken_for_dead(worker: Crawler, by: Crawler) -> None:
    """The server's doing; the worker itself does not know yet."""
    by.shared.worker.expire([worker.shared.worker.name])


def test_how_long_a_site_is_held_for_certain(crawlers: tuple[Crawler, Crawler], clock: FakeClock) -> None:
    alone, by = Crawler(clock, timeout_s=30), crawlers[0]
    alone.shared.mark.save()
    for other in reversed(crawlers):
        taken_for_dead(other, by)
    alone.tick()
    site = alone.ask(1) and alone.in_flight[0].site
    assert site
    held = alone.prefetch.owned_for_s
    assert held(site) == 29, "a second before the others may take this worker for dead"
    clock.advance(20)
    assert held(site) == 9
    alone.tick()
    assert held(site) == 29, "the server has heard of it"
    clock.advance(28.5)
    assert held(site) == 0.5
    clock.advance(0.5)
    assert held(site) == 0.0
    clock.advance(100)
    assert held(site) == 0.0
    taken_for_dead(alone, by)
    alone.tick()
    assert held(site) == 0.0, "the server answers again, but the site was given to others"
    assert held("elsewhere.example:80") == 29
    alone.answered(*"abcd")
    for _ in range(3):
        clock.advance(2)
        alone.tick()
        alone.ask()
    assert held(site) > 27, "it is this worker's again"
    alone.store.close()


@pytest.mark.parametrize("is_asked", [True, False])
def test_what_was_under_way_when_a_worker_was_taken_for_dead_is_not_begun_beside_it(
    crawlers: tuple[Crawler, Crawler], clock: FakeClock, *, is_asked: bool
) -> None:
    """The worker has the URLs again, and the requests of before are not over yet. They may be answered, or not have been sent."""
    one, two = crawlers
    one.shared.mark.save()
    taken_for_dead(one, by=one)
    taken_for_dead(two, by=one)
    before = [state.id for state in one.in_flight]
    for _ in range(3):
        clock.advance(2)
        one.tick()
    assert [state.id for state in one.in_flight] == before
    one.answered(*"abcd") if is_asked else one.not_asked()
    begun: Counter[int] = Counter()
    for _ in range(4 * PAGES):
        clock.advance(2)
        one.tick()
        one.ask()
        begun.update(state.id for state in one.in_flight)
        one.answered(*"abcd")
    assert set(begun.values()) == {1}
    assert len(begun) == 4 * PAGES - (len(before) if is_asked else 0)


def test_who_was_taken_for_dead_asks_again_what_it_gave_up_afterwards(
    crawlers: tuple[Crawler, Crawler], clock: FakeClock
) -> None:
    """Its word was not taken. It would take such a site and let it go again without end."""
    one, two = crawlers
    one.shared.mark.save()
    taken_for_dead(one, by=one)
    taken_for_dead(two, by=one)
    clock.advance(2)
    one.tick()
    one.frontier.give_up("a.example:80")  # a request that was under way was one failure too many
    one.answered(*"abcd")
    for _ in range(10):
        clock.advance(2)
        one.tick()
        one.ask()
    assert {state.site for state in one.in_flight} == {f"{host}.example:80" for host in "abcd"}


def test_what_a_worker_has_given_up_itself_it_does_not_take_again(crawlers: tuple[Crawler, Crawler], clock: FakeClock) -> None:
    one, two = crawlers
    taken_for_dead(two, by=one)
    one.frontier.give_up("a.example:80")
    one.answered(*"abcd")
    for _ in range(10):
        clock.advance(2)
        one.tick()
        one.ask()
    assert {state.site for state in one.in_flight} == {f"{host}.example:80" for host in "bcd"}


class RobotsOfOthers:
    """A request to the first site, which is made as soon as that may be asked, and again and again."""

    def __init__(self, crawler: Crawler) -> None:
        self.needed = {"a.example:80"}
        self.made = 0
        self._crawler = crawler
        self._has_asked = False
        crawler.others.requests = self

    def waiting(self) -> set[str]:
        return self.needed

    def is_asking(self, site: str) -> bool:
        return False

    def begin(self, site: str) -> None:
        self._has_asked = False

    def has_asked(self, site: str) -> bool:
        return self._has_asked

    def tick(self) -> None:
        if self.needed and self._crawler.sites.holds("a.example:80"):
            self.made += 1
            self._has_asked = True


def on_one_clock(crawlers: tuple[Crawler, Crawler], clock: FakeClock) -> None:
    """The server goes by the clock of the test."""
    behind_ms = round(time.time() * 1000) - round(clock.now() * 1000)
    for each in crawlers:
        each.store.scripts.now_ms = lambda: behind_ms + round(clock.now() * 1000)


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


def test_links_refused_are_not_counted_again_for_a_worker_that_is_no_more(crawlers: tuple[Crawler, Crawler]) -> None:
    """The call that counted them may have been made, and its answer lost."""
    one, two = crawlers
    taken_for_dead(one, two)
    one.view.count_refusals({"domain": 2})
    one.view.record([], now=NOW)
    assert one.store.refusals() == {}


def test_links_refused_are_counted_in_the_call_that_records_outcomes(crawlers: tuple[Crawler, Crawler]) -> None:
    one, _ = crawlers
    one.view.count_refusals({"domain": 2})
    one.view.count_refusals({"domain": 1, "scheme": 4})
    before = one.store.scripts.runs
    one.view.record([], now=NOW)
    assert one.store.scripts.runs == before + 1
    assert one.store.refusals() == {"domain": 3, "scheme": 4}
    one.view.record([], now=NOW)
    assert one.store.refusals() == {"domain": 3, "scheme": 4}


@pytest.mark.parametrize("made", [True, False])
def test_links_refused_are_counted_once_where_an_answer_is_lost(
    crawlers: tuple[Crawler, Crawler], monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    """Whether the call was made or not."""
    store, view = crawlers[0].store, crawlers[0].view
    record, changes = crawlers[0].shared.worker.record, list[Change]()

    def lost(*args: Any, **options: Any) -> Effects:
        if made:
            record(*args, **options)
        raise StoreAway("no answer")

    view.count_refusals({"domain": 2})
    with monkeypatch.context() as away:
        away.setattr(crawlers[0].shared.worker, "record", lost)
        with pytest.raises(StoreAway):
            view.record(changes, now=NOW)
    view.count_refusals({"domain": 5})
    view.record(changes, now=NOW)
    assert store.refusals() == {"domain": 2}
    view.record([], now=NOW)
    assert store.refusals() == {"domain": 7}


def test_links_refused_that_no_outcome_follows_are_counted_at_the_end(crawlers: tuple[Crawler, Crawler]) -> None:
    one, _ = crawlers
    one.view.count_refusals({"domain": 2})
    one.view.count_remaining_refusals()
    one.calls.make()
    assert one.store.refusals() == {"domain": 2}


def test_a_worker_picks_in_proportion_to_weight_at_one_site_too(clock: FakeClock) -> None:
    """However much of a light source is buffered here, the heavier ones are fetched again before it is used up."""
    emptied().close()
    full = [(Source.INDEX, 1_000), (Source.INDEX_FOLLOW, 100), (Source.FOLLOW, 60)]
    store = RedisStore(another_client(), "shared", sinks=SINKS)
    store.discover([new(f"a.example/{source}/{n}", source=source) for source, count in full for n in range(count)], now=NOW)
    store.close()
    worker = Crawler(clock)
    picked: Counter[Source] = Counter()
    while picked.total() < 999:
        worker.tick()
        worker.ask()
        picked.update(state.source for state in worker.in_flight)
        worker.answered("a")
    worker.store.close()
    shares = {Source.INDEX: 900, Source.INDEX_FOLLOW: 90, Source.FOLLOW: 9}
    assert all(abs(picked[source] - share) <= 9 for source, share in shares.items()), picked


def test_what_comes_in_at_a_site_that_is_held_goes_before_what_is_buffered_of_a_lighter_source(clock: FakeClock) -> None:
    emptied().close()
    store = RedisStore(another_client(), "shared", sinks=SINKS)
    store.discover([new(f"a.example/{n}", source=Source.FOLLOW) for n in range(100)], now=NOW)
    worker = Crawler(clock)
    worker.tick()
    assert worker.ask(2) == ["a", "a"]
    store.discover([new("a.example/new", source=Source.USER)], now=NOW)
    worker.frontier.discovered([("a.example:80", Queue(Source.USER))])
    found: list[str] = []
    while "http://a.example/new" not in found and len(found) < 10:
        worker.tick()
        worker.answered("a")
        worker.ask(1)
        found += [state.url for state in worker.in_flight]
    worker.store.close()
    store.close()
    assert len(found) <= 3, found
