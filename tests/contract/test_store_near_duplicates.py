"""Groups of near duplicates in each store: who joins, who represents the group, and what follows when that changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from msgspec import structs

from crawlspace.model import Held, State
from crawlspace.simhash import in_epoch
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.duplicates import held_checksum
from crawlspace.state.near_duplicates import MOST_IN_BAND, NEAR_EPOCH_META, NEAR_META, begin_epoch, use_distance
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, Known, full, key, short

BITS = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6": 6, "9": 9, "far": 40}
"""Texts, by name, and which bits of their simhashes are 1: the first so many. So their distance is the difference."""


def signature(text: str) -> bytes | None:
    bits = BITS.get(text)
    return None if bits is None else ((1 << bits) - 1).to_bytes(8, "little") + (500).to_bytes(4, "little") + bytes(128)


def page(known: Known, url: str, text: str, canonical: str | None = None, **fields: object) -> Change:
    of_page = None if canonical is None else key(canonical)
    return known.page(url, text, text=f"the text {text}", canonical=of_page, simhash=signature(text), **fields)


def groups(store: Store) -> dict[str, list[str]]:
    """Return the documents in the index, each with its duplicates."""
    found: dict[str, list[str]] = {short(state.url): [] for state in store.urls() if state.indexed}
    by_id = {state.id: short(state.url) for state in store.urls()}
    for state in store.urls():
        if state.duplicate_of is not None:
            found[by_id[state.duplicate_of]].append(short(state.url))
    return found


A, B, C, D, OTHER = "a.example/a", "a.example/bb", "a.example/ccc", "a.example/dddd", "b.example/"
GONE = {"checksum": None, "simhash": None, "state": State.GONE, "status": 404}
Step = Callable[[Known], list[Change]]


def pages(**texts: str) -> Step:
    urls = {"a": A, "b": B, "c": C, "d": D, "other": OTHER}
    return lambda known: [page(known, urls[name], text) for name, text in texts.items()]


def gone(url: str) -> Step:
    return lambda known: [known.change(url, **GONE)]


def names(url: str, text: str, canonical: str) -> Step:
    return lambda known: [page(known, url, text, canonical)]


@dataclass
class Row:
    title: str
    steps: list[Step]
    groups: dict[str, list[str]]
    within: int = 3
    orders: list[tuple[str, str]] | None = field(default=None)
    """Of the last step."""


# A has the best rank, then B, C, D; OTHER is on another host. Texts are near if their numbers differ by 3 at most, or 6.
ROWS = [
    Row("a near page joins", [pages(a="0"), pages(b="3")], {A: [B]}, orders=[("push", A)]),
    Row("one that is not near does not", [pages(a="0"), pages(b="4")], {A: [], B: []}, orders=[("push", B)]),
    Row("with a distance of 6 it does", [pages(a="0"), pages(b="4")], {A: [B]}, within=6),
    Row("with 0 none does", [pages(a="0"), pages(b="0"), pages(c="3")], {A: [B], C: []}, within=0),
    Row("a text without signature never does", [pages(a="short"), pages(b="other short")], {A: [], B: []}),
    Row("in one transaction", [pages(a="0", b="2", c="3")], {A: [B, C]}),
    Row("a page with a better rank represents it", [pages(b="0"), pages(a="3")], {A: [B]}, orders=[("delete", B), ("push", A)]),
    Row(
        "who is not near that one leaves",
        [pages(b="3", c="6"), pages(a="0")],
        {A: [B], C: []},
        orders=[("delete", B), ("push", A), ("push", C)],
    ),
    Row("there are no chains", [pages(a="0"), pages(b="3"), pages(c="6")], {A: [B], C: []}),
    Row("who leaves may join another", [pages(b="3", c="6"), pages(d="9"), pages(a="0")], {A: [B], C: [D]}),
    Row("the nearest one is joined", [pages(a="0", b="6"), pages(c="4")], {A: [], B: [C]}),
    Row("groups are not put together", [pages(a="0", b="6"), pages(c="3")], {A: [C], B: []}),
    Row("the representative goes", [pages(a="0", b="2", c="3"), gone(A)], {B: [C]}, orders=[("delete", A), ("push", B)]),
    Row(
        "the representative goes, and the next is not near all",
        [pages(a="3", b="0", c="6"), gone(A)],
        {B: [], C: []},
        orders=[("delete", A), ("push", B), ("push", C)],
    ),
    Row("all go", [pages(a="0", b="2"), gone(A), gone(B)], {}),
    Row("it gets a near text", [pages(a="0", b="2"), pages(a="3")], {A: [B]}, orders=[("push", A)]),
    Row(
        "it gets a text that not all are near",
        [pages(a="3", b="0", c="6"), pages(a="4")],
        {A: [C], B: []},
        orders=[("push", A), ("push", B)],
    ),
    Row(
        "it gets another text",
        [pages(a="0", b="2", c="3"), pages(a="far")],
        {A: [], B: [C]},
        orders=[("push", A), ("push", B)],
    ),
    Row("a member gets another text", [pages(a="0", b="2"), pages(b="far")], {A: [], B: []}, orders=[("push", A), ("push", B)]),
    Row("a member gets a near text", [pages(a="0", b="2"), pages(b="3")], {A: [B]}, orders=[]),
    Row(
        "a page that was alone gets a text that is nearer to its former one than to another",
        [pages(a="0", b="4"), pages(b="3")],
        {A: [B]},
        orders=[("delete", B), ("push", A)],
    ),
    Row("and the same where the other one is the newer", [pages(b="0", a="4"), pages(a="3")], {A: [B]}),
    Row("equal and near ones", [pages(a="0", b="0", c="3", d="3")], {A: [B, C, D]}),
    Row("the first of equal ones goes", [pages(a="0", b="0", c="3"), gone(A)], {B: [C]}),
    Row("the last of equal ones goes", [pages(a="0", c="3", d="3"), gone(A)], {C: [D]}, orders=[("delete", A), ("push", C)]),
    Row("an equal page joins a near one", [pages(a="0"), pages(c="3"), pages(b="3")], {A: [C, B]}),
    Row("a shorter address with a text that is known as near", [pages(b="0", c="3"), pages(a="3")], {A: [B, C]}),
    Row("one of another host does not displace it", [pages(a="0"), pages(other="2")], {A: [OTHER]}),
    Row("until it goes", [pages(a="0"), pages(other="2"), gone(A)], {OTHER: []}),
    Row("a page that others name as canonical", [pages(a="0", b="2"), names(C, "far", B)], {B: [A, C]}),
    Row("a near page that names an equal one", [pages(a="0", b="0"), names(C, "2", B)], {B: [A, C]}),
    Row("who names a canonical page is its alternate", [pages(a="0", d="far"), names(B, "2", D)], {A: [], D: [B]}),
    Row("and near again when that has gone", [pages(a="0", d="far"), names(B, "2", D), gone(D)], {A: [B]}),
    Row("the representative names another page", [pages(a="0", b="2", d="far"), names(A, "0", D)], {B: [], D: [A]}),
    Row("a near page loses its signature", [pages(a="0", b="2"), lambda k: [known_without(k, B, "2")]], {A: [], B: []}),
    Row("and gets one again", [pages(a="0"), lambda k: [known_without(k, B, "2")], pages(b="2")], {A: [B]}),
    Row(
        "it gets the text of a page without signature on another host, and stays the representative",
        [pages(other="0"), pages(a="2"), lambda k: [known_without(k, B, "3")], pages(other="3")],
        {OTHER: [A, B]},
        orders=[("delete", B), ("push", OTHER)],
    ),
    Row("the representative loses it", [pages(a="0", b="2"), lambda k: [known_without(k, A, "0")]], {A: [B]}),
]


def known_without(known: Known, url: str, text: str) -> Change:
    change = page(known, url, text)
    change.state.simhash = None
    return change


def test_a_checksum_may_have_any_bytes(known: Known, store: Store) -> None:
    store.set_meta(NEAR_META, "3")
    known.discover(A, B, C, D)
    for url, text, bits in ((A, b"one\0:1", "0"), (B, b"\x00two", "2"), (C, b"\x00two", "2"), (D, b"one\0:1", "0")):
        change = page(known, url, bits)
        change.state.checksum = text
        known.record(change)
    assert {url: sorted(others) for url, others in groups(store).items()} == {A: [B, C, D]}
    known.record(known.change(A, **GONE), known.change(D, **GONE))
    assert groups(store) == {B: [C]}


@pytest.mark.parametrize("row", ROWS, ids=[row.title for row in ROWS])
def test_groups(known: Known, store: Store, row: Row) -> None:
    store.set_meta(NEAR_META, str(row.within))
    known.discover(A, B, C, D, OTHER)
    for step in row.steps:
        known.acknowledge_all()
        known.record(*step(known))
    found = groups(store)
    assert {url: sorted(others) for url, others in found.items()} == {url: sorted(others) for url, others in row.groups.items()}
    assert store.counts().indexed == len(found)
    assert store.counts().duplicates == sum(map(len, found.values()))
    assert sum(store.documents(["a.example:80", "b.example:80"]).values()) == len(found)
    if row.orders is not None:
        assert sorted(known.orders()) == sorted(row.orders)


def test_each_document_is_pushed_with_its_own_text(known: Known, store: Store) -> None:
    """That of a page may be needed long after it was sent: near duplicates don't bring it."""
    store.set_meta(NEAR_META, "3")
    known.discover(A, B, C)
    known.record(page(known, B, "0"))
    known.acknowledge_all()
    known.record(page(known, C, "3"))
    (push,) = store.orders("index", 10, now=NOW)
    assert push.document is not None
    assert (short(push.url), push.document.text, push.document.duplicates) == (B, "the text 0", [full(C)])
    known.acknowledge_all()
    known.record(known.change(B, **GONE))
    (_, push) = store.orders("index", 10, now=NOW)
    assert push.document is not None
    assert (short(push.url), push.document.text, push.document.duplicates) == (C, "the text 3", [])


def test_a_group_is_as_large_as_it_is(known: Known, store: Store) -> None:
    store.set_meta(NEAR_META, "3")
    many = [f"a.example/many/{number:03}" for number in range(200)]
    known.discover(A, B, *many)
    known.record(page(known, B, "2"), *(page(known, url, "0" if number % 2 else "3") for number, url in enumerate(many)))
    assert groups(store) == {B: many}
    known.record(page(known, A, "far"), known.change(B, **GONE))
    assert groups(store) == {A: [], many[0]: many[1:]}


# what happens to A, with text 0, and C, with text 9 -> documents lost to another one
DISPLACED: list[tuple[str, Step, int]] = [
    ("a near text of another page", pages(a="6"), 1),
    ("the text of another page", pages(a="9"), 1),
    ("a text near its own", pages(a="2"), 0),
    ("a new text", pages(a="far"), 0),
    ("a shorter address with a near text", pages(b="6"), 1),
]


@pytest.mark.parametrize(("title", "step", "displaced"), DISPLACED, ids=[row[0] for row in DISPLACED])
def test_documents_lost_to_a_near_one_are_counted(known: Known, store: Store, title: str, step: Step, displaced: int) -> None:
    store.set_meta(NEAR_META, "3")
    known.discover(A, B, C)
    known.record(*pages(a="0", c="9")(known))
    changes = step(known)
    (after,) = [change.state for change in changes]
    is_duplicate = store.is_duplicate(after.id, checksum=after.checksum or b"", canonical=None, simhash=after.simhash)
    assert known.record(*changes).displaced == displaced
    assert is_duplicate == (displaced > 0)


def test_a_held_document_leaves_its_group(known: Known, store: Store) -> None:
    """It stays in the index as it is, and is no near duplicate of any."""
    store.set_meta(NEAR_META, "3")
    known.discover(A, B, C)
    known.record(*pages(a="0", b="2")(known))
    known.acknowledge_all()
    store.reclassify(Reclassified(held=[known.get(A).id]), now=NOW)
    assert (groups(store), known.orders()) == ({A: [], B: []}, [("push", B)])
    assert (known.get(A).checksum, known.get(A).simhash) == (held_checksum(known.get(A).id), None)
    known.record(*pages(c="0")(known))
    assert groups(store) == {A: [], B: [C]}


def test_a_held_document_that_is_one_of_too_many_leaves_its_group(known: Known, store: Store) -> None:
    store.set_meta(NEAR_META, "3")
    known.discover(A, B)
    known.record(*pages(a="0", b="2")(known))
    known.record(known.change(A, state=State.REDIRECTED, status=301, held=Held.MANY))
    assert groups(store) == {A: [], B: []}
    known.record(known.change(B, state=State.REDIRECTED, status=301, held=Held.MANY))
    known.record(page(known, A, "0"))
    assert groups(store) == {A: [], B: []}


RULES: list[tuple[Callable[[list[int]], Reclassified], list[tuple[str, str]]]] = [
    (lambda ids: Reclassified(excluded=ids), [("delete", A), ("push", B)]),
    (lambda ids: Reclassified(given_up=ids), [("push", B)]),
    (lambda ids: Reclassified(unindexed=ids), [("delete", A), ("push", B)]),
    (lambda ids: Reclassified(forgotten=ids), [("delete", A), ("push", B)]),
]


@pytest.mark.parametrize(("change", "orders"), RULES, ids=["excluded", "given up", "unindexed", "forgotten"])
def test_the_representative_leaves_the_crawl_space(
    known: Known, store: Store, change: Callable[[list[int]], Reclassified], orders: list[tuple[str, str]]
) -> None:
    store.set_meta(NEAR_META, "3")
    known.discover(A, B, C, D)
    known.record(*pages(a="0", b="2", c="3", d="far")(known))
    known.acknowledge_all()
    store.reclassify(change([known.get(A).id]), now=NOW)
    assert (groups(store), known.orders()) == ({B: [C], D: []}, orders)
    store.reclassify(change([known.get(url).id for url in (B, C, D)]), now=NOW)
    assert groups(store) == {}
    known.discover(OTHER)
    known.record(page(known, OTHER, "2"))
    assert groups(store) == {OTHER: []}


def test_an_unchanged_page_keeps_its_signature(known: Known, store: Store) -> None:
    store.set_meta(NEAR_META, "3")
    known.discover(A, B)
    known.record(*pages(a="0", b="2")(known))
    known.acknowledge_all()
    known.record(Change(structs.replace(known.get(A), fetched_at=NOW)), Change(structs.replace(known.get(B), fetched_at=NOW)))
    assert (known.get(B).simhash, groups(store), known.orders()) == (signature("2"), {A: [B]}, [])


# distance, then steps; again, with another distance -> groups, orders of the last step
CHANGED: list[tuple[str, list[tuple[int, list[Step]]], dict[str, list[str]], list[tuple[str, str]]]] = [
    ("a wider one", [(3, [pages(a="0", b="4")]), (6, [pages(a="0"), pages(b="4")])], {A: [B]}, []),
    ("the one that represents the group comes last", [(3, [pages(a="0", b="4")]), (6, [pages(b="4")])], {A: [B]}, [("delete", B), ("push", A)]),
    ("none was recorded since", [(3, [pages(a="0", b="4")]), (6, [pages(d="far")])], {A: [], B: [], D: []}, [("push", D)]),
    ("the duplicates come along", [(3, [pages(a="0", b="6", c="9")]), (6, [pages(a="0")])], {A: [B], C: []}, [("delete", B), ("push", A), ("push", C)]),
    ("those that are near only the former one", [(3, [pages(a="0", c="6", d="9")]), (6, [pages(c="6")])], {A: [C], D: []}, [("delete", C), ("push", A), ("push", D)]),
    ("a narrower one", [(6, [pages(a="0", b="4", c="3")]), (3, [pages(b="4")])], {A: [C], B: []}, [("push", A), ("push", B)]),
    ("the representative is recorded", [(6, [pages(a="0", b="4", c="3")]), (3, [pages(a="0")])], {A: [C], B: []}, [("push", A), ("push", B)]),
    ("those that leave are near each other", [(6, [pages(a="0", b="4", c="6")]), (3, [pages(c="6"), pages(b="4")])], {A: [], B: [C]}, [("delete", C), ("push", A), ("push", B)]),
    ("another page with the text that leaves", [(6, [pages(a="0", b="4")]), (3, [pages(b="4", d="4")])], {A: [], B: [D]}, [("push", A), ("push", B)]),
    ("off and on", [(3, [pages(a="0", b="4")]), (0, [pages(d="far")]), (6, [pages(b="4"), pages(a="0")])], {A: [B], D: []}, [("push", A)]),
    ("off, and others are recorded first", [(3, [pages(a="0")]), (0, [pages(a="0")]), (3, [pages(b="2")])], {A: [], B: []}, [("push", B)]),
    ("there and back", [(6, [pages(a="0", b="4")]), (3, [pages(a="0")]), (6, [pages(b="4")])], {A: [B]}, [("delete", B), ("push", A)]),
]  # fmt: skip


@pytest.mark.parametrize(("title", "settings", "expected", "orders"), CHANGED, ids=[row[0] for row in CHANGED])
def test_with_another_setting_groups_change_as_pages_are_recorded(
    known: Known,
    store: Store,
    title: str,
    settings: list[tuple[int, list[Step]]],
    expected: dict[str, list[str]],
    orders: list[tuple[str, str]],
) -> None:
    known.discover(A, B, C, D)
    for within, steps in settings:
        use_distance(store, within)
        for step in steps:
            known.acknowledge_all()
            changes = step(known)
            for change in changes:
                change.state.simhash = signed(store, change.state.simhash) if within else None
            known.record(*changes)
    assert groups(store) == expected
    assert store.counts().indexed == len(expected)
    assert sorted(known.orders()) == sorted(orders)


def test_where_all_pages_get_another_text_none_stays_apart_because_of_former_ones(known: Known, store: Store) -> None:
    """As where the title counts no more: B is nearer to what it was than to A, as it is by then."""
    store.set_meta(NEAR_META, "3")
    known.discover(A, B, C)
    known.record(*pages(a="2", b="0", c="1")(known))
    begin_epoch(store)
    for later in ({"a": "5"}, {"b": "2"}, {"c": "4"}):
        (change,) = pages(**later)(known)
        change.state.simhash = signed(store, change.state.simhash)
        known.record(change)
    assert groups(store) == {A: [B, C]}


def test_an_alternate_of_a_page_without_signature_stays_with_it(known: Known, store: Store) -> None:
    """It was recorded before the setting, and came along with the text of another page."""
    known.discover(A, B, OTHER, D)
    for url, text in ((A, "0"), (B, "2"), (OTHER, "2")):
        known.record(known_without(known, url, text))
    known.record(page(known, D, "far", OTHER))
    use_distance(store, 3)
    for near in ({"b": "2"}, {"a": "0"}):
        (change,) = pages(**near)(known)
        change.state.simhash = signed(store, change.state.simhash)
        known.record(change)
    together = groups(store)
    assert {url: sorted(others) for url, others in together.items()} == {A: sorted([B, D, OTHER])}
    known.acknowledge_all()
    for url in (D, OTHER):
        known.record(known.change(url, state=State.FAILED, status=680, errors=1, held=Held.HOST))
        assert (groups(store), known.orders()) == (together, [])


def signed(store: Store, signature: bytes | None) -> bytes | None:
    """Return a signature as a crawl records it."""
    return None if signature is None else in_epoch(signature, int(store.get_meta(NEAR_EPOCH_META) or 0))


def test_with_another_setting_documents_lost_to_near_ones_are_counted(known: Known, store: Store) -> None:
    use_distance(store, 3)
    known.discover(A, B)
    known.record(*pages(a="0", b="4")(known))
    use_distance(store, 6)
    (change,) = pages(b="4")(known)
    after = change.state
    after.simhash = signed(store, after.simhash)
    assert store.is_duplicate(after.id, checksum=after.checksum or b"", canonical=None, simhash=after.simhash)
    assert known.record(change).displaced == 1


def test_groups_after_the_setting_was_turned_off(known: Known, store: Store) -> None:
    """Each page has a document of its own once a page of its group is recorded with a new text."""
    store.set_meta(NEAR_META, "3")
    known.discover(A, B, C)
    known.record(*pages(a="0", b="2", c="3")(known))
    known.acknowledge_all()
    store.set_meta(NEAR_META, "0")
    known.record(page(known, B, "4"))
    assert groups(store) == {A: [], B: [], C: []}
    known.record(page(known, A, "2"))
    assert groups(store) == {A: [], B: [], C: []}


@pytest.mark.parametrize(("others", "joined"), [(MOST_IN_BAND - 1, True), (MOST_IN_BAND, False)])
def test_so_many_texts_are_found_by_a_band(known: Known, store: Store, others: int, joined: bool) -> None:
    """A site with one template may have very many with close simhashes."""
    store.set_meta(NEAR_META, "3")

    def with_words(url: str, simhash: int, counter: int) -> Change:
        words = simhash.to_bytes(8, "little") + (500).to_bytes(4, "little") + bytes([counter]) * 128
        return known.page(url, url, canonical=None, simhash=words)

    urls = [f"a.example/other/{number:03}" for number in range(others)]
    known.discover(A, B, *urls)
    known.record(*(with_words(url, 0, number) for number, url in enumerate(urls)))
    known.record(with_words(B, 0, 200))
    known.record(with_words(A, 0, 200))
    assert groups(store) == {**{url: [] for url in urls}, A: [B] if joined else [], **({} if joined else {B: []})}
