"""How fast a site may be asked, and what an answer to the request for its robots.txt means for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from crawlspace.clock import FakeClock
from crawlspace.config.collection import load_collection
from crawlspace.crawl.run import FetchRobots
from crawlspace.crawl.sites import SiteDelays, SiteFailures
from crawlspace.errors import SettingError
from crawlspace.frontier.frontier import Frontier
from crawlspace.frontier.robots import Robots, RobotsVerdict
from crawlspace.frontier.site_queue import GivingUp, Pace
from crawlspace.model import NewUrl, Source
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.status import Status
from crawlspace.urls import url_key
from tests.contract.memory.store import MemoryStore
from tests.site_delays import FixedDelays
from tests.unit.config.conftest import settings as all_settings

MONDAY_8 = 1_750_060_800.0  # 16 June 2025, 08:00 UTC
HOUR = 3600.0


class _Asked:
    """What robots.txt asks for."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s

    def delay_of(self, site: str, scheme: str) -> float:
        return self._delay_s if (site, scheme) == ("a:80", "http") else 0.0


WORK = {"CRAWLSPACE_VARIABLE_DELAY": {"Mon-Fri 09:00-17:00": 20}, "CRAWLSPACE_TIMEZONE": "UTC"}
NIGHT = {"CRAWLSPACE_VARIABLE_DELAY": {"Mon-Fri 09:00-17:00": "suspend"}, "CRAWLSPACE_TIMEZONE": "UTC"}
FAST = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 4}
OWN_20 = {"CRAWLSPACE_SITES": {"a": {"delay": 20, "concurrency": 4}}}

THROTTLE = {"AUTOTHROTTLE_ENABLED": True}
FOUR = {"AUTOTHROTTLE_TARGET_CONCURRENCY": 3.5}

PACES: list[tuple[Mapping[str, object], float, float, Pace]] = [
    # settings, hours after Monday 8:00, seconds that robots.txt asks for; pace
    ({"DOWNLOAD_DELAY": 2}, 0, 0.0, Pace(2.0, 1)),
    (FAST, 0, 0.0, Pace(0.0, 4)),
    (FAST, 0, 5.0, Pace(5.0, 1)),
    ({"DOWNLOAD_DELAY": 7}, 0, 5.0, Pace(7.0, 1)),
    ({**FAST, "ROBOTSTXT_OBEY": False}, 0, 5.0, Pace(0.0, 4)),
    ({**FAST, **WORK}, 0, 0.0, Pace(0.0, 4)),
    ({**FAST, **WORK}, 1, 0.0, Pace(20.0, 1)),
    ({**FAST, **WORK}, 1, 30.0, Pace(30.0, 1)),
    ({**WORK, **OWN_20}, 1, 0.0, Pace(20.0, 4)),  # its own delay, which happens to be as long
    ({**WORK, "CRAWLSPACE_SITES": {"a": {"delay": 3, "variable_delay": {"Mon 09:00-10:00": 7}}}}, 1, 0.0, Pace(7.0, 1)),
    ({**WORK, "CRAWLSPACE_SITES": {"a": {"delay": 3, "variable_delay": {"Mon 09:00-10:00": 7}}}}, 3, 0.0, Pace(3.0, 1)),
    ({**FAST, **WORK, "CRAWLSPACE_SITES": {"a": {"variable_delay": {}}}}, 1, 0.0, Pace(0.0, 4)),
    ({**FAST, **WORK, "CRAWLSPACE_SITES": {"b": {"variable_delay": {}}}}, 1, 0.0, Pace(20.0, 1)),
    ({**FAST, **NIGHT}, 1, 0.0, Pace(0.0, 4, suspended=True)),
    ({**FAST, **NIGHT}, 9, 0.0, Pace(0.0, 4)),
    # With AutoThrottle, before a first answer.
    ({"DOWNLOAD_DELAY": 2, **THROTTLE}, 0, 0.0, Pace(5.0, 1)),
    ({"DOWNLOAD_DELAY": 7, **THROTTLE}, 0, 0.0, Pace(7.0, 1)),
    ({**FAST, **THROTTLE}, 0, 0.0, Pace(5.0, 4)),
    ({"DOWNLOAD_DELAY": 2, **THROTTLE, **FOUR}, 0, 0.0, Pace(5.0, 4)),
    ({"CRAWLSPACE_SITES": {"a": {"delay": 1, "concurrency": 2}}, **THROTTLE, **FOUR}, 0, 0.0, Pace(5.0, 2)),
    ({"DOWNLOAD_DELAY": 2, **THROTTLE, **FOUR}, 0, 9.0, Pace(9.0, 1)),
    ({**FAST, **THROTTLE, **WORK}, 1, 0.0, Pace(20.0, 1)),
    ({**FAST, **THROTTLE, **NIGHT}, 1, 0.0, Pace(5.0, 4, suspended=True)),
]


def site_delays(folder: Path, settings: Mapping[str, object], clock: FakeClock, asked: float = 0.0) -> SiteDelays:
    (folder / "demo").mkdir()
    (folder / "demo" / "start_urls.txt").write_text("http://a/\n", encoding="utf-8")
    (folder / "demo" / "crawl.rules").write_text("allow domain a\nforbid domain *\n", encoding="utf-8")
    return SiteDelays(load_collection("demo", all_settings(folder, **settings)), clock, _Asked(asked))


@pytest.mark.parametrize(("settings", "hours", "asked", "pace"), PACES)
def test_pace(tmp_path: Path, settings: Mapping[str, object], hours: float, asked: float, pace: Pace) -> None:
    assert site_delays(tmp_path, settings, FakeClock(MONDAY_8 + hours * HOUR), asked).of("a:80") == pace


def test_a_slot_is_left_when_its_time_is_over_and_when_the_clock_is_set_back(tmp_path: Path) -> None:
    clock = FakeClock(MONDAY_8)
    found = site_delays(tmp_path, {**FAST, **NIGHT}, clock)
    seen = []
    for move in (0, 1, 9, 2, -10, 2):  # hours after Monday 8:00
        clock.set(MONDAY_8 + move * HOUR)
        seen.append(([suspended for _, suspended in found.phase()], found.of("a:80").suspended))
    assert seen == [([suspended], suspended) for suspended in (False, True, False, True, False, True)]


def test_a_site_with_a_timetable_of_its_own_keeps_to_that(tmp_path: Path) -> None:
    own = {"a": {"variable_delay": {"Mon 10:00-11:00": "suspend"}, "delay": 3}}
    clock = FakeClock(MONDAY_8)
    found = site_delays(tmp_path, {**FAST, **NIGHT, "CRAWLSPACE_SITES": own}, clock)
    seen = []
    for hour in (0, 1, 2, 3, 9):  # after Monday 8:00
        clock.set(MONDAY_8 + hour * HOUR)
        seen.append(tuple(found.is_suspended(site) for site in ("a:80", "b:80", "")))
        assert [found.of(site).suspended for site in ("a:80", "b:80")] == list(seen[-1][:2])
    assert seen == [(False, False, False), (False, True, True), (True, True, True), (False, True, True), (False, False, False)]
    clock.set(MONDAY_8)
    assert found.change_at() == MONDAY_8 + HOUR / 4


LATENCIES: list[tuple[Mapping[str, object], float, list[tuple[int, float | None]], list[float]]] = [
    # settings, seconds that robots.txt asks for, status and latency of each response; the delay after each
    (THROTTLE, 0.0, [(200, 1.0), (200, 1.0), (200, 1.0)], [3.0, 2.0, 1.5]),  # the mean of the delay and the latency
    (THROTTLE, 0.0, [(200, 9.0), (200, 1.0)], [9.0, 5.0]),  # a longer latency at once
    ({**THROTTLE, "AUTOTHROTTLE_TARGET_CONCURRENCY": 2}, 0.0, [(200, 1.0), (200, 20.0)], [2.75, 10.0]),
    ({**THROTTLE, "AUTOTHROTTLE_MAX_DELAY": 8}, 0.0, [(200, 30.0)], [8.0]),
    ({**THROTTLE, "DOWNLOAD_DELAY": 4}, 0.0, [(200, 1.0)], [4.0]),
    (THROTTLE, 4.0, [(200, 1.0)], [4.0]),
    ({**THROTTLE, "AUTOTHROTTLE_MAX_DELAY": 3}, 4.0, [(200, 9.0)], [4.0]),  # robots.txt comes before the largest delay
    (THROTTLE, 0.0, [(503, 0.1), (404, 0.1), (304, 0.1), (503, 9.0)], [5.0, 5.0, 5.0, 9.0]),  # an error never makes it faster
    (THROTTLE, 0.0, [(200, None)], [5.0]),  # from a cache
    ({**THROTTLE, "AUTOTHROTTLE_START_DELAY": 1}, 0.0, [(200, 0.5)], [0.75]),
    ({"DOWNLOAD_DELAY": 1}, 0.0, [(200, 9.0)], [1.0]),
]


@pytest.mark.parametrize(("settings", "asked", "responses", "delays"), LATENCIES)
def test_the_delay_follows_the_latency(
    tmp_path: Path, settings: Mapping[str, object], asked: float, responses: list[tuple[int, float | None]], delays: list[float]
) -> None:
    found = site_delays(tmp_path, settings, FakeClock(MONDAY_8), asked)
    seen = []
    for status, latency_s in responses:
        before = found.of("a:80").delay_s
        changed = found.answered("a:80", Outcome(1, "http://a/", OutcomeKind.DOCUMENT, status, latency_s=latency_s))
        seen.append(found.of("a:80").delay_s)
        assert changed is (seen[-1] != before)
    assert seen == delays


WRONG = [
    # a setting; what is said
    ({"AUTOTHROTTLE_ENABLED": "maybe"}, "AUTOTHROTTLE_ENABLED is 'maybe'; it must be True or False"),
    ({"AUTOTHROTTLE_TARGET_CONCURRENCY": 0}, "AUTOTHROTTLE_TARGET_CONCURRENCY is 0; it must be a number above 0"),
    ({"AUTOTHROTTLE_START_DELAY": -1}, "AUTOTHROTTLE_START_DELAY is -1; it must be at least 0 s"),
    ({"AUTOTHROTTLE_MAX_DELAY": "long"}, "AUTOTHROTTLE_MAX_DELAY is 'long'; it must be seconds"),
]


@pytest.mark.parametrize(("setting", "sentence"), WRONG)
def test_a_wrong_setting_of_autothrottle(tmp_path: Path, setting: Mapping[str, object], sentence: str) -> None:
    with pytest.raises(SettingError, match=re.escape(sentence)):
        site_delays(tmp_path, {**THROTTLE, **setting}, FakeClock(MONDAY_8))


SITE = "a.example:80"
OWN = "http://a.example/robots.txt"
MOVED = "http://a.example/x/robots.txt"
ELSEWHERE = "http://b.example/robots.txt"
POLICY = RecrawlPolicy(refresh_min_s=10, refresh_max_s=20, retry_times=2, retry_wait_s=5.0, max_temporary_errors=5)


def read(url: str, status: int) -> tuple[RobotsVerdict, RobotsVerdict]:
    """What may be fetched when the robots.txt of the site, asked for at that URL, came with a status: then, and a minute later."""
    clock, store = FakeClock(), MemoryStore()
    page = "http://a.example/"
    store.discover([NewUrl(url_key(page), page, SITE, Source.USER, 0, 0, 0, 1)], now=int(clock.now()))
    frontier = Frontier(store, clock=clock, site_delays=FixedDelays(), lease_s=600)
    robots = Robots(store, clock=clock, user_agent="crawlspace", ttl_s=86_400.0)
    failures = SiteFailures(
        frontier, robots, store, save_row=store.set_unreachable, clock=clock, giving_up=GivingUp(), policy=lambda: POLICY
    )
    state = frontier.next()
    assert state is not None
    frontier.block(SITE)
    frontier.put_back(state)
    fetch = FetchRobots(SITE, "http", url, 0 if url == OWN else 1)
    failures.robots_read(fetch, status=status, body="")
    answers = [robots.check(page, site=SITE)]
    clock.advance(60)
    robots.check(page, site=SITE)  # one question is answered, however late
    return answers[0], robots.check(page, site=SITE)


ALLOWED, UNKNOWN = RobotsVerdict.ALLOWED, RobotsVerdict.UNKNOWN
ANSWERS = [
    # where it was asked for, status, what may be fetched, and later
    (OWN, 404, ALLOWED, ALLOWED),
    (OWN, 503, UNKNOWN, UNKNOWN),
    (OWN, 304, UNKNOWN, UNKNOWN),
    # nobody to ask: each URL says so for itself
    (OWN, Status.NO_SUCH_HOST, ALLOWED, UNKNOWN),
    (OWN, Status.EXCLUDED, ALLOWED, UNKNOWN),
    (MOVED, Status.NO_SUCH_HOST, ALLOWED, UNKNOWN),
    # the site is there, and has its robots.txt elsewhere
    (ELSEWHERE, 404, ALLOWED, ALLOWED),
    (ELSEWHERE, Status.NO_SUCH_HOST, UNKNOWN, UNKNOWN),
    (ELSEWHERE, Status.NO_DNS_ANSWER, UNKNOWN, UNKNOWN),
    (ELSEWHERE, Status.TIMEOUT, UNKNOWN, UNKNOWN),
    # where the rules keep us out, as with a host that they forbid
    (ELSEWHERE, Status.EXCLUDED, ALLOWED, ALLOWED),
]


@pytest.mark.parametrize(("url", "status", "then", "later"), ANSWERS)
def test_answers(url: str, status: int, then: RobotsVerdict, later: RobotsVerdict) -> None:
    assert read(url, status) == (then, later)


def test_a_site_that_another_worker_has_counted_is_no_longer_reported_once_it_answers() -> None:
    clock, store = FakeClock(), MemoryStore()
    store.discover([NewUrl(url_key(f"http://{SITE}/"), "http://a.example/", SITE, Source.USER, 0, 0, 0, 1)], now=int(clock.now()))
    frontier = Frontier(store, clock=clock, site_delays=FixedDelays(), lease_s=600)
    robots = Robots(store, clock=clock, user_agent="crawlspace", ttl_s=86_400.0)
    failures = SiteFailures(
        frontier, robots, store, save_row=store.set_unreachable, clock=clock, giving_up=GivingUp(), policy=lambda: POLICY
    )
    row = UnreachableSite(SITE, 612, 1, 2, 1)
    store.set_unreachable(SITE, row)
    failures.know(SITE, row)
    state = frontier.next()
    assert state is not None
    failures.fetched(state, Outcome(state.id, state.url, OutcomeKind.DOCUMENT, 200))
    assert store.unreachable() == []
