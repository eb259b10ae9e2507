"""Calls of a worker that reach the server late: given up in a network that was cut, made again, and handed over when it is back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis.exceptions import ConnectionError as ConnectionRefused

from crawlspace.errors import StoreAway, StoreError
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import SiteRelease, Worker, workers
from crawlspace.state.views import RobotsEntry
from tests.contract.conftest import NOW, Known, new, shared_store

SITE = "a.example:80"


@pytest.fixture
def known(store: RedisStore) -> Known:
    """Two sites with three URLs each."""
    known = Known(store)
    known.discover(*(f"{host}.example/{number}" for host in "ab" for number in range(3)))
    return known


@pytest.fixture
def worker() -> Iterator[Worker]:
    store = shared_store()
    worker = Worker(store, timeout_s=1000)
    yield worker
    store.close()


def take(worker: Worker, *, new: int, number: int | None = None, **refill: int) -> list[int]:
    """Take new sites with one URL each, and more of others; return the ids."""
    more = {f"{host}.example:80": many for host, many in refill.items()}
    taken = worker.take(refill=more, new=new, limit=1, now=NOW, until=NOW + 300, number=number)
    return [state.id for one in taken.sites for state in one.states]


def found(known: Known) -> list[Any]:
    """What a page comes to that leads to another."""
    return [known.page("a.example/0", "x", discovered=[new("c.example/1", depth=1)])]


CALLS: dict[str, Callable[[Worker, Known], object]] = {
    "take": lambda worker, _: take(worker, new=1, a=1, number=900),
    "claim": lambda worker, _: worker.claim(["c.example:80"], now=NOW),
    "let go": lambda worker, _: worker.release_sites([SiteRelease(SITE)]),
    "release": lambda worker, _: worker.release([1]),
    "record": lambda worker, known: worker.record(found(known), now=NOW, number=900),
    "give up": lambda worker, _: worker.give_up(SITE),
    "wait": lambda worker, _: worker.wait_site(SITE, NOW + 60),
    "unreachable": lambda worker, _: worker.set_unreachable(SITE, None),
    "resume": lambda worker, _: worker.resume(SITE),
    "robots.txt": lambda worker, _: worker.save_robots(RobotsEntry(SITE, "http", 200, "", NOW)),
    "heartbeat": lambda worker, _: worker.heartbeat("this", deleted=3),
    "begin": lambda worker, _: worker.begin("rules"),
    "ready": lambda worker, _: worker.ready(),
    "expire": lambda worker, _: worker.expire(["another"]),
    "leave": lambda worker, _: worker.leave(),
}


@contextmanager
def cut(worker: Worker) -> Iterator[Callable[[], Any]]:
    """No call of the worker arrives within the block; yields what hands over the one that was made there."""
    server = worker._server
    call, made = server.call, []

    def lost(operation: str, **args: object) -> Any:
        made.append((operation, args))
        raise StoreAway("cut")

    def arrives() -> Any:
        ((operation, args),) = made
        return call(operation, **args)

    server.call = lost  # type: ignore[method-assign]
    with pytest.raises(StoreAway):
        yield arrives
    server.call = call  # type: ignore[method-assign]


def given_up(call: str, worker: Worker, known: Known) -> Callable[[], Any]:
    """Have a worker join, take a site and make a call that does not arrive; return what hands it over."""
    worker.begin("rules")
    worker.ready()
    take(worker, new=1)
    with cut(worker) as arrives:
        CALLS[call](worker, known)
    return arrives


def does_nothing(arrives: Callable[[], Any], store: RedisStore) -> None:
    """Hand a call over; it must be refused, and change nothing."""
    before = everything(store)
    with pytest.raises(StoreError, match="LATE"):
        arrives()
    assert everything(store) == before


def everything(store: RedisStore) -> dict[bytes, bytes | None]:
    """All that the server keeps."""
    client = store.server.client
    return {key: client.dump(key) for key in client.scan_iter()}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("is_dead", [False, True])
def test_a_call_that_arrives_after_the_worker_was_evicted_does_nothing(
    store: RedisStore, known: Known, worker: Worker, call: str, *, is_dead: bool
) -> None:
    """Whether by the others or by itself at its end: it is not alive again."""
    arrives = given_up(call, worker, known)
    CALLS[call](worker, known)
    if is_dead:
        Worker(store, timeout_s=1000).expire([worker.name])
    else:
        worker.leave()
    does_nothing(arrives, store)
    assert workers(store) == []


def test_the_record_of_an_evicted_worker_is_removed_after_an_hour(store: RedisStore, worker: Worker) -> None:
    def left_s() -> int:
        return int(store.server.command("TTL", f"worker:{worker.name}"))

    worker.begin("rules")
    worker.ready()
    worker.expire([worker.name])
    assert 3500 < left_s() <= 3600
    worker.begin_again()
    assert left_s() == -1, "it is alive"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("is_taken_for_dead", [False, True])
def test_a_call_that_arrives_after_a_later_one_does_nothing(
    store: RedisStore, known: Known, worker: Worker, call: str, *, is_taken_for_dead: bool
) -> None:
    arrives = given_up(call, worker, known)
    if is_taken_for_dead:
        worker.expire([worker.name])
        worker.begin_again()
    else:
        CALLS[call](worker, known)
        if call == "leave":
            worker.begin_again()
    take(worker, new=1, a=1)
    does_nothing(arrives, store)


def test_joining_that_arrives_after_joining_does_nothing(store: RedisStore, worker: Worker) -> None:
    with cut(worker) as arrives:
        worker.begin("rules")
    worker.begin("rules")
    does_nothing(arrives, store)


def test_of_who_has_not_joined_nothing_is_kept(store: RedisStore, worker: Worker) -> None:
    worker.expire(["another"])
    assert not [key for key in everything(store) if worker.name.encode() in key]


def test_a_call_that_arrives_twice_in_a_row_is_one(store: RedisStore, known: Known, worker: Worker) -> None:
    """The client makes a call again by itself when the connection was closed."""
    worker.begin("rules")
    with cut(worker) as arrives:
        CALLS["take"](worker, known)
    arrives()
    before = everything(store)
    arrives()
    changed = {key for key, dumped in everything(store).items() if before[key] != dumped}
    assert changed <= {b"{shared}:counters"}, "how many calls were made is counted there"


def test_a_call_is_made_again_as_long_as_it_is_told_to(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.set_meta("a", "1")
    client, failing, asked = store.server.client, [True, True], list[float]()
    execute = client.execute_command

    def execute_command(*args: object, **options: object) -> object:
        if failing:
            failing.pop()
            raise ConnectionRefused("connection refused")
        return execute(*args, **options)

    monkeypatch.setattr(client, "execute_command", execute_command)
    with pytest.raises(StoreAway):
        store.get_meta("a")
    failing.append(True)
    store.server.tries_again = lambda began: asked.append(began) is None  # type: ignore[func-returns-value]
    assert store.get_meta("a") == "1"
    assert len(asked) == 2
    assert asked[0] == asked[1]
