"""When requests go out: how many in one turn of the event loop, and what waits."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from crawlspace.crawl.run import FetchRobots
from crawlspace.runtime import scheduler as module
from crawlspace.runtime.requests import robots_request
from crawlspace.runtime.scheduler import AT_A_TURN, LONGEST_SLEEP_S, FrontierScheduler


class Engine:
    """Has robots.txt of so many sites to ask for."""

    uncommitted = 0
    waits_for_index = False
    frontier = SimpleNamespace(wake_in=lambda: None, working=0)
    site_delays = SimpleNamespace()
    has_steps = False

    def __init__(self, sites: int) -> None:
        self.left = sites

    def next_fetch(self) -> FetchRobots | None:
        if not self.left:
            return None
        self.left -= 1
        return FetchRobots(f"{self.left}.example:80", "http", f"http://{self.left}.example/robots.txt")


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, sites: int) -> None:
        self.later: list[Callable[[], Any]] = []
        self.woken = 0
        monkeypatch.setattr(module, "call_later", lambda _, call: self.later.append(call))
        monkeypatch.setattr(module, "wake", lambda _: self._wake())
        session: Any = SimpleNamespace(
            engine=Engine(sites),
            error=None,
            shared=None,
            owned_sites=None,
            share=lambda crawler, others: None,
            guard_connections=lambda _: None,
            commit=lambda _: None,
        )
        spider = SimpleNamespace(
            one_outcome_parser=lambda: self.parse, failed=self.parse, robots_read=self.parse, robots_failed=self.parse
        )
        self.scheduler = FrontierScheduler(None, session)  # type: ignore[arg-type]
        self.scheduler.open(spider)

    def parse(self, response: Any) -> None:
        """Nothing comes of it."""

    def turn(self) -> int:
        """One turn of the loop: what is due, then as many requests as there are."""
        due, self.later = self.later, []
        for call in due:
            call()
        taken = 0
        while self.scheduler.next_request() is not None:
            taken += 1
        return taken

    def _wake(self) -> None:
        self.woken += 1


def test_what_is_ready_at_once_goes_out_over_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, sites=2 * AT_A_TURN + 5)
    assert [world.turn() for _ in range(4)] == [AT_A_TURN, AT_A_TURN, 5, 0]
    assert world.woken == 2, "Scrapy asks again only when it is told to, where it was given nothing"


def test_a_redirected_robots_txt_waits_for_a_turn_of_the_site_it_leads_to(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    frontier = SimpleNamespace(
        wake_in=lambda: None, working=0, next_turn_in=lambda _: 3.0 if asked else 0.0, asked_beside=asked.append
    )
    monkeypatch.setattr(Engine, "frontier", frontier)
    monkeypatch.setattr(Engine, "site_delays", SimpleNamespace(is_suspended=lambda: False))
    monkeypatch.setattr(module, "monotonic", lambda: 100.0)
    world = World(monkeypatch, sites=0)
    alarms: list[float] = []
    monkeypatch.setattr(module, "call_later", lambda seconds, _: alarms.append(seconds))
    for number in range(2):
        fetch = FetchRobots(f"{number}.example:80", "http", "http://shared.example/robots.txt", 1)
        assert world.scheduler.enqueue_request(robots_request(fetch, callback=world.parse, errback=world.parse))
    assert world.turn() == 1
    assert asked == ["shared.example:80"]
    assert 3.0 <= max(alarms) < LONGEST_SLEEP_S, "the second is not forgotten until Scrapy looks again by itself"
