"""A site that a worker needs for another one's robots.txt comes from the worker that has it, and goes back."""

from __future__ import annotations

import time

from crawlspace.clock import FakeClock
from tests.contract.workers.crawler import Crawler


class RobotsOfOthers:
    """A request to the first site, which is made as soon as that may be asked, and again and again."""

    def __init__(self, crawler: Crawler) -> None:
        self.needed = {"a.example:80"}
        self.made = 0
        self._crawler = crawler
        self._has_requested = False
        crawler.others.requests = self

    def waiting(self) -> set[str]:
        return self.needed

    def is_requesting(self, site: str) -> bool:
        return False

    def begin(self, site: str) -> None:
        self._has_requested = False

    def has_requested(self, site: str) -> bool:
        return self._has_requested

    def tick(self) -> None:
        if self.needed and self._crawler.sites.holds("a.example:80"):
            self.made += 1
            self._has_requested = True


def on_one_clock(crawlers: tuple[Crawler, Crawler], clock: FakeClock) -> None:
    """The server goes by the clock of the test."""
    behind_ms = round(time.time() * 1000) - round(clock.now() * 1000)
    for each in crawlers:
        each.store.server.now_ms = lambda: behind_ms + round(clock.now() * 1000)


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
