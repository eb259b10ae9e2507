"""A store on the server; it takes the place of the stores of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crawlspace.clock import FakeClock
from crawlspace.state.redis.store import RedisStore
from tests.contract.conftest import NOW, SINKS, Known, new
from tests.contract.workers.crawler import PAGES, Crawler
from tests.servers import another_client, emptied


@pytest.fixture
def store() -> Iterator[RedisStore]:
    emptied().close()
    store = RedisStore(another_client(), "shared", sinks=SINKS)
    yield store
    store.close()


@pytest.fixture
def known(store: RedisStore) -> Known:
    return Known(store)


@pytest.fixture
def crawlers(clock: FakeClock) -> Iterator[tuple[Crawler, Crawler]]:
    """Two; the first one has taken four sites, and then the second one came. From each site two pages are under way."""
    emptied().close()
    with_urls = RedisStore(another_client(), "shared", sinks=SINKS)
    with_urls.discover([new(f"{host}.example/{number}") for number in range(PAGES) for host in "abcd"], now=NOW)
    with_urls.close()
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
