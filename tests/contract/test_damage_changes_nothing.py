"""A script on Redis that meets damage ends in a sentence before its first write: every key is as it was, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crawlspace.decision import Reason
from crawlspace.errors import StoreDamaged
from crawlspace.state.changes import Reclassified
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker
from crawlspace.state.refused_links import RefusedLink
from tests.contract.conftest import NOW, Known, key, new, shared_store
from tests.quick import some

PREFIX = b"{shared}:"
TEXT = b"no value that we write"


@pytest.fixture
def known(shared: RedisStore) -> Known:
    """Two pages with one text, one of them named as canonical, a lone page, and links from it."""
    known = Known(shared)
    known.discover("a.example/one", "a.example/two", new("a.example/lone", depth=5))
    known.record(
        known.page("a.example/one", "one", canonical=key("a.example/two")),
        known.page("a.example/two", "one"),
        known.page("a.example/lone", "lone", links=[key("a.example/one")], refused="d1", refused_links=[refused_on(3)]),
    )
    return known


def spoil(client: Any, kind: bytes) -> None:
    """Put another value in the place of each in the keys of a kind; another member, where it is a sorted set."""
    keys = [name for name in client.keys("*") if name.removeprefix(PREFIX).partition(b":")[0] == kind]
    assert keys
    for name in keys:
        if client.type(name) == b"zset":
            members = client.zrange(name, 0, -1)
            client.delete(name)
            client.zadd(name, {TEXT + member: 0 for member in members})
        else:
            client.hset(name, mapping=dict.fromkeys(client.hgetall(name), TEXT))


def dump(client: Any) -> dict[bytes, bytes]:
    return {name: client.dump(name) for name in client.keys("*")}


def refused_on(page: int) -> RefusedLink:
    return RefusedLink(Reason.DOMAIN, "b.example", "http://b.example/", page)


def refused_again(known: Known) -> None:
    change = known.page("a.example/one", "one", links=[], refused="d1", refused_links=[refused_on(1)])
    change.discovered = [new("b.example/new")]
    known.record(change)


def record_group(known: Known) -> None:
    known.record(known.page("a.example/lone", "one", discovered=[new("b.example/new")], links=[key("b.example/new")]))


def gone_from_group(known: Known) -> None:
    known.record(known.change("a.example/one", status=404, checksum=None, discovered=[new("b.example/new")]))


def nearer(known: Known) -> None:
    known.discover("b.example/new", new("a.example/lone", depth=1))


def nearer_in_a_record(known: Known) -> None:
    known.record(known.page("a.example/two", "two", discovered=[new("b.example/new"), new("a.example/lone", depth=1)]))


def new_sites(known: Known) -> None:
    known.discover("b.example/new", "a.example/new")


DAMAGE = {
    "checksum": (b"checksum", record_group),
    "place in a group": (b"group", record_group),
    "place in a group that is left": (b"group", gone_from_group),
    "links": (b"links", nearer),
    "links in a record": (b"links", nearer_in_a_record),
    "number of a site": (b"site", new_sites),
    "counters": (b"counters", record_group),
    "counters by status": (b"status", record_group),
    "counters by host": (b"host", new_sites),
    "documents by site": (b"documents", gone_from_group),
    "refused links": (b"refused", refused_again),
    "refused links of a page that has no more": (b"refused", record_group),
}
KINDS = (
    "site",
    "links",
    "document",
    "lease",
    "text",
    "host",
    "status",
    "documents",
    "health",
    "held",
    "pending",
    "free",
    "later",
    "meta",
    "refused_pages",
)
CALLS: dict[str, Callable[[Known, Worker], object]] = {
    "record": lambda known, _: record_group(known),
    "discover": lambda known, _: new_sites(known),
    "reclassify": lambda known, _: known.store.reclassify(Reclassified(excluded=[1, 2, 3]), now=NOW),
    "release": lambda known, _: known.store.release([1, 2, 3]),
    "heartbeat": lambda _, worker: worker.heartbeat(),
    "take": lambda _, worker: worker.take(refill={}, new=2, limit=3, now=NOW, until=NOW + 60),
    "leave": lambda _, worker: worker.leave(),
    "expire": lambda _, worker: worker.expire([worker.name]),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", some(KINDS, 4))
def test_a_key_of_another_type_changes_nothing(known: Known, client: Any, kind: str, call: str) -> None:
    worker = Worker(shared_store(), timeout_s=1000)
    worker.begin("rules")
    worker.ready()
    act_on = prepared(known, lambda known: CALLS[call](known, worker))
    name = PREFIX + kind.encode()
    client.delete(name)
    client.set(name, "x")
    before = dump(client)
    with pytest.raises(StoreDamaged, match=f"the key {kind} is a string"):
        act_on()
    assert dump(client) == before


@pytest.mark.parametrize("name", ["refused:d", "refused_hosts:d"])
def test_a_key_of_refused_links_of_another_type_changes_nothing(known: Known, client: Any, name: str) -> None:
    act_on = prepared(known, refused_again)
    client.delete(PREFIX + name.encode())
    client.set(PREFIX + name.encode(), "x")
    before = dump(client)
    with pytest.raises(StoreDamaged):
        act_on()
    assert dump(client) == before


@pytest.mark.parametrize("name", DAMAGE)
def test_a_script_that_meets_damage_has_written_nothing(known: Known, client: Any, name: str) -> None:
    kind, act = DAMAGE[name]
    act_on = prepared(known, act)
    spoil(client, kind)
    before = dump(client)
    with pytest.raises(StoreDamaged, match="what Redis keeps of this collection is damaged"):
        act_on()
    assert dump(client) == before


def prepared(known: Known, act: Callable[[Known], object]) -> Callable[[], object]:
    """Return the act with what it reads of the store read now, before there is any damage."""
    states = {url: known.get(url) for url in ("a.example/one", "a.example/two", "a.example/lone")}
    known.get = states.__getitem__  # type: ignore[method-assign, assignment]
    return lambda: act(known)


def test_orders_are_all_acknowledged_or_none(known: Known, client: Any) -> None:
    orders = known.store.orders("index", 100, now=NOW)
    last = max(client.hkeys(PREFIX + b"out:index:order"), key=int)
    client.hset(PREFIX + b"out:index:order", last, TEXT)
    before = dump(client)
    with pytest.raises(StoreDamaged):
        known.store.acknowledge("index", orders)
    assert dump(client) == before


def test_a_group_whose_next_page_has_no_record_goes_on_without_it(known: Known, client: Any) -> None:
    """A record that cannot be read is quarantined; its URL is entered again by the next link to it."""
    known.acknowledge_all()
    one, two = known.get("a.example/one"), known.get("a.example/two")
    representative, next_ = (one, two) if one.indexed else (two, one)
    change = known.change(representative.url.removeprefix("http://"), status=404, checksum=None)
    client.hset(PREFIX + b"url:0", str(next_.id), TEXT)
    known.record(change)
    assert known.orders() == [("delete", representative.url.removeprefix("http://"))]
    assert known.store.get(next_.url) is None
    known.discover(next_.url.removeprefix("http://"))
    assert known.get(next_.url.removeprefix("http://")).id not in (one.id, two.id)


def test_damaged_inherited_metadata_stops_nobody(known: Known, client: Any) -> None:
    client.hset(PREFIX + b"inherited", str(known.get("a.example/one").id), "{")
    assert known.get("a.example/one").inherited is None
    known.record(known.page("a.example/lone", "one"))
    assert known.get("a.example/lone").checksum == b"one"
