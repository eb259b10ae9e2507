"""When requests go out: how many in one turn of the event loop, what waits, and what becomes of requests that a spider yields."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.settings import Settings
from twisted.internet.testing import MemoryReactorClock

from crawlspace.clock import SystemClock
from crawlspace.crawl.run import FetchRobots
from crawlspace.errors import ConfigError, StoreError
from crawlspace.runtime.components import scheduler as module
from crawlspace.runtime.components.requests import ROBOTS, STATE, robots_request
from crawlspace.runtime.components.scheduler import AT_A_TURN, LONGEST_SLEEP_S, FrontierScheduler, open_session
from crawlspace.runtime.http.resolver import GuardedResolver, HostNames
from spiders.collection import CollectionSpider
from tests.components.conftest import MakeCrawl, OpenCrawl, crawler_of_another

START = "http://shop.example/"


class Turns:
    """A scheduler that is asked as Scrapy's engine asks it, turn by turn of the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, crawl: OpenCrawl) -> None:
        self.later: list[tuple[float, Callable[[], Any]]] = []
        self.woken = 0
        reactor: Any = MemoryReactorClock()
        reactor.nameResolver = GuardedResolver(HostNames(reactor, cache_size=10, timeout_s=5))
        monkeypatch.setattr("twisted.internet.reactor", reactor, raising=False)
        monkeypatch.setattr(module, "call_later", self._later)
        monkeypatch.setattr(module, "wake", lambda _: self._wake())
        scheduler = FrontierScheduler.from_crawler(crawl.crawler)
        assert isinstance(scheduler, FrontierScheduler)
        self.scheduler = scheduler
        self.scheduler.open(crawl.spider)

    def turn(self) -> list[Request]:
        """One turn of the loop: what is due at once, then as many requests as there are."""
        due, self.later = [call for seconds, call in self.later if not seconds], [one for one in self.later if one[0]]
        for call in due:
            call()
        taken = []
        while (request := self.scheduler.next_request()) is not None:
            taken.append(request)
        return taken

    def _later(self, seconds: float, call: Callable[[], Any]) -> SimpleNamespace:
        timer = (seconds, call)
        self.later.append(timer)

        def cancel() -> None:
            self.later = [other for other in self.later if other is not timer]

        return SimpleNamespace(cancel=cancel)

    def _wake(self) -> None:
        self.woken += 1


MakeTurns = Callable[..., Turns]


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch, open_crawl: MakeCrawl) -> MakeTurns:
    """A function that opens a collection and its scheduler."""
    return lambda *starts, **settings: Turns(monkeypatch, open_crawl(*starts, **settings))


def test_what_is_ready_at_once_goes_out_over_several_turns(turns: MakeTurns) -> None:
    loop = turns(*(f"http://h{number}.example/" for number in range(2 * AT_A_TURN + 5)))
    assert [len(loop.turn()) for _ in range(4)] == [AT_A_TURN, AT_A_TURN, 5, 0]
    assert loop.woken == 2, "Scrapy asks again only when it is woken, where it was given nothing"


@pytest.mark.parametrize(("obeys", "kind", "url"), [(True, ROBOTS, f"{START}robots.txt"), (False, STATE, f"{START}a")])
def test_robots_txt_goes_out_before_the_pages_of_its_site(turns: MakeTurns, kind: str, url: str, *, obeys: bool) -> None:
    loop = turns(f"{START}a", ROBOTSTXT_OBEY=obeys)
    (request,) = loop.turn()
    assert (request.url, kind in request.meta) == (url, True)
    assert loop.scheduler.has_pending_requests()


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the clocks stand still: that of delays, and the scheduler's own."""
    monkeypatch.setattr(SystemClock, "monotonic", lambda _: 1000.0)
    monkeypatch.setattr(module, "monotonic", lambda: 1000.0)


def test_a_redirected_robots_txt_waits_for_a_turn_of_the_site_it_leads_to(stopped: None, turns: MakeTurns) -> None:
    loop = turns(START, CRAWLSPACE_SITES={"shared.example": {"delay": 3}})
    assert len(loop.turn()) == 1, "the page itself"
    for number in range(2):
        fetch = FetchRobots(f"{number}.example:80", "http", "http://shared.example/robots.txt", 1)
        assert loop.scheduler.enqueue_request(robots_request(fetch, callback=None, errback=None))
    (first,) = loop.turn()
    assert first.meta[ROBOTS].site == "0.example:80"
    (wait_s,) = [seconds for seconds, _ in loop.later if seconds]
    assert wait_s == 3 < LONGEST_SLEEP_S, "the second is not forgotten until Scrapy looks again by itself"


def test_scrapy_is_woken_for_a_redirected_robots_txt_of_a_site_without_other_urls(stopped: None, turns: MakeTurns) -> None:
    """The frontier knows of no URL to wait for, so that the redirected request alone sets the alarm."""
    loop = turns(START, CRAWLSPACE_SITES={"shop.example": {"delay": 3}})
    assert len(loop.turn()) == 1, "the page"
    assert [seconds for seconds, _ in loop.later if seconds] == [], "nothing else is to be sent"
    fetch = FetchRobots("other.example:80", "http", f"{START}robots.txt", 1)
    assert loop.scheduler.enqueue_request(robots_request(fetch, callback=None, errback=None))
    assert loop.turn() == []
    (wait_s,) = [seconds for seconds, _ in loop.later if seconds]
    assert wait_s == 3


YIELDED = [
    # a request that a spider yields,           admitted,  sent as it is
    (Request(f"{START}new"),                    True,      False),
    (Request(START),                            True,      False),  # known
    (Request("http://shop.example/a.zip"),      False,     False),
    (Request(f"{START}new", method="POST"),     True,      True),
    (Request(f"{START}new", callback=print),    True,      True),
    (Request(f"{START}a.zip", callback=print),  True,      True),  # the rules are asked when it is sent
]  # fmt: skip


@pytest.mark.parametrize(("request_", "admitted", "is_sent"), YIELDED, ids=range(len(YIELDED)))
def test_a_request_that_a_spider_yields_is_a_candidate_or_sent(
    turns: MakeTurns, request_: Request, *, admitted: bool, is_sent: bool
) -> None:
    loop = turns(START)
    loop.turn()
    assert loop.scheduler.enqueue_request(request_) is admitted
    assert (request_ in loop.turn()) is is_sent


def test_after_an_error_nothing_goes_out(monkeypatch: pytest.MonkeyPatch, open_crawl: MakeCrawl) -> None:
    crawl = open_crawl(START)
    loop = Turns(monkeypatch, crawl)
    assert loop.scheduler.has_pending_requests()
    crawl.session.error = StoreError("full")
    assert loop.turn() == []
    assert not loop.scheduler.has_pending_requests()


def test_other_spiders_have_scrapys_scheduler() -> None:
    assert type(FrontierScheduler.from_crawler(crawler_of_another())) is Scheduler


def test_a_scheduler_that_applies_no_rules_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"SCHEDULER is 'scrapy\.core\.scheduler\.Scheduler', which applies no rules"):
        open_session(CollectionSpider, Settings({"SCHEDULER": "scrapy.core.scheduler.Scheduler"}))
