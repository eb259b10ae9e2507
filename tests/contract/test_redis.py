"""Redis: other versions are refused, functions are loaded where they are missing, and inherited metadata is decided after `record`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from msgspec import structs

from crawlspace.errors import StoreAway, StoreError, StoreFull, StoreVersionError
from crawlspace.model import Held
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.redis.encoding import FORMAT
from crawlspace.state.redis.library import library
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker
from tests.contract.conftest import NOW, SINKS, Known, key, new, shared_store
from tests.servers import another_client

OTHERS = [
    ("a later version", ("SET", "{shared}:format", FORMAT + 1), f"format {FORMAT + 1}, this one reads {FORMAT}"),
    ("a development version, which wrote none", ("DEL", "{shared}:format"), f"format of development, this one reads {FORMAT}"),
]
CALLS: dict[str, Callable[[RedisStore], object]] = {
    "read": lambda store: store.counts(),
    "discover": lambda store: Known(store).discover("a.example/other"),
    "begin a run": lambda store: store.begin_run(NOW),
    "join as a worker": lambda store: Worker(store, timeout_s=1000).begin("rules"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("title", "command", "sentence"), OTHERS, ids=[row[0] for row in OTHERS])
def test_another_version_is_refused(
    title: str, command: tuple[str, ...], sentence: str, call: str, shared: RedisStore, client: Any
) -> None:
    Known(shared).discover("a.example/")
    assert client.get("{shared}:format") == str(FORMAT).encode()
    client.execute_command(*command)
    before = sorted(client.scan_iter())
    with pytest.raises(StoreVersionError, match=sentence):
        CALLS[call](shared)
    assert sorted(client.scan_iter()) == before


def test_a_store_that_is_only_read_is_not_begun(shared: RedisStore, client: Any) -> None:
    assert shared.counts().by_state == {}
    assert not list(client.scan_iter())


def test_the_first_held_deletions_are_read_without_the_others(shared: RedisStore) -> None:
    known = Known(shared)
    urls = [f"a.example/{number}" for number in range(1_200)]
    known.crawled(*((url, url) for url in urls))
    known.record(*(known.change(url, checksum=url.encode(), held=Held.RULES) for url in urls))
    before = shared.server.runs
    found = shared.urls(held=True, after=600)
    assert next(found).id == 601
    assert shared.server.runs - before <= 2, "their ids, and the first of them"
    assert len(list(found)) == 599


# --- the library of functions ---------------------------------------------------------------------------------------


OTHER = "#!lua name=crawlspace_other\nredis.register_function('crawlspace_other_counts', function() return 'those of another version' end)"


@pytest.fixture
def flushed() -> Iterator[Any]:
    with another_client() as client:
        client.function_flush()
        yield client


@pytest.fixture
def shared_known(shared: RedisStore) -> Known:
    return Known(shared)


def libraries(client: Any) -> set[str]:
    return {one[one.index(b"library_name") + 1].decode() for one in client.function_list()}


def test_the_library_is_loaded_where_it_is_missing_and_again_where_it_was_removed(flushed: Any, shared_known: Known) -> None:
    shared_known.discover("a.example/")
    assert libraries(flushed) == {library().name}
    flushed.function_flush()
    assert [one.url for one in shared_known.store.scan(0, 10)] == ["http://a.example/"]
    assert libraries(flushed) == {library().name}


def test_versions_on_one_server_each_call_their_own_functions(flushed: Any, shared_known: Known) -> None:
    flushed.function_load(OTHER)
    shared_known.discover("a.example/")
    assert flushed.fcall("crawlspace_other_counts", 0) == b"those of another version"
    assert shared_known.store.counts().by_state == {"pending": 1}
    assert libraries(flushed) == {"crawlspace_other", library().name}


def test_an_error_leaves_nothing_to_the_next_call(flushed: Any, shared_known: Known) -> None:
    """The functions stay on the server; what a call has read and not written does not."""
    shared_known.discover("a.example/")
    flushed.set("{shared}:held", "x")
    with pytest.raises(StoreError, match="the key held is a string"):
        shared_known.discover("a.example/other")
    flushed.delete("{shared}:held")
    assert shared_known.discover("a.example/other").discovered == 1
    assert shared_known.store.get_by_ids([1, 2, 3])[-1].id == 2


def test_a_full_server_refuses_what_takes_memory_and_does_what_frees_it(flushed: Any, shared_known: Known) -> None:
    shared_known.discover("a.example/")
    shared_known.record(shared_known.page("a.example/", "text"))
    orders = shared_known.store.orders("index", 10, now=NOW)
    flushed.config_set("maxmemory", 1)
    try:
        assert shared_known.store.counts().by_state == {"done": 1}
        shared_known.store.acknowledge("index", orders)
        with pytest.raises(StoreFull, match="Redis is full"):
            shared_known.discover("a.example/other")
    finally:
        flushed.config_set("maxmemory", 0)
    assert shared_known.store.backlog("index") == 0


def test_a_read_on_a_replica(flushed: Any, shared_known: Known) -> None:
    """The library comes from the master with all else; what only reads may run there."""
    shared_known.discover("a.example/")
    flushed.execute_command("REPLICAOF", "127.0.0.1", 1)
    try:
        flushed.config_set("replica-serve-stale-data", "yes")
        assert shared_known.store.get("http://a.example/") is not None
    finally:
        flushed.execute_command("REPLICAOF", "NO", "ONE")


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


# --- inherited metadata is decided after `record`, by a function of its own -----------------------------------------


PAGE, TARGET = "a.example/", "b.example/target"
RED, BLUE = '{"colour":"red"}', '{"colour":"blue"}'


@pytest.fixture
def linked(shared: RedisStore) -> Known:
    """A page, and a document of the URL that it links to."""
    known = Known(shared)
    known.discover(PAGE, TARGET)
    known.record(known.page(TARGET, "x", fetched_at=NOW, next_fetch=NOW + 1000, rules=1))
    return known


class Interrupted:
    """A client with which something happens once, before it sends a command for a key."""

    def __init__(self, command: str, key: str, happens: Callable[[], object]) -> None:
        self._client = another_client()
        self._at = command, "{shared}:" + key
        self._happens: Callable[[], object] | None = happens

    def execute_command(self, command: str, key: str, *args: Any) -> Any:
        if (command, key) == self._at and self._happens is not None:
            happens, self._happens = self._happens, None
            happens()
        return self._client.execute_command(command, key, *args)

    def function_load(self, code: str, *, replace: bool) -> Any:
        return self._client.function_load(code, replace=replace)

    def close(self) -> None:
        self._client.close()


def interrupted(command: str, key: str, happens: Callable[[], object]) -> RedisStore:
    return RedisStore(Interrupted(command, key, happens), "shared", sinks=SINKS)  # type: ignore[arg-type]


def links(known: Known, metadata: str, page: str = PAGE) -> Change:
    return known.page(
        page, page, links=array("q", [key(TARGET)]), discovered=[structs.replace(new(TARGET), inherited=metadata)], rules=1
    )


def record_and_die(change: Change) -> None:
    """Record as a process that is killed before it has decided what follows."""

    def cut_off() -> None:
        raise redis.exceptions.ConnectionError("cut off")

    store = interrupted("LINDEX", "to_inherit", cut_off)
    with pytest.raises(StoreAway):
        store.record([change], now=NOW)
    store.close()


def test_a_killed_process_leaves_the_decision_to_the_next_run(linked: Known) -> None:
    record_and_die(links(linked, RED))
    assert (linked.get(TARGET).inherited, linked.get(TARGET).next_fetch) == (None, NOW + 1000)
    linked.store.begin_run(NOW)
    assert (linked.get(TARGET).inherited, linked.get(TARGET).next_fetch) == (RED, NOW)


def test_and_to_the_first_of_several_workers(linked: Known) -> None:
    record_and_die(links(linked, RED))
    worker = Worker(shared_store(), timeout_s=1000)
    assert worker.begin("rules") is None
    assert linked.get(TARGET).inherited == RED


def test_and_to_the_next_record(linked: Known) -> None:
    record_and_die(links(linked, RED))
    effects = linked.record(links(linked, BLUE, page=PAGE))
    assert linked.get(TARGET).inherited == BLUE
    assert [at for _, _, at in effects.due] == [NOW]


def test_two_processes_that_decide_at_once(linked: Known) -> None:
    """The slower one writes nothing, and decides again."""
    record_and_die(links(linked, RED))
    slower = interrupted("HMGET", "mark", lambda: linked.record(links(linked, BLUE)))
    slower.begin_run(NOW)
    slower.close()
    assert linked.get(TARGET).inherited == BLUE


def test_a_url_that_changes_while_it_is_decided(linked: Known) -> None:
    record_and_die(links(linked, RED))
    target = linked.get(TARGET).id
    excluding = Reclassified(excluded=[target])
    slower = interrupted("HMGET", "mark", lambda: linked.store.reclassify(excluding, now=NOW))
    slower.begin_run(NOW)
    slower.close()
    assert (linked.get(TARGET).inherited, linked.get(TARGET).next_fetch) == (RED, None)
