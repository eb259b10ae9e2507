"""What is in Redis and was not written by any version of ours: it is quarantined, or ends in a sentence, whatever is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from msgspec import structs

from crawlspace.crawl.conditional import generation, set_generation
from crawlspace.errors import CrawlspaceError, StoreDamaged
from crawlspace.model import NewUrl, Source
from crawlspace.state.changes import Change
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import SiteRelease, Worker, workers
from crawlspace.state.site_health import Health
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import RobotsEntry
from tests.contract.conftest import NOW, Known, new, shared_store
from tests.quick import some
from tests.servers import another_client, emptied

DAMAGE: Mapping[str, Callable[[bytes], bytes]] = {
    "no text": lambda _: b"\xc1\xff",
    "no record": lambda _: b"text that is no record",
    "nothing": lambda _: b"",
    "no URL": lambda value: value.replace(b"http://", b"what is"),
}
PAGES = ("a.example/one", "a.example/two", "b.example/one", "b.example/gone", "b.example/held")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with another_client() as client:
        yield client


@pytest.fixture(scope="module")
def collection(client: Any) -> Mapping[bytes, bytes]:
    """All keys of a small collection that a worker crawls and died of."""
    emptied().close()
    store = shared_store()
    known = Known(store)
    fields = '{"colour":"red"}'
    known.discover(*PAGES, replaced("b.example/new", inherited=fields), new("c.example/", source=Source.USER))
    found = [replaced("a.example/two", inherited=fields), replaced("c.example/deep", inherited=fields)]
    known.record(
        known.page(
            "a.example/one",
            "one",
            links=[one.key for one in found],
            discovered=found,
            etag='"1"',
            refused="d3",
            next_fetch=NOW + 60,
        ),
        known.page("a.example/two", "two", canonical=new("a.example/one").key, next_fetch=NOW),
        known.page("b.example/one", "one", next_fetch=NOW - 60, retries=1),
    )
    store.park("log", store.orders("log", 1, now=NOW)[0], "too large")
    store.save_robots(RobotsEntry("a.example:80", "http", 200, "User-agent: *", NOW))
    store.wait_site("a.example:80", NOW + 60)
    store.set_unreachable("c.example:80", UnreachableSite("c.example:80", 612, NOW, 1, NOW))
    store.record([known.change("b.example/gone")], now=NOW, health={"a.example:80": Health(3, 9)})
    set_generation(store, 2)
    worker = Worker(store, timeout_s=1000)
    assert worker.begin("rules", index=("index", "here:/index.db")) is None
    worker.ready()
    worker.take(refill={}, new=1, limit=1, now=NOW, until=NOW + 300)
    worker.drains("index", "here:/index.db")
    store.close()
    return {key: client.dump(key) for key in client.keys("*")}


def replaced(url: str, *, inherited: str) -> NewUrl:
    return structs.replace(new(url), inherited=inherited)


def kind_of(key: bytes) -> str:
    return key.decode(errors="replace").removeprefix("{shared}:").partition(":")[0]


def restore(client: Any, collection: Mapping[bytes, bytes]) -> None:
    client.flushall()
    for key, value in collection.items():
        client.restore(key, 0, value)


def spoil(client: Any, key: bytes, damage: Callable[[bytes], bytes]) -> None:
    kind = client.type(key).decode()
    if kind == "hash":
        client.hset(key, mapping={field: damage(value) for field, value in client.hgetall(key).items()})
    elif kind == "string":
        client.set(key, damage(client.get(key) or b""))
    elif kind == "zset":
        (member, score), *_ = client.zrange(key, 0, 0, withscores=True)
        client.zadd(key, {damage(member): score})
        client.zrem(key, member)
    elif kind == "set":
        members = client.smembers(key)
        client.delete(key)
        client.sadd(key, *map(damage, members))


def crawl(store: RedisStore) -> None:
    """All that a worker asks of the server."""
    generation(store)
    worker = Worker(store, timeout_s=1000)
    if worker.begin("rules", index=("index", "here:/index.db")) is not None:
        return
    worker.ready()
    worker.heartbeat("{}")
    worker.claim(["c.example:80"], now=NOW)
    taken = worker.take(refill={}, new=10, limit=10, now=NOW, until=NOW + 300)
    states = [state for site in taken.sites for state in site.states]
    for state in states:
        assert state.url.startswith("http://")
    health = {site.site: Health(3) for site in taken.sites}
    worker.record([Change(state) for state in states], now=NOW, health=health)
    worker.drains("index", "here:/index.db")
    worker.sender("index")
    store.unpark("log")
    worker.release_sites([SiteRelease(site.site) for site in taken.sites])
    worker.leave()


def look(store: RedisStore) -> None:
    """All that commands ask of it."""
    store.counts()
    list(store.sites())
    list(store.urls())
    store.scan(0, 100)
    store.unreachable()
    store.robots("a.example:80", "http")
    store.health("a.example:80")
    store.orders("index", 10, now=NOW)
    store.parked("log")
    store.get("http://a.example/one")
    workers(store)


@pytest.mark.parametrize("damage", some(DAMAGE, 1))
@pytest.mark.parametrize("asked", [crawl, look])
def test_no_damage_is_more_than_a_sentence(
    client: Any, collection: Mapping[bytes, bytes], asked: Callable[[RedisStore], None], damage: str
) -> None:
    """Each key in turn, the others as they were."""
    wrong = []
    for key in sorted(collection):
        restore(client, collection)
        spoil(client, key, DAMAGE[damage])
        store = shared_store()
        try:
            asked(store)
        except CrawlspaceError as error:
            if "report" in str(error):
                wrong.append(f"{key!r}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it would be a traceback
            wrong.append(f"{key!r}: {type(error).__name__}: {error}")
        finally:
            store.close()
    assert wrong == []


def test_the_kinds_of_keys_that_are_spoilt(collection: Mapping[bytes, bytes]) -> None:
    """Another kind of key is to come into the collection above."""
    kinds = {kind_of(key) for key in collection}
    assert {"url", "site", "site_name", "links", "document", "robots", "health", "meta", "counters", "wait", "inherited"} <= kinds


def test_a_number_that_is_none(shared: RedisStore) -> None:
    set_generation(shared, 2)
    shared.set_meta("rules_generation", "text that is no record")
    with pytest.raises(StoreDamaged, match="what the store keeps as rules_generation is damaged"):
        generation(shared)
