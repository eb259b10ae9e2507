"""What an answer to the question for a robots.txt means for its site."""

from __future__ import annotations

from math import inf

import pytest

from crawlspace.clock import FakeClock
from crawlspace.crawl.run import FetchRobots
from crawlspace.crawl.site_failures import SiteFailures
from crawlspace.frontier.frontier import Frontier
from crawlspace.frontier.robots.cache import Robots, RobotsVerdict
from crawlspace.frontier.site_queue import GivingUp, Pace
from crawlspace.model import NewUrl, Outcome, OutcomeKind, Source, Status
from crawlspace.state.memory.store import MemoryStore
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.urls import url_key

SITE = "a.example:80"
OWN = "http://a.example/robots.txt"
MOVED = "http://a.example/x/robots.txt"
ELSEWHERE = "http://b.example/robots.txt"


POLICY = RecrawlPolicy(refresh_min_s=10, refresh_max_s=20, retry_times=2, retry_wait_s=5.0, max_temporary_errors=5)


class Unhurried:
    def of(self, site: str) -> Pace:
        return Pace(0.0, 1)

    def change_at(self) -> float:
        return inf

    def phase(self) -> None:
        return None


def read(url: str, status: int) -> tuple[RobotsVerdict, RobotsVerdict]:
    """What may be fetched when the robots.txt of the site, asked for at that URL, came with a status: then, and a minute later."""
    clock, store = FakeClock(), MemoryStore()
    page = "http://a.example/"
    store.discover([NewUrl(url_key(page), page, SITE, Source.USER, 0, 0, 0, 1)], now=int(clock.now()))
    frontier = Frontier(store, clock=clock, site_delays=Unhurried(), lease_s=600)
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
    answers = [robots.ask(page, site=SITE)]
    clock.advance(60)
    robots.ask(page, site=SITE)  # one question is answered, however late
    return answers[0], robots.ask(page, site=SITE)


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
    frontier = Frontier(store, clock=clock, site_delays=Unhurried(), lease_s=600)
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
