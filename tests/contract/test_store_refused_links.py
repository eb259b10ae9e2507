"""Refused links in every store: how many there were, and a sample of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from crawlspace.decision import Reason
from crawlspace.model import State
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.refused_links import (
    HOSTS_OF_REASON,
    LETTERS,
    LINKS_OF_HOST,
    RefusedLink,
    by_letter,
    by_reason,
    has_any,
    letters_of,
    packed,
)
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, Known

ONE, TWO = "a.example/", "b.example/"


@pytest.fixture
def two_pages(known: Known) -> Known:
    known.discover(ONE, TWO)
    known.record(known.page(ONE, "one", refused="d3e1"), known.page(TWO, "two", refused="d2"))
    return known


def test_the_sum_over_all_pages(two_pages: Known, store: Store) -> None:
    assert store.counts().refused == {Reason.DOMAIN: 5, Reason.EXTENSION: 1}
    assert two_pages.get(ONE).refused == "d3e1"


def test_each_page_as_last_fetched(two_pages: Known, store: Store) -> None:
    two_pages.record(two_pages.page(ONE, "one", refused="d1"))
    two_pages.record(two_pages.page(ONE, "one", refused="d1"))
    assert store.counts().refused == {Reason.DOMAIN: 3}


def test_a_page_that_is_forgotten(two_pages: Known, store: Store) -> None:
    two_pages.record(Change(two_pages.get(ONE), forget=True))
    assert store.counts().refused == {Reason.DOMAIN: 2}


@pytest.mark.parametrize("kind", ["excluded", "given_up", "unindexed"])
def test_a_page_that_the_rules_exclude(two_pages: Known, store: Store, kind: Any) -> None:
    lists: dict[str, Any] = {kind: [two_pages.get(ONE).id]}
    store.reclassify(Reclassified(**lists), now=NOW)
    assert (store.counts().refused, two_pages.get(ONE).refused) == ({Reason.DOMAIN: 2}, None)


def test_a_page_whose_deletion_is_held(two_pages: Known, store: Store) -> None:
    store.reclassify(Reclassified(held=[two_pages.get(ONE).id]), now=NOW)
    assert store.counts().refused == {Reason.DOMAIN: 5, Reason.EXTENSION: 1}


def test_pages_that_are_due_at_once(two_pages: Known, store: Store) -> None:
    two_pages.record(
        two_pages.change(ONE, state=State.DONE, etag="x", rules=3, next_fetch=NOW + 99),
        two_pages.change(TWO, state=State.EXCLUDED, next_fetch=None),
    )
    two_pages.discover("c.example/")
    before = [two_pages.get(url) for url in (ONE, TWO, "c.example/")]
    store.reclassify(Reclassified(due=[state.id for state in before]), now=NOW + 5)
    assert [two_pages.get(url) for url in (ONE, TWO, "c.example/")] == [
        structs.replace(before[0], next_fetch=NOW + 5, rules=0),
        *before[1:],
    ]


def test_letters() -> None:
    assert len(set(LETTERS.values())) == len(LETTERS)
    numbers = {Reason.DOMAIN: 3, Reason.EXTENSION: 12}
    assert packed(numbers) == "d3e12"
    assert by_reason(by_letter("d3e12")) == numbers
    assert (packed({}), packed({Reason.DOMAIN: 0}), list(by_letter(None))) == (None, None, [])
    assert by_reason([("d", 1), ("?", 2)]) == {Reason.DOMAIN: 1}
    assert has_any("d3e12", letters_of([Reason.EXTENSION, Reason.MIME_TYPE]))
    assert not has_any("d3e12", letters_of([Reason.PREFIX]))
    assert not has_any(None, letters_of(LETTERS))


# --- the sample -----------------------------------------------------------------------------------------------------


A, B, C = "a.example/", "b.example/", "c.example/"
DOMAIN, PREFIX = Reason.DOMAIN, Reason.PREFIX


@pytest.fixture
def pages(known: Known) -> Known:
    known.discover(A, B, C)
    return known


def refused(known: Known, page: str, *links: tuple[Reason, str, str]) -> Change:
    """The change of a page of which links are refused: (reason, host, path)."""
    id = known.get(page).id
    made = [RefusedLink(reason, host, f"http://{host}/{path}", id, "crawl.rules:3") for reason, host, path in links]
    return known.page(page, page, refused="d9p9", links=[], refused_links=made)


def entries(known: Known, **chosen: Any) -> list[tuple[Reason, str, str]]:
    """(reason, URL without its scheme, host of the page)."""
    hosts = {known.get(page).id: page.partition(".")[0] for page in (A, B, C) if known.store.get(f"http://{page}")}
    found = known.store.refused_links(**chosen)
    return [(link.reason, link.url.removeprefix("http://"), hosts.get(link.page, "?")) for link in found]


def test_entries_by_reason_and_host_the_oldest_first(pages: Known, store: Store) -> None:
    pages.record(refused(pages, A, (PREFIX, "x", "1"), (DOMAIN, "y", "2"), (DOMAIN, "x", "3")))
    pages.record(refused(pages, B, (DOMAIN, "y", "1")))
    assert entries(pages) == [(DOMAIN, "x/3", "a"), (DOMAIN, "y/2", "a"), (DOMAIN, "y/1", "b"), (PREFIX, "x/1", "a")]
    assert entries(pages, reason=PREFIX) == [(PREFIX, "x/1", "a")]
    assert entries(pages, reason=Reason.ROBOTS) == []
    assert entries(pages, host="x") == [(DOMAIN, "x/3", "a"), (PREFIX, "x/1", "a")]
    assert entries(pages, page=pages.get(B).id) == [(DOMAIN, "y/1", "b")]
    assert entries(pages, reason=DOMAIN, host="y", page=pages.get(A).id) == [(DOMAIN, "y/2", "a")]
    assert store.refused_links(host="x", reason=PREFIX)[0].rule == "crawl.rules:3"


def test_without_host_or_rule(pages: Known, store: Store) -> None:
    link = RefusedLink(Reason.MALFORMED, "", "http://[", pages.get(A).id)
    pages.record(pages.page(A, "one", refused="m1", links=[], refused_links=[link]))
    assert store.refused_links() == store.refused_links(host="") == store.refused_links(page=link.page) == [link]


def test_one_entry_for_a_url(pages: Known) -> None:
    pages.record(refused(pages, A, (DOMAIN, "x", "1"), (DOMAIN, "x", "2")))
    pages.record(refused(pages, B, (DOMAIN, "x", "1")))
    assert entries(pages) == [(DOMAIN, "x/2", "a"), (DOMAIN, "x/1", "b")]
    pages.record(refused(pages, B))
    assert entries(pages) == [(DOMAIN, "x/2", "a")]


DROPPED: list[tuple[str, Callable[[Known], object], bool]] = [
    ("read again, with the link", lambda known: known.record(refused(known, A, (DOMAIN, "x", "1"))), False),
    ("read again, without it", lambda known: known.record(refused(known, A, (DOMAIN, "y", "1"))), True),
    ("read again, and nothing is refused", lambda known: known.record(known.page(A, "one", links=[])), True),
    ("gone", lambda known: known.record(known.change(A, status=404, checksum=None, refused=None)), True),
    ("forgotten", lambda known: known.record(Change(known.get(A), forget=True)), True),
    ("folded", lambda known: known.store.reclassify(Reclassified(forgotten=[known.get(A).id]), now=NOW), True),
    ("excluded", lambda known: known.store.reclassify(Reclassified(excluded=[known.get(A).id]), now=NOW), True),
    ("a deletion held", lambda known: known.store.reclassify(Reclassified(held=[known.get(A).id]), now=NOW), False),
    ("a 304", lambda known: known.record(Change(known.get(A))), False),
    ("another page read", lambda known: known.record(refused(known, B)), False),
]


@pytest.mark.parametrize(("step", "is_dropped"), [row[1:] for row in DROPPED], ids=[row[0] for row in DROPPED])
def test_when_an_entry_is_dropped(pages: Known, step: Callable[[Known], object], is_dropped: bool) -> None:
    pages.record(refused(pages, A, (DOMAIN, "x", "1")), refused(pages, B, (DOMAIN, "x", "9")))
    pages.record(refused(pages, B, (DOMAIN, "z", "9")))
    step(pages)
    assert ((DOMAIN, "x/1", "a") not in entries(pages)) == is_dropped
    assert (PREFIX, "x/1", "a") not in entries(pages)


def test_the_last_change_of_a_batch_counts(pages: Known) -> None:
    pages.record(
        refused(pages, A, (DOMAIN, "x", "1")), refused(pages, B, (DOMAIN, "x", "2")), refused(pages, A, (DOMAIN, "x", "3"))
    )
    assert entries(pages) == [(DOMAIN, "x/3", "a"), (DOMAIN, "x/2", "b")]


def test_the_last_links_of_a_host_stay(pages: Known) -> None:
    pages.record(refused(pages, A, *((DOMAIN, "x", str(n)) for n in range(LINKS_OF_HOST - 1)), (PREFIX, "x", "p")))
    pages.record(refused(pages, B, *((DOMAIN, "x", f"b{n}") for n in range(3))))
    stays = [(DOMAIN, f"x/{n}", "a") for n in range(2, LINKS_OF_HOST - 1)]
    assert entries(pages) == [*stays, *((DOMAIN, f"x/b{n}", "b") for n in range(3)), (PREFIX, "x/p", "a")]
    pages.record(refused(pages, B))
    assert entries(pages, reason=DOMAIN) == stays
    pages.record(refused(pages, C, *((DOMAIN, "x", f"c{n}") for n in range(LINKS_OF_HOST))))
    assert entries(pages, page=pages.get(A).id) == [(PREFIX, "x/p", "a")]


def test_the_last_hosts_of_a_reason_stay(pages: Known) -> None:
    pages.record(refused(pages, A, *((DOMAIN, f"h{n:04}", "") for n in range(HOSTS_OF_REASON)), (PREFIX, "p", "")))
    pages.record(refused(pages, B, (DOMAIN, "h0000", "again"), (DOMAIN, "new", "")))
    found = [url for _, url, _ in entries(pages, reason=DOMAIN)]
    assert len({url.partition("/")[0] for url in found}) == HOSTS_OF_REASON
    assert ("h0000/again" in found, "new/" in found, "h0001/" in found, "h0002/" in found) == (True, True, False, True)
    assert entries(pages, reason=PREFIX) == [(PREFIX, "p/", "a")]
    pages.record(refused(pages, A))
    assert [url for _, url, _ in entries(pages)] == ["h0000/again", "new/"]


def test_reopened(open_store: Callable[[], Store], pages: Known) -> None:
    pages.record(refused(pages, A, (DOMAIN, "x", "1")))
    if type(pages.store).__name__ != "MemoryStore":
        assert open_store().refused_links() == pages.store.refused_links()
