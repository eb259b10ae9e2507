"""How many links were refused: the sum over all pages as last fetched, in every store."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from crawlspace.decision import Reason
from crawlspace.model import State
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.refused_links import LETTERS, by_letter, by_reason, has_any, letters_of, packed
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, Known

A, B = "a.example/", "b.example/"


@pytest.fixture
def two_pages(known: Known) -> Known:
    known.discover(A, B)
    known.record(known.page(A, "one", refused="d3e1"), known.page(B, "two", refused="d2"))
    return known


def test_the_sum_over_all_pages(two_pages: Known, store: Store) -> None:
    assert store.counts().refused == {Reason.DOMAIN: 5, Reason.EXTENSION: 1}
    assert two_pages.get(A).refused == "d3e1"


def test_each_page_as_last_fetched(two_pages: Known, store: Store) -> None:
    two_pages.record(two_pages.page(A, "one", refused="d1"))
    two_pages.record(two_pages.page(A, "one", refused="d1"))
    assert store.counts().refused == {Reason.DOMAIN: 3}


def test_a_page_that_is_forgotten(two_pages: Known, store: Store) -> None:
    two_pages.record(Change(two_pages.get(A), forget=True))
    assert store.counts().refused == {Reason.DOMAIN: 2}


@pytest.mark.parametrize("kind", ["excluded", "given_up", "unindexed"])
def test_a_page_that_the_rules_exclude(two_pages: Known, store: Store, kind: Any) -> None:
    lists: dict[str, Any] = {kind: [two_pages.get(A).id]}
    store.reclassify(Reclassified(**lists), now=NOW)
    assert (store.counts().refused, two_pages.get(A).refused) == ({Reason.DOMAIN: 2}, None)


def test_a_page_whose_deletion_is_held(two_pages: Known, store: Store) -> None:
    store.reclassify(Reclassified(held=[two_pages.get(A).id]), now=NOW)
    assert store.counts().refused == {Reason.DOMAIN: 5, Reason.EXTENSION: 1}


def test_pages_that_are_due_at_once(two_pages: Known, store: Store) -> None:
    two_pages.record(
        two_pages.change(A, state=State.DONE, etag="x", rules=3, next_fetch=NOW + 99),
        two_pages.change(B, state=State.EXCLUDED, next_fetch=None),
    )
    two_pages.discover("c.example/")
    before = [two_pages.get(url) for url in (A, B, "c.example/")]
    store.reclassify(Reclassified(due=[state.id for state in before]), now=NOW + 5)
    assert [two_pages.get(url) for url in (A, B, "c.example/")] == [
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
