"""Sites that go from one worker to another while they are being asked."""

from __future__ import annotations

from collections import Counter

import pytest

from crawlspace.clock import FakeClock
from crawlspace.distributed.prefetch import LEAVING_S
from crawlspace.model import Queue, Source
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.site_pauses import SitePause
from tests.contract.conftest import NOW, new
from tests.contract.workers.crawler import PAGES, Crawler


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


def test_urls_that_were_not_requested_are_left_for_the_other_worker(crawlers: tuple[Crawler, Crawler], clock: FakeClock) -> None:
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


def test_an_expired_worker_drops_what_it_had_found(crawlers: tuple[Crawler, Crawler], clock: FakeClock) -> None:
    """It was passed over with the pages on which it was found, and these may be fetched by the same worker again."""
    one, two = crawlers
    two.shared.mark.save()
    two.tick()
    assert two.changes == 0
    one.store.server.command("ZADD", "workers", 0, two.shared.worker.name)
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
def test_requests_in_flight_of_an_expired_worker_are_not_repeated_beside_them(
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
    one.answered(*"abcd") if is_asked else one.not_sent()
    begun: Counter[int] = Counter()
    for _ in range(4 * PAGES):
        clock.advance(2)
        one.tick()
        one.ask()
        begun.update(state.id for state in one.in_flight)
        one.answered(*"abcd")
    assert set(begun.values()) == {1}
    assert len(begun) == 4 * PAGES - (len(before) if is_asked else 0)


def test_an_expired_worker_tries_again_the_sites_that_it_gave_up_afterwards(
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


def test_a_worker_picks_in_proportion_to_weight_at_one_site_too(store: RedisStore, clock: FakeClock) -> None:
    """However much of a light source is buffered here, the heavier ones are fetched again before it is used up."""
    full = [(Source.INDEX, 1_000), (Source.INDEX_FOLLOW, 100), (Source.FOLLOW, 60)]
    store.discover([new(f"a.example/{source}/{n}", source=source) for source, count in full for n in range(count)], now=NOW)
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


def test_what_comes_in_at_a_site_that_is_held_goes_before_what_is_buffered_of_a_lighter_source(
    store: RedisStore, clock: FakeClock
) -> None:
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
    assert len(found) <= 3, found


def test_a_site_that_a_person_pauses_is_released_when_its_requests_have_ended(
    store: RedisStore, crawlers: tuple[Crawler, Crawler], clock: FakeClock
) -> None:
    """Nothing more of it is requested from the next heartbeat on, by nobody, until it is resumed."""
    one, two = crawlers
    in_flight = {state.id for state in one.in_flight if state.site == "a.example:80"}

    def ticks() -> None:
        for crawler in (one, two):
            clock.advance(2)
            crawler.tick()

    store.set_site_pause("a.example", SitePause("ada", NOW))
    ticks()
    one.answered("b")
    assert "a" not in {*one.ask(), *two.ask()}
    assert "a.example:80" in one.sites, "its requests are in flight"
    one.answered("a")
    ticks()
    assert "a.example:80" not in one.sites
    assert {state.id for state in store.urls(host="a.example", leased=True)} == in_flight
    ticks()
    assert "a" not in {*one.ask(), *two.ask()}
    store.set_site_pause("a.example", None)
    for _ in range(3):
        ticks()
    assert "a" in {*one.ask(), *two.ask()}
