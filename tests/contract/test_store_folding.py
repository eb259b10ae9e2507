"""What folding known URLs needs of a store: links written again, URLs forgotten in numbers, and documents that wait for another URL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from crawlspace.model import Held, State, UrlState
from crawlspace.state.changes import Effects, Reclassified
from crawlspace.state.lifecycle import Transition, approved, discarded
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, Known, key, new

A, B, C, D = (f"a.example/{name}" for name in "abcd")


def ids(known: Known, *urls: str) -> list[int]:
    return [known.get(url).id for url in urls]


def test_links_are_written_as_they_are_given(known: Known, store: Store) -> None:
    known.discover(A, B, C, D)
    known.record(known.change(A, links=[key(B), key(C)]), known.change(B, links=[key(C)]))
    a, b, c = ids(known, A, B, C)
    store.relink({a: [key(D)], b: [], c: [key(A), key(D)]})
    assert {id: list(keys) for id, keys in store.links_of([a, b, c]).items()} == {a: [key(D)], c: [key(A), key(D)]}
    assert store.depth_marks() == {}
    assert store.lost_links([a, b, c]) == set()


E, F = "a.example/e", "a.example/f"

MOVES = [
    # whose links go to which page, and what each leads to then; before, A leads to B and C, B to C and D, C to A
    ({A: E},             {E: [B, C], B: [C, D], C: [A]}),
    ({A: None},          {B: [C, D], C: [A]}),
    ({A: B},             {B: [C, D, B], C: [A]}),
    ({A: E, B: E},       {E: [B, C, D], C: [A]}),
    ({A: C, B: C},       {C: [A, B, C, D]}),
    ({A: E, B: None},    {E: [B, C], C: [A]}),
    ({D: E, F: A},       {A: [B, C], B: [C, D], C: [A]}),
    ({},                 {A: [B, C], B: [C, D], C: [A]}),
]  # fmt: skip


@pytest.mark.parametrize(("moves", "after"), MOVES)
def test_links_are_moved(known: Known, store: Store, moves: dict[str, str | None], after: dict[str, list[str]]) -> None:
    known.discover(A, B, C, D, E, F)
    known.record(
        known.change(A, links=[key(B), key(C)]), known.change(B, links=[key(C), key(D)]), known.change(C, links=[key(A)])
    )
    store.move_links({known.get(url).id: None if into is None else known.get(into).id for url, into in moves.items()})
    assert {id: list(keys) for id, keys in store.links_of(ids(known, A, B, C, D, E, F)).items()} == {
        known.get(url).id: [key(link) for link in links] for url, links in after.items()
    }
    assert store.depth_marks() == {}


def test_inserted_urls_have_the_ids_that_are_told(known: Known, store: Store) -> None:
    known.discover(B)
    for effects in (known.discover(A, B, C, A), known.discover(A, D)):
        assert effects.ids == {url: known.store.get(url).id for url in effects.ids}  # type: ignore[union-attr]
        assert f"http://{B}" not in effects.ids
    assert known.discover(A, B, C, D).ids == {}


def test_many_urls_are_inserted_in_their_order_with_the_least_of_what_they_are_found_with(known: Known, store: Store) -> None:
    names = [f"{A}/{number}" for number in range(250)]
    found = [new(name, depth=2) for name in names]
    found[120:120] = [new(names[3], depth=1), new(names[249], depth=5)]
    assert store.discover(found, now=NOW).discovered == 250
    states = sorted(store.urls(), key=lambda state: state.id)
    in_order = [*names[:120], names[249], *names[120:249]]
    assert [state.url for state in states] == [f"http://{name}" for name in in_order]
    assert [state.depth for state in states] == [1 if name == names[3] else 2 for name in in_order]


def test_calls_in_one_transaction_read_what_was_written_before(known: Known, store: Store) -> None:
    with store.one_transaction():
        known.discover(A, B)
        (a,) = ids(known, A)
        store.relink({a: [key(B)]})
        store.reclassify(Reclassified(forgotten=ids(known, B)), now=NOW)
    assert [state.id for state in store.urls()] == [a]
    assert list(store.links_of([a])[a]) == [key(B)]


def test_links_are_folded_on_every_page_that_has_one(known: Known, store: Store) -> None:
    known.discover(A, B, C, D)
    known.record(
        known.change(A, links=[key(B), key(C), key(D)]),
        known.change(B, links=[key(C)]),
        known.change(C, links=[key(A)]),
        known.change(D, links=[key(B)]),
    )
    store.reclassify(Reclassified(excluded=ids(known, D)), now=NOW)  # its links don't count until it is crawled again
    store.fold_links({key(B): key(C), key(D): key(D)})
    assert {id: list(keys) for id, keys in store.links_of(ids(known, A, B, C, D)).items()} == dict(
        zip(ids(known, A, B, C, D), [[key(C), key(D)], [key(C)], [key(A)], [key(C)]], strict=True)
    )
    assert store.depth_marks() == {}


def test_forgotten_urls_leave_nothing_behind(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "two"), (C, "two"), ("b.example/x", "three"))
    known.discover(D)
    known.record(known.change(A, links=[key(D)], refused="d3"), known.change("b.example/x", refused="d1"))
    effects = store.reclassify(Reclassified(forgotten=[*ids(known, A, B, D), 4711]), now=NOW)
    assert [store.get(f"http://{url}") for url in (A, B, D)] == [None] * 3
    assert known.orders() == [("delete", A), ("delete", B), ("push", C)]
    assert (effects.deletes, effects.pushes, effects.displaced) == (2, 1, 0)
    counts = store.counts()
    assert (counts.by_state, counts.by_status, counts.indexed) == ({"done": 2}, {200: 2}, 2)
    assert list(counts.refused.values()) == [1]
    assert (store.known_of_host("a.example"), store.documents(["a.example:80", "b.example:80"])) == (
        1,
        {"a.example:80": 1, "b.example:80": 1},
    )
    assert store.depth_marks() == {}
    assert [known.discover(A).discovered, list(store.links_of(ids(known, A)))] == [1, []]


def test_a_duplicate_that_is_forgotten_is_noted_no_more(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "one"), (C, "one"), (D, "two"))
    known.acknowledge_all()
    effects = store.reclassify(Reclassified(forgotten=ids(known, B)), now=NOW)
    assert (effects.pushes, effects.deletes, known.orders()) == (1, 0, [("push", A)])
    (order,) = store.orders("index", 10, now=NOW)
    assert order.document is not None
    assert (order.document.text, order.document.duplicates) == ("text of one", [f"http://{C}"])
    known.acknowledge_all()
    store.reclassify(Reclassified(forgotten=ids(known, A, C)), now=NOW)
    assert known.orders() == [("delete", A)], "the last one of a group takes its document along, whoever else goes"
    assert (store.counts().indexed, store.counts().duplicates) == (1, 0)


def test_a_document_waits_in_the_index_and_its_url_is_never_due(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "one"), (C, "two"))
    assert store.reclassify(Reclassified(held_folded=[*ids(known, A, C), 4711]), now=NOW) == Effects()
    assert known.orders() == []
    state = known.get(A)
    assert (state.state, state.held, state.indexed, state.next_fetch) == (State.DONE, Held.FOLDED, True, None)
    assert {state.url for state in store.urls(held=True)} == {f"http://{A}", f"http://{C}"}
    assert (sum(store.held_numbers().values()), store.counts().indexed) == (2, 2)
    assert known.get(B).duplicate_of == known.get(A).id, "it stands for an equal page as before"
    store.reclassify(Reclassified(forgotten=ids(known, A)), now=NOW)
    assert known.orders() == [("delete", A), ("push", B)]
    assert (sum(store.held_numbers().values()), store.counts().indexed) == (1, 2)


JOINED = [
    # an equal page that appears while a document waits: its URL, the orders, and those when the document goes
    ("x.example/longer", [("push", "x.example/page")], [("delete", "x.example/page"), ("push", "x.example/longer")]),
    ("x.example/1", [("delete", "x.example/page"), ("push", "x.example/1")], [("push", "x.example/1")]),
]


@pytest.mark.parametrize(("url", "orders", "at_the_end"), JOINED)
def test_a_document_that_waits_is_one_of_its_group(
    known: Known, store: Store, url: str, orders: list[tuple[str, str]], at_the_end: list[tuple[str, str]]
) -> None:
    known.crawled(("x.example/page", "one"))
    store.reclassify(Reclassified(held_folded=ids(known, "x.example/page")), now=NOW)
    known.discover(url)
    known.record(known.page(url, "one"))
    assert known.orders() == orders
    (waiting,) = store.folded_urls()
    assert waiting == known.get("x.example/page")
    assert [state.url for state in store.urls(held=True)] == ([waiting.url] if waiting.indexed else [])
    known.acknowledge_all()
    store.reclassify(Reclassified(forgotten=ids(known, "x.example/page")), now=NOW)
    assert list(store.folded_urls()) == []
    assert known.orders() == at_the_end
    assert {state.url for state in store.urls() if state.indexed} == {f"http://{url}"}


ENDS = [
    # what a person decides, the orders that follow
    (lambda state: approved(state, now=NOW), [("delete", A)]),
    (lambda state: discarded(state, next_run=2), []),
]


@pytest.mark.parametrize(("decide", "orders"), ENDS, ids=["approved", "discarded"])
def test_a_person_may_decide(
    known: Known, store: Store, decide: Callable[[UrlState], Transition], orders: list[tuple[str, str]]
) -> None:
    known.crawled((A, "one"))
    store.reclassify(Reclassified(held_folded=ids(known, A)), now=NOW)
    transition = decide(known.get(A))
    known.record(replace(known.change(A), state=transition.state, forget=transition.forget, keep_in_index=not transition.forget))
    assert known.orders() == orders
    assert store.counts().indexed == 1 - len(orders)
    assert sum(store.held_numbers().values()) == 0
