"""Damaged values of near duplicates in Redis count as none: nothing stops, and each page is in the index or noted on a page that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crawlspace.state.changes import Reclassified
from crawlspace.state.near_duplicates import NEAR_META
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker
from tests.contract.conftest import NOW, Known
from tests.contract.test_store_near_duplicates import GONE, OTHER, A, B, C, D, page, signature
from tests.quick import some

PREFIX = b"{shared}:"
VALUES: dict[str, Callable[[bytes], bytes]] = {
    "another": lambda _: b"no value that we write",
    "cut": lambda value: value[: len(value) // 2],
    "without its last byte": lambda value: value[:-1],
    "longer": lambda value: value + value + b"\xff",
    "empty": lambda _: b"",
    "of the largest bytes": lambda value: b"\xff" * len(value),
}
MEMBERS: dict[str, Callable[[Any, bytes], object]] = {
    "no ids": lambda client, name: client.sadd(name, "no id", "999999", "-1", "1.5"),
    "missing": lambda client, name: client.delete(name),
    "a string": lambda client, name: client.set(name, "x"),
    "a list": lambda client, name: (client.delete(name), client.rpush(name, "1")),
}
ACTS: dict[str, Callable[[Known], object]] = {
    "a page with a known text": lambda known: known.record(page(known, OTHER, "2")),
    "a page with a new text": lambda known: known.record(page(known, OTHER, "4")),
    "the representative goes": lambda known: known.record(known.change(A, **GONE)),
    "the representative gets another text": lambda known: known.record(page(known, A, "far")),
    "a member gets another text": lambda known: known.record(page(known, B, "9")),
    "a member goes": lambda known: known.record(known.change(B, **GONE)),
    "the representative names another page": lambda known: known.record(page(known, A, "0", D)),
    "pages leave the crawl space": lambda known: known.store.reclassify(Reclassified(excluded=[1, 2]), now=NOW),
    "a document is held": lambda known: known.store.reclassify(Reclassified(held=[1]), now=NOW),
    "looked up": lambda known: known.store.is_duplicate(5, checksum=b"4", canonical=None, simhash=signature("4")),
}


@pytest.fixture
def known(shared: RedisStore) -> Known:
    shared.set_meta(NEAR_META, "3")
    known = Known(shared)
    known.discover(A, B, C, D, OTHER)
    known.record(*(page(known, url, text) for url, text in ((A, "0"), (B, "2"), (C, "3"), (D, "far"))))
    return known


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("value", some([*VALUES, "missing"], 2))
@pytest.mark.parametrize("key", [b"near", b"near_text", b"near_bands", b"near_group"])
def test_damaged_values_count_as_none(known: Known, client: Any, key: bytes, value: str, act: str) -> None:
    values = client.hgetall(PREFIX + key)
    assert values
    client.delete(PREFIX + key)
    if value != "missing":
        client.hset(PREFIX + key, mapping={field: VALUES[value](old) for field, old in values.items()})
    assert_goes_on(known, act)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("members", MEMBERS)
@pytest.mark.parametrize("texts", [("0",), ("2", "3", "4", "9", "far")], ids=["of a group", "of texts that may be one"])
def test_damaged_groups_count_as_none(known: Known, client: Any, texts: tuple[str, ...], members: str, act: str) -> None:
    for text in texts:
        MEMBERS[members](client, PREFIX + b"near:" + text.encode())
    assert_goes_on(known, act)


def assert_goes_on(known: Known, act: str) -> None:
    states = {url: known.get(url) for url in (A, B, C, D, OTHER)}
    known.get = states.__getitem__  # type: ignore[method-assign, assignment]
    ACTS[act](known)
    assert_each_has_a_document(known)
    known.record(*(page(known, url, text) for url, text in ((A, "4"), (B, "far"), (OTHER, "6"))))
    known.record(page(known, A, "0"), known.change(C, **GONE))
    assert_each_has_a_document(known)


def assert_each_has_a_document(known: Known) -> None:
    found = list(known.store.urls())
    indexed = {state.id for state in found if state.indexed}
    assert all(state.id in indexed or state.duplicate_of in indexed for state in found if state.checksum is not None)
    assert known.store.counts().indexed == len(indexed)


def test_a_store_of_an_earlier_version_gets_the_bands_of_this_one(known: Known, shared: RedisStore, client: Any) -> None:
    client.delete(PREFIX + b"near_bands")
    client.hset(PREFIX + b"near_band", "17", b"entries of another form")
    of_text = signature("2") or b""
    assert shared.leading_text(of_text) is None
    worker = Worker(shared, timeout_s=1_000)
    assert worker.begin("rules") is None
    assert shared.leading_text(of_text) == b"0"
    assert not client.exists(PREFIX + b"near_band")
    worker.leave()
    bands = client.hgetall(PREFIX + b"near_bands")
    client.hset(PREFIX + b"near_band", "17", b"the first time was not complete")
    assert worker.begin("rules") is None
    assert client.hgetall(PREFIX + b"near_bands") == bands, "none is entered twice"
