"""What every store does as the frontier's queue: discovery, leases, sites, depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import apsw
import pytest
from msgspec import structs

from crawlspace.model import Queue, Source, State
from crawlspace.state.depths import LOWERED, NewDepth
from crawlspace.state.duplicates import HTTP
from crawlspace.state.sqlite import links, transaction
from crawlspace.state.store import Store
from crawlspace.state.views import Site
from tests.contract.conftest import NOW, SEGMENT, Known, full, key, new, short, stores
from tests.stores import KINDS

SEGMENTED = "sqlite in segments"
USER, REDIR, INDEX, FOLLOWED, REFRESH = Source.USER, Source.REDIR, Source.INDEX, Source.INDEX_FOLLOW, Source.REFRESH


@pytest.fixture(params=[*KINDS, SEGMENTED])
def open_store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Store]]:
    """As for the other contract tests, and SQLite with each discovery in a segment of its own: it keeps what is pending in such ones."""
    if request.param == SEGMENTED:
        monkeypatch.setattr(links, "take_numbers", in_a_segment_of_its_own)
    with stores(request.param.split()[0], tmp_path) as open_one:
        yield open_one


def in_a_segment_of_its_own(db: apsw.Connection, name: str, count: int) -> int:
    return transaction.take_numbers(db, name, count + SEGMENT)


@pytest.fixture
def apart(request: pytest.FixtureRequest) -> int:
    """So many ids lie between one discovery and the next."""
    return SEGMENT if SEGMENTED in request.node.name else 0


def test_a_url_is_inserted_once(known: Known, store: Store, apart: int) -> None:
    first = known.discover("a.example/", "b.example/", "a.example/")
    assert (first.discovered, first.pending_sites) == (2, {"a.example:80": 1, "b.example:80": 1})
    again = known.discover("b.example/", "a.example/x")
    assert (again.discovered, again.pending_sites) == (1, {"a.example:80": 1})
    found = [(1, "a.example/"), (2, "b.example/"), (3 + apart, "a.example/x")]
    assert [(state.id, short(state.url)) for state in store.urls()] == found


def test_a_pending_url_that_waits_elsewhere_from_now_on_is_reported(known: Known) -> None:
    known.discover("a.example/")
    assert known.store.discover([new("a.example/", source=Source.USER)], now=NOW).pending_sites == {"a.example:80": 0}
    assert known.store.discover([new("a.example/", source=Source.USER)], now=NOW).pending_sites == {}


def test_a_new_url_is_pending_with_the_values_of_its_candidate(known: Known) -> None:
    known.discover(new("a.example/x/y", source=INDEX, shift=-1, depth=3, redirects=2))
    state = known.get("a.example/x/y")
    assert (state.key, state.site, state.state, state.source) == (key("a.example/x/y"), "a.example:80", State.PENDING, INDEX)
    assert (state.shift, state.depth, state.redirects, state.rank, state.discovered_at) == (-1, 3, 2, HTTP + 2_000_004, NOW)
    assert (state.status, state.fetched_at, state.next_fetch, state.lease_until, state.checksum) == (None,) * 5


# what is known: state, source, depth · found again: source, depth · then: source, depth
FOUND_AGAIN = [
    ("pending", FOLLOWED, 3, REDIR, 3, REDIR, 3),
    ("pending", REDIR, 3, FOLLOWED, 3, REDIR, 3),
    ("pending", FOLLOWED, 3, FOLLOWED, 1, FOLLOWED, 1),
    ("pending", FOLLOWED, 3, USER, 5, USER, 3),
    ("done", FOLLOWED, 3, USER, 1, FOLLOWED, 1),
    ("done", FOLLOWED, 3, USER, 4, FOLLOWED, 3),
]


@pytest.mark.parametrize(("state", "source", "depth", "by", "at", "then_source", "then_depth"), FOUND_AGAIN)
def test_found_again(
    known: Known, state: str, source: Source, depth: int, by: Source, at: int, then_source: Source, then_depth: int
) -> None:
    known.discover(new("a.example/", source=source, depth=depth))
    if state == "done":
        known.record(known.change("a.example/"))
    effects = known.discover(new("a.example/", source=by, depth=at))
    now = known.get("a.example/")
    assert (now.source, now.depth) == (then_source, then_depth)
    is_lowered = state == "done" and at < depth
    assert effects.lowered == ([(now.id, depth, at)] if is_lowered else [])
    assert known.store.get_meta(LOWERED) == ("1" if is_lowered else None)


def test_found_twice_in_one_batch(known: Known) -> None:
    known.discover(new("a.example/", source=FOLLOWED, depth=4, shift=1), new("a.example/", source=REDIR, depth=2))
    state = known.get("a.example/")
    assert (state.source, state.depth, state.shift) == (REDIR, 2, 0)


def test_a_pending_url_waits_in_the_queue_of_a_better_discovery(known: Known, store: Store) -> None:
    better = new("a.example/", source=INDEX, shift=-2)
    known.discover(new("a.example/", source=FOLLOWED, shift=1))
    known.discover(better)
    known.discover(new("a.example/", source=FOLLOWED, shift=-1))
    assert [site.pending for site in store.sites()] == [(better.queue,)]
    leased = store.lease("a.example:80", 5, now=NOW, until=NOW + 60, queue=better.queue)
    assert [one.url for one in leased] == [better.url]


def test_two_urls_may_share_a_key(known: Known, store: Store) -> None:
    one, other = new("a.example/1"), new("a.example/2")
    store.discover([one, structs.replace(other, key=one.key)], now=NOW)
    assert [short(state.url) for state in store.urls()] == ["a.example/1", "a.example/2"]
    state = store.get(one.url)
    assert state is not None
    assert state.url == one.url


def test_pending_ones_are_leased_by_source_then_shift_then_age(known: Known) -> None:
    known.discover(
        new("a.example/5", source=FOLLOWED),
        new("a.example/3", source=INDEX, shift=2),
        new("a.example/1", source=USER),
        new("a.example/2", source=INDEX, shift=-2),
        new("a.example/6", source=FOLLOWED),
        new("b.example/", source=USER),
        new("a.example/4", source=INDEX, shift=2),
    )
    assert known.leased("a.example", 3) == ["a.example/1", "a.example/2", "a.example/3"]
    assert known.leased("a.example") == ["a.example/4", "a.example/5", "a.example/6"]
    assert known.leased("a.example") == []
    assert known.leased("nobody.example") == []


# URL, source, retries, due in seconds
DUE = [
    ("a.example/late", FOLLOWED, 0, -5),
    ("a.example/early", USER, 0, -50),
    ("a.example/retry", FOLLOWED, 1, -1),
    ("a.example/user", USER, 2, 0),
    ("a.example/future", USER, 0, 1),
    ("a.example/never", USER, 0, None),
]


def test_due_ones_wait_in_refresh_and_retries_in_their_own_source(known: Known, store: Store) -> None:
    known.discover(*(new(url, source=source) for url, source, _, _ in DUE))
    known.record(
        *(known.change(url, retries=retries, next_fetch=None if due is None else NOW + due) for url, _, retries, due in DUE)
    )
    known.discover(new("a.example/new", source=Source.FOLLOW))
    assert store.due("a.example:80") == [(Queue(USER), NOW), (Queue(FOLLOWED), NOW - 1), (Queue(REFRESH), NOW - 50)]
    assert known.leased("a.example", queue=Queue(REFRESH), limit=1) == ["a.example/early"]
    assert known.leased("a.example", queue=Queue(INDEX)) == []
    assert known.leased("a.example") == ["a.example/user", "a.example/retry", "a.example/new", "a.example/late"]
    assert store.due("a.example:80") == [(Queue(REFRESH), NOW + 1)]
    assert store.due("nobody.example:80") == []


def test_a_url_requested_by_a_person_waits_in_source_user(known: Known, store: Store) -> None:
    known.discover("a.example/1", "a.example/2", new("a.example/3", shift=-1))
    known.record(
        known.change("a.example/1", next_fetch=NOW - 9),
        known.change("a.example/2", next_fetch=NOW, requested_by=True),
        known.change("a.example/3", next_fetch=NOW - 1),
    )
    assert store.due("a.example:80") == [(Queue(USER), NOW), (Queue(REFRESH, -1), NOW - 1), (Queue(REFRESH), NOW - 9)]
    assert known.leased("a.example") == ["a.example/2", "a.example/3", "a.example/1"]


def test_a_lease_is_given_back_or_runs_out(known: Known, store: Store) -> None:
    known.discover("a.example/1", "a.example/2", "b.example/")
    before = list(store.urls())
    got = store.lease("a.example:80", 2, now=NOW, until=NOW + 10) + store.lease("b.example:80", 2, now=NOW, until=NOW + 99)
    assert [state.lease_until for state in got] == [NOW + 10, NOW + 10, NOW + 99]
    assert [short(state.url) for state in store.urls(leased=True)] == ["a.example/1", "a.example/2", "b.example/"]
    assert store.reclaim(now=NOW + 9) == {}
    assert store.reclaim(now=NOW + 10) == {"a.example:80": 2}
    store.release([got[2].id, 4711])
    assert list(store.urls()) == before
    assert store.reclaim(now=NOW + 1000) == {}


def test_an_outcome_ends_the_lease(known: Known) -> None:
    known.discover("a.example/")
    known.leased("a.example")
    known.record(known.change("a.example/", next_fetch=NOW))
    assert known.get("a.example/").lease_until is None
    assert known.leased("a.example") == ["a.example/"]


def test_sites_that_have_something_to_do(known: Known, store: Store) -> None:
    known.discover("idle.example/", "due.example/", "leased.example/", "full.example/", new("full.example/u", source=USER))
    known.record(known.change("idle.example/"), known.change("due.example/", next_fetch=NOW + 60))
    known.leased("leased.example")
    store.wait_site("silent.example:80", NOW + 5)
    store.wait_site("full.example:80", NOW + 7)
    assert sorted(store.sites(), key=lambda site: site.site) == [
        Site("due.example:80", due=((Queue(REFRESH), NOW + 60),)),
        Site("full.example:80", pending=(Queue(USER), Queue(FOLLOWED)), wait_until=NOW + 7),
        Site("silent.example:80", wait_until=NOW + 5),
    ]
    store.wait_site("silent.example:80", None)
    assert "silent.example:80" not in {site.site for site in store.sites()}


def test_a_url_made_pending_again_is_reported_to_the_frontier(known: Known) -> None:
    known.discover("a.example/1", "a.example/2")
    known.record(known.change("a.example/1", state=State.EXCLUDED))
    effects = known.record(known.change("a.example/1", state=State.PENDING), known.change("a.example/2", state=State.PENDING))
    assert (effects.pending_sites, effects.discovered) == ({"a.example:80": 1}, 0)
    assert known.leased("a.example") == ["a.example/1", "a.example/2"]


def chain(known: Known, *urls: str, start_depth: int = 0) -> None:
    """Each page leads to the next one."""
    known.discover(*(new(url, depth=start_depth + step) for step, url in enumerate(urls)))
    known.record(*(known.change(url, links=[key(next_one)]) for url, next_one in pairwise(urls)))


def test_a_shorter_way_lowers_what_it_leads_to(known: Known) -> None:
    chain(known, "a.example/5", "a.example/6", "a.example/7", "a.example/8", start_depth=5)
    known.discover(new("a.example/near", depth=2))
    known.record(known.change("a.example/7", links=[key("a.example/near"), key("a.example/8")], depth=7))
    effects = known.discover(new("a.example/5", depth=1))
    ids = {step: known.get(f"a.example/{step}").id for step in (5, 6, 7, 8)}
    assert [known.get(f"a.example/{step}").depth for step in (5, 6, 7, 8, "near")] == [1, 2, 3, 4, 2]
    assert effects.lowered == [(ids[5], 5, 1), (ids[6], 6, 2), (ids[7], 7, 3)]  # the last one is still pending


def test_lowering_goes_round_a_circle_once_and_through_a_redirect_for_nothing(known: Known) -> None:
    chain(known, "a.example/5", "a.example/6", "a.example/7", "a.example/5", start_depth=5)
    known.record(known.change("a.example/6", state=State.REDIRECTED))
    known.discover(new("a.example/5", depth=0))
    assert [known.get(f"a.example/{step}").depth for step in (5, 6, 7)] == [0, 1, 1]


def test_redirects_that_lead_to_each_other_do_not_give_each_other_their_depth(known: Known) -> None:
    names = ("door", "page", "top")
    known.discover(*(new(f"a.example/{name}", depth=9) for name in names))
    known.record(
        known.change("a.example/top", links=[key("a.example/page")]),
        known.change("a.example/page", state=State.REDIRECTED, links=[key("a.example/door")]),
        known.change("a.example/door", state=State.REDIRECTED, links=[key("a.example/page")]),
    )
    known.discover(new("a.example/top", depth=0))
    door, page, top = (known.get(f"a.example/{name}") for name in names)
    assert (door.depth, page.depth) == (1, 1)
    assert (door.depth_from, page.depth_from) == (page.id, top.id)


def test_the_shortest_of_several_ways_counts(known: Known) -> None:
    known.discover(*(new(f"a.example/{name}", depth=9) for name in ("top", "long", "short", "end", "after")))
    known.record(
        known.change("a.example/top", links=[key("a.example/long"), key("a.example/end")]),
        known.change("a.example/long", links=[key("a.example/short")]),
        known.change("a.example/short", links=[key("a.example/end")]),
        known.change("a.example/end", links=[key("a.example/after")]),
    )
    known.discover(new("a.example/top", depth=0))
    assert [known.get(f"a.example/{name}").depth for name in ("top", "long", "short", "end", "after")] == [0, 1, 2, 1, 2]


def test_a_url_lowered_while_it_was_fetched(known: Known) -> None:
    """Its links were judged, and what it discovered was counted, by the old depth."""
    known.discover(new("a.example/", depth=5))
    outcome = known.change("a.example/", links=[key("a.example/x")], discovered=[new("a.example/x", depth=6)])
    known.leased("a.example")
    assert known.discover(new("a.example/", depth=1)).lowered == []
    assert known.store.get_meta(LOWERED) is None
    effects = known.record(outcome)
    assert [known.get(url).depth for url in ("a.example/", "a.example/x")] == [1, 2]
    assert effects.lowered == [(known.get("a.example/").id, 5, 1)]
    assert known.store.get_meta(LOWERED) == "1"


def test_a_change_with_a_smaller_depth(known: Known) -> None:
    known.discover(new("a.example/", depth=5), new("a.example/x", depth=6))
    known.record(known.change("a.example/", links=[key("a.example/x")]))
    effects = known.record(known.change("a.example/", depth=3))
    assert [known.get(url).depth for url in ("a.example/", "a.example/x")] == [3, 4]
    assert effects.lowered == [(known.get("a.example/").id, 5, 3)]


def test_a_page_whose_links_count_again_lowers_what_it_leads_to(known: Known) -> None:
    """Its deletion was held, and meanwhile another page gave the depth; a page that fails after that is not gone."""
    known.discover(new("a.example/near", depth=1), new("a.example/x", depth=2))
    known.record(known.change("a.example/near", links=[key("a.example/x")]), known.change("a.example/x"))
    known.record(known.change("a.example/near", state=State.GONE, status=410))
    x = known.get("a.example/x")
    known.store.set_depths([NewDepth(x.id, 2, 5, 77, None)])
    effects = known.record(known.change("a.example/near", state=State.FAILED, status=410))
    after = known.get("a.example/x")
    assert (after.depth, after.depth_from) == (2, known.get("a.example/near").id)
    assert effects.lowered == [(x.id, 5, 2)]


def test_links_stay_unless_new_ones_come(known: Known) -> None:
    chain(known, "a.example/5", "a.example/6", start_depth=5)
    known.record(known.change("a.example/5", links=None))
    known.discover(new("a.example/5", depth=3))
    assert known.get("a.example/6").depth == 4
    known.record(known.change("a.example/5", links=[]))
    known.discover(new("a.example/5", depth=1))
    assert known.get("a.example/6").depth == 4


def test_waiting_for_a_site_that_was_never_seen(store: Store) -> None:
    store.wait_site("a.example:80", NOW)
    assert list(store.sites()) == [Site("a.example:80", wait_until=NOW)]
    assert (store.host_count("a.example"), store.counts().hosts) == (0, 0)
    assert store.get(full("a.example/")) is None
