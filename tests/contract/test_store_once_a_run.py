"""What was fetched in a run is not due again in it; the next run has it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.model import Queue, Source, State
from crawlspace.state.store import Store
from crawlspace.state.unreachable import UnreachableSite
from tests.contract.conftest import NOW, Known
from tests.due_times import make_all_due_by

LATER = NOW + 1_000
REFRESH = Queue(Source.REFRESH)

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
    assert known.leased("a.example", now=LATER, queue=REFRESH) == []
    known.store.begin_run(began)
    assert known.store.due("a.example:80") == [(REFRESH, NOW + 8)]
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
    assert known.leased("a.example", 5, now=LATER, queue=REFRESH) == [urls[-1]]
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
    assert known.leased("a.example", now=LATER, queue=REFRESH) == []
    assert make_all_due_by(known.store, NOW + 100) == 1
    assert [known.get(url).next_fetch for url in ("a.example/", "a.example/soon")] == [NOW + 100, NOW + 90]
    assert known.store.due("a.example:80") == [(REFRESH, NOW + 100)], "URLs that are not late stay deferred"
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
