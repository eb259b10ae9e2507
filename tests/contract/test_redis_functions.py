"""The library of functions on a Redis server: loaded where it is missing, beside those of other versions, and what a full server still does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from crawlspace.errors import StoreError, StoreFull
from crawlspace.state.redis.library import library
from crawlspace.state.redis.store import RedisStore
from tests.contract.conftest import NOW, SINKS, Known
from tests.servers import another_client

OTHER = "#!lua name=crawlspace_other\nredis.register_function('crawlspace_other_counts', function() return 'those of another version' end)"


@pytest.fixture
def client() -> Iterator[Any]:
    with another_client() as client:
        client.function_flush()
        yield client


@pytest.fixture
def known(shared: RedisStore) -> Known:
    return Known(shared)


def libraries(client: Any) -> set[str]:
    return {one[one.index(b"library_name") + 1].decode() for one in client.function_list()}


def test_the_library_is_loaded_where_it_is_missing_and_again_where_it_was_removed(client: Any, known: Known) -> None:
    known.discover("a.example/")
    assert libraries(client) == {library().name}
    client.function_flush()
    assert [one.url for one in known.store.scan(0, 10)] == ["http://a.example/"]
    assert libraries(client) == {library().name}


def test_versions_on_one_server_each_call_their_own_functions(client: Any, known: Known) -> None:
    client.function_load(OTHER)
    known.discover("a.example/")
    assert client.fcall("crawlspace_other_counts", 0) == b"those of another version"
    assert known.store.counts().by_state == {"pending": 1}
    assert libraries(client) == {"crawlspace_other", library().name}


def test_an_error_leaves_nothing_to_the_next_call(client: Any, known: Known) -> None:
    """The functions stay on the server; what a call has read and not written does not."""
    known.discover("a.example/")
    client.set("{shared}:held", "x")
    with pytest.raises(StoreError, match="the key held is a string"):
        known.discover("a.example/other")
    client.delete("{shared}:held")
    assert known.discover("a.example/other").discovered == 1
    assert known.store.get_by_ids([1, 2, 3])[-1].id == 2


def test_a_full_server_refuses_what_takes_memory_and_does_what_frees_it(client: Any, known: Known) -> None:
    known.discover("a.example/")
    known.record(known.page("a.example/", "text"))
    orders = known.store.orders("index", 10, now=NOW)
    client.config_set("maxmemory", 1)
    try:
        assert known.store.counts().by_state == {"done": 1}
        known.store.acknowledge("index", orders)
        with pytest.raises(StoreFull, match="Redis is full"):
            known.discover("a.example/other")
    finally:
        client.config_set("maxmemory", 0)
    assert known.store.backlog("index") == 0


def test_a_read_on_a_replica(client: Any, known: Known) -> None:
    """The library comes from the master with all else; what only reads may run there."""
    known.discover("a.example/")
    client.execute_command("REPLICAOF", "127.0.0.1", 1)
    try:
        client.config_set("replica-serve-stale-data", "yes")
        assert known.store.get("http://a.example/") is not None
    finally:
        client.execute_command("REPLICAOF", "NO", "ONE")


class WithoutFunctions:
    """A client of a server as old as Redis 6."""

    def execute_command(self, command: str, *_: Any) -> Any:
        raise redis.exceptions.ResponseError(f"unknown command `{command}`, with args beginning with: ")


def test_a_server_without_functions_is_named() -> None:
    store = RedisStore(WithoutFunctions(), "shared", sinks=SINKS)  # type: ignore[arg-type]
    with pytest.raises(
        StoreError, match=r"the server has no functions .*: a shared collection needs Redis 7.0 or newer, or Valkey"
    ):
        store.counts()
