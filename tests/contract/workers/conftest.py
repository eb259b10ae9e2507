"""A store on the server; it takes the place of the stores of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crawlspace.clock import FakeClock
from crawlspace.state.redis.store import RedisStore
from tests.contract.conftest import NOW, Known, new
from tests.contract.workers.crawler import PAGES, Crawler


@pytest.fixture
def store(shared: RedisStore) -> RedisStore:
    return shared


@pytest.fixture
def known(shared: RedisStore) -> Known:
    return Known(shared)


@pytest.fixture
def crawlers(store: RedisStore, clock: FakeClock) -> Iterator[tuple[Crawler, Crawler]]:
    """Two; the first one has taken four sites, and then the second one came. From each site two pages are under way."""
    store.discover([new(f"{host}.example/{number}") for number in range(PAGES) for host in "abcd"], now=NOW)
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
