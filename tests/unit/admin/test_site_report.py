"""What is said of sites that cannot be reached."""

from __future__ import annotations

import re

import pytest

from crawlspace.admin.report import known_urls
from crawlspace.admin.site_report import SiteReport, held_by_reason, held_sites, unreachable_sites
from crawlspace.admin.url_changes import UrlChanges
from crawlspace.clock import FakeClock
from crawlspace.model import Held, State
from crawlspace.state.unreachable import UnreachableSite
from tests.contract.conftest import NOW, SINKS, Known, full
from tests.contract.memory.store import MemoryStore

A, B, C = "a.example:80", "b.example:80", "c.example:80"


@pytest.fixture
def known() -> Known:
    """Site A is down for good, B since the last run, C answers; each has two documents, and one of A and C is held by itself."""
    known = Known(MemoryStore(sinks=SINKS))
    known.crawled(*((f"{host}.example/{n}", f"{host}{n}") for host in "abc" for n in range(2)))
    known.discover("a.example/new", "c.example/new")
    known.record(*(known.change(f"{host}.example/0", checksum=f"{host}0".encode(), held=Held.MANY) for host in "ac"))
    known.store.set_unreachable(A, UnreachableSite(A, 612, NOW, 5, NOW))
    known.store.set_unreachable(B, UnreachableSite(B, 613, NOW, 1, NOW))
    return known


def sites_of(known: Known) -> list[SiteReport]:
    return unreachable_sites(known.store, max_temporary_errors=5)


def test_which_are_held(known: Known) -> None:
    sites = sites_of(known)
    assert [(one.row.site, one.documents, one.held) for one in sites] == [(A, 2, True), (B, 2, False)]
    assert list(held_sites(sites)) == [A]
    assert held_by_reason(known.store, sites) == {Held.HOST: 2, Held.MANY: 1}
    assert held_by_reason(known.store) == {Held.MANY: 2}


SENTENCES = [
    (612, 5, 1169, True, "connection refused or lost (612) since …, in 5 runs: 1,169 documents are held"),
    (613, 1, 1, False, "no answer in time (613) since …, in 1 run: 1 document depends on it"),
    (680, 1, 1, True, "the host name does not exist (680) since …, in 1 run: 1 document is held"),
    (503, 2, 2, False, "HTTP status 503 (503) since …, in 2 runs: 2 documents depend on it"),
    (612, 1, 0, False, "connection refused or lost (612) since …, in 1 run: no document depends on it"),
    (614, 1, 0, False, "the certificate is self-signed (614) since …, in 1 run: no document depends on it"),
]


@pytest.mark.parametrize(("status", "runs", "documents", "held", "sentence"), SENTENCES)
def test_sentences(status: int, runs: int, documents: int, sentence: str, *, held: bool) -> None:
    detail = "the certificate is self-signed" if status == 614 else ""
    report = SiteReport(UnreachableSite(A, status, NOW, runs, NOW, detail), documents, held)
    assert re.sub(r"since [-0-9]+ [0-9:]+", "since …", report.sentence) == sentence


URLS = [
    ({"held": True}, ["a.example/0", "a.example/1", "c.example/0"]),
    ({"statuses": range(612, 613)}, ["a.example/new"]),
    ({"label": "pending"}, ["a.example/new", "c.example/new"]),
    ({"held": True, "host": "a.example"}, ["a.example/0", "a.example/1"]),
]


@pytest.mark.parametrize(("asked", "found"), URLS)
def test_urls_show_what_holds_for_their_site(known: Known, asked: dict[str, object], found: list[str]) -> None:
    listed = known_urls(known.store, **asked, sites=sites_of(known))  # type: ignore[arg-type]
    assert [one.state.url for one in listed] == list(map(full, found))


def test_documents_of_a_site_leave_when_that_is_approved(known: Known) -> None:
    known.record(known.page("a.example/new", "a1"))  # a duplicate would take the place of one that leaves
    made = UrlChanges(known.store, clock=FakeClock(NOW)).approve_site(A)
    assert (made.changed, known.store.documents([A, B, C])) == (3, {A: 0, B: 2, C: 2})
    assert sorted(known.orders()) == [("delete", f"a.example/{name}") for name in ("0", "1", "new")]
    assert known.get("c.example/0").state is State.DONE


def test_discarded_the_runs_count_from_none(known: Known) -> None:
    made = UrlChanges(known.store, clock=FakeClock(NOW)).discard_site(A)
    assert (made.changed, [row.site for row in known.store.unreachable()]) == (2, [B])
    assert known.store.documents([A]) == {A: 2}
