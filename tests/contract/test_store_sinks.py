"""What every store does for several sinks: orders for one of them alone, sinks that come and go, orders that are withdrawn."""

from __future__ import annotations

import json

import pytest

from crawlspace.document import Document
from crawlspace.model import State
from crawlspace.state.order_times import EVERY_S, MOST, ORDER_TIMES
from crawlspace.state.store import Store
from crawlspace.status import Status
from tests.contract.conftest import NOW, Known, full

A, B, C, D = "a.example/", "b.example/", "c.example/", "d.example/"
LEFT = {"checksum": None, "keep_in_index": True, "state": State.EXCLUDED, "status": Status.EXCLUDED_HERE}
GIVEN = Document(full(A), title="archived", text="its archived text")


def orders(store: Store, sink: str) -> list[str]:
    """Its orders, each with the text that is pushed."""
    return [
        f"{order.op.value} {order.url.removeprefix('http://')}{'' if order.document is None else f' {order.document.text}'}"
        for order in store.orders(sink, 10, now=NOW)
    ]


def test_a_document_is_pushed_again_to_one_sink_alone(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "two"))
    assert store.push_again({known.get(A).id: GIVEN, known.get(B).id: None}, sink="log") == [known.get(B).id]
    assert (orders(store, "index"), orders(store, "log")) == ([], ["push a.example/ its archived text"])
    assert (store.counts().outbox, store.backlog("index"), store.backlog("log")) == (1, 0, 1)


def test_what_waits_for_the_others_stays_as_it_is(known: Known, store: Store) -> None:
    known.discover(A)
    known.record(known.page(A, "one", text="new"))
    store.push_again({known.get(A).id: GIVEN}, sink="log")
    assert (orders(store, "index"), orders(store, "log")) == (["push a.example/ new"], ["push a.example/ its archived text"])
    assert store.counts().outbox == 2


def test_pushes_are_withdrawn_and_deletions_stay(known: Known, store: Store) -> None:
    known.crawled((A, "one"))
    known.discover(B)
    known.record(known.page(B, "two", text="b"), known.change(A, checksum=None, state=State.GONE))
    store.withdraw("log", deletes=False)
    assert (orders(store, "log"), orders(store, "index")) == (["delete a.example/"], ["delete a.example/", "push b.example/ b"])
    assert (store.counts().outbox, store.backlog("log")) == (3, 1)
    store.withdraw("log", deletes=True)
    assert (orders(store, "log"), store.backlog("log"), store.counts().outbox) == ([], 0, 2)


def test_so_are_parked_ones(known: Known, store: Store) -> None:
    known.discover(A, B)
    known.record(known.page(A, "one"), known.page(B, "two"))
    store.park("log", store.orders("log", 1, now=NOW)[0], "no")
    assert (store.counts().parked, len(store.parked("log"))) == (1, 1)
    store.withdraw("log", deletes=False)
    assert (store.counts().parked, store.counts().outbox, store.parked("log")) == (0, 2, [])


def test_parked_orders_wait_again_where_they_were(known: Known, store: Store) -> None:
    known.crawled((A, "one"))
    known.discover(B, C)
    known.record(known.page(B, "two", text="b"), known.page(C, "three", text="c"))
    known.record(known.change(A, checksum=None, state=State.GONE))
    for order in store.orders("log", 10, now=NOW):
        store.park("log", order, "no")
    known.record(known.page(B, "four", text="new"))
    assert (orders(store, "log"), store.backlog("log")) == (["push b.example/ new"], 1)
    assert (store.unpark("log"), store.unpark("log"), store.parked("log")) == (2, 0, [])
    waiting = ["delete a.example/", "push c.example/ c", "push b.example/ new"]
    assert (orders(store, "log"), store.backlog("log")) == (waiting, 3)
    assert (orders(store, "index"), store.counts().outbox, store.counts().parked) == (waiting, 6, 0)
    order = store.orders("log", 1, now=NOW)[0]
    store.park("log", order, "not yet")
    assert [reason for _, _, reason in store.parked("log")] == ["not yet"]
    store.unpark("log")
    store.acknowledge("log", [order])
    assert orders(store, "log") == waiting[1:]


def test_only_those_of_that_sink(known: Known, store: Store) -> None:
    known.discover(A)
    known.record(known.page(A, "one", text="a"))
    for sink in ("index", "log"):
        store.park(sink, store.orders(sink, 1, now=NOW)[0], "no")
    assert (store.unpark("log"), store.unpark("former")) == (1, 0)
    assert (orders(store, "index"), orders(store, "log")) == ([], ["push a.example/ a"])
    assert [url for _, url, _ in store.parked("index")] == [full(A)]


def test_a_document_that_was_parked_is_sent_as_it_was_when_it_left(known: Known, store: Store) -> None:
    known.discover(A)
    known.record(known.page(A, "one", text="a"))
    store.park("log", store.orders("log", 1, now=NOW)[0], "no")
    known.record(known.change(A, checksum=None, state=State.EXCLUDED, status=761, keep_in_index=True))
    store.unpark("log")
    assert orders(store, "log") == ["push a.example/ a"]


def test_a_text_that_only_a_withdrawn_order_needed_goes(known: Known, store: Store) -> None:
    known.discover(A)
    known.record(known.page(A, "one", text="a"))
    store.acknowledge("index", store.orders("index", 10, now=NOW))
    assert store.push_again({known.get(A).id: None}, sink="index") == []
    store.acknowledge("index", store.orders("index", 10, now=NOW))
    store.withdraw("log", deletes=False)
    assert store.push_again({known.get(A).id: None}) == [known.get(A).id]


@pytest.mark.parametrize("sinks", [("index",), ("index", "new"), ("log", "new"), ()])
def test_orders_are_given_to_the_sinks_of_now(known: Known, store: Store, sinks: tuple[str, ...]) -> None:
    known.discover(A)
    known.record(known.page(A, "one", text="a"))
    store.use_sinks(sinks)
    known.discover(B)
    known.record(known.page(B, "two", text="b"))
    before = {"index": ["push a.example/ a"], "log": ["push a.example/ a"], "new": list[str]()}
    for sink, waiting in before.items():
        assert orders(store, sink) == waiting + (["push b.example/ b"] if sink in sinks else [])


def test_an_order_that_waits_for_a_former_sink_is_not_replaced(known: Known, store: Store) -> None:
    known.discover(A)
    known.record(known.page(A, "one", text="a"))
    store.use_sinks(("index",))
    known.record(known.change(A, checksum=None, state=State.GONE))
    assert orders(store, "index") == ["delete a.example/"]
    assert store.backlog("log") == 1


def test_a_url_knows_its_last_push_to_all(known: Known, store: Store) -> None:
    known.discover(A, B)
    known.record(known.page(A, "one"), known.page(B, "two"))
    numbers = [order.sequence for order in store.orders("log", 10, now=NOW)]
    assert [known.get(A).ordered, known.get(B).ordered] == numbers
    assert [one.ordered for one in store.scan(0, 10)] == numbers
    known.record(known.change(A))  # as after an answer that it has not changed
    store.push_again({known.get(A).id: GIVEN}, sink="log")
    assert known.get(A).ordered == numbers[0]
    store.push_again({known.get(A).id: GIVEN})
    assert known.get(A).ordered == store.orders("index", 10, now=NOW)[-1].sequence > numbers[1]


def test_the_one_that_follows_in_a_group_has_a_push_of_its_own(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "one"))
    assert known.get(B).ordered == 0
    known.record(known.change(A, checksum=None, state=State.GONE))
    assert known.get(B).ordered == store.orders("index", 10, now=NOW)[-1].sequence


def test_which_urls_have_an_order(known: Known, store: Store) -> None:
    known.discover(A, B)
    known.record(known.page(A, "one"), known.page(B, "two"))
    store.park("log", store.orders("log", 1, now=NOW)[0], "no")
    store.acknowledge("index", store.orders("index", 1, now=NOW))
    assert store.ordered("log", [full(A), full(B), full(C)]) == {full(A): True, full(B): False}
    assert store.ordered("index", [full(A), full(B), full(C)]) == {full(B): False}
    assert (store.ordered("new", [full(A)]), store.ordered("log", [])) == ({}, {})


def test_what_is_not_in_the_index_is_deleted_again_from_one_sink(known: Known, store: Store) -> None:
    known.crawled((A, "one"), (B, "two"))
    known.record(known.change(B, checksum=None, state=State.GONE), known.change(A, **LEFT))
    for sink in ("index", "log"):
        store.acknowledge(sink, store.orders(sink, 10, now=NOW))
    known.crawled((D, "three"))
    assert store.in_index([full(A), full(B), full(C), full(D)]) == {full(A), full(D)}
    store.delete_again("log", [full(C), full(B), full(A), full(D), full(C)])
    assert (orders(store, "log"), orders(store, "index")) == (["delete b.example/", "delete c.example/"], [])
    assert (store.backlog("log"), store.counts().outbox) == (2, 2)
    store.acknowledge("log", store.orders("log", 10, now=NOW))
    assert (store.backlog("log"), store.counts().outbox) == (0, 0)


def test_a_push_that_waits_is_replaced_by_it(known: Known, store: Store) -> None:
    known.discover(A)
    known.record(known.page(A, "one"))
    store.park("log", store.orders("log", 1, now=NOW)[0], "no")
    known.record(known.change(A, checksum=None, state=State.GONE))
    store.park("log", store.orders("log", 1, now=NOW)[0], "no")
    store.delete_again("log", [full(A)])
    assert (orders(store, "log"), store.parked("log")) == (["delete a.example/"], [])


def test_the_time_of_the_oldest_order_is_known_within_a_minute(known: Known, store: Store) -> None:
    assert store.waiting_since("index") is None
    given = (0, 10, 59, 60, 200, 1_000, 5_000)
    urls = [f"a.example/{after_s}" for after_s in given]
    known.discover(*urls)
    for after_s, url in zip(given, urls, strict=True):
        known.record(known.page(url, url), now=NOW + after_s)
    for after_s in given:
        since = store.waiting_since("index")
        assert since is not None
        assert NOW + after_s <= since <= NOW + after_s + EVERY_S
        store.acknowledge("index", store.orders("index", 1, now=NOW))
    assert store.waiting_since("index") is None
    assert store.waiting_since("log") == NOW + 60
    order = store.orders("log", 1, now=NOW)[0]
    store.park("log", order, "refused")
    assert store.waiting_since("log") == NOW + 60


@pytest.mark.parametrize("value", ["", "{", "[]", "[1]", "[[2, 1], [1, 1]]", '[["x", 1]]'])
def test_damaged_times_of_orders_count_as_none(known: Known, store: Store, value: str) -> None:
    store.set_meta(ORDER_TIMES, value)
    known.discover(A)
    known.record(known.page(A, "one"))
    since = store.waiting_since("index")
    assert since is None or since >= NOW


def test_times_of_orders_take_little_space(known: Known, store: Store) -> None:
    known.discover(A)
    for minute in range(3 * MOST):
        known.record(known.page(A, str(minute)), now=NOW + 60 * minute)
    kept = store.get_meta(ORDER_TIMES)
    if kept is not None:  # the one in memory has them elsewhere
        assert MOST // 2 < len(json.loads(kept)) <= MOST
        assert json.loads(kept)[0][0] == 1
    assert store.waiting_since("index") == NOW + 60 * 3 * MOST
    store.acknowledge("index", store.orders("index", 1, now=NOW))
    known.record(known.page(A, "last"), now=NOW)
    assert store.waiting_since("index") == NOW + 60, "the clock was set back"
