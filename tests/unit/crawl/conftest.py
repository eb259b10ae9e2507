"""A store of each kind in turn, whose orders go to an embedded index."""

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


@pytest.fixture(params=["memory", "sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store
    if request.param == "redis":
        emptied().close()
        made = RedisStore(another_client(), "demo", sinks=(EMBEDDED,))
    elif request.param == "sqlite":
        made = SqliteStore(tmp_path / "state.db", sinks=(EMBEDDED,))
    else:
        made = MemoryStore(sinks=(EMBEDDED,))
    yield made
    made.close()
