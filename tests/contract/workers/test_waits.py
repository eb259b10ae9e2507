"""Sites that wait, and how long: rests, retries, sites that are given up, and what other workers report of them."""

from __future__ import annotations

import pytest
from msgspec import structs

from crawlspace.model import Source, State
from crawlspace.runtime.session.redis_store import OnServer
from crawlspace.state.changes import Change
from crawlspace.state.redis.keys import Key
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import SiteRelease, Worker
from crawlspace.state.site_pauses import PAUSES, SitePause
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import RobotsEntry
from tests.contract.conftest import NOW, Known, new, short
from tests.contract.workers.crawler import expire, joined, take


def test_the_last_asking_goes_with_the_site(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0", "a.example/1")
    store.wait_site("b.example:80", NOW + 60)
    store.save_robots(RobotsEntry("a.example:80", "http", 200, "User-agent: *", NOW))
    store.server.now_ms = lambda: 10**12
    one, two = joined(store), joined(store)
    row = UnreachableSite("a.example:80", 612, NOW - 60, 2, NOW - 60)
    store.set_unreachable("a.example:80", row)  # another worker has counted it since this one began
    taken = one.take(refill={}, new=5, limit=1, now=NOW, until=NOW + 300).sites[0]
    assert taken.known is not None
    assert (taken.known.last_request_ago_s, taken.known.wait_until, taken.known.health) == (None, None, None)
    assert taken.known.unreachable == row
    assert [entry.body for entry in taken.known.robots] == ["User-agent: *"]
    more = one.take(refill={"a.example:80": 5}, new=0, limit=5, now=NOW, until=NOW + 300).sites[0]
    assert more.known is None  # nobody knows more of the site than the one that holds it
    one.release_sites([SiteRelease("a.example:80", 2.5, 0, [state.id for state in [*taken.states, *more.states]])])
    assert known.get("a.example/0").lease_until is None
    again = two.take(refill={}, new=5, limit=5, now=NOW, until=NOW + 300).sites[0]
    assert again.known is not None
    assert again.known.last_request_ago_s == 2.5
    assert [short(state.url) for state in again.states] == ["a.example/0", "a.example/1"]


def test_more_is_wanted_of_a_site_that_is_held_no_more(store: RedisStore, known: Known) -> None:
    """Others may have asked it meanwhile: taken again, it comes with what they know, also where the call is repeated."""
    known.discover("a.example/0", "a.example/1", "b.example/0")
    store.server.now_ms = lambda: 10**12
    worker = joined(store)
    worker.take(refill={}, new=1, limit=1, now=NOW, until=NOW + 300)
    worker.release_sites([SiteRelease("a.example:80", 2.5)])
    for _ in range(2):
        taken = worker.take(refill={"a.example:80": 5}, new=5, limit=5, now=NOW, until=NOW + 300, number=7)
        assert taken.dry == ["a.example:80"]
        asked = {one.site: one.known.last_request_ago_s for one in taken.sites if one.known is not None}
        assert asked == {"a.example:80": 2.5, "b.example:80": None}


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
        store.server.command("ZADD", "free", 0, 1)  # by the clock of the server it would be looked at again some seconds later
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


def test_a_retry_of_this_run_is_waited_for(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0")
    worker = joined(store)
    take(worker)
    worker.record([known.change("a.example/0", retries=1, next_fetch=NOW + 60)], now=NOW)
    worker.release_sites([SiteRelease("a.example:80")])
    assert not worker.heartbeat().is_nothing_left


def test_a_site_given_up_gets_no_request_until_the_next_run(store: RedisStore, known: Known) -> None:
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
    """One that has expired and does not know it yet, and one that has its site now; one URL more is pending there."""
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
def test_the_report_of_an_expired_worker_makes_no_site_wait_less(
    store: RedisStore, known: Known, of_the_holder: int | None, of_the_dead: int | None, waits: int, *, is_held: bool
) -> None:
    """Also where the other one has let it go meanwhile, as it does with a site that is to rest for long."""
    dead, other = dead_and_holder(store, known)
    other.wait_site("a.example:80", of_the_holder)
    if not is_held:
        other.release_sites([SiteRelease("a.example:80")])
    dead.wait_site("a.example:80", of_the_dead)
    assert [site.wait_until for site in store.sites()] == [waits]


def test_the_report_of_the_owner_counts_for_the_wait_of_a_site(store: RedisStore, known: Known) -> None:
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


def test_a_site_that_was_given_up_and_is_resumed_can_be_acquired_again(store: RedisStore, known: Known) -> None:
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


# --- sites that a person has paused ---------------------------------------------------------------------------------

PAUSE = SitePause("ada", NOW)


def test_no_worker_gets_a_paused_site_or_more_of_it(store: RedisStore, known: Known) -> None:
    known.discover(*(f"{host}.example/{number}" for host in "ab" for number in range(4)))
    one, two = joined(store), joined(store)
    assert take(one, new=1, limit=1) == {"a": ["a.example/0"]}
    for host in "ab":
        store.set_site_pause(f"{host}.example", PAUSE)
    assert (take(one, a=3), take(two)) == ({}, {})
    seen = two.heartbeat()
    assert (seen.sites, seen.free, dict(seen.pauses)) == (1, 0, {"a.example": PAUSE, "b.example": PAUSE})
    one.release_sites([SiteRelease("a.example:80")])
    assert take(two) == {}
    store.set_site_pause("b.example", None)
    assert take(two) == {"b": [f"b.example/{number}" for number in range(4)]}
    store.set_site_pause("a.example", None)
    assert take(one) == {"a": [f"a.example/{number}" for number in range(1, 4)]}


def test_a_run_ends_although_paused_sites_have_urls_and_retries(store: RedisStore, known: Known) -> None:
    known.discover("a.example/0", "a.example/1", "b.example/0")
    worker = joined(store)
    states = {one.site: one.states for one in worker.take(refill={}, new=5, limit=1, now=NOW, until=NOW + 300).sites}
    failed = structs.replace(states["a.example:80"][0], state=State.FAILED, retries=1, next_fetch=NOW + 5, lease_until=None)
    worker.record([Change(failed)], now=NOW, number=worker.next_number())
    worker.record([known.change("b.example/0", state=State.DONE, next_fetch=NOW + 10**6)], now=NOW, number=worker.next_number())
    assert not worker.heartbeat().is_nothing_left
    store.set_site_pause("*.example", PAUSE)
    worker.release_sites([SiteRelease("a.example:80"), SiteRelease("b.example:80")])
    assert take(worker) == {}
    assert worker.heartbeat().is_nothing_left
    worker.leave()
    again = joined(store)
    assert take(again) == {}, "a later run leaves it paused"
    assert again.heartbeat().is_nothing_left
    store.set_site_pause("*.example", None)
    assert not again.heartbeat().is_nothing_left
    assert take(again) == {"a": ["a.example/1"]}


def test_a_site_that_is_found_while_its_host_is_paused_is_not_taken(store: RedisStore, known: Known) -> None:
    worker = joined(store)
    store.set_site_pause("a.example", PAUSE)
    known.discover("a.example/0", "http://a.example:8080/")
    assert take(worker) == {}
    assert worker.heartbeat().is_nothing_left
    store.set_site_pause("a.example", None)
    assert sorted(take(worker)) == ["a", "a.example:8080"]


def test_a_pause_is_not_lost_when_two_commands_write_at_once(store: RedisStore) -> None:
    """The slower one has read what was there before; it is refused, and reads again."""
    store.set_site_pause("a.example", PAUSE)
    assert not store.replace_meta(PAUSES, None, "{}")
    store.set_site_pause("b.example", PAUSE)
    assert sorted(store.site_pauses()) == ["a.example", "b.example"]


def test_many_sites_are_resumed_in_parts(store: RedisStore, known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    known.discover(*(f"s{number}.example/" for number in range(700)))
    worker = joined(store)
    store.set_site_pause("*.example", PAUSE)
    assert take(worker, new=700, limit=1) == {}
    assert store.server.command("SCARD", Key.PAUSED) == 700
    monkeypatch.setattr("crawlspace.state.redis.sites.RESUMED_AT_ONCE", 50)
    before = store.server.runs
    store.set_site_pause("*.example", None)
    assert store.server.runs - before > 10, "no call does all"
    assert store.server.command("SCARD", Key.PAUSED) == 0
    assert len(take(worker, new=700, limit=1)) == 700


def test_the_stamp_of_a_store_changes_with_what_a_crawl_or_a_command_writes(store: RedisStore, known: Known) -> None:
    opened = OnServer(store, "contract", 30)
    stamps = [opened.stamp()]
    known.discover("a.example/0")
    stamps.append(opened.stamp())
    worker = joined(store)
    stamps.append(opened.stamp())
    take(worker)
    stamps.append(opened.stamp())
    assert len(set(stamps)) == 4
    assert opened.stamp() == stamps[-1]
