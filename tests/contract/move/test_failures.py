"""Stores that are damaged, full or cannot be reached."""

from __future__ import annotations

from contextlib import closing

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from crawlspace.errors import StoreAway, StoreError, StoreFull
from crawlspace.state.dump import CopyTarget
from crawlspace.state.redis.dump import RedisSide, address_of
from crawlspace.state.sqlite.dump import SqliteSide
from tests.contract.conftest import Known
from tests.contract.move.stores import NAME, Stores, all_of, changing, fill, looking
from tests.servers import another_client, redis_server


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("HSET", "{walk}:links", "1", "of nobody"), "what Redis keeps of this collection is damaged"),
        (("HSET", "{walk}:document", "1", "of nobody"), "what Redis keeps of this collection is damaged"),
        (("HSET", "{walk}:counters", "orders", "many"), "what Redis keeps of this collection is damaged"),
        (("SET", "{walk}:robots", "of nobody"), "what Redis keeps of this collection is damaged"),
        (("HSET", "{walk}:meta", "moving", "of nobody"), "is itself an unfinished copy"),
    ],
)
def test_what_is_not_ours_is_a_sentence(stores: Stores, command: tuple[str, ...], sentence: str) -> None:
    with looking(stores, "redis") as store:
        fill(store)
    with closing(another_client()) as client:
        client.execute_command(*command)
    with pytest.raises(StoreError, match=sentence):
        stores.move("redis", "sqlite")


def test_a_full_disk(stores: Stores) -> None:
    with looking(stores, "redis") as store:
        fill(store)
        Known(store).record(Known(store).page("a.example/", "large", text="x" * 100_000))

    def watch(target: CopyTarget) -> CopyTarget:
        assert isinstance(target, SqliteSide)
        db = target._file.db
        db.pragma("max_page_count", db.pragma("page_count"))
        return target

    with pytest.raises(StoreFull, match="is full: free some space and start again"):
        stores.move("redis", "sqlite", records=100, watch=watch)
    stores.move("redis", "sqlite")
    assert all_of(stores, "sqlite") == all_of(stores, "redis")


def test_a_full_server(stores: Stores) -> None:
    with looking(stores, "sqlite") as store:
        fill(store)
    with closing(another_client()) as client:

        def watch(target: CopyTarget) -> CopyTarget:
            client.config_set("maxmemory", 1)
            return target

        try:
            with pytest.raises(StoreFull, match="Redis is full"):
                stores.move("sqlite", "redis", watch=changing(watch))
        finally:
            client.config_set("maxmemory", 0)
    stores.move("sqlite", "redis")
    assert all_of(stores, "sqlite") == all_of(stores, "redis")


def test_a_server_that_is_away() -> None:
    with pytest.raises(StoreAway, match="Redis cannot be reached"):
        RedisSide(redis.Redis(port=1, retry=Retry(NoBackoff(), 0)), NAME, timeout_s=30)


def test_a_password_is_not_shown(stores: Stores) -> None:
    client = redis.Redis.from_url(f"redis://user:secret@localhost:{redis_server().port}/0")
    assert address_of(client) == f"redis://localhost:{redis_server().port}/0"
    client.close()
    assert address_of(redis.Redis(unix_socket_path="/run/redis.sock", db=2)) == "unix:///run/redis.sock?db=2"
