"""Reports on a collection, and on one of its sites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

import pytest

from crawlspace.admin.report import STATE_LABELS, UrlReport, known_urls, report, status_sentence
from crawlspace.admin.site_report import SiteReport, held_by_reason, held_sites, unreachable_sites
from crawlspace.admin.url_changes import UrlChanges
from crawlspace.clock import FakeClock, iso
from crawlspace.document import Document
from crawlspace.model import Held, NewUrl, Source, State, UrlState
from crawlspace.state.changes import Change
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import Crawler
from crawlspace.status import Status
from crawlspace.urls import parse
from tests.contract.conftest import NOW, SINKS, Known, full
from tests.contract.memory.store import MemoryStore

# URL, state, status; "leased" is pending and out for fetching
URLS = [
    ("http://a.example/", "done", 200),
    ("http://a.example/gone", "gone", 404),
    ("http://a.example:8080/", "gone", 410),
    ("http://b.example/", "leased", None),
    ("http://c.example/", "pending", None),
]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for url, label, status in URLS:
        parsed = parse(url)
        store.discover([NewUrl(parsed.key, url, parsed.site, Source.INDEX_FOLLOW, 0, 1, 0, 1)], now=NOW)
        if label == "leased":
            store.lease(parsed.site, 1, now=NOW, until=NOW + 600)
        elif label != "pending":
            state = store.get(url)
            assert state is not None
            state.state, state.status = State[label.upper()], status
            state.refused = "d3s1" if status == 200 else None
            store.record([Change(state)], now=NOW)
    return store


def test_the_numbers(store: MemoryStore) -> None:
    assert report("demo", store, crawlers=[Crawler(4711, NOW)]).as_json() == {
        "collection": "demo",
        "crawling": 4711,
        "since": "2025-06-15T15:06:40Z",
        "urls": {"pending": 1, "leased": 1, "done": 1, "redirected": 0, "gone": 2, "failed": 0, "excluded": 0},
        "orphaned": 0,
        "status": {"200": 1, "404": 1, "410": 1},
        "errors": [],
        "sitemaps": {},
        "traps": [],
        "hash_routes": {},
        "refused": {"domain": 3, "scheme": 1},
        "index": {"documents": 0, "duplicates": 0, "left_to_others": 0, "lost": 0, "outbox": 0, "held": 0, "parked": 0},
        "held": {"host": 0, "many": 0, "rules": 0, "folded": 0},
        "unreachable": [],
        "paused": {},
        "hosts": 3,
    }


def test_deletions_that_are_held(store: MemoryStore) -> None:
    for number, (url, reason) in enumerate([(URLS[0][0], Held.HOST), (URLS[1][0], Held.RULES), (URLS[2][0], Held.RULES)]):
        state = store.get(url)
        assert state is not None
        state.checksum, state.held = bytes([number]) * 16, reason
        store.record([Change(state, document=Document(url))], now=NOW)
    numbers = report("demo", store).as_json()
    assert numbers["index"] == {
        "documents": 3,
        "duplicates": 0,
        "left_to_others": 0,
        "lost": 0,
        "outbox": 3,
        "held": 3,
        "parked": 0,
    }
    assert numbers["held"] == {"host": 1, "many": 0, "rules": 2, "folded": 0}
    assert [one.as_json()["held"] for one in known_urls(store, held=True)] == ["host", "rules", "rules"]
    assert [one.state.url for one in known_urls(store, held=True, host="a.example:8080")] == [URLS[2][0]]
    assert {one.as_json()["held"] for one in known_urls(store, label="pending")} == {None}


def test_zeros_before_the_first_crawl() -> None:
    numbers = report("demo", None).as_json()
    assert numbers["urls"] == dict.fromkeys(STATE_LABELS, 0)
    assert (numbers["crawling"], numbers["since"], numbers["hosts"], numbers["refused"]) == (None, None, 0, {})


# state label, status codes, host -> the URLs, by their place in the table above
SELECTIONS: list[tuple[str | None, range | None, str | None, list[int]]] = [
    (None, None, None, [0, 1, 2, 3, 4]),
    ("gone", None, None, [1, 2]),
    ("pending", None, None, [4]),
    ("leased", None, None, [3]),
    (None, range(404, 405), None, [1]),
    (None, range(400, 500), None, [1, 2]),
    (None, None, "a.example", [0, 1, 2]),
    (None, None, "a.example:80", [0, 1]),
    (None, None, "a.example:8080", [2]),
    ("gone", range(410, 411), "a.example", [2]),
    ("done", range(404, 405), None, []),
]


@pytest.mark.parametrize(("label", "statuses", "host", "places"), SELECTIONS)
def test_the_selected_urls(
    store: MemoryStore, label: str | None, statuses: range | None, host: str | None, places: list[int]
) -> None:
    found = [one.state.url for one in known_urls(store, label=label, statuses=statuses, host=host)]
    assert found == [URLS[place][0] for place in places]


def test_urls_in_alphabetical_order(store: MemoryStore) -> None:
    in_order = [URLS[place][0] for place in (0, 1, 2, 3, 4)]
    for url in ("http://a.example/Z", "http://a.example/a", "http://a.example/a!", "https://a.example/"):
        parsed = parse(url)
        store.discover([NewUrl(parsed.key, url, parsed.site, Source.INDEX_FOLLOW, 0, 1, 0, 1)], now=NOW)
    in_order[1:2] = ["http://a.example/Z", "http://a.example/a", "http://a.example/a!", URLS[1][0]]
    assert (
        [one.state.url for one in known_urls(store, by_url=True)]
        == [*in_order, "https://a.example/"]
        == sorted(one.state.url for one in known_urls(store))
    )
    assert [one.state.url for one in known_urls(store, label="gone", by_url=True)] == [URLS[1][0], URLS[2][0]]


def test_a_url_that_is_changed_meanwhile_is_listed_as_it_is_then(store: MemoryStore) -> None:
    class Changing(MemoryStore):
        """Changes two URLs once all are read."""

        def urls(self, **selection: Any) -> Iterator[UrlState]:
            yield from store.urls(**selection)
            gone, done = store.get(URLS[1][0]), store.get(URLS[0][0])
            assert gone is not None
            assert done is not None
            gone.state, gone.status = State.DONE, 200
            store.record([Change(gone), Change(done, forget=True)], now=NOW)

        def get_by_ids(self, ids: Sequence[int]) -> list[UrlState]:
            return store.get_by_ids(ids)

    assert [one.state.url for one in known_urls(Changing(), label="gone", by_url=True)] == [URLS[2][0]]


# state, indexed, fetched, imported -> indexed_at
INDEXED_AT = [
    (State.DONE, True, NOW, 0, NOW),
    (State.DONE, True, NOW, NOW + 5, NOW + 5),
    (State.DONE, False, NOW, 0, None),
    (State.FAILED, True, NOW, 0, None),
    (State.GONE, False, NOW, 0, None),
    (State.PENDING, False, None, 0, None),
    (State.PENDING, False, None, NOW - 9, NOW - 9),
]


@pytest.mark.parametrize(("state", "indexed", "fetched", "imported", "expected"), INDEXED_AT)
def test_when_a_page_was_indexed(state: State, indexed: bool, fetched: int | None, imported: int, expected: int | None) -> None:
    stored = UrlState(1, 1, URLS[0][0], "a.example:80", state=state, indexed=indexed, fetched_at=fetched)
    numbers = UrlReport(stored, None, imported_at=imported).as_json()
    assert numbers["last_fetch"] == (None if fetched is None else iso(fetched))
    assert numbers["indexed_at"] == (None if expected is None else iso(expected))


def test_every_state_has_a_label() -> None:
    assert sorted(STATE_LABELS) == sorted(["leased", *(state.label for state in State)])


@pytest.mark.parametrize("code", [*Status, *HTTPStatus])
def test_every_status_has_a_sentence(code: int) -> None:
    assert status_sentence(int(code))


def test_an_unknown_status_has_none() -> None:
    assert status_sentence(299) == ""


# --- one site -------------------------------------------------------------------------------------------------------


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


SITE_URLS = [
    ({"held": True}, ["a.example/0", "a.example/1", "c.example/0"]),
    ({"statuses": range(612, 613)}, ["a.example/new"]),
    ({"label": "pending"}, ["a.example/new", "c.example/new"]),
    ({"held": True, "host": "a.example"}, ["a.example/0", "a.example/1"]),
]


@pytest.mark.parametrize(("asked", "found"), SITE_URLS)
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
