"""Inherited metadata in Redis is decided after `record`, by a function of its own: what is killed, or too slow, in between."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest
import redis
from msgspec import structs

from crawlspace.errors import StoreAway
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker
from tests.contract.conftest import NOW, SINKS, Known, key, new, shared_store
from tests.servers import another_client

PAGE, TARGET = "a.example/", "b.example/target"
RED, BLUE = '{"colour":"red"}', '{"colour":"blue"}'


@pytest.fixture
def known(shared: RedisStore) -> Known:
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


def test_a_killed_process_leaves_the_decision_to_the_next_run(known: Known) -> None:
    record_and_die(links(known, RED))
    assert (known.get(TARGET).inherited, known.get(TARGET).next_fetch) == (None, NOW + 1000)
    known.store.begin_run(NOW)
    assert (known.get(TARGET).inherited, known.get(TARGET).next_fetch) == (RED, NOW)


def test_and_to_the_first_of_several_workers(known: Known) -> None:
    record_and_die(links(known, RED))
    worker = Worker(shared_store(), timeout_s=1000)
    assert worker.begin("rules") is None
    assert known.get(TARGET).inherited == RED


def test_and_to_the_next_record(known: Known) -> None:
    record_and_die(links(known, RED))
    effects = known.record(links(known, BLUE, page=PAGE))
    assert known.get(TARGET).inherited == BLUE
    assert [at for _, _, at in effects.due] == [NOW]


def test_two_processes_that_decide_at_once(known: Known) -> None:
    """The slower one writes nothing, and decides again."""
    record_and_die(links(known, RED))
    slower = interrupted("HMGET", "mark", lambda: known.record(links(known, BLUE)))
    slower.begin_run(NOW)
    slower.close()
    assert known.get(TARGET).inherited == BLUE


def test_a_url_that_changes_while_it_is_decided(known: Known) -> None:
    record_and_die(links(known, RED))
    target = known.get(TARGET).id
    excluding = Reclassified(excluded=[target])
    slower = interrupted("HMGET", "mark", lambda: known.store.reclassify(excluding, now=NOW))
    slower.begin_run(NOW)
    slower.close()
    assert (known.get(TARGET).inherited, known.get(TARGET).next_fetch) == (RED, None)
