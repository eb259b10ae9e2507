"""What every store does with documents that leave a collection and not the index, with held deletions, and with many URLs at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from crawlspace.document import Document
from crawlspace.model import Held, Queue, Source, State, UrlState
from crawlspace.state.changes import Change, Effects, Reclassified
from crawlspace.state.duplicates import NO_PAGE
from crawlspace.state.lifecycle import excluded
from crawlspace.state.site_health import NEW_SITE, Health
from crawlspace.state.store import Store
from crawlspace.state.views import KnownUrl
from crawlspace.status import Status
from tests.contract.conftest import NOW, Known, full, key, new, short
from tests.due_times import make_all_due_by

A, B, C, D = "a.example/", "a.example/bb", "a.example/ccc", "b.example/"
HERE = {"checksum": None, "keep_in_index": True, "state": State.EXCLUDED, "status": Status.EXCLUDED_HERE}


def test_a_document_left_in_the_index_gets_no_order(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "one"), (C, "two"))
    effects = known.record(known.change(A, **HERE), known.change(C, **HERE))
    assert (effects.pushes, effects.deletes, known.orders()) == (1, 0, [("push", B)])
    assert (store.counts().indexed, known.get(A).indexed, known.get(A).checksum) == (1, False, None)


def test_an_order_that_waits_is_sent_as_it_was(known: Known, store: Store) -> None:
    known.discover(A, C)
    known.record(known.page(A, "one", text="its text"), known.page(C, "two"))
    known.record(known.change(C, checksum=None))
    before = store.orders("index", 10, now=NOW)
    known.record(known.change(A, **HERE), known.change(C, **HERE))
    assert store.orders("index", 10, now=NOW) == before
    assert before[1].document == Document(full(A), title=f"title of {A}", text="its text")
    known.acknowledge_all()
    assert known.orders() == []


# what is recorded for a URL that has left its document in the index -> orders then
TAKEN_BACK = [
    ("it is still outside", HERE, []),
    ("it is pending again", {"state": State.PENDING, "status": None}, []),
    ("it cannot be reached", {"state": State.FAILED, "status": 503}, []),
    ("its site is broken", {"state": State.GONE, "status": 500}, []),
    ("it is gone", {"state": State.GONE, "status": 404}, [("delete", A)]),
    ("it is gone, and its deletion is held", {"state": State.GONE, "status": 404, "held": Held.MANY}, []),
    ("a change of the rules would delete it, and that is held", {**HERE, "held": Held.RULES}, []),
    ("it redirects", {"state": State.REDIRECTED, "status": 301}, [("delete", A)]),
    ("it is in no crawler's space any more", {"state": State.EXCLUDED, "status": 760}, [("delete", A)]),
    ("it is forgotten", {"forget": True}, [("delete", A)]),
    ("it is a document", {"checksum": b"one", "document": Document("")}, [("push", A)]),
    ("it is the duplicate of another one", {"checksum": b"two", "document": Document(""), "canonical": key(C)}, [("delete", A)]),
]


@pytest.mark.parametrize(("title", "fields", "orders"), TAKEN_BACK, ids=[row[0] for row in TAKEN_BACK])
def test_a_document_left_in_the_index_is_not_left_for_ever(
    known: Known, title: str, fields: dict[str, object], orders: list[tuple[str, str]]
) -> None:
    known.crawled((A, "one"), (C, "two"))
    known.record(known.change(A, **HERE))
    known.record(known.change(A, **{"checksum": None, **fields}))
    delete_or_push_of_it = [order for order in known.orders() if order[1] == A]
    assert delete_or_push_of_it == orders


def test_what_was_never_indexed_leaves_nothing_behind(known: Known) -> None:
    known.crawled((A, "one"), (B, "one"))
    known.record(known.change(B, **HERE))
    known.acknowledge_all()
    known.record(known.change(B, state=State.GONE, status=404, checksum=None))
    assert known.orders() == []


def test_held_deletions(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "one"), (C, "two"))
    known.record(
        known.change(A, checksum=b"one", held=Held.HOST, held_mark=7),
        known.change(B, checksum=b"one", held=Held.MANY),
        known.change(C, checksum=b"two", held=Held.RULES),
    )
    assert [(known.get(url).held, known.get(url).held_mark) for url in (A, B)] == [(Held.HOST, 7), (Held.MANY, 0)]
    assert ([short(state.url) for state in store.urls(held=True)], sum(store.held_numbers().values())) == ([A, C], 2)
    assert [short(state.url) for state in store.urls(held=True, host="a.example", status=404)] == []
    host_of_c = known.get(C).site.partition(":")[0]
    assert store.held_numbers() == {(Held.HOST, known.get(A).site): 1, (Held.RULES, known.get(C).site): 1}
    for reason, urls in ((Held.HOST, [A]), (Held.RULES, [C]), (Held.MANY, [])):
        assert [short(state.url) for state in store.urls(reason=reason)] == urls, "B is represented by A"
    assert [short(state.url) for state in store.urls(held=True, host=host_of_c, reason=Held.RULES)] == [C]
    assert [short(state.url) for state in store.urls(held=True, after=known.get(A).id)] == [C]
    assert [short(state.url) for state in store.urls(after=known.get(B).id)] == [C]
    known.record(known.change(A, forget=True), known.change(C, checksum=b"two", held=None))
    assert ([short(state.url) for state in store.urls(held=True)], sum(store.held_numbers().values())) == ([B], 1)
    assert store.held_numbers() == {(Held.MANY, known.get(B).site): 1}


def test_the_health_of_sites_comes_with_the_outcomes(known: Known, store: Store, open_store: Callable[[], Store]) -> None:
    known.discover(A, D)
    store.record([known.change(A)], now=NOW, health={"a.example:80": Health(3, 0b101), "new.example:80": Health(1, 0b10)})
    store.record([], now=NOW, health={"a.example:80": Health(4, 0b1010, 0b10, (0, 4_294_967_295))})
    assert [store.health(f"{host}.example:80") for host in "abnew"[:2]] == [Health(4, 0b1010, 0b10, (0, 4_294_967_295)), NEW_SITE]
    assert (store.health("new.example:80"), store.health("other.example:80")) == (Health(1, 0b10), NEW_SITE)
    assert (store.counts().hosts, len(list(store.sites()))) == (2, 1)


def revised(known: Known, urls: list[str], change: Callable[[UrlState], Change | None]) -> Effects:
    return known.store.revise([known.get(url).id for url in urls] + [4711], change, now=NOW)


def test_revising_reads_what_is_there_now(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "one"), (C, "two"))
    seen: list[str] = []

    def change(state: UrlState) -> Change | None:
        seen.append(short(state.url))
        return None if state.url == full(C) else Change(state, forget=True)

    effects = revised(known, [C, B, A, B], change)
    assert (seen, effects.deletes, store.counts().by_state) == ([C, B, A], 1, {"done": 1})
    assert known.orders() == [("delete", A)]


def test_a_revision_that_breaks_changes_nothing(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "two"))
    before = list(store.urls())

    def change(state: UrlState) -> Change | None:
        return Change(state, forget=1 // (state.id - 2) == -1)

    with pytest.raises(ZeroDivisionError):
        revised(known, [A, B], change)
    assert list(store.urls()) == before
    assert known.record(known.change(A, forget=True)).deletes == 1


def reclassified(known: Known, **urls: list[str]) -> Effects:
    found = Reclassified(**{kind: [known.get(url).id for url in them] for kind, them in urls.items()})  # type: ignore[arg-type]
    return known.store.reclassify(found, now=NOW + 5)


# kind, URLs (A and B are equal pages, C another one, D is pending) -> orders, still indexed
RECLASSIFIED = [
    ("excluded", [C], [("delete", C)], [A]),
    ("excluded", [A], [("delete", A), ("push", B)], [B, C]),
    ("excluded", [B], [("push", A)], [A, C]),
    ("excluded", [A, B], [("delete", A)], [C]),
    ("excluded", [A, B, C, D], [("delete", A), ("delete", C)], []),
    ("given_up", [C, D], [], [A]),
    ("given_up", [A, C], [("push", B)], [B]),
    ("held", [A, C], [("push", B)], [A, B, C]),
    ("returned", [A, C], [], [A, C]),
]


@pytest.mark.parametrize(("kind", "urls", "orders", "indexed"), RECLASSIFIED)
def test_what_a_change_of_the_rules_does_to_the_index(
    known: Known, store: Store, kind: str, urls: list[str], orders: list[tuple[str, str]], indexed: list[str]
) -> None:
    known.crawled((A, "one"), (B, "one"), (C, "two"))
    known.discover(D)
    effects = reclassified(known, **{kind: urls})
    assert known.orders() == orders
    assert (effects.pushes + effects.deletes, store.counts().indexed) == (len(orders), len(indexed))
    assert [short(state.url) for state in store.urls() if state.indexed] == indexed


def test_what_is_excluded_is_known_and_nothing_more(known: Known, store: Store) -> None:
    known.discover(A, B, D)
    known.record(
        known.page(
            A, "one", etag="e", last_modified="m", interval_s=9, next_fetch=NOW, errors=2, retries=1, canonical=5, rules=3
        ),
        known.page(B, "two", held=Held.HOST, held_mark=2, links=[key("a.example/lost")]),
    )
    known.leased("b.example")
    before = {url: known.get(url) for url in (A, B, D)}
    reclassified(known, excluded=[A, D], given_up=[B])
    for url, status in ((A, Status.EXCLUDED), (D, Status.EXCLUDED), (B, Status.EXCLUDED_HERE)):
        assert known.get(url) == structs.replace(excluded(before[url], status), indexed=False)
    counts = store.counts()
    assert (counts.by_state, counts.by_status, counts.retrying) == ({"excluded": 3}, {760: 2, 761: 1}, 0)
    assert store.lost_links([before[B].id]) == {before[B].id}
    assert store.reclassify(Reclassified([4711], [4712], [4713], [4714]), now=NOW) == Effects()


def left(known: Known) -> tuple[list[str], list[str], int, int]:
    """URLs whose document was left in the index, as a look at them and a scan say; and how many there are, and are held."""
    found = known.store.left_to_others([state.id for state in known.store.urls()])
    scanned = [short(one.url) for one in known.store.scan(0, 99) if one.left_to_others]
    numbers = known.store.counts().left_to_others, sum(known.store.held_numbers().values())
    return [short(state.url) for state in known.store.urls() if state.id in found], scanned, *numbers


def test_what_was_left_to_others_is_known_held_and_let_go(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "two"), (C, "three"))
    known.discover(D)
    assert left(known) == ([], [], 0, 0)
    reclassified(known, given_up=[A, B, D])
    assert left(known) == ([A, B], [A, B], 2, 0)
    reclassified(known, held=[A, B])
    assert left(known) == ([A, B], [A, B], 2, 2)
    assert [(short(state.url), state.status, state.held) for state in store.urls(held=True)] == [
        (url, 761, Held.RULES) for url in (A, B)
    ]
    reclassified(known, returned=[A], given_up=[B])
    assert left(known) == ([A, B], [A, B], 2, 0)
    assert [(known.get(url).held, known.get(url).held_mark) for url in (A, B)] == [(None, 0)] * 2
    reclassified(known, held=[B])
    known.record(known.change(B, checksum=None, state=State.EXCLUDED, status=760, held=None))
    assert (left(known), known.orders()) == (([A], [A], 1, 0), [("delete", B)])
    known.crawled((A, "again"))
    assert left(known) == ([], [], 0, 0)
    assert store.left_to_others([]) == set()


def test_what_was_left_to_others_and_fails_is_held(known: Known, store: Store) -> None:
    known.crawled((A, "one"))
    known.discover(B)
    reclassified(known, given_up=[A, B])
    reclassified(known, returned=[A, B])
    failed = {"state": State.FAILED, "status": 612, "checksum": None, "held": Held.HOST, "held_mark": 7}
    known.record(known.change(A, **failed), known.change(B, **failed))
    assert (left(known), known.orders()) == (([A], [A], 1, 1), [])
    assert [short(state.url) for state in store.urls(held=True)] == [A]
    known.record(known.change(A, forget=True), known.change(B, forget=True))
    assert (left(known), known.orders()) == (([], [], 0, 0), [("delete", A)])


def test_what_is_held_and_what_returns(known: Known, store: Store) -> None:
    known.discover(A, B, C, D)
    known.record(known.page(A, "one", next_fetch=NOW, retries=1, rules=3), known.page(B, "two", next_fetch=NOW, rules=3))
    reclassified(known, held=[A], excluded=[B], given_up=[C])
    held = known.get(A)
    assert (held.held, held.next_fetch, held.retries, held.indexed, sum(store.held_numbers().values())) == (
        Held.RULES,
        None,
        0,
        True,
        1,
    )
    effects = reclassified(known, returned=[A, B, C, D])
    assert (effects.pending_sites, effects.pushes, effects.deletes) == ({"a.example:80": 2}, 0, 0)
    assert [(known.get(url).state, known.get(url).status) for url in (B, C, D)] == [(State.PENDING, None)] * 3
    back = known.get(A)
    assert (back.held, back.next_fetch, back.rules, back.state) == (None, NOW + 5, 0, State.DONE)
    assert known.leased("a.example", now=NOW + 5) == [B, C, A]


def test_what_is_given_up_twice_can_still_be_deleted(known: Known) -> None:
    known.crawled((A, "one"), (C, "two"))
    for kind in ("given_up", "given_up", "returned", "given_up"):
        assert reclassified(known, **{kind: [A]}).deletes == 0
    assert reclassified(known, excluded=[A, C]).deletes == 2
    assert known.orders() == [("delete", A), ("delete", C)]
    assert reclassified(known, excluded=[A]).deletes == 0


def test_hasten(known: Known, store: Store) -> None:
    known.discover(A, B, C, D)
    known.record(*(known.change(url, next_fetch=due) for url, due in ((A, NOW + 9), (B, NOW + 1), (C, None))))
    assert (make_all_due_by(store, NOW + 5), make_all_due_by(store, NOW + 5)) == (1, 0)
    assert [known.get(url).next_fetch for url in (A, B, C, D)] == [NOW + 5, NOW + 1, None, None]


def test_hasten_some(known: Known, store: Store) -> None:
    """Never more than a call may, in order of discovery; it says where it stopped, and where what is due sooner waits."""
    known.discover(A, B, C, D)
    dues = {A: (NOW + 9, NOW), B: (NOW + 9, NOW + 2), C: (NOW + 9, None), D: (NOW + 9, NOW)}
    known.record(*(known.change(url, next_fetch=due, fetched_at=at) for url, (due, at) in dues.items()))
    due = [(known.get(A).site, Queue(Source.REFRESH), NOW + 5)]
    ids = {url: known.get(url).id for url in dues}
    assert store.make_due_by(NOW + 5, limit=1, fetched_by=NOW + 1) == (1, ids[A], due)
    assert store.make_due_by(NOW + 5, after=ids[A], limit=1, fetched_by=NOW + 1) == (1, ids[C], due)
    assert store.make_due_by(NOW + 5, after=ids[C], limit=9, fetched_by=NOW + 1)[:2] == (1, 0)
    assert [known.get(url).next_fetch for url in dues] == [NOW + 5, NOW + 9, NOW + 5, NOW + 5]
    assert store.make_due_by(NOW + 5) == (1, 0, due)
    assert store.make_due_by(NOW + 5, after=ids[D]) == (0, 0, [])


def test_hasten_retries(known: Known, store: Store) -> None:
    known.discover(A, B, C, D)
    waits = {
        A: {"retries": 1, "next_fetch": NOW + 9},
        B: {"next_fetch": NOW + 9},
        C: {"requested_by": True, "next_fetch": NOW + 9},
    }
    known.record(*(known.change(url, **fields) for url, fields in waits.items()))
    assert (store.make_retries_due_by(NOW + 5), store.make_retries_due_by(NOW + 5)) == (2, 0)
    assert [known.get(url).next_fetch for url in (A, B, C, D)] == [NOW + 5, NOW + 9, NOW + 5, None]
    leased = store.lease(known.get(A).site, 9, now=NOW + 5, until=NOW + 60)
    assert (len(leased), store.make_retries_due_by(NOW + 1)) == (2, 0), "what is leased is not concerned"


def test_pages_that_lead_to_what_was_forgotten(known: Known, store: Store) -> None:
    known.discover(A, B, C, D)
    known.record(known.change(A, links=[key(B), key(C)]), known.change(B, links=[key(C)]), known.change(C, links=[]))
    ids = [known.get(url).id for url in (A, B, C, D)]
    assert store.lost_links([*ids, 4711]) == set()
    known.record(known.change(B, forget=True))
    assert store.lost_links(ids) == {ids[0]}
    known.record(known.change(C, forget=True))
    assert store.lost_links(ids) == {ids[0]}
    known.discover(B, C)
    assert store.lost_links(ids) == set()
    assert store.lost_links([]) == set()


def test_scanning(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "one"))
    known.discover(structs.replace(new(C, depth=2), host_as_written="A.example"), D)
    known.record(known.change(A, checksum=b"one", held=Held.MANY, status=404, next_fetch=NOW))
    assert store.scan(0, 10) == [
        KnownUrl(1, key(A), full(A), "a.example:80", State.DONE, 404, 0, None, True, True, Held.MANY, False, ordered=1),
        KnownUrl(2, key(B), full(B), "a.example:80", State.DONE, 200, 0, None, True, False, None, True),
        KnownUrl(3, key(C), full(C), "a.example:80", State.PENDING, None, 2, "A.example", False, False, None, False),
        KnownUrl(4, key(D), full(D), "b.example:80", State.PENDING, None, 0, None, False, False, None, False),
    ]
    assert [row.id for row in store.scan(1, 2)] == [2, 3]
    assert store.scan(4, 2) == []


def test_ones_own_writing_is_no_news(known: Known, store: Store) -> None:
    before = store.version()
    known.crawled((A, "one"))
    assert store.version() == before


def test_a_url_that_comes_back_is_counted_once_whatever_its_state_was(known: Known, store: Store) -> None:
    known.discover(A, B)
    known.record(known.change(A, state=State.PENDING, status=Status.EXCLUDED))
    known.record(known.change(B, state=State.EXCLUDED, status=Status.EXCLUDED, next_fetch=None))
    store.reclassify(Reclassified(returned=[known.get(A).id, known.get(B).id]), now=NOW)
    counts = store.counts()
    assert (counts.by_state, counts.by_status) == ({"pending": 2}, {})


def test_a_document_that_is_held_apart_names_no_page(known: Known, store: Store) -> None:
    """Whatever its page named before, and however often it is recorded."""
    known.crawled((A, "one"), (B, "two"))
    gone = {"state": State.REDIRECTED, "status": 301, "held": Held.MANY}
    known.record(known.change(A, **gone))
    own = known.get(A).checksum
    known.record(known.change(A, **gone, checksum=own, canonical=key(B), document=Document("", text="one")))
    assert known.get(A).canonical == NO_PAGE
    store.reclassify(Reclassified(held=[known.get(A).id]), now=NOW)
    assert (known.get(A).checksum, known.get(A).canonical) == (own, NO_PAGE)
