"""When known URLs are due: a scheduled refresh, smart refresh turned off and on, and once in a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.model import Queue, Requester, Source, State
from crawlspace.state.changes import Reclassified
from crawlspace.state.due_times import NOT_DUE_BY_AGE, is_due_by_age, real_time
from crawlspace.state.store import Store
from crawlspace.state.unreachable import UnreachableSite
from tests.contract.conftest import NOW, Known, new
from tests.due_times import make_all_due_by

SITE = "a.example:80"
INDEX, REFRESH = Queue(Source.INDEX), Queue(Source.REFRESH)
DONE: dict[str, object] = {"state": State.DONE, "fetched_at": NOW, "next_fetch": NOW + 900}


def filled(known: Known, *fields: dict[str, object]) -> list[int]:
    """Have a URL for each; return their ids."""
    urls = [f"a.example/{number}" for number in range(len(fields))]
    known.discover(*(new(url) for url in urls))
    known.record(*(known.change(url, **one) for url, one in zip(urls, fields, strict=True) if one))
    return [known.get(url).id for url in urls]


WHO: list[tuple[dict[str, object], Requester | None]] = [
    # a URL, and who asks for it after a scheduled refresh that began at NOW + 5; None: as before
    (DONE, Requester.SCHEDULE),
    ({**DONE, "next_fetch": NOW - 9}, Requester.SCHEDULE),
    ({**DONE, "next_fetch": NOW + NOT_DUE_BY_AGE}, Requester.SCHEDULE),
    ({**DONE, "state": State.REDIRECTED}, Requester.SCHEDULE),
    ({**DONE, "state": State.EXCLUDED, "status": 2004}, Requester.SCHEDULE),
    ({**DONE, "state": State.GONE, "status": 404}, Requester.SCHEDULE),
    ({**DONE, "state": State.FAILED, "status": 500}, Requester.SCHEDULE),
    ({**DONE, "fetched_at": None}, Requester.SCHEDULE),
    ({**DONE, "fetched_at": NOW + 4}, Requester.SCHEDULE),
    ({**DONE, "fetched_at": NOW + 5}, None),
    ({**DONE, "fetched_at": NOW + 5 + 60}, None),
    ({**DONE, "fetched_at": NOW + 5 + 61}, Requester.SCHEDULE),  # before the clock was set back
    ({**DONE, "requested_by": Requester.PERSON}, None),
    ({**DONE, "state": State.FAILED, "retries": 1}, None),
    ({**DONE, "state": State.EXCLUDED, "status": 760, "next_fetch": None}, None),
    ({}, None),
]  # fmt: skip


def test_who_is_put_into_source_index(known: Known, store: Store) -> None:
    ids = filled(known, *(fields for fields, _ in WHO))
    before = known.store.get_by_ids(ids)
    step = store.schedule(NOW + 5, fetched_by=NOW + 4)
    assert step == (sum(asked is not None for _, asked in WHO), 0, [(SITE, INDEX, NOW + 5)])
    for old, new_, (_, asked) in zip(before, store.get_by_ids(ids), WHO, strict=True):
        if asked is None:
            assert new_ == old
        else:
            assert (new_.requested_by, new_.next_fetch, new_.queue) == (asked, NOW + 5, INDEX)
    assert store.schedule(NOW + 5, fetched_by=NOW + 4) == (0, 0, [])


def test_they_are_leased_from_source_index_and_no_other(known: Known, store: Store) -> None:
    ids = filled(known, DONE, {**DONE, "shift": -2}, DONE)
    store.schedule(NOW + 5, fetched_by=NOW + 4)
    assert store.lease(SITE, 9, now=NOW + 4, until=NOW + 60) == []
    assert store.lease(SITE, 9, now=NOW + 900, until=NOW + 960, queue=REFRESH) == []
    assert [(queue.source, at) for queue, at in store.due(SITE)] == [(Source.INDEX, NOW + 5)] * 2
    leased = store.lease(SITE, 9, now=NOW + 5, until=NOW + 60)
    assert [state.id for state in leased] == [ids[1], ids[0], ids[2]]
    store.release(ids)
    assert len(store.lease(SITE, 9, now=NOW + 5, until=NOW + 60, queue=INDEX)) == 2


def test_it_ends_with_the_next_fetch(known: Known, store: Store) -> None:
    filled(known, DONE)
    store.schedule(NOW + 5, fetched_by=NOW + 4)
    known.record(known.change("a.example/0", requested_by=Requester.NOBODY, fetched_at=NOW + 6, next_fetch=NOW + 900))
    assert store.due(SITE) == [(REFRESH, NOW + 900)]


def test_a_url_that_is_leased_meanwhile_is_not_lost(known: Known, store: Store) -> None:
    (id,) = filled(known, {**DONE, "next_fetch": NOW})
    assert len(store.lease(SITE, 9, now=NOW, until=NOW + 60)) == 1
    assert store.schedule(NOW + 5, fetched_by=NOW + 4).number == 1
    assert store.lease(SITE, 9, now=NOW + 5, until=NOW + 60) == []
    store.release([id])
    assert [state.requested_by for state in store.lease(SITE, 9, now=NOW + 5, until=NOW + 60)] == [Requester.SCHEDULE]


def test_a_call_is_bounded_and_says_where_it_stopped(known: Known, store: Store) -> None:
    ids = filled(known, *[DONE] * 5)
    assert store.schedule(NOW, fetched_by=NOW, limit=2)[:2] == (2, ids[1])
    assert store.schedule(NOW, fetched_by=NOW, after=ids[1], limit=2)[:2] == (2, ids[3])
    assert store.schedule(NOW, fetched_by=NOW, after=ids[3], limit=2)[:2] == (1, 0)
    assert store.set_due_by_age(counts=False, latest=NOW, limit=2)[:2] == (0, 0)


AGE: list[tuple[dict[str, object], bool]] = [
    # a URL, and whether it is due by its age alone
    (DONE, True),
    ({**DONE, "next_fetch": NOW + 1}, True),
    ({**DONE, "state": State.REDIRECTED}, True),
    ({**DONE, "state": State.EXCLUDED, "status": 740}, True),
    ({**DONE, "state": State.GONE, "status": 404}, True),
    ({**DONE, "state": State.FAILED, "status": 500}, False),
    ({**DONE, "next_fetch": NOW}, False),  # due at once, for a change
    ({**DONE, "requested_by": Requester.PERSON}, False),
    ({**DONE, "requested_by": Requester.SCHEDULE}, False),
    ({**DONE, "retries": 1}, False),
    ({**DONE, "next_fetch": None}, False),
    ({**DONE, "fetched_at": None}, False),
    ({}, False),
]  # fmt: skip


def test_smart_refresh_is_turned_off_and_on(known: Known, store: Store) -> None:
    ids = filled(known, *(fields for fields, _ in AGE))
    before = store.get_by_ids(ids)
    assert [is_due_by_age(state) for state in before] == [by_age for _, by_age in AGE]
    off = store.set_due_by_age(counts=False, latest=NOW + 999)
    assert off == (sum(by_age for _, by_age in AGE), 0, [(SITE, REFRESH, NOW + 1 + NOT_DUE_BY_AGE)])
    for old, state, (_, by_age) in zip(before, store.get_by_ids(ids), AGE, strict=True):
        assert real_time(state.next_fetch) == (None if by_age else old.next_fetch)
        assert state.next_fetch == (old.next_fetch + NOT_DUE_BY_AGE if by_age and old.next_fetch else old.next_fetch)
    assert store.set_due_by_age(counts=False, latest=NOW + 999) == (0, 0, [])
    assert store.set_due_by_age(counts=True, latest=NOW + 999) == (off[0], 0, [(SITE, REFRESH, NOW + 1)])
    assert store.get_by_ids(ids) == before


def test_what_is_due_again_is_due_within_the_longest_interval(known: Known, store: Store) -> None:
    """The clock may have been set back while smart refresh was off."""
    filled(known, DONE, {**DONE, "next_fetch": NOW + 3})
    store.set_due_by_age(counts=False, latest=NOW)
    assert store.set_due_by_age(counts=True, latest=NOW + 5)[2] == [(SITE, REFRESH, NOW + 3)]
    assert [state.next_fetch for state in store.urls()] == [NOW + 5, NOW + 3]


def test_what_is_not_due_by_its_age_is_leased_never_and_counts_for_nothing(known: Known, store: Store) -> None:
    filled(known, DONE)
    store.set_due_by_age(counts=False, latest=NOW)
    assert store.lease(SITE, 9, now=NOW + 1_000_000_000, until=NOW + 2_000_000_000) == []
    assert store.make_due_by(NOW + 5, until=NOT_DUE_BY_AGE) == (0, 0, [])
    assert store.make_due_by(NOW + 5) == (1, 0, [(SITE, REFRESH, NOW + 5)])


def test_deferred_urls_are_changed_too(known: Known, store: Store) -> None:
    ids = filled(known, {**DONE, "next_fetch": NOW + 5})
    store.begin_run(NOW)
    assert store.lease(SITE, 9, now=NOW + 9, until=NOW + 60) == []
    assert store.set_due_by_age(counts=False, latest=NOW).number == 1
    store.begin_run(NOW + 10)
    assert [state.next_fetch for state in store.get_by_ids(ids)] == [NOW + 5 + NOT_DUE_BY_AGE]
    assert store.lease(SITE, 9, now=NOW + 20, until=NOW + 60) == []


@pytest.mark.parametrize("fields", [DONE, {**DONE, "fetched_at": None}], ids=["fetched", "never fetched"])
def test_what_a_change_of_the_rules_makes_due_is_not_due_by_its_age(
    known: Known, store: Store, fields: dict[str, object]
) -> None:
    ids = filled(known, *[fields] * 2, {**fields, "state": State.EXCLUDED, "next_fetch": None, "held": None})
    store.reclassify(Reclassified(due=ids[:1], unindexed=ids[1:2], returned=ids[2:]), now=NOW + 7)
    states = store.get_by_ids(ids)
    assert [state.next_fetch for state in states] == [NOW if fields["fetched_at"] else NOW + 7] * 3
    assert not any(map(is_due_by_age, states))


# --- once in a run --------------------------------------------------------------------------------------------------


LATER = NOW + 1_000
REFRESHED = Queue(Source.REFRESH)

DUE = [
    # what it is, its fields, whether the run that began at NOW fetches it (again)
    ("fetched before the run", {"fetched_at": NOW - 1, "next_fetch": NOW + 9}, True),
    ("fetched in the run", {"fetched_at": NOW + 5, "next_fetch": NOW + 9}, False),
    ("fetched in the second in which it began", {"fetched_at": NOW, "next_fetch": NOW + 1}, False),
    ("never fetched", {"fetched_at": None, "next_fetch": NOW + 9}, True),
    ("a retry", {"fetched_at": NOW + 5, "next_fetch": NOW + 9, "retries": 1, "state": State.FAILED}, True),
    ("asked for by a person", {"fetched_at": NOW + 5, "next_fetch": NOW + 9, "requested_by": True}, True),
    ("due no later than it was fetched", {"fetched_at": NOW + 5, "next_fetch": NOW + 5}, True),
    ("a redirect", {"fetched_at": NOW + 5, "next_fetch": NOW + 6, "state": State.REDIRECTED}, False),
]


@pytest.mark.parametrize(("name", "fields", "expected"), DUE, ids=[row[0] for row in DUE])
def test_what_is_due_again_in_a_run(known: Known, name: str, fields: dict[str, object], expected: bool) -> None:
    known.discover("a.example/")
    known.record(known.change("a.example/", **fields))
    assert len(known.store.due("a.example:80")) == 1
    known.store.begin_run(NOW)
    assert known.leased("a.example", now=LATER) == (["a.example/"] if expected else [])
    assert known.store.due("a.example:80") == [], "the frontier does not wait for it, either"
    assert known.get("a.example/").next_fetch == fields["next_fetch"]


@pytest.mark.parametrize("began", [None, NOW + 100], ids=["a run without an end", "the next run"])
def test_deferred_urls_are_due_as_before(known: Known, began: int | None) -> None:
    known.discover("a.example/1", "a.example/2")
    known.record(*(known.change(f"a.example/{n}", fetched_at=NOW + n, next_fetch=NOW + 10 - n) for n in (1, 2)))
    known.store.begin_run(NOW)
    assert known.leased("a.example", now=LATER, queue=REFRESHED) == []
    known.store.begin_run(began)
    assert known.store.due("a.example:80") == [(REFRESHED, NOW + 8)]
    assert known.leased("a.example", now=LATER) == ["a.example/2", "a.example/1"]


def test_a_killed_run_loses_no_deferred_urls(open_store: Callable[[], Store], request: pytest.FixtureRequest) -> None:
    known = Known(open_store())
    known.discover("a.example/")
    known.record(known.change("a.example/", fetched_at=NOW, next_fetch=NOW + 10))
    known.store.begin_run(NOW)
    assert known.leased("a.example", now=LATER) == []
    if "memory" not in request.node.name:
        known.store.close()
        known = Known(open_store())
    known.store.begin_run(NOW + 20)
    assert known.leased("a.example", now=LATER) == ["a.example/"]


def test_many_that_are_for_the_next_run_hide_none_of_this_one(known: Known) -> None:
    urls = [f"a.example/{n}" for n in range(40)]
    known.discover(*urls)
    known.record(*(known.change(url, fetched_at=NOW + n, next_fetch=NOW + 100 + n) for n, url in enumerate(urls[:-1])))
    known.record(known.change(urls[-1], fetched_at=NOW - 5, next_fetch=NOW + 500))
    known.store.begin_run(NOW)
    assert known.leased("a.example", 5, now=LATER, queue=REFRESHED) == [urls[-1]]
    assert known.store.counts().by_state == {"done": 39, "leased": 1}
    known.store.begin_run(NOW + 50)
    assert len(known.leased("a.example", now=LATER)) == 39
    assert known.store.counts().by_state == {"leased": 40}


def test_what_changes_is_looked_at_again(known: Known) -> None:
    """As where its depth became less after it was fetched."""
    known.discover("a.example/", "a.example/gone")
    known.record(*(known.change(url, fetched_at=NOW, next_fetch=NOW + 1) for url in ("a.example/", "a.example/gone")))
    known.store.begin_run(NOW)
    assert known.leased("a.example", now=LATER) == []
    known.record(known.change("a.example/", next_fetch=NOW), known.change("a.example/gone", forget=True))
    assert known.leased("a.example", now=LATER) == ["a.example/"]
    known.store.begin_run(LATER)
    assert known.store.counts().by_state == {"leased": 1}


def test_a_clock_that_was_set_back_in_a_run(known: Known) -> None:
    """The run begins no later than now, so that what is fetched from now on counts as fetched in it."""
    known.discover("a.example/")
    known.store.begin_run(NOW)
    known.store.begin_run(NOW - 500, resumes=True)
    known.record(known.change("a.example/", fetched_at=NOW - 400, next_fetch=NOW - 300))
    assert known.leased("a.example", now=LATER) == []
    known.store.begin_run(NOW - 600, resumes=True)
    assert known.store.due("a.example:80") == [], "it stays deferred"


def test_deferred_urls_are_due_no_later_than_a_clock_that_was_set_back_allows(known: Known) -> None:
    known.discover("a.example/", "a.example/soon")
    known.record(known.change("a.example/", fetched_at=NOW, next_fetch=NOW + 500))
    known.record(known.change("a.example/soon", fetched_at=NOW, next_fetch=NOW + 90))
    known.store.begin_run(NOW)
    assert known.leased("a.example", now=LATER, queue=REFRESHED) == []
    assert make_all_due_by(known.store, NOW + 100) == 1
    assert [known.get(url).next_fetch for url in ("a.example/", "a.example/soon")] == [NOW + 100, NOW + 90]
    assert known.store.due("a.example:80") == [(REFRESHED, NOW + 100)], "URLs that are not late stay deferred"
    assert known.leased("a.example", now=LATER) == [], "it was fetched in this run"
    known.store.begin_run(NOW + 50)
    assert known.leased("a.example", now=NOW + 101) == ["a.example/soon", "a.example/"]


def test_an_unreachable_site_is_tried_at_once_in_the_next_run(known: Known) -> None:
    known.discover("dead.example/", "busy.example/")
    known.store.wait_site("dead.example:80", NOW + 3_600, wait_s=3_600)
    known.store.wait_site("busy.example:80", NOW + 3_600, wait_s=3_600)
    known.store.set_unreachable("dead.example:80", UnreachableSite("dead.example:80", 613, since=NOW, runs=1, counted_at=NOW))
    known.store.begin_run(NOW, resumes=True)
    assert _waiting(known.store) == {"dead.example:80", "busy.example:80"}
    known.store.begin_run(NOW + 1)
    assert _waiting(known.store) == {"busy.example:80"}, "it has asked for its time"


def _waiting(store: Store) -> set[str]:
    return {site.site for site in store.sites() if site.wait_until is not None}
