"""Which document of a group stays in the index: between hosts the one that is there, and never one that is held although its page is no document any more."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from msgspec import structs

from crawlspace.model import Held, State, UrlState
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.lifecycle import Transition, approved, discarded
from crawlspace.state.store import Store
from crawlspace.status import Status
from tests.contract.conftest import NOW, Known, full, key, short

A, A2, A3 = "a.example/the/page", "a.example/page", "a.example/p"
PORT = "a.example:81/"
B, B2 = "b.example/", "b.example/page"
Open = Callable[[], Store]


def representatives(store: Store) -> list[str]:
    return [short(state.url) for state in store.urls() if state.indexed]


def page(known: Known, url: str, canonical: str | None = None, *, text: str = "one") -> Change:
    return known.page(url, text, canonical=None if canonical is None else key(canonical))


Step = Callable[[Known], Change]
GONE = {"checksum": None, "state": State.GONE, "status": 404}

# A is indexed; then, in transactions of their own -> who is indexed in the end
BETWEEN_HOSTS: list[tuple[str, list[Step], list[str]]] = [
    ("a copy with a shorter address", [lambda k: page(k, B)], [A]),
    ("that names itself as canonical", [lambda k: page(k, B, B)], [A]),
    ("that another copy names as canonical", [lambda k: page(k, B), lambda k: page(k, B2, B)], [A]),
    ("a shorter address of its own host", [lambda k: page(k, B), lambda k: page(k, A2)], [A2]),
    ("another port of its host", [lambda k: page(k, B), lambda k: page(k, PORT)], [PORT]),
    ("then the shortest", [lambda k: page(k, B), lambda k: page(k, A2), lambda k: page(k, A3)], [A3]),
    ("a longer one of its host", [lambda k: page(k, A2), lambda k: page(k, B), lambda k: page(k, A)], [A2]),
    (
        "one of its host that a page of it names",
        [lambda k: page(k, A3), lambda k: page(k, B), lambda k: page(k, A2, A)],
        [A],
    ),
    (
        "one that is named no longer",
        [lambda k: page(k, A2), lambda k: page(k, B), lambda k: page(k, A3, A), lambda k: k.change(A3, **GONE)],
        [A2],
    ),
    ("it is gone", [lambda k: page(k, B), lambda k: k.change(A, **GONE)], [B]),
    ("it is forgotten", [lambda k: page(k, B), lambda k: k.change(A, forget=True)], [B]),
    ("it redirects", [lambda k: page(k, B), lambda k: k.change(A, checksum=None, state=State.REDIRECTED, status=301)], [B]),
    ("it names the copy as canonical", [lambda k: page(k, B), lambda k: page(k, A, B)], [B]),
    ("it names a page of the other host that is there later", [lambda k: page(k, A, B2), lambda k: page(k, B2)], [B2]),
    ("it has another text", [lambda k: page(k, B), lambda k: page(k, A, text="two")], [A, B]),
    (
        "and comes back",
        [lambda k: page(k, B), lambda k: k.change(A, **GONE), lambda k: page(k, A3), lambda k: page(k, A)],
        [B],
    ),
    ("the copy goes again", [lambda k: page(k, B), lambda k: k.change(B, **GONE)], [A]),
    ("of what is left the best rank wins", [lambda k: page(k, B), lambda k: page(k, B2), lambda k: k.change(A, **GONE)], [B]),
]


@pytest.mark.parametrize(("title", "steps", "expected"), BETWEEN_HOSTS, ids=[row[0] for row in BETWEEN_HOSTS])
def test_between_hosts_the_first_stays(known: Known, store: Store, title: str, steps: list[Step], expected: list[str]) -> None:
    known.discover(A, A2, A3, PORT, B, B2)
    known.record(page(known, A))
    known.acknowledge_all()
    for step in steps:
        known.record(step(known))
    assert sorted(representatives(store)) == sorted(expected)
    for state in store.urls():
        if state.checksum is not None and not state.indexed:
            assert state.duplicate_of in {known.get(url).id for url in expected}


def test_copies_of_a_whole_site_cost_it_nothing(known: Known, store: Store, open_store: Open) -> None:
    pages = [f"a.example/folder/{number}.html" for number in range(30)]
    copies = [f"b.example/{number}" for number in range(30)]
    known.crawled(*((url, url) for url in pages))
    known.discover(*copies)
    effects = known.record(*(known.page(copy, url, canonical=key(copy)) for copy, url in zip(copies, pages, strict=True)))
    assert (effects.deletes, effects.displaced, representatives(store)) == (0, 0, pages)
    assert [order.document.duplicates for order in store.orders("index", 100, now=NOW) if order.document] == [
        [full(copy)] for copy in copies
    ]
    effects = known.record(*(known.change(url, **GONE) for url in pages))
    assert (effects.pushes, effects.deletes, effects.displaced, representatives(store)) == (30, 30, 0, copies)


def test_in_one_transaction_the_rank_decides(known: Known, store: Store) -> None:
    """None of them has been indexed before."""
    known.discover(A, B)
    known.record(page(known, A), page(known, B))
    assert representatives(store) == [B]


def test_one_that_is_far_down_in_a_large_group(known: Known, store: Store) -> None:
    many = [f"b.example/{number}" for number in range(250)]
    known.discover(A, A2, *many)
    known.record(page(known, A))
    known.record(*(page(known, url) for url in many))
    assert representatives(store) == [A]
    (push,) = [order for order in store.orders("index", 10, now=NOW) if order.document is not None]
    assert push.document is not None
    assert push.document.duplicates == [full(url) for url in many[:100]]
    assert known.get(many[7]).duplicate_of == known.get(A).id
    known.record(page(known, A2))
    assert representatives(store) == [A2]
    known.record(known.change(A2, **GONE), known.change(A, **GONE))
    assert representatives(store) == [many[0]]


# what happens to A, A2 (shorter) and C, of which A has been indexed -> documents lost to another one
DISPLACED: list[tuple[str, list[Step], int]] = [
    ("a shorter address", [lambda k: page(k, A2)], 1),
    ("the text of another page", [lambda k: page(k, A, text="two")], 1),
    ("it names another page", [lambda k: page(k, A, "a.example/c")], 1),
    ("it is gone", [lambda k: k.change(A, **GONE)], 0),
    ("it has a new text", [lambda k: page(k, A, text="three")], 0),
    ("both at once", [lambda k: page(k, A, text="two"), lambda k: k.change("a.example/c", **GONE)], 0),
]


@pytest.mark.parametrize(("title", "steps", "displaced"), DISPLACED, ids=[row[0] for row in DISPLACED])
def test_documents_lost_to_another_one_are_counted(known: Known, title: str, steps: list[Step], displaced: int) -> None:
    known.crawled((A, "one"), ("a.example/c", "two"))
    known.discover(A2)
    assert known.record(*(step(known) for step in steps)).displaced == displaced


def held(known: Known, *urls: str, now: int = NOW) -> None:
    known.store.reclassify(Reclassified(held=[known.get(url).id for url in urls]), now=now)


def decided(known: Known, url: str, decision: Callable[[UrlState], Transition]) -> None:
    def change(state: UrlState) -> Change:
        transition = decision(state)
        return Change(transition.state, forget=transition.forget)

    known.store.revise([known.get(url).id], change, now=NOW)


FORBIDDEN, OTHER, INSIDE = "b.example/x", "b.example/y", "b.example/"


@pytest.mark.parametrize("killed", [False, True])
def test_a_document_held_for_the_rules_is_no_duplicate(known: Known, store: Store, open_store: Open, killed: bool) -> None:
    """The case of the oracle: a page inside takes the text of one that is held, that one is approved, and the page goes."""
    known.crawled((FORBIDDEN, "one"), (OTHER, "two"), (INSIDE, "three"))

    def reopened() -> None:
        if killed and not type(known.store).__name__.startswith("Memory"):
            known.store = open_store()

    held(known, FORBIDDEN, OTHER)
    reopened()
    assert (known.orders(), representatives(known.store), sum(known.store.held_numbers().values())) == (
        [],
        [FORBIDDEN, OTHER, INSIDE],
        2,
    )
    known.record(known.page(INSIDE, "one"))
    reopened()
    assert (known.orders(), known.store.counts().indexed) == ([("push", INSIDE)], 3)
    assert [short(state.url) for state in known.store.urls(held=True)] == [FORBIDDEN, OTHER]
    known.acknowledge_all()
    for url in (FORBIDDEN, OTHER):
        decided(known, url, lambda state: approved(state, now=NOW))
        reopened()
    assert (known.orders(), representatives(known.store)) == ([("delete", FORBIDDEN), ("delete", OTHER)], [INSIDE])
    known.acknowledge_all()
    known.record(known.change(INSIDE, forget=True))
    assert (known.orders(), representatives(known.store)) == ([("delete", INSIDE)], [])


def test_what_is_held_for_the_rules_leaves_its_group(known: Known, store: Store) -> None:
    """Whoever is equal to it, or an alternate of it, is in the index from then on."""
    known.discover(FORBIDDEN, INSIDE, A, OTHER)
    known.record(known.page(FORBIDDEN, "one"))
    known.record(known.page(A, "one"), known.page(INSIDE, "two", canonical=key(FORBIDDEN)), known.page(OTHER, "one"))
    known.acknowledge_all()
    assert representatives(store) == [FORBIDDEN]
    held(known, FORBIDDEN)
    assert (known.orders(), representatives(store)) == ([("push", INSIDE), ("push", OTHER)], [FORBIDDEN, INSIDE, OTHER])


def test_what_waits_of_one_that_is_held_is_sent_as_it_was(known: Known, store: Store) -> None:
    known.discover(FORBIDDEN, OTHER)
    known.record(known.page(FORBIDDEN, "one", text="its text"), known.page(OTHER, "two"))
    before = store.orders("index", 10, now=NOW)
    held(known, FORBIDDEN)
    known.record(Change(structs.replace(known.get(OTHER), held=Held.RULES, next_fetch=None)))
    assert store.orders("index", 10, now=NOW) == before
    known.acknowledge_all()
    assert known.orders() == []


def test_what_waits_of_one_that_is_held_is_sent_so_when_it_is_left_to_another_crawler(known: Known, store: Store) -> None:
    known.discover(FORBIDDEN)
    known.record(known.page(FORBIDDEN, "one", text="its text"))
    before = store.orders("index", 10, now=NOW)
    held(known, FORBIDDEN)
    store.reclassify(Reclassified(given_up=[known.get(FORBIDDEN).id]), now=NOW)
    assert store.orders("index", 10, now=NOW) == before


def test_one_that_was_let_go_joins_with_its_next_document(known: Known, store: Store) -> None:
    known.crawled((FORBIDDEN, "one"), (A, "two"))
    held(known, FORBIDDEN)
    decided(known, FORBIDDEN, partial(discarded, next_run=1))
    assert (known.orders(), representatives(store), sum(store.held_numbers().values())) == ([], [FORBIDDEN, A], 0)
    held(known, FORBIDDEN)
    store.reclassify(Reclassified(returned=[known.get(FORBIDDEN).id]), now=NOW)
    assert (known.orders(), known.get(FORBIDDEN).rules, known.get(FORBIDDEN).next_fetch) == ([], 0, NOW)
    effects = known.record(known.page(FORBIDDEN, "two"))
    assert (known.orders(), representatives(store), effects.displaced) == ([("delete", FORBIDDEN), ("push", A)], [A], 1)


def test_one_held_for_the_rules_without_a_place_in_the_index_has_nothing_to_hold(known: Known, store: Store) -> None:
    known.discover(A, A2)
    known.record(known.page(A, "one"), known.page(A2, "one"))
    known.acknowledge_all()
    known.record(Change(structs.replace(known.get(A), held=Held.RULES)))
    assert (representatives(store), known.get(A).checksum, known.orders()) == ([A2], None, [("push", A2)])


def test_a_document_held_for_the_rules_may_be_left_to_another_crawler(known: Known, store: Store) -> None:
    known.crawled((FORBIDDEN, "one"))
    held(known, FORBIDDEN)
    store.reclassify(Reclassified(given_up=[known.get(FORBIDDEN).id]), now=NOW)
    assert (known.orders(), store.counts().indexed, known.get(FORBIDDEN).status) == ([], 0, Status.EXCLUDED_HERE)
    known.record(known.page(FORBIDDEN, "one"))
    assert known.orders() == [("push", FORBIDDEN)]


# state and status of a page that is no document any more, and whose deletion is held because there are too many
NO_DOCUMENT = [(State.REDIRECTED, 301), (State.GONE, 404), (State.EXCLUDED, int(Status.NOINDEX))]


@pytest.mark.parametrize(("state", "status"), NO_DOCUMENT)
def test_a_held_page_that_is_no_document_any_more_is_no_duplicate(known: Known, store: Store, state: State, status: int) -> None:
    """Another takes its text and goes: what is held is neither pushed again nor lost to it."""
    known.crawled((A, "one"), (OTHER, "two"))
    known.record(known.change(A, state=state, status=status, held=Held.MANY))
    assert (known.orders(), representatives(store), sum(store.held_numbers().values())) == ([], [A, OTHER], 1)
    effects = known.record(known.page(OTHER, "one"))
    assert (known.orders(), representatives(store), effects.displaced) == ([("push", OTHER)], [A, OTHER], 0)
    known.discover(A2)
    known.record(known.page(A2, "one"), known.change(OTHER, forget=True))
    known.record(known.change(A, state=State.FAILED, status=503, retries=1))
    assert (known.orders(), representatives(store)) == ([("delete", OTHER), ("push", A2)], [A, A2])
    known.acknowledge_all()
    known.record(known.change(A2, forget=True))
    assert (known.orders(), representatives(store), sum(store.held_numbers().values())) == ([("delete", A2)], [A], 1)
    known.acknowledge_all()
    decided(known, A, lambda row: approved(row, now=NOW))
    assert (known.orders(), representatives(store), sum(store.held_numbers().values())) == ([("delete", A)], [], 0)


def test_a_held_page_that_is_a_document_again_joins_its_group(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (A2, "two"))
    known.record(known.change(A, state=State.REDIRECTED, status=301, held=Held.MANY))
    decided(known, A, partial(discarded, next_run=1))
    known.record(known.page(A2, "one"))
    assert (known.orders(), representatives(store), sum(store.held_numbers().values())) == ([("push", A2)], [A, A2], 0)
    effects = known.record(known.page(A, "one"))
    assert (known.orders(), representatives(store), effects.displaced) == ([("delete", A), ("push", A2)], [A2], 1)


def test_a_held_page_that_is_still_a_document_stays_in_its_group(known: Known, store: Store) -> None:
    known.crawled((A, "one"))
    known.record(known.change(A, held=Held.MANY))
    known.discover(A2)
    known.record(known.page(A2, "one"))
    assert representatives(store) == [A2]


def test_a_duplicate_that_redirects_has_nothing_to_hold(known: Known, store: Store) -> None:
    known.discover(A, A2)
    known.record(known.page(A, "one"), known.page(A2, "one"))
    known.acknowledge_all()
    known.record(known.change(A, state=State.REDIRECTED, status=301, held=Held.MANY))
    assert (representatives(store), known.get(A).checksum, known.get(A).held, known.orders()) == (
        [A2],
        None,
        None,
        [("push", A2)],
    )
    known.acknowledge_all()
    known.record(known.change(A2, forget=True))
    assert (representatives(store), known.orders()) == ([], [("delete", A2)])
