"""The small web over a store of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlspace.config.sinks import EMBEDDED
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from tests.contract.memory.store import MemoryStore
from tests.servers import another_client, emptied
from tests.unit.crawl.timed.web import RefreshedWeb


@pytest.fixture(params=["memory", "sqlite", "redis"])
def web(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RefreshedWeb]:
    store: Store
    if request.param == "memory":
        store = MemoryStore(sinks=(EMBEDDED,))
    elif request.param == "sqlite":
        store = SqliteStore(tmp_path / "state.db", sinks=(EMBEDDED,))
    else:
        emptied().close()
        store = RedisStore(another_client(), "refreshed", sinks=(EMBEDDED,))
    yield RefreshedWeb(tmp_path, store)
    store.close()
