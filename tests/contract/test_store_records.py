"""What every store does with outcomes: states, forgetting, groups, the outbox, single values, and details of errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec import structs

from crawlspace.document import Document, Op
from crawlspace.model import Requester, Source, State
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.store import Store
from crawlspace.state.views import Counts, RobotsEntry
from tests.contract.conftest import NOW, SINKS, Known, full, key, new, short


def test_a_change_replaces_the_row_but_for_what_a_url_is_born_with(known: Known, store: Store) -> None:
    known.discover(new("a.example/x", source=Source.INDEX, depth=2))
    before = known.get("a.example/x")
    given = structs.replace(
        before,
        key=1,
        url="http://other.example/",
        site="other.example:80",
        rank=99,
        host_as_written="A.example",
        discovered_at=1,
        state=State.FAILED,
        status=503,
        source=Source.REFRESH,
        shift=2,
        redirects=1,
        fetched_at=NOW,
        next_fetch=NOW + 9,
        interval_s=3600,
        retries=1,
        errors=2,
        lease_until=NOW + 5,
        etag='"e"',
        last_modified="yesterday",
        rules=7,
        canonical=5,
        indexed=True,
        duplicate_of=4,
        detail="connection refused",
        history=b"\0\xff" * 23,
    )
    known.record(Change(given))
    born = {
        name: getattr(before, name) for name in ("key", "url", "site", "redirects", "rank", "host_as_written", "discovered_at")
    }
    assert known.get("a.example/x") == structs.replace(given, **born, lease_until=None, indexed=False, duplicate_of=None)


@pytest.mark.parametrize("requested_by", Requester)
def test_the_fetches_of_a_url_outlive_its_exclusion(known: Known, store: Store, requested_by: Requester) -> None:
    known.crawled(("a.example/x", "one"))
    known.record(known.change("a.example/x", checksum=b"one", history=b"\0\1", fetched_at=NOW, requested_by=requested_by))
    store.reclassify(Reclassified(excluded=[known.get("a.example/x").id]), now=NOW)
    state = known.get("a.example/x")
    assert (state.history, state.fetched_at, state.requested_by) == (b"\0\1", NOW, Requester.NOBODY)
    store.reclassify(Reclassified(returned=[state.id]), now=NOW)
    (leased,) = store.lease("a.example:80", 9, now=NOW, until=NOW + 9)
    assert (leased.history, leased.requested_by) == (b"\0\1", Requester.NOBODY)


def test_states_are_returned_as_copies(known: Known) -> None:
    known.discover("a.example/")
    known.get("a.example/").status = 999
    assert known.get("a.example/").status is None


def test_changes_and_what_they_discovered(known: Known, store: Store) -> None:
    known.discover("a.example/1", "a.example/2")
    effects = known.record(
        known.change("a.example/1", discovered=[new("a.example/3"), new("a.example/2")]),
        known.change("a.example/2", discovered=[new("a.example/3"), new("b.example/")]),
    )
    assert (effects.discovered, effects.pending_sites) == (2, {"a.example:80": 1, "b.example:80": 1})
    assert [short(state.url) for state in store.urls()] == ["a.example/1", "a.example/2", "a.example/3", "b.example/"]


def test_the_last_change_of_a_url_in_a_batch_wins(known: Known) -> None:
    known.discover("a.example/")
    known.record(known.page("a.example/", "one"), known.change("a.example/", status=304, checksum=b"one"))
    state = known.get("a.example/")
    assert (state.status, state.checksum, state.indexed) == (304, b"one", True)
    assert known.orders() == [("push", "a.example/")]


def test_a_forgotten_url_is_gone_and_its_id_is_never_used_again(known: Known, store: Store) -> None:
    known.discover("a.example/1", "a.example/2")
    late = known.change("a.example/2", discovered=[new("a.example/lost")])
    known.record(known.change("a.example/2", forget=True))
    assert store.get(full("a.example/2")) is None
    assert known.record(late).discovered == 0
    known.discover("a.example/2")
    assert known.get("a.example/2").id == 3
    known.record(late)
    assert known.get("a.example/2").state is State.PENDING
    assert store.get(full("a.example/lost")) is None


def test_forgotten_and_found_again_in_one_batch(known: Known) -> None:
    known.discover("a.example/1", "a.example/2")
    known.record(
        known.change("a.example/1", discovered=[new("a.example/2")]),
        known.change("a.example/2", forget=True),
        known.change("a.example/2", status=200),
    )
    assert (known.get("a.example/2").id, known.get("a.example/2").state) == (3, State.PENDING)


def test_a_forgotten_url_takes_its_document_along(known: Known) -> None:
    known.crawled(("a.example/1", "one"), ("a.example/2", "two"))
    known.record(known.change("a.example/1", forget=True))
    known.discover("a.example/3")
    known.record(known.change("a.example/3", forget=True))
    assert known.orders() == [("delete", "a.example/1")]


# what is recorded for a page that is indexed as `one` -> orders, indexed
ORDERS = [
    ("the same checksum, no document", {"checksum": b"one"}, [], True),
    ("a new document", {"checksum": b"two", "document": Document("")}, [("push", "a.example/")], True),
    ("the same checksum, a document", {"checksum": b"one", "document": Document("")}, [("push", "a.example/")], True),
    ("another checksum without a document", {"checksum": b"two"}, [], True),
    ("not wanted", {"checksum": None}, [("delete", "a.example/")], False),
    ("not wanted, whatever it says", {"checksum": None, "document": Document("")}, [("delete", "a.example/")], False),
    ("forgotten", {"forget": True}, [("delete", "a.example/")], None),
    ("forgotten, whatever it says", {"forget": True, "checksum": b"one"}, [("delete", "a.example/")], None),
]


@pytest.mark.parametrize(("title", "fields", "orders", "indexed"), ORDERS)
def test_orders(known: Known, store: Store, title: str, fields: dict[str, object], orders: object, indexed: bool | None) -> None:
    known.crawled(("a.example/", "one"))
    known.record(known.change("a.example/", **fields))
    state = store.get(full("a.example/"))
    assert known.orders() == orders
    assert (state.indexed if state else None) == indexed


def test_a_document_that_was_dropped_meanwhile_is_not_revived(known: Known) -> None:
    known.crawled(("a.example/", "one"))
    late = known.change("a.example/", checksum=b"one", status=304)
    known.record(known.change("a.example/", checksum=None))
    known.record(late)
    assert known.get("a.example/").checksum is None
    assert known.orders() == [("delete", "a.example/")]


# members: (url, redirects, the canonical it names), and who wins
GROUPS = [
    ("first discovered", [("a/bb", 0, None), ("a/aa", 0, None)], "a/bb"),
    ("shortest path", [("a/long", 0, None), ("a/s", 0, None)], "a/s"),
    ("fewest redirects before shortest path", [("a/s", 1, None), ("a/long", 0, None)], "a/long"),
    ("a named one first of all", [("a/s", 0, "a/long"), ("a/long", 3, None)], "a/long"),
    ("a name outside the group says nothing", [("a/long", 0, "a/x"), ("a/s", 0, None)], "a/s"),
    ("two that name each other", [("a/long", 0, "a/s"), ("a/s", 1, "a/long")], "a/long"),
]


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one after the other"])
@pytest.mark.parametrize(("title", "members", "representative"), GROUPS, ids=[row[0] for row in GROUPS])
def test_one_of_a_group(
    known: Known, store: Store, title: str, members: list[tuple[str, int, str | None]], representative: str, at_once: bool
) -> None:
    known.discover(*(new(url, redirects=redirects) for url, redirects, _ in members), "b/other")
    changes = [known.page(url, "same", canonical=key(named) if named else None) for url, _, named in members]
    for batch in [changes] if at_once else [[change] for change in changes]:
        known.record(*batch)
        known.acknowledge_all()
    best = known.get(representative)
    assert {short(state.url): (state.indexed, state.duplicate_of) for state in store.urls() if state.checksum} == {
        url: (True, None) if url == representative else (False, best.id) for url, _, _ in members
    }


def test_the_next_one_takes_the_place_of_a_representative_that_goes(known: Known) -> None:
    known.crawled(("a.example/", "one"), ("a.example/b", "one"), ("a.example/cc", "one"))
    assert known.get("a.example/").indexed
    known.record(known.page("a.example/", "two"))
    assert known.orders() == [("push", "a.example/"), ("push", "a.example/b")]
    known.acknowledge_all()
    known.record(known.change("a.example/b", forget=True))
    assert known.orders() == [("delete", "a.example/b"), ("push", "a.example/cc")]


def test_who_joins_better_takes_the_place(known: Known) -> None:
    known.crawled(("a.example/long", "one"))
    known.discover("a.example/")
    effects = known.record(known.page("a.example/", "one"))
    assert (effects.pushes, effects.deletes) == (1, 1)
    assert known.orders() == [("delete", "a.example/long"), ("push", "a.example/")]


def test_a_name_that_is_taken_back(known: Known) -> None:
    known.crawled(("a.example/", "one"), ("a.example/long", "one"))
    known.record(known.page("a.example/", "one", canonical=key("a.example/long")))
    assert known.get("a.example/long").indexed
    assert known.orders() == [("delete", "a.example/"), ("push", "a.example/long")]
    known.record(known.page("a.example/", "one", canonical=None))
    assert known.orders() == [("delete", "a.example/long"), ("push", "a.example/")]


def pushed(known: Known) -> Document:
    (order,) = [order for order in known.store.orders("index", 100, now=NOW) if order.op is Op.PUSH]
    assert order.document is not None
    return order.document


def test_the_document_as_it_is_now(known: Known, store: Store) -> None:
    known.discover("a.example/")
    sent = Document(
        full("a.example/"), "t", "d", "de", "text", ["h1", "h2"], "text/html", "2026", {"dept": "sales"}, ["http://not.kept/"]
    )
    known.record(known.change("a.example/", checksum=b"one", document=sent))
    sent.headings.append("changed afterwards")
    assert pushed(known) == replace(sent, headings=["h1", "h2"], duplicates=[])
    known.record(known.change("a.example/", checksum=b"one", document=replace(sent, title="new")))
    assert pushed(known).title == "new"


def test_duplicates_are_noted_on_the_representative(known: Known) -> None:
    known.crawled(("a.example/", "one"))
    known.discover("a.example/long", "a.example/b")
    known.record(known.page("a.example/long", "one", text="their text"), known.page("a.example/b", "one"))
    assert known.orders() == [("push", "a.example/")]
    document = pushed(known)
    assert document.duplicates == [full("a.example/b"), full("a.example/long")]
    assert (document.title, document.text) == ("title of a.example/", "their text")
    known.acknowledge_all()
    known.record(known.change("a.example/b", checksum=None))
    assert pushed(known).duplicates == [full("a.example/long")]


def test_a_text_is_there_for_whoever_needs_it(known: Known) -> None:
    """The text of a lone page that has been sent is let go; who joins its group brings it along."""
    known.crawled(("a.example/", "one"), ("a.example/other", "two"))
    known.record(known.page("a.example/other", "one", text="again"))
    assert pushed(known).text == "again"
    known.acknowledge_all()
    known.record(known.change("a.example/other", forget=True))
    assert pushed(known) == Document(full("a.example/"), title="title of a.example/", text="again")


def test_at_most_a_hundred_duplicates_are_noted(known: Known) -> None:
    urls = [f"a.example/{number:03}" for number in range(103)]
    known.crawled(*((url, "one") for url in urls[:102]))
    known.discover(urls[102])
    assert known.record(known.page(urls[102], "one")).pushes == 0  # it comes after the hundredth
    known.record(known.page(urls[0], "one"))
    assert [short(url) for url in pushed(known).duplicates] == urls[1:101]


def test_deletes_go_first_and_the_oldest_first(known: Known) -> None:
    known.crawled(("a.example/1", "one"), ("a.example/2", "two"), ("a.example/3", "three"))
    known.record(known.page("a.example/1", "uno"))
    known.record(known.change("a.example/3", checksum=None))
    known.record(known.change("a.example/2", checksum=None))
    assert known.orders() == [("delete", "a.example/3"), ("delete", "a.example/2"), ("push", "a.example/1")]
    sequences = [order.sequence for order in known.store.orders("index", 2, now=NOW)]
    assert len(sequences) == 2
    assert sequences == sorted(sequences)


# most bytes -> orders at once; a text has 11 bytes, and some stores count a little more than the text
LARGE = [(1, 1), (11, 1), (1_000, 3)]


@pytest.mark.parametrize(("most_bytes", "number"), LARGE)
def test_fewer_orders_where_their_documents_are_large(known: Known, store: Store, most_bytes: int, number: int) -> None:
    urls = [f"a.example/{n}" for n in range(4)]
    known.crawled(*((url, url) for url in urls))
    known.record(known.change(urls[3], checksum=None), *(known.page(url, f"new {url}") for url in urls[:3]))
    found = store.orders("index", 10, now=NOW, most_bytes=most_bytes)
    assert [order.op for order in found] == [Op.DELETE, *[Op.PUSH] * number], "an order without a document counts nothing"


def test_a_newer_order_takes_the_place_of_an_older_one(known: Known, store: Store) -> None:
    known.discover("a.example/")
    known.record(known.page("a.example/", "one"))
    old = store.orders("index", 10, now=NOW)
    known.record(known.change("a.example/", checksum=None))
    assert known.orders() == [("delete", "a.example/")]
    store.acknowledge("index", old)
    assert known.orders() == [("delete", "a.example/")]
    known.record(known.page("a.example/", "one"))
    assert known.orders() == [("push", "a.example/")]
    assert store.backlog("index") == 1


def test_each_sink_has_its_own_place(known: Known, store: Store) -> None:
    known.discover("a.example/1", "a.example/2")
    known.record(known.page("a.example/1", "one"), known.page("a.example/2", "two"))
    store.acknowledge("index", store.orders("index", 1, now=NOW))
    assert (known.orders("index"), store.backlog("index")) == ([("push", "a.example/2")], 1)
    assert (known.orders("log"), store.backlog("log")) == ([("push", "a.example/1"), ("push", "a.example/2")], 2)
    assert [order.document.text for order in store.orders("log", 1, now=NOW) if order.document] == ["text of one"]
    assert (known.orders("nobody"), store.backlog("nobody")) == ([], 0)


def test_a_parked_order_waits_for_a_newer_one(known: Known, store: Store) -> None:
    known.discover("a.example/")
    known.record(known.page("a.example/", "one"))
    (order,) = store.orders("index", 10, now=NOW)
    store.park("index", order, "too large")
    store.park("index", order, "too large")
    assert (known.orders(), store.backlog("index")) == ([], 0)
    assert store.parked("index") == [(Op.PUSH, full("a.example/"), "too large")]
    assert (store.counts().parked, store.counts().outbox) == (1, 1)  # the other sink's still waits
    known.record(known.page("a.example/", "two"))
    assert (known.orders(), store.parked("index")) == ([("push", "a.example/")], [])
    store.park("index", order, "an order that is no longer there")
    assert store.parked("index") == []


def test_counts(known: Known, store: Store) -> None:
    known.discover("a.example/1", "a.example/2", "a.example:8080/", "b.example/", "c.example/")
    known.record(
        known.page("a.example/1", "one"),
        known.change("a.example/2", state=State.FAILED, status=503, retries=1, next_fetch=NOW),
        known.change("c.example/", forget=True),
    )
    known.leased("b.example")
    assert store.counts() == Counts(
        by_state={"pending": 1, "done": 1, "failed": 1, "leased": 1},
        by_status={200: 1, 503: 1},
        indexed=1,
        outbox=2,
        parked=0,
        hosts=2,
        retrying=1,
    )
    known.leased("a.example", limit=2)
    assert store.counts().by_state == {"pending": 1, "done": 1, "leased": 2}
    assert [store.host_count(host) for host in ("a.example", "b.example", "c.example", "d.example")] == [3, 1, 0, 0]


# selection -> URLs
LOOKING = [
    ({}, ["a.example/1", "a.example/2", "a.example:8080/", "b.example/"]),
    ({"state": State.DONE}, ["a.example/1", "a.example:8080/"]),
    ({"status": 404}, ["a.example/2", "a.example:8080/"]),
    ({"host": "a.example"}, ["a.example/1", "a.example/2", "a.example:8080/"]),
    ({"leased": True}, ["b.example/"]),
    ({"state": State.DONE, "status": 404, "host": "a.example"}, ["a.example:8080/"]),
    ({"leased": True, "host": "a.example"}, []),
]


@pytest.mark.parametrize(("selection", "urls"), LOOKING)
def test_looking(known: Known, store: Store, selection: dict[str, object], urls: list[str]) -> None:
    known.discover("a.example/1", "a.example/2", "a.example:8080/", "b.example/")
    known.record(
        known.change("a.example/1", status=200),
        known.change("a.example/2", state=State.GONE, status=404),
        known.change("a.example:8080/", status=404),
    )
    known.leased("b.example")
    assert [short(state.url) for state in store.urls(**selection)] == urls  # type: ignore[arg-type]


def test_states_may_change_while_they_are_looked_at(known: Known, store: Store) -> None:
    known.discover(*(f"a.example/{number}" for number in range(2500)))
    seen = []
    for state in store.urls(state=State.PENDING):
        seen.append(state.id)
        if state.id % 500 == 0:
            known.record(Change(structs.replace(state, state=State.DONE)))
    assert seen == list(range(1, 2501))


def test_get_by_id(known: Known, store: Store) -> None:
    known.discover("a.example/")
    assert store.get_by_id(1) == known.get("a.example/")
    assert store.get_by_id(2) is None


def test_odds_and_ends_last(known: Known, store: Store) -> None:
    entry = RobotsEntry("a.example:80", "http", 200, "User-agent: *\n", NOW)
    store.save_robots(replace(entry, body=""))
    store.save_robots(entry)
    later = RobotsEntry("b.example:80", "https", 200, "", NOW + 1)
    store.save_robots(later)
    assert store.robots("b.example:80", "https") == later
    store.forget_robots(read_after=NOW)
    assert store.robots("b.example:80", "https") is None
    store.set_meta("rules", "old")
    store.set_meta("rules", "new")
    assert (store.robots("a.example:80", "http"), store.robots("a.example:80", "https")) == (entry, None)
    assert (store.get_meta("rules"), store.get_meta("else")) == ("new", None)
    store.check()


def test_a_value_is_replaced_only_where_it_is_as_it_was_read(store: Store) -> None:
    assert not store.replace_meta("value", "", "one")
    assert store.replace_meta("value", None, "one")
    assert not store.replace_meta("value", None, "two")
    assert not store.replace_meta("value", "two", "three")
    assert store.get_meta("value") == "one"
    assert store.replace_meta("value", "one", "")
    assert not store.replace_meta("value", None, "é")
    assert store.replace_meta("value", "", "é")
    assert store.replace_meta("value", "é", "two")
    assert store.get_meta("value") == "two"


def test_nothing_to_do(known: Known, store: Store) -> None:
    assert known.discover() == known.record()
    store.release([])
    store.acknowledge("index", [])
    assert (store.lease("a.example:80", 0, now=NOW, until=NOW), list(store.sites()), list(store.urls())) == ([], [], [])


@pytest.mark.parametrize("sink", SINKS)
def test_a_sent_order_does_not_come_back(known: Known, store: Store, sink: str, open_store: Callable[[], Store]) -> None:
    known.discover("a.example/")
    known.record(known.page("a.example/", "one"))
    orders = store.orders(sink, 10, now=NOW)
    store.acknowledge(sink, orders)
    store.acknowledge(sink, orders)
    assert known.orders(sink) == []


def test_the_detail_of_an_error_is_kept_until_the_page_is_another_one(known: Known, store: Store) -> None:
    failed = {"state": State.FAILED, "status": 614, "detail": "das Zertifikat für é.example ist abgelaufen"}
    gone = {"state": State.GONE, "status": 611, "detail": "no HTTP"}
    known.discover("a.example/x", "a.example/y", "a.example/z", "a.example/out")
    for url, fields in (("x", failed), ("y", gone), ("z", failed), ("out", gone)):
        known.record(Change(structs.replace(known.get(f"a.example/{url}"), **fields)))
    kept = [failed["detail"], gone["detail"], failed["detail"], gone["detail"]]
    assert [state.detail for state in store.urls()] == kept
    assert [state.detail for state in store.lease("a.example:80", 9, now=NOW, until=NOW + 9)] == []
    known.record(Change(structs.replace(known.get("a.example/z"), next_fetch=NOW)))
    assert [state.detail for state in store.lease("a.example:80", 9, now=NOW, until=NOW + 9)] == [failed["detail"]]
    known.record(known.page("a.example/x", "one", detail=None), known.change("a.example/y", forget=True))
    store.reclassify(Reclassified(excluded=[known.get("a.example/out").id]), now=NOW)
    assert [(short(state.url), state.detail) for state in store.urls()] == [
        ("a.example/x", None),
        ("a.example/z", failed["detail"]),
        ("a.example/out", None),
    ]
    known.discover("a.example/y")
    assert known.get("a.example/y").detail is None
