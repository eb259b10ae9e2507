"""What the frontier knows of sites that it isn't asking just now, and how little that costs."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest
from msgspec import structs

from crawlspace.clock import local_time
from crawlspace.frontier.frontier import UNCERTAIN_S
from crawlspace.frontier.site_queue import Pace
from crawlspace.model import Queue, Source, State
from crawlspace.state.changes import Change
from crawlspace.state.site_pauses import SitePause
from tests.unit.frontier.test_frontier import World, new


class CountingWorld(World):
    """Counts how often the pace of a site is asked for."""

    asked = 0

    def of(self, site: str) -> Pace:
        self.asked += 1
        return super().of(site)


def test_a_pace_is_looked_up_when_a_site_has_its_turn_and_not_before() -> None:
    world = CountingWorld(*(new(f"http://s{n}/{m}") for m in range(3) for n in range(100)))
    assert world.asked == 0
    assert world.fetch_at_once() == "http://s0/0"
    assert world.asked == 1
    world.fetch_all()
    assert world.asked == 100


def test_paces_are_looked_up_again_only_in_another_phase() -> None:
    world = CountingWorld(*(new(f"http://s{n}/{m}") for m in range(3) for n in range(10)), delay=60.0)
    world.changes = world.clock.now() + 10
    world.frontier = world.open()
    for _ in range(10):
        world.fetch_at_once()
    world.clock.advance(10)
    world.changes += 10
    assert (world.next(), world.asked) == (None, 10)
    world.clock.advance(10)
    world.pace, world.changes = Pace(1.0, 1), inf
    assert world.next() is not None
    assert world.asked == 20


def test_a_site_whose_turn_comes_while_all_is_suspended_waits() -> None:
    world = World(new("http://a/1"), max_sites=1)
    world.pace, world.changes = Pace(0.0, 1, suspended=True), world.clock.now() + 600
    world.frontier = world.open()
    assert [world.next(), world.next()] == [None, None]
    assert world.frontier.wake_in() == 600


def test_a_suspended_site_leaves_its_place_to_others() -> None:
    class OneSuspended(World):
        def of(self, site: str) -> Pace:
            return Pace(1.0, 1, suspended=site == "a:80" and self.changes < inf)

    world = OneSuspended(new("http://a/1"), new("http://a/2"), new("http://b/1"), max_sites=1)
    assert world.next() == "http://a/1"
    world.changes = world.clock.now() + 600
    world.frontier = world.open()
    assert [world.fetch(), world.fetch()] == ["http://b/1", None]
    world.clock.advance(600)
    world.changes = inf
    assert world.fetch() is not None


def test_a_clock_that_is_set_back_does_not_hold_a_pace_on() -> None:
    world = World(new("http://a/1"))
    world.pace, world.changes = Pace(1.0, 1, suspended=True), world.clock.now() + 600
    world.frontier = world.open()
    assert world.next() is None
    world.clock.set(world.clock.now() - 86_400)
    world.pace = Pace(1.0, 1)
    assert world.next() == "http://a/1"


def test_after_a_clock_was_set_back_a_long_wait_is_waited_for_once() -> None:
    """What is left of it is bounded, and stored so: the next run, a day later, waits for nothing."""
    world = World(new("http://a/1"))
    world.store.wait_site("a:80", world.now + 300, wait_s=300)
    world.clock.set(world.clock.now() - 400 * 86_400)
    world.frontier = world.open()
    assert world.frontier.wake_in() == pytest.approx(300)
    world.clock.advance(86_400)
    assert world.open().next() is not None


def test_however_long_a_crawl_goes_on_due_times_do_not_pile_up() -> None:
    """One page is due each minute, another one in thirty days."""
    world = World(new("http://a/often"), new("http://a/seldom"), delay=0.0)
    for _ in range(5_000):
        state = world.frontier.next()
        if state is None:
            world.clock.advance(60)
            continue
        next_fetch = world.now + (60 if state.url.endswith("often") else 30 * 86_400)
        done = structs.replace(state, state=State.DONE, status=200, next_fetch=next_fetch, lease_until=None)
        world.store.record([Change(done)], now=world.now)
        world.frontier.recorded([state.id])
        world.frontier.due(done.site, done.queue, next_fetch)
        world.frontier.finished(state)
    assert world.frontier._due_times.moments <= 1_000


def test_a_short_silence_after_a_long_one_does_not_end_it() -> None:
    world = World(new("http://a/1"))
    world.frontier.wait_site("a:80", 3000)
    world.frontier.wait_site("a:80", 5)
    world.frontier = world.open()
    assert world.frontier.wake_in() == pytest.approx(3000, abs=1)


RESTARTS = [
    # delay, seconds from the request to the end of the run; seconds until the next run asks
    (1.0, 0, 0.0),  # not worth a note
    (60.0, 10, 50.0),
    (60.0, 60, 0.0),
]


@pytest.mark.parametrize(("delay", "ended_after", "wait"), RESTARTS)
def test_the_next_run_keeps_what_is_left_of_a_long_delay(delay: float, ended_after: float, wait: float) -> None:
    world = World(new("http://a/1"), new("http://a/2"), delay=delay)
    world.fetch_at_once()
    world.clock.advance(ended_after)
    world.frontier.close()
    world.frontier = world.open()
    assert world.frontier.wake_in() == pytest.approx(wait, abs=1)


def test_the_rests_of_a_failing_site_end_with_the_run() -> None:
    world = World(*(new(f"http://a/{n}") for n in range(20)), delay=2.0)
    for _ in range(7):
        state = world.frontier.next()
        assert state is not None
        world.frontier.finished(state, failed=True)
        world.clock.advance(60)
    world.frontier.close()
    world.frontier = world.open()
    assert world.next() is not None


def test_urls_that_need_no_request_do_not_keep_other_sources_waiting() -> None:
    kept_out = [new(f"http://a/{n}", Source.INDEX) for n in range(1_000)]
    world = World(*kept_out, new("http://b/1"), delay=0.0)
    for picks in range(1, 100):
        state = world.frontier.next()
        assert state is not None
        if state.url == "http://b/1":
            assert picks <= 10
            return
        world.frontier.skip(state)
    pytest.fail("the other source had no turn")


def test_a_request_beside_the_turns_keeps_the_delay_of_what_follows() -> None:
    world = World(new("http://a/1"), delay=5.0)
    assert world.frontier.next_slot_in("a:80") == 0.0
    world.frontier.record_other_request("a:80")
    assert world.next() is None
    assert world.frontier.next_slot_in("a:80") == 5.0
    assert world.frontier.wake_in() == 5.0
    world.frontier.record_other_request("b:80")  # of which nothing is known
    assert world.frontier.next_slot_in("b:80") == 5.0
    world.clock.advance(5)
    assert world.next() == "http://a/1"
    assert world.frontier.next_slot_in("b:80") == 0.0


def test_a_look_up_without_an_answer_is_made_again() -> None:
    world = World(new("http://a/1"), new("http://b/1"), delay=1.0)
    state = world.frontier.next()
    assert state is not None
    world.frontier.await_address(state)
    world.frontier.locate(state.site, None, certain=False)
    assert world.frontier.is_located(state.site)
    world.clock.advance(UNCERTAIN_S)
    assert not world.frontier.is_located(state.site)
    world.frontier.locate(state.site, "192.0.2.1")
    world.clock.advance(UNCERTAIN_S)
    assert world.frontier.is_located(state.site)


def failing(world: World) -> None:
    """Four failures in a row: a pause of ten seconds."""
    for number in range(4):
        state = world.frontier.next()
        assert state is not None
        world.frontier.finished(state, failed=True)
        world.clock.advance(world.frontier.wake_in() or 0.0 if number < 3 else 0.0)


def asking_to_wait(world: World) -> None:
    world.frontier.wait_site("a:80", 120)
    assert world.next() is None


def suspended(world: World) -> None:
    world.pace, world.changes = Pace(1.0, 1, suspended=True), world.clock.now() + 3_600
    world.frontier = world.open()
    assert world.next() is None


def with_a_retry(world: World) -> None:
    while (state := world.frontier.next()) is not None:
        world.store.record([Change(structs.replace(state, state=State.FAILED, next_fetch=world.now + 90))], now=world.now)
        world.frontier.due(state.site, state.queue, world.now + 90, retry=True)
        world.frontier.finished(state)
        world.clock.advance(1)


def in_flight(world: World) -> None:
    assert world.next() == "http://a/0"


def between_two_requests(world: World) -> None:
    world.fetch_at_once()


PAUSED = [
    # what has happened to the only site; for how long it waits and why
    (failing, 10, "is paused after 4 failures in a row"),
    (asking_to_wait, 120, "is not to be requested before, by its own answer or a wait of an earlier run"),
    (suspended, 3_600, "is suspended by CRAWLSPACE_VARIABLE_DELAY, or variable_delay in CRAWLSPACE_SITES"),
    (with_a_retry, 84, "has pages that failed and are requested again then"),
    (in_flight, None, ""),
    (between_two_requests, None, ""),
]


@pytest.mark.parametrize(("happens", "seconds", "why"), PAUSED, ids=[row[0].__name__ for row in PAUSED])
def test_what_the_next_request_waits_for(happens: Callable[[World], None], seconds: float | None, why: str) -> None:
    world = World(*(new(f"http://a/{number}") for number in range(6)))
    happens(world)
    wait = world.frontier.paused()
    assert (None if wait is None else (wait.site, round(wait.seconds), wait.why, wait.sites)) == (
        None if seconds is None else ("a:80", seconds, why, 1)
    )


def test_of_several_sites_that_wait_the_first_one_is_named() -> None:
    world = World(new("http://a/"), new("http://b/"))
    for site, seconds in (("a:80", 90), ("b:80", 40)):
        world.frontier.wait_site(site, seconds)
    assert world.next() is None
    wait = world.frontier.paused()
    assert wait is not None
    assert (wait.site, wait.seconds, wait.sites) == ("b:80", 40, 2)


# --- sites that a person has paused ---------------------------------------------------------------------------------

PAUSE = SitePause("ada", 0)


def paused(world: World, *patterns: str) -> None:
    """Pause these hosts and no others, as a command does during the crawl."""
    for pattern in {*world.store.site_pauses(), *patterns}:
        world.store.set_site_pause(pattern, PAUSE if pattern in patterns else None)
    world.frontier.recheck_sites()


def test_a_paused_site_is_not_fetched_until_it_is_resumed() -> None:
    world = World(*(new(f"http://{host}/{n}") for n in range(3) for host in "ab"), delay=0.0)
    assert world.fetch_at_once() == "http://a/0"
    paused(world, "a")
    assert {world.next() for _ in range(4)} == {"http://b/0", None}
    assert not any(state.lease_until for state in world.store.urls() if state.url in ("http://a/1", "http://a/2"))
    world.add(new("http://a/3"))
    world.frontier.due("a:80", Queue(Source.REFRESH), world.now, retry=True)
    assert world.next() is None
    paused(world)
    assert [world.fetch_at_once() for _ in range(3)] == ["http://a/1", "http://a/2", "http://a/3"]


def test_a_crawl_whose_only_work_is_on_paused_sites_is_done() -> None:
    world = World(new("http://a/1"), new("http://a/2"))
    state = world.frontier.next()
    assert state is not None
    paused(world, "*.b", "a:80")
    assert not world.frontier.is_done(), "a request is in flight"
    world.frontier.finished(state, failed=True, answered=False)
    world.frontier.due("a:80", state.queue, world.now + 5, retry=True)
    assert (world.frontier.is_done(), world.frontier.working) == (True, 0)
    again = world.open()
    assert (again.is_done(), again.next()) == (True, None), "at the next start, too"
    paused(world)
    assert not world.frontier.is_done()


def test_a_site_that_is_paused_while_its_robots_txt_is_fetched() -> None:
    world = World(new("http://a/1"), delay=0.0)
    state = world.frontier.next()
    assert state is not None
    world.frontier.block("a:80")
    world.frontier.put_back(state)
    paused(world, "a")
    world.frontier.unblock("a:80", answered=True)
    assert (world.next(), world.frontier.is_done()) == (None, True)
    paused(world)
    assert world.next() == "http://a/1"


def test_a_url_that_is_taken_back_is_released_if_its_site_is_paused() -> None:
    world = World(new("http://a/1"), delay=0.0)
    state = world.frontier.next()
    assert state is not None
    world.frontier.skip(state)
    paused(world, "a")
    world.frontier.return_later(state)
    assert world.frontier.is_done()
    assert [state.lease_until for state in world.store.urls()] == [None]


def test_who_has_paused_a_site_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = World(new("http://a/1"))
    world.store.set_site_pause("a", SitePause("ada", 1_750_000_000, "moves\nto another server"))
    for _ in range(2):
        world.frontier.recheck_sites()
    paused(world)
    at = local_time(1_750_000_000)
    assert [record.getMessage() for record in caplog.records] == [
        f"a is paused by ada since {at}: moves\\nto another server; nothing of it is requested until it is resumed",
        "a is not paused any more",
    ]


def test_a_site_that_was_given_up_stays_so_when_it_is_resumed() -> None:
    world = World(new("http://a/1"), delay=0.0)
    paused(world, "a")
    world.frontier.give_up("a:80")
    paused(world)
    assert (world.next(), world.frontier.is_done()) == (None, True)
