"""What tests of robots.txt share: a cache that has read one, a store that counts, and what is parsed."""

from __future__ import annotations

import pytest
from protego import Protego

from crawlspace.clock import FakeClock
from crawlspace.frontier.robots import (
    Robots,
    RobotsVerdict,
)
from crawlspace.state.views import RobotsEntry
from tests.contract.memory.store import MemoryStore

SITE = "www.example.com:80"
AGENT = "crawlspace/0.1 (+https://www.example.org/our-bot; bot@example.org)"
DAY_S = 86_400.0
ALLOWED, FORBIDDEN, UNKNOWN = RobotsVerdict.ALLOWED, RobotsVerdict.FORBIDDEN, RobotsVerdict.UNKNOWN


class CountingStore(MemoryStore):
    """Counts how often a robots.txt is read from it."""

    reads = 0

    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        self.reads += 1
        return super().robots(site, scheme)

    def holding(self, bodies: dict[str, str]) -> CountingStore:
        for site, body in bodies.items():
            self.save_robots(RobotsEntry(site, "http", 200, body, round(FakeClock().now())))
        return self


def robots_of(
    store: MemoryStore | None = None,
    clock: FakeClock | None = None,
    *,
    agent: str = AGENT,
    ttl_s: float = DAY_S,
    memory: int = 64 << 20,
) -> Robots:
    return Robots(
        store or MemoryStore(), clock=clock or FakeClock(), user_agent=agent, ttl_s=ttl_s, longest_delay_s=60.0, memory=memory
    )


def reading(body: str, *, agent: str = AGENT) -> Robots:
    robots = robots_of(agent=agent)
    assert robots.save(SITE, "http", status=200, body=body)
    return robots


def ask(robots: Robots, path: str = "/a", *, site: str = SITE) -> RobotsVerdict:
    return robots.check(f"http://{site.removesuffix(':80')}{path}", site=site)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Protego is given to read."""
    texts: list[str] = []
    parse = Protego.parse

    def noted(text: str) -> Protego:
        texts.append(text)
        return parse(text)

    monkeypatch.setattr(Protego, "parse", noted)
    return texts
