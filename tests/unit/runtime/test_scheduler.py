"""How many requests go out in one turn of the event loop."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from crawlspace.engine import MOST_LOOK_UPS
from crawlspace.run import FetchRobots
from crawlspace.runtime import scheduler as module
from crawlspace.runtime.scheduler import AT_A_TURN, FrontierScheduler


class Engine:
    """Has robots.txt of so many sites to ask for."""

    uncommitted = 0
    waits_for_index = False
    look_ups = 0
    frontier = SimpleNamespace(wake_in=lambda: None, working=0)

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
        session: Any = SimpleNamespace(engine=Engine(sites), error=None, guard_connections=lambda _: None, commit=lambda _: None)
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


def test_with_enough_look_ups_under_way_it_waits_for_one_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, sites=0)
    monkeypatch.setattr(Engine, "look_ups", MOST_LOOK_UPS)
    monkeypatch.setattr(Engine, "frontier", SimpleNamespace(wake_in=lambda: 0.0, working=1))
    assert world.turn() == 0
    assert world.later == [], "no alarm: it would ring at once, again and again"
