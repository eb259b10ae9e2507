"""Several workers on one server: who holds a site, what becomes of what a dead one held, and how a run begins and ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from msgspec import structs

from crawlspace.model import Held
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.due_times import AT_ONCE
from crawlspace.state.redis.dump import RedisSide
from crawlspace.state.redis.encoding import PART
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import RulesDiffer, SiteRelease, Worker, WorkerExpired, workers
from crawlspace.state.site_health import Health
from crawlspace.state.unreachable import UnreachableSite
from tests.contract.conftest import NOW, SINKS, Known, new, short
from tests.contract.workers.crawler import LONG_S, SITES, expire, joined, take, urls_of
from tests.servers import another_client


def test_a_site_is_held_by_one_worker(store: RedisStore, known: Known) -> None:
    known.discover(*SITES)
    one, two = joined(store), joined(store)
    first, second = take(one), take(two)
    assert sorted([*first, *second]) == ["a", "b", "c", "d"]
    assert len(first) == len(second) == 2, "each has its fair share"
    assert first["a"] == ["a.example/0", "a.example/1", "a.example/2"]
    assert take(one) == take(two) == {}


def test_a_worker_alone_may_have_all(store: RedisStore, known: Known) -> None:
    known.discover(*SITES)
    assert len(take(joined(store))) == 4


def test_more_of_a_site_that_is_held(store: RedisStore, known: Known) -> None:
    known.discover(*SITES)
    one, two = joined(store), joined(store)
    held = take(one, 1, 2)
    (site,) = held
    assert len(held[site]) == 2
    assert take(two, 0, **{site: 5}) == {}, "another's"
    assert take(one, 0, **{site: 5}) == {site: [f"{site}.example/2"]}
    taken = one.take(refill={f"{site}.example:80": 5}, new=0, limit=1, now=NOW, until=NOW + 1)
    assert (taken.sites, taken.dry) == ([], [f"{site}.example:80"])


def test_what_a_repeated_call_returns(store: RedisStore, known: Known) -> None:
    known.discover(*SITES)
    worker = joined(store)
    first = take(worker, 2, 1, number=7)
    assert take(worker, 2, 1, number=7) == first, "the answer was lost"
    assert take(worker, 2, 1, number=8) != first


def test_the_sites_of_an_expired_worker_go_to_another_one(store: RedisStore, known: Known) -> None:
    known.discover(*SITES)
    dead, other = joined(store), joined(store)
    held = take(dead)
    take(other)
    expire(store, dead)
    other.heartbeat()
    assert take(other) == held
    with pytest.raises(WorkerExpired):
        take(dead)
    with pytest.raises(WorkerExpired):
        dead.heartbeat()


def test_an_expired_worker_records_nothing(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    dead, other = joined(store), joined(store)
    take(dead)
    change = known.page("a.example/0", "old", text="old")
    expire(store, dead)
    other.heartbeat()
    take(other)
    of_the_other, of_the_dead = {"a.example:80": Health(7, 2)}, {"a.example:80": Health(0, 3)}
    assert dead.record([change], now=NOW, health=of_the_dead).pushes == 0
    assert store.health("a.example:80") == Health()
    assert known.get("a.example/0").lease_until is not None, "the other still fetches it"
    assert other.record([known.page("a.example/0", "new", text="new")], now=NOW, health=of_the_other).pushes == 1
    dead.begin_again()
    dead.record([change], now=NOW, health=of_the_dead)
    assert store.health("a.example:80") == Health(7, 2)
    assert known.get("a.example/0").checksum == b"new"
    other.record([], now=NOW, health={"a.example:80": Health(8, 4)})
    assert store.health("a.example:80") == Health(8, 4), "it holds the site"


def test_what_is_found_on_a_page_that_is_held_no_more(store: RedisStore, known: Known) -> None:
    """A worker does not tell twice what it has found: so it is heard, unless it is dead, when its rules may be those of yesterday."""
    known.discover("a.example/0")
    worker, other = joined(store), joined(store)
    take(worker)
    change = known.page("a.example/0", "old", text="old", discovered=[new("b.example/1", depth=1)])
    expire(store, worker)
    other.heartbeat()
    assert worker.record([change], now=NOW).discovered == 0
    worker.begin_again()
    received = worker.record([change], now=NOW)
    assert (received.discovered, received.pushes) == (1, 0)
    assert known.get("a.example/0").checksum is None


def test_a_document_waits_for_a_url_that_is_held_no_more(store: RedisStore, known: Known) -> None:
    """It leaves the index together with the push of that URL, or not at all."""
    known.crawled(("b.example/old", "text"))
    known.discover("a.example/0")
    old = known.get("b.example/old")
    store.reclassify(Reclassified(held_folded=[old.id]), now=NOW)
    worker, other = joined(store), joined(store)
    take(worker)
    changes = [
        known.page("a.example/0", "text", text="text"),
        Change(known.get("b.example/old"), forget=True, together_with=known.get("a.example/0").id),
    ]
    expire(store, worker)
    other.heartbeat()
    worker.begin_again()
    assert worker.record(changes, now=NOW).deletes == 0
    assert (known.get("b.example/old").indexed, known.get("a.example/0").checksum) == (True, None)
    take(other)
    done = other.record(changes, now=NOW)
    assert (done.pushes, done.deletes, known.get("a.example/0").indexed) == (1, 1, True)
    assert store.get_by_id(old.id) is None


# what is made of a record whose head remains as it should be
DAMAGED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("cut off", lambda record: record[:-3]),
    ("only its head", lambda record: record[:4]),
    ("something else behind the head", lambda record: record[:4] + b"garbage"),
    ("two in one", lambda record: record + record),
    ("a state that there is not", lambda record: record.replace(b"\x01\x00\xc0\x03", b"\x01\x63\xc0\x03")),
]


@pytest.mark.parametrize("leased_by", ["a worker", "a command"])
@pytest.mark.parametrize("damage", [damage for _, damage in DAMAGED], ids=[title for title, _ in DAMAGED])
def test_a_damaged_record_is_quarantined_and_the_others_are_leased(
    store: RedisStore, known: Known, damage: Callable[[bytes], bytes], leased_by: str
) -> None:
    known.discover("a.example/0", "a.example/1", "a.example/2")
    record = store.server.command("HGET", "url:0", "2")
    assert damage(record) != record
    store.server.command("HSET", "url:0", "2", damage(record))
    if leased_by == "a worker":
        worker = joined(store)
        assert take(worker) == {"a": ["a.example/0", "a.example/2"]}
        assert worker.heartbeat().broken == 1
    else:
        assert known.leased("a.example") == ["a.example/0", "a.example/2"]
    assert store.server.hash("broken") == {b"2": damage(record)}
    assert known.get("a.example/0").lease_until is not None


def test_records_are_in_parts(store: RedisStore, known: Known) -> None:
    store.begin_run(None)  # a store without a format would be that of another version
    store.server.command("HSET", "counters", "urls", 2 * PART - 4)
    urls = [f"a.example/{n}" for n in range(8)]
    known.discover(*urls)
    assert [known.get(url).id for url in urls] == list(range(2 * PART - 3, 2 * PART + 5))
    worker = joined(store)
    assert take(worker) == {"a": urls}
    worker.record([known.page(url, "same", next_fetch=NOW + 1) for url in urls], now=NOW)
    assert [short(state.url) for state in store.urls()] == urls
    due = worker.take(refill={"a.example:80": 8}, new=0, limit=8, now=NOW * 2, until=NOW * 3)
    assert sorted(urls_of(due)["a"]) == urls
    worker.record([known.change(url, forget=True) for url in urls[2:7]], now=NOW)
    assert [short(state.url) for state in store.urls()] == [*urls[:2], *urls[7:]]
    worker.leave()
    with closing(RedisSide(another_client(), "shared", timeout_s=30)) as side:
        assert side.count() == 3


def test_a_record_that_is_repeated_counts_once(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    worker = joined(store)
    take(worker)
    change = known.page("a.example/0", "x", discovered=[new("b.example/1", depth=1)])
    first = worker.record([change], now=NOW, health={"a.example:80": Health(1, 2)}, number=5)
    again = worker.record([change], now=NOW, health={"a.example:80": Health(1, 2)}, number=5)
    assert first == again
    assert (first.discovered, first.pushes) == (1, 1)
    assert store.counts().outbox == len(SINKS)


def test_the_end_is_known_to_all(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    one, two = joined(store), joined(store)
    take(one)
    assert not two.heartbeat().is_nothing_left, "the other may find links"
    one.record([known.page("a.example/0", "x")], now=NOW)
    assert not two.heartbeat().is_nothing_left, "the other holds the site"
    one.release_sites([SiteRelease("a.example:80")])
    assert two.heartbeat().is_nothing_left
    assert one.heartbeat().is_nothing_left


def test_a_new_run_begins_with_all_that_was_leased(store: RedisStore, known: Known) -> None:
    known.discover(*SITES)
    dead = joined(store)
    held = take(dead)
    expire(store, dead)
    assert take(joined(store)) == held


def test_others_wait_until_the_first_has_brought_the_store_in_line(store: RedisStore) -> None:
    first, second = Worker(store, timeout_s=LONG_S), Worker(store, timeout_s=LONG_S)
    assert first.begin("r1") is None
    assert second.begin("r1") == first.name
    first.ready()
    assert second.begin("r1") is None


def test_other_rules_are_refused(store: RedisStore) -> None:
    one = joined(store, "r1")
    with pytest.raises(RulesDiffer, match=rf"{one.name}.*r1.*r2"):
        Worker(store, timeout_s=LONG_S).begin("r2")


def test_who_is_there(store: RedisStore, known: Known) -> None:
    known.discover(*SITES)
    one = joined(store)
    take(one, 2, 3)
    one.heartbeat("12 pages")
    (seen,) = workers(store)
    assert (seen.name, seen.sites, seen.urls, seen.report) == (one.name, 2, 6, b"12 pages")
    assert seen.unseen_s < 60
    one.leave()
    assert workers(store) == []
    assert store.counts().by_state == {"pending": len(SITES)}


def test_collections_in_one_database_know_nothing_of_each_other(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    other = RedisStore(another_client(), "other", sinks=SINKS)
    assert other.counts().by_state == {}
    assert take(joined(other)) == {}
    other.close()


def test_a_run_begins_in_calls_of_bounded_size(store: RedisStore, known: Known) -> None:
    many = AT_ONCE + 100
    pages = [f"a.example/{number}" for number in range(many)]
    known.discover(*pages)
    known.record(*(known.change(page, fetched_at=NOW, next_fetch=NOW + 1) for page in pages))
    store.begin_run(NOW)
    assert known.leased("a.example", now=NOW + 9) == [], "all are deferred"
    known.discover(*(f"{number}.example/" for number in range(many)))
    before = store.server.runs
    worker = joined(store)
    assert store.server.runs - before >= 1 + 3 + 2 + 1
    assert worker.heartbeat().free == many
    assert [store.server.command(kind, name) for kind, name in (("SCARD", "deferred"), ("ZCARD", "later"))] == [0, 1]
    assert len(known.leased("a.example", many, now=NOW + 9)) == many


def test_the_first_worker_of_a_run_tries_an_unreachable_site_at_once(store: RedisStore, known: Known) -> None:
    known.discover("dead.example/")
    store.wait_site("dead.example:80", NOW + 3_600, wait_s=3_600)
    store.set_unreachable("dead.example:80", UnreachableSite("dead.example:80", 613, since=NOW, runs=1, counted_at=NOW))
    assert take(joined(store)) == {"dead": ["dead.example/"]}


def test_held_deletions_and_metadata_of_nobody_are_gone_through_in_calls_of_bounded_size(store: RedisStore, known: Known) -> None:
    pages = [f"a.example/{number}" for number in range(AT_ONCE + 100)]
    known.discover(*(structs.replace(new(page), inherited='{"c":"red"}') for page in pages))
    known.record(*(known.page(page, f"{number:016}", held=Held.MANY) for number, page in enumerate(pages)))
    before = store.server.runs
    assert sum(store.held_numbers().values()) == len(pages)
    store.drop_inherited()
    assert store.server.runs - before >= 1 + 2 * 2
    assert {state.inherited for state in store.urls()} == {None}
