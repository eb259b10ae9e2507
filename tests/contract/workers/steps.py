"""The steps of workers that tests are told in: one joins, takes sites, and is held for dead."""

from __future__ import annotations

from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Acquired, Worker
from tests.contract.conftest import NOW, short

LONG_S = 1000


def joined(store: RedisStore, rules: str = "r1", **given: object) -> Worker:
    worker = Worker(store, timeout_s=LONG_S, **given)  # type: ignore[arg-type]
    assert worker.begin(rules) is None
    worker.ready()
    return worker


def take(worker: Worker, new: int = 10, limit: int = 10, *, number: int | None = None, **refill: int) -> dict[str, list[str]]:
    return urls_of(
        worker.take(
            refill={f"{host}.example:80": many for host, many in refill.items()},
            new=new,
            limit=limit,
            now=NOW,
            until=NOW + 300,
            number=number,
        )
    )


def urls_of(taken: Acquired) -> dict[str, list[str]]:
    return {one.site.removesuffix(".example:80"): [short(state.url) for state in one.states] for one in taken.sites}


def expire(store: RedisStore, *dead: Worker) -> None:
    """Have workers be found dead by one that has just come."""
    for worker in dead:
        store.server.command("ZADD", "workers", 0, worker.name)


SITES = [f"{letter}.example/{number}" for letter in "abcd" for number in range(3)]
