"""Workers that share a collection over Redis: who holds which sites, and what becomes of what a dead one held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from msgspec import structs

from crawlspace.model import Held, Source
from crawlspace.state.hastening import AT_ONCE
from crawlspace.state.move.redis import RedisSide
from crawlspace.state.redis.encoding import PART
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Acquired, RulesDiffer, SiteRelease, Worker, WorkerExpired, workers
from crawlspace.state.site_health import Health
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import RobotsEntry
from tests.contract.conftest import NOW, SINKS, Known, new, short
from tests.servers import another_client, emptied

LONG_S = 1000


@pytest.fixture
def store() -> Iterator[RedisStore]:
    emptied().close()
    store = RedisStore(another_client(), "shared", sinks=SINKS)
    yield store
    store.close()


@pytest.fixture
def known(store: RedisStore) -> Known:
    return Known(store)


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
        store.scripts.command("ZADD", "workers", 0, worker.name)


SITES = [f"{letter}.example/{number}" for letter in "abcd" for number in range(3)]


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


def test_what_a_dead_worker_held_is_anothers(store: RedisStore, known: Known) -> None:
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


def test_a_worker_taken_for_dead_records_nothing(store: RedisStore, known: Known) -> None:
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
    told = worker.record([change], now=NOW)
    assert (told.discovered, told.pushes) == (1, 0)
    assert known.get("a.example/0").checksum is None


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
def test_a_damaged_record_is_put_aside_and_the_others_are_leased(
    store: RedisStore, known: Known, damage: Callable[[bytes], bytes], leased_by: str
) -> None:
    known.discover("a.example/0", "a.example/1", "a.example/2")
    record = store.scripts.command("HGET", "url:0", "2")
    assert damage(record) != record
    store.scripts.command("HSET", "url:0", "2", damage(record))
    if leased_by == "a worker":
        worker = joined(store)
        assert take(worker) == {"a": ["a.example/0", "a.example/2"]}
        assert worker.heartbeat().broken == 1
    else:
        assert known.leased("a.example") == ["a.example/0", "a.example/2"]
    assert store.scripts.hash("broken") == {b"2": damage(record)}
    assert known.get("a.example/0").lease_until is not None


def test_records_are_in_parts(store: RedisStore, known: Known) -> None:
    store.scripts.command("HSET", "n", "urls", 2 * PART - 4)
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


def test_the_last_asking_goes_with_the_site(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0", "a.example/1")
    store.wait_site("b.example:80", NOW + 60)
    store.save_robots(RobotsEntry("a.example:80", "http", 200, "User-agent: *", NOW))
    one, two = joined(store), joined(store)
    row = UnreachableSite("a.example:80", 612, NOW - 60, 2, NOW - 60)
    store.set_unreachable("a.example:80", row)  # another worker has counted it since this one began
    taken = one.take(refill={}, new=5, limit=1, now=NOW, until=NOW + 300).sites[0]
    assert taken.known is not None
    assert (taken.known.asked_ago_s, taken.known.wait_until, taken.known.health) == (None, None, None)
    assert taken.known.unreachable == row
    assert [entry.body for entry in taken.known.robots] == ["User-agent: *"]
    more = one.take(refill={"a.example:80": 5}, new=0, limit=5, now=NOW, until=NOW + 300).sites[0]
    assert more.known is None  # nobody knows more of the site than the one that holds it
    one.release_sites([SiteRelease("a.example:80", 2.5, 0, [state.id for state in [*taken.states, *more.states]])])
    assert known.get("a.example/0").lease_until is None
    again = two.take(refill={}, new=5, limit=5, now=NOW, until=NOW + 300).sites[0]
    assert again.known is not None
    assert again.known.asked_ago_s == pytest.approx(2.5, abs=0.5)
    assert [short(state.url) for state in again.states] == ["a.example/0", "a.example/1"]


def test_more_is_wanted_of_a_site_that_is_held_no_more(store: RedisStore, known: Known) -> None:
    """Others may have asked it meanwhile: taken anew, it comes with what they know, also where the call is repeated."""
    known.discover("a.example/0", "a.example/1", "b.example/0")
    worker = joined(store)
    worker.take(refill={}, new=1, limit=1, now=NOW, until=NOW + 300)
    worker.release_sites([SiteRelease("a.example:80", 2.5)])
    for _ in range(2):
        taken = worker.take(refill={"a.example:80": 5}, new=5, limit=5, now=NOW, until=NOW + 300, number=7)
        assert taken.dry == ["a.example:80"]
        asked = {one.site: one.known.asked_ago_s for one in taken.sites if one.known is not None}
        assert asked == {"a.example:80": pytest.approx(2.5, abs=0.5), "b.example:80": None}


BOUNDED = [
    # seconds the site was to wait, and until when that was written (as seen now)      and when it may be taken
    (60, 60, 60),
    (60, 4000, 60),
    (7200, 7000, 7000),
    (7200, 99_999, 7200),
    (0, 99_999, 3600),
]


@pytest.mark.parametrize(("wait_s", "left_s", "taken_after_s"), BOUNDED)
def test_a_clock_that_was_set_back_makes_no_wait_longer(
    store: RedisStore, known: Known, wait_s: int, left_s: int, taken_after_s: int
) -> None:
    known.discover("a.example/0")
    store.wait_site("a.example:80", NOW + left_s, wait_s=wait_s)
    worker = joined(store)
    for after_s in (0, taken_after_s - 1):
        assert not worker.take(refill={}, new=5, limit=5, now=NOW + after_s, until=NOW + 9999).sites
        store.scripts.command("ZADD", "free", 0, 1)  # by the clock of the server it would be looked at again some seconds later
    assert worker.take(refill={}, new=5, limit=5, now=NOW + taken_after_s, until=NOW + 9999).sites


def test_a_site_that_rests_is_not_taken(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0", "b.example/0")
    store.wait_site("b.example:80", NOW + 60)
    one, two = joined(store), joined(store)
    assert list(take(one)) == ["a"]
    one.release_sites([SiteRelease("a.example:80", 0, 60, [known.get("a.example/0").id])])
    assert take(two) == {}
    assert two.heartbeat().free == 2, "they have work, and the crawl waits for it"


def test_what_is_due_is_taken_when_it_is(store: RedisStore, known: Known) -> None:
    known.crawled(("a.example/0", "x"))
    known.record(known.change("a.example/0", next_fetch=NOW - 1))
    assert take(joined(store)) == {"a": ["a.example/0"]}


def test_what_is_due_later_is_no_work(store: RedisStore, known: Known) -> None:
    known.crawled(("a.example/0", "x"))
    known.record(known.change("a.example/0", next_fetch=NOW + 10**9))
    worker = joined(store)
    assert take(worker) == {}
    assert worker.heartbeat().is_nothing_left


def test_a_paused_source_is_no_work(store: RedisStore, known: Known) -> None:
    known.discover(new("a.example/0", source=Source.FOLLOW))
    worker = joined(store, sources=[Source.USER, Source.INDEX_FOLLOW])
    assert take(worker) == {}
    assert worker.heartbeat().is_nothing_left
    known.discover("a.example/1")
    assert take(worker) == {"a": ["a.example/1"]}


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


def test_a_retry_of_this_run_is_waited_for(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    worker = joined(store)
    take(worker)
    worker.record([known.change("a.example/0", retries=1, next_fetch=NOW + 60)], now=NOW)
    worker.release_sites([SiteRelease("a.example:80")])
    assert not worker.heartbeat().is_nothing_left


def test_a_site_given_up_is_asked_by_nobody_until_the_next_run(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0", "a.example/1")
    one, two = joined(store), joined(store)
    take(one, 1, 1)
    one.give_up("a.example:80")
    one.release_sites([SiteRelease("a.example:80", ids=[known.get("a.example/0").id])])
    assert take(two) == {}
    assert two.heartbeat().is_nothing_left
    one.leave()
    two.leave()
    assert take(joined(store)) == {"a": ["a.example/0", "a.example/1"]}


def test_a_site_is_given_up_by_the_worker_that_holds_it_alone(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0", "a.example/1")
    dead, other = joined(store), joined(store)
    take(dead, 1, 1)
    expire(store, dead)
    other.heartbeat()
    dead.give_up("a.example:80")
    assert take(other) == {"a": ["a.example/0", "a.example/1"]}


def dead_and_holder(store: RedisStore, known: Known) -> tuple[Worker, Worker]:
    """One that was taken for dead and does not know it yet, and one that has its site now; one URL more is pending there."""
    known.discover("a.example/0", "a.example/1")
    dead, other = joined(store), joined(store)
    take(dead, 1, 1)
    expire(store, dead)
    other.heartbeat()
    take(other, 1, 1)
    return dead, other


WORD_OF_THE_DEAD = [
    # until when the new holder says that the site waits, until when the dead one does, until when it does wait
    (NOW + 60,             NOW + 9,         NOW + 60),
    (NOW + 60,             None,            NOW + 60),
    (NOW + 60,             NOW + 99,        NOW + 99),
    (None,                 NOW + 9,         NOW + 9),
]  # fmt: skip


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize(("of_the_holder", "of_the_dead", "waits"), WORD_OF_THE_DEAD)
def test_the_word_of_a_worker_taken_for_dead_makes_no_site_wait_less(
    store: RedisStore, known: Known, of_the_holder: int | None, of_the_dead: int | None, waits: int, *, is_held: bool
) -> None:
    """Also where the other one has let it go meanwhile, as it does with a site that is to rest for long."""
    dead, other = dead_and_holder(store, known)
    other.wait_site("a.example:80", of_the_holder)
    if not is_held:
        other.release_sites([SiteRelease("a.example:80")])
    dead.wait_site("a.example:80", of_the_dead)
    assert [site.wait_until for site in store.sites()] == [waits]


def test_the_word_of_a_worker_that_holds_a_site_counts_for_its_wait(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    worker = joined(store)
    take(worker)
    for until in (NOW + 60, NOW + 9, None):
        worker.wait_site("a.example:80", until)
        assert [site.wait_until for site in store.sites()] == ([] if until is None else [until])


@pytest.mark.parametrize("is_held", [True, False])
def test_the_row_of_a_site_is_written_unless_it_is_another_workers(store: RedisStore, known: Known, *, is_held: bool) -> None:
    dead, other = dead_and_holder(store, known)
    row = UnreachableSite("a.example:80", 612, NOW, 1, NOW)
    other.set_unreachable("a.example:80", row)
    if not is_held:
        other.release_sites([SiteRelease("a.example:80")])
    dead.set_unreachable("a.example:80", None)
    assert store.unreachable() == ([row] if is_held else [])


def test_a_site_that_was_given_up_and_is_resumed_is_handed_out_again(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0", "a.example/1")
    worker = joined(store)
    take(worker, limit=1)
    worker.give_up("a.example:80")
    worker.release_sites([SiteRelease("a.example:80")])
    assert not take(worker)
    worker.resume("a.example:80")
    assert take(worker)
    worker.resume("a.example:80")  # it was not given up
    worker.resume("unknown.example:80")


def test_robots_txt_of_a_site_is_kept_by_the_worker_that_holds_it(store: RedisStore, known: Known) -> None:
    dead, other = dead_and_holder(store, known)
    newer, older = (RobotsEntry("a.example:80", "http", 200, body, NOW) for body in ("newer", "older"))
    other.save_robots(newer)
    dead.save_robots(older)
    assert store.robots("a.example:80", "http") == newer


def claimed(worker: Worker, *hosts: str) -> list[str]:
    """Claim these hosts; return those that came."""
    return [one.site.removesuffix(".example:80") for one in worker.claim([f"{host}.example:80" for host in hosts], now=NOW)]


def test_a_site_that_nobody_holds_is_its_who_claims_it(store: RedisStore, known: Known) -> None:
    """Also one of which no URL is known; and what else is known of it comes along."""
    known.discover("a.example/0")
    store.save_robots(RobotsEntry("a.example:80", "http", 200, "User-agent: *", NOW))
    one, two = joined(store), joined(store)
    got = one.claim(["a.example:80", "unknown.example:80"], now=NOW)
    assert [(each.site, list(each.states)) for each in got] == [("a.example:80", []), ("unknown.example:80", [])]
    assert got[0].known is not None
    assert [entry.body for entry in got[0].known.robots] == ["User-agent: *"]
    assert claimed(one, "a") == ["a"], "the answer may have been lost"
    assert take(two) == {}
    assert claimed(two, "a", "unknown") == []
    assert not two.heartbeat().is_nothing_left
    assert take(one, a=5) == {"a": ["a.example/0"]}, "it may be crawled, too"
    one.release_sites([SiteRelease("unknown.example:80", 2.5)])
    known_of = two.claim(["unknown.example:80"], now=NOW)[0].known
    assert known_of is not None
    assert known_of.asked_ago_s == pytest.approx(2.5, abs=0.5)


def test_who_holds_a_site_that_is_claimed_is_told_and_the_claim_comes_before_others(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    now = 10**12
    store.scripts.now_ms = lambda: now
    holder, waiting, third = joined(store), joined(store), joined(store)
    assert list(take(holder, 1)) == ["a"]
    assert claimed(waiting, "a") == []
    assert waiting.heartbeat().claimed == []
    assert holder.heartbeat().claimed == ["a.example:80"]
    holder.release_sites([SiteRelease("a.example:80", ids=[known.get("a.example/0").id])])
    assert holder.heartbeat().claimed == []
    assert take(third) == {}, "it is kept for who waits"
    assert claimed(waiting, "a") == ["a"]
    waiting.release_sites([SiteRelease("a.example:80")])
    assert take(third) == {"a": ["a.example/0"]}


def test_a_site_that_was_claimed_in_vain_is_others_before_long(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    now = 10**12
    store.scripts.now_ms = lambda: now
    holder, waiting, third = joined(store), joined(store), joined(store)
    take(holder)
    assert claimed(waiting, "a") == []
    holder.release_sites([SiteRelease("a.example:80", ids=[known.get("a.example/0").id])])
    now += 2_999
    assert take(third) == {}
    now += 1
    assert take(third) == {"a": ["a.example/0"]}


@pytest.mark.parametrize("is_claimed", [True, False])
def test_a_site_that_rests_goes_on_resting_when_it_is_claimed(store: RedisStore, known: Known, *, is_claimed: bool) -> None:
    """As one that has failed several times in a row."""
    known.discover("a.example/0")
    now = 10**12
    store.scripts.now_ms = lambda: now
    holder, waiting = joined(store), joined(store)
    take(holder)
    if is_claimed:
        assert claimed(waiting, "a") == []
    holder.release_sites([SiteRelease("a.example:80", rest_s=60, ids=[known.get("a.example/0").id])])
    now += 1_000
    came = waiting.claim(["a.example:80"], now=NOW)[0].known
    assert came is not None
    assert came.wait_until == NOW + 59


def test_who_claims_a_site_first_gets_it_first(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    holder, first, second = joined(store), joined(store), joined(store)
    take(holder)
    for _ in range(3):
        assert claimed(first, "a") == []
        assert claimed(second, "a") == []
    holder.release_sites([SiteRelease("a.example:80", ids=[known.get("a.example/0").id])])
    assert claimed(second, "a") == []
    assert claimed(first, "a") == ["a"]
    assert first.heartbeat().claimed == ["a.example:80"]
    first.release_sites([SiteRelease("a.example:80")])
    assert claimed(second, "a") == ["a"]


def test_the_claim_of_a_dead_worker_is_forgotten(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    holder, dead = joined(store), joined(store)
    take(holder)
    assert claimed(dead, "a") == []
    expire(store, dead)
    holder.heartbeat()
    assert holder.heartbeat().claimed == []
    with pytest.raises(WorkerExpired):
        dead.claim(["a.example:80"], now=NOW)


def test_a_site_that_was_given_up_and_is_claimed_is_not_crawled(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    one, two = joined(store), joined(store)
    state = one.take(refill={}, new=1, limit=1, now=NOW, until=NOW + 300).sites[0].states[0]
    one.give_up("a.example:80")
    one.release_sites([SiteRelease("a.example:80", ids=[state.id])])
    assert claimed(two, "a") == ["a"]
    assert take(two, a=5) == {}


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
    assert known.leased("a.example", now=NOW + 9) == [], "all are set aside"
    known.discover(*(f"{number}.example/" for number in range(many)))
    before = store.scripts.runs
    worker = joined(store)
    assert store.scripts.runs - before >= 1 + 3 + 2 + 1
    assert worker.heartbeat().free == many
    assert [store.scripts.command(kind, name) for kind, name in (("SCARD", "set_aside"), ("ZCARD", "later"))] == [0, 1]
    assert len(known.leased("a.example", many, now=NOW + 9)) == many


def test_the_first_worker_of_a_run_asks_a_site_at_once_that_gave_no_answer(store: RedisStore, known: Known) -> None:
    known.discover("dead.example/")
    store.wait_site("dead.example:80", NOW + 3_600, wait_s=3_600)
    store.set_unreachable("dead.example:80", UnreachableSite("dead.example:80", 613, since=NOW, runs=1, counted_at=NOW))
    assert take(joined(store)) == {"dead": ["dead.example/"]}


def test_held_deletions_and_metadata_of_nobody_are_gone_through_in_calls_of_bounded_size(store: RedisStore, known: Known) -> None:
    pages = [f"a.example/{number}" for number in range(AT_ONCE + 100)]
    known.discover(*(structs.replace(new(page), inherited='{"c":"red"}') for page in pages))
    known.record(*(known.page(page, f"{number:016}", held=Held.MANY) for number, page in enumerate(pages)))
    before = store.scripts.runs
    assert store.counts().held == len(pages)
    store.drop_inherited()
    assert store.scripts.runs - before >= 1 + 2 * 2
    assert {state.inherited for state in store.urls()} == {None}
