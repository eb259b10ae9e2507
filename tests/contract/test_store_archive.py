"""What every store keeps of the archive: its files, the places of records, and documents that are pushed again."""

from __future__ import annotations

import pytest

from crawlspace.document import Document
from crawlspace.model import Held, State
from crawlspace.state.changes import NOWHERE
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, SINKS, Known, full, new

A, B, C = "a.example/", "a.example/bb", "b.example/"
PLACE, LATER = (3 << 32) + 257, (1 << 52) + 99
GIVEN = Document(full(A), title="archived", text="its archived text", fields={"color": "red"})


def test_a_file_has_a_number_of_its_own(store: Store) -> None:
    assert [store.add_archive_file(name) for name in ("one", "two", "one", "three")] == [1, 2, 1, 3]
    assert store.archive_files() == {1: "one", 2: "two", 3: "three"}


def test_places_are_kept(known: Known, store: Store) -> None:
    known.discover(A, B)
    known.record(known.page(A, "one", archived=PLACE))
    assert (known.get(A).archived, known.get(B).archived) == (PLACE, None)
    assert [url.archived for url in store.scan(0, 10)] == [PLACE, None]


# what is recorded later -> the place then
LATER_CHANGES = [
    ("nothing new was archived", {"state": State.FAILED, "status": 503}, PLACE),
    ("a state that was read before the records were moved", {"archived": None}, PLACE),
    ("another response", {"archived": LATER}, LATER),
    ("it is gone, and its response is archived", {"state": State.GONE, "checksum": None, "archived": LATER}, LATER),
    ("a response that is not archived stands for it", {"archived": NOWHERE}, None),
]


@pytest.mark.parametrize(("title", "fields", "place"), LATER_CHANGES, ids=[row[0] for row in LATER_CHANGES])
def test_a_place_stays_until_there_is_another(known: Known, title: str, fields: dict[str, object], place: int | None) -> None:
    known.discover(A)
    known.record(known.page(A, "one", archived=PLACE))
    known.record(known.change(A, **fields))
    assert known.get(A).archived == place


def test_without_a_place_there_is_none_to_drop(known: Known) -> None:
    known.discover(A)
    known.record(known.page(A, "one", archived=NOWHERE))
    assert known.get(A).archived is None


def test_a_place_is_moved_only_from_where_it_is(known: Known, store: Store) -> None:
    known.discover(A, B, C)
    known.record(*(known.page(url, url, archived=PLACE) for url in (A, B, C)))
    lease = known.leased("a.example", now=NOW)
    store.move_archived(
        [(known.get(A).id, PLACE, LATER), (known.get(B).id, LATER, 5), (known.get(C).id, PLACE, None), (4711, 1, 2)]
    )
    assert [known.get(url).archived for url in (A, B, C)] == [LATER, PLACE, None]
    assert lease == known.leased("a.example", now=NOW)


def test_documents_that_the_store_has_are_pushed_again(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "one"), (C, "two"))
    ids = [known.get(url).id for url in (A, B, C)]
    assert store.push_again(dict.fromkeys([*ids, 4711])) == [ids[2]], "the text of a page that is alone is not kept"
    assert [(order.url, order.document) for order in store.orders("index", 10, now=NOW)] == [
        (full(A), Document(full(A), title=f"title of {A}", text="text of one", duplicates=[full(B)]))
    ]


def test_others_are_pushed_as_they_are_given(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (C, "two"))
    assert store.push_again({known.get(A).id: GIVEN, known.get(C).id: None}) == [known.get(C).id]
    assert [[(order.url, order.document) for order in store.orders(sink, 10, now=NOW)] for sink in SINKS] == [
        [(full(A), GIVEN)]
    ] * 2
    assert (store.counts().outbox, store.backlog("index")) == (2, 1)
    known.acknowledge_all()
    assert known.orders() == []


def test_a_held_document_is_pushed_again_as_it_is_in_the_index(known: Known, store: Store) -> None:
    known.crawled((A, "one"))
    known.record(known.change(A, checksum=b"one", held=Held.RULES))
    assert store.push_again({known.get(A).id: GIVEN}) == []
    assert [order.document for order in store.orders("index", 10, now=NOW)] == [GIVEN]


def test_a_later_change_replaces_what_is_pushed_again(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (C, "two"))
    store.push_again({known.get(A).id: GIVEN, known.get(C).id: GIVEN})
    known.record(known.change(A, checksum=None, state=State.GONE), known.page(C, "three", text="new"))
    assert [(order.op.value, order.document and order.document.text) for order in store.orders("index", 10, now=NOW)] == [
        ("delete", None),
        ("push", "new"),
    ]


def test_a_push_has_the_place_of_its_document(known: Known, store: Store) -> None:
    def places() -> list[tuple[str, int | None]]:
        return [(order.op.value, order.archived) for order in store.orders("index", 10, now=NOW)]

    known.discover(A, B, C)
    known.record(known.page(A, "one", archived=PLACE), known.page(C, "two"))
    assert places() == [("push", PLACE), ("push", None)]
    store.move_archived([(known.get(A).id, PLACE, LATER)])
    assert places() == [("push", LATER), ("push", None)]
    known.acknowledge_all()
    store.push_again({known.get(A).id: GIVEN})
    assert places() == [("push", LATER)]
    known.record(known.change(A, checksum=None, state=State.GONE, archived=PLACE))
    assert places() == [("delete", None)]


def test_a_push_whose_url_has_no_document_any_more_has_no_place(known: Known, store: Store) -> None:
    known.discover(A, B)
    known.record(known.page(A, "one", archived=PLACE), known.page(B, "two", archived=LATER))
    known.record(known.change(A, checksum=None, keep_in_index=True, state=State.EXCLUDED, status=761, archived=LATER))
    assert [(order.document and order.document.text, order.archived) for order in store.orders("index", 10, now=NOW)] == [
        ("text of one", None),
        ("text of two", LATER),
    ]


def test_what_has_left_is_not_pushed_again(known: Known, store: Store) -> None:
    known.crawled((A, "one"))
    known.discover(new(C))
    known.record(known.change(A, checksum=None, keep_in_index=True, state=State.EXCLUDED, status=761))
    assert store.push_again({known.get(A).id: GIVEN, known.get(C).id: GIVEN}) == []
    assert known.orders() == []
