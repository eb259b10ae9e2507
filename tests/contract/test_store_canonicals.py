"""Which of several pages has the document: the canonical one that pages name, and https before http."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from msgspec import structs

from crawlspace.document import Document, Op
from crawlspace.model import NewUrl, State
from crawlspace.state.changes import Change
from crawlspace.state.duplicates import HTTP
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, Known, full, key, new, short
from tests.contract.memory.store import MemoryStore
from tests.unit.state.sqlite.test_file import OF_VERSION_3

A, B, C, D = "a.example/", "a.example/bb", "a.example/ccc", "a.example/dddd"


def named(url: str | None) -> int | None:
    return None if url is None else key(url)


def indexed(store: Store) -> dict[str, str]:
    """Each URL with a document, and who stands for it: itself where it is indexed."""
    states = {state.id: state for state in store.urls()}
    return {
        short(state.url): short(state.url if state.indexed else states[state.duplicate_of or 0].url)
        for state in states.values()
        if state.checksum is not None
    }


# pages as (URL, checksum, canonical) -> who stands for each
REPRESENTATIVES = [
    ("another text", [(A, "one", C), (C, "two", None)], {A: C, C: C}),
    ("the same text", [(A, "one", C), (C, "one", None)], {A: C, C: C}),
    ("it has no document", [(A, "one", C), (C, None, None)], {A: A}),
    ("it isn't known", [(A, "one", "x.example/")], {A: A}),
    ("it names another page itself", [(A, "one", C), (C, "two", "x.example/")], {A: A, C: C}),
    ("they name each other", [(A, "one", C), (C, "two", A)], {A: A, C: C}),
    ("a chain", [(A, "one", B), (B, "two", C), (C, "three", None)], {A: A, B: C, C: C}),
    ("it isn't the best of its group", [(A, "one", C), (B, "two", None), (C, "two", None)], {A: C, B: C, C: C}),
    ("two that are named", [(A, "one", B), (D, "two", C), (B, "same", None), (C, "same", None)], {A: B, D: B, B: B, C: B}),
    ("one of a group is an alternate", [(A, "one", C), (B, "one", None), (C, "two", None)], {A: C, B: B, C: C}),
    ("itself", [(A, "one", A), (B, "one", None)], {A: A, B: A}),
]


@pytest.mark.parametrize("order", ["at once", "one by one", "backwards"])
@pytest.mark.parametrize(("title", "pages", "representatives"), REPRESENTATIVES, ids=[row[0] for row in REPRESENTATIVES])
def test_which_page_represents_a_page(
    known: Known,
    store: Store,
    title: str,
    pages: list[tuple[str, str | None, str | None]],
    representatives: dict[str, str],
    order: str,
) -> None:
    known.discover(*(url for url, _, _ in pages))
    changes = [
        known.page(url, checksum, canonical=named(canonical)) if checksum else known.change(url)
        for url, checksum, canonical in pages
    ]
    for batch in [changes] if order == "at once" else [[change] for change in changes[:: -1 if order == "backwards" else 1]]:
        known.record(*batch)
        known.acknowledge_all()
    assert indexed(store) == representatives
    counts = store.counts()
    assert (counts.indexed, counts.duplicates) == (
        len(set(representatives.values())),
        len(representatives) - len(set(representatives.values())),
    )


def test_one_that_is_named_names_another_while_who_named_it_goes(known: Known, store: Store) -> None:
    known.discover(A, B, C, D)
    known.record(*(known.page(url, "one", canonical=named(D if url == A else None)) for url in (A, B, C, D)))
    known.acknowledge_all()
    assert indexed(store) == dict.fromkeys((A, B, C, D), D)
    known.record(known.change(A, checksum=None, canonical=None), known.page(D, "one", canonical=key(C)))
    assert indexed(store) == dict.fromkeys((B, C, D), C)


def pair(known: Known) -> None:
    """A is an alternate of C, whose text is another one."""
    known.discover(A, C)
    known.record(known.page(A, "one", canonical=key(C)), known.page(C, "two"))
    known.acknowledge_all()


# what becomes of C, of which A is an alternate -> orders, the representative of each
WHEN_IT_GOES = [
    ("forgotten", {"forget": True}, [("delete", C), ("push", A)], {A: A}),
    ("gone", {"checksum": None, "state": State.GONE}, [("delete", C), ("push", A)], {A: A}),
    ("excluded, and left to another crawler", {"checksum": None, "keep_in_index": True}, [("push", A)], {A: A}),
    (
        "it names another page now",
        {"canonical": key("x.example/"), "checksum": b"two", "document": Document("")},
        [("push", A), ("push", C)],
        {A: A, C: C},
    ),
    ("it has changed", {"checksum": b"new", "document": Document("")}, [("push", C)], {A: C, C: C}),
    ("nothing is new", {"checksum": b"two"}, [], {A: C, C: C}),
]


@pytest.mark.parametrize(("title", "fields", "orders", "representatives"), WHEN_IT_GOES, ids=[row[0] for row in WHEN_IT_GOES])
def test_when_the_canonical_page_goes(
    known: Known,
    store: Store,
    title: str,
    fields: dict[str, object],
    orders: list[tuple[str, str]],
    representatives: dict[str, str],
) -> None:
    pair(known)
    known.record(known.change(C, **fields))
    assert (known.orders(), indexed(store)) == (orders, representatives)


def test_who_comes_back_has_its_text(known: Known, store: Store) -> None:
    """Its text is kept although it was sent long ago, and its document is not in the index meanwhile."""
    known.discover(A, C)
    known.record(known.page(A, "one", canonical=key(C), text="the text of A"))
    known.acknowledge_all()
    known.record(known.page(C, "two"))
    assert known.orders() == [("delete", A), ("push", C)]
    known.acknowledge_all()
    known.record(known.change(C, forget=True))
    (push,) = [order for order in store.orders("index", 10, now=NOW) if order.op is Op.PUSH]
    assert push.document == Document(full(A), title=f"title of {A}", text="the text of A")


def test_a_text_is_kept_for_a_page_in_another_group(known: Known, store: Store) -> None:
    known.discover(A, B, C)
    known.record(known.page(A, "one", canonical=key(C)), known.page(B, "one"), known.page(C, "two"))
    known.acknowledge_all()
    known.record(known.change(C, forget=True))
    orders = store.orders("index", 10, now=NOW)
    assert known.orders() == [("delete", B), ("delete", C), ("push", A)]
    assert [order.document.text for order in orders if order.document] == ["text of one"]


def test_a_page_with_another_text_is_no_duplicate(known: Known, store: Store) -> None:
    known.discover(A, B, C)
    known.record(known.page(A, "one", canonical=key(C)), known.page(B, "two", canonical=key(C)), known.page(C, "two"))
    (push,) = store.orders("index", 10, now=NOW)
    assert push.document is not None
    assert (short(push.url), push.document.duplicates) == (C, [full(B)])
    known.acknowledge_all()
    known.record(known.change(A, forget=True))
    assert known.orders() == []
    known.record(known.change(B, forget=True))
    assert known.orders() == [("push", C)]


def test_a_page_joins_the_one_it_names_wherever_that_goes(known: Known, store: Store) -> None:
    pair(known)
    known.discover(B)
    known.record(known.page(B, "three"))
    known.record(known.page(C, "three"))
    assert indexed(store) == {A: C, B: C, C: C}
    known.record(known.change(B, forget=True), known.page(C, "four"))
    assert indexed(store) == {A: C, C: C}


def test_a_canonical_page_is_taken_with_its_document_only(known: Known, store: Store) -> None:
    """As the checksum is: the text that may be needed later must come along."""
    known.crawled((A, "one"), (C, "two"))
    known.record(known.change(A, checksum=b"one", canonical=key(C)))
    assert (known.get(A).canonical, known.orders()) == (None, [])
    known.record(known.page(A, "one", canonical=key(C)))
    assert (known.get(A).canonical, known.orders()) == (key(C), [("delete", A)])
    known.record(known.change(A, checksum=b"one", canonical=None))
    assert known.get(A).canonical == key(C)
    known.record(known.change(A, checksum=None, canonical=None))
    assert known.get(A).canonical is None


def test_of_two_urls_with_one_key_the_first_with_a_document_is_meant(known: Known, store: Store) -> None:
    known.discover(A, C, structs.replace(new(D), key=key(C)))
    twin = store.get_by_id(3)
    assert twin is not None
    known.record(known.page(A, "one", canonical=key(C)), Change(structs.replace(twin, checksum=b"two"), Document("")))
    assert indexed(store) == {A: D, D: D}
    known.record(known.page(C, "three"))
    assert indexed(store) == {A: C, C: C, D: D}
    known.record(known.change(C, checksum=None))
    assert indexed(store) == {A: D, D: D}


def test_many_move_along(known: Known, store: Store) -> None:
    alternate = [f"a.example/{number:03}" for number in range(150)]
    known.discover(C, *alternate)
    known.record(
        *(known.page(url, f"text {number}", canonical=key(C)) for number, url in enumerate(alternate)), known.page(C, "one")
    )
    known.acknowledge_all()
    assert store.counts().indexed == 1
    effects = known.record(Change(structs.replace(known.get(C), checksum=None)))
    assert (effects.pushes, effects.deletes, store.counts().indexed) == (150, 1, 150)


# --- https before http ----------------------------------------------------------------------------------------------


PLAIN, SECURE, LONGER, PORT = (
    "http://a.example/p",
    "https://a.example/p",
    "https://a.example/the/longer/p",
    "https://a.example:8443/p",
)
OTHER, ELSEWHERE = "http://a.example/other", "https://b.example/p"

ORDERS: list[tuple[list[str], list[str]]] = [
    # pages with one text, each in a transaction of its own -> who is indexed then
    ([PLAIN, SECURE], [SECURE]),
    ([SECURE, PLAIN], [SECURE]),
    ([PLAIN, OTHER, SECURE], [SECURE]),
    ([PLAIN, LONGER], [LONGER]),
    ([LONGER, PLAIN, SECURE], [SECURE]),
    ([PLAIN, PORT], [PORT]),
    ([PLAIN, ELSEWHERE], [PLAIN]),
    ([PLAIN, ELSEWHERE, SECURE], [SECURE]),
    ([ELSEWHERE, PLAIN, SECURE], [ELSEWHERE]),
]


@pytest.mark.parametrize(("pages", "expected"), ORDERS)
def test_https_stands_for_equal_pages(known: Known, pages: list[str], expected: list[str]) -> None:
    for url in pages:
        known.discover(url)
        known.record(known.page(url, "one"))
    assert representatives(known) == expected
    known.store.check()


def test_a_redirect_on_the_way_to_it_changes_nothing(known: Known) -> None:
    known.discover(PLAIN, new(SECURE, redirects=3))
    for url in (PLAIN, SECURE):
        known.record(known.page(url, "one"))
    assert representatives(known) == [SECURE]


def test_http_stands_for_them_again_when_https_is_gone(known: Known) -> None:
    known.discover(PLAIN, SECURE)
    for url in (PLAIN, SECURE):
        known.record(known.page(url, "one"))
    known.record(known.page(SECURE, "two"))
    assert representatives(known) == [PLAIN, SECURE]


def test_an_http_page_of_an_earlier_version_gives_way_to_a_new_https_page(known: Known) -> None:
    known.discover(of_earlier_version(known, PLAIN))
    known.record(known.page(PLAIN, "one"))
    known = upgraded(known)
    assert representatives(known) == [PLAIN]
    known.discover(SECURE)
    known.record(known.page(SECURE, "one"))
    assert representatives(known) == [SECURE]
    known.store.check()


def test_pages_of_an_earlier_version_stay_as_they_are_until_one_changes(known: Known) -> None:
    known.discover(of_earlier_version(known, PLAIN), SECURE)
    known.record(known.page(PLAIN, "one"))
    if isinstance(known.store, SqliteStore):
        path = known.store.path
        known.record(known.page(SECURE, "one"))
        db = apsw.Connection(str(path))
        db.execute("UPDATE url SET indexed = url LIKE 'http:%'")
        db.close()
        known = upgraded(known)
        assert representatives(known) == [PLAIN]
        assert known.get(SECURE).duplicate_of == known.get(PLAIN).id
        known.store.check()
    for url in (PLAIN, SECURE):
        known.record(known.page(url, "two"))
    assert representatives(known) == [SECURE]
    known.store.check()


def of_earlier_version(known: Known, url: str) -> NewUrl:
    """A candidate as an earlier version has stored it; there is none in memory."""
    candidate = new(url)
    return candidate if isinstance(known.store, MemoryStore) else structs.replace(candidate, rank=candidate.rank - HTTP)


def upgraded(known: Known) -> Known:
    """The store as one of an earlier version, opened by this one; on a server nothing says so."""
    if not isinstance(known.store, SqliteStore):
        return known
    path: Path = known.store.path
    known.store.close()
    db = apsw.Connection(str(path))
    for statement in OF_VERSION_3:
        db.execute(statement)
    db.close()
    return Known(SqliteStore(path, sinks=("index", "log")))


def representatives(known: Known) -> list[str]:
    return [full(state.url) for state in known.store.urls() if state.indexed]
