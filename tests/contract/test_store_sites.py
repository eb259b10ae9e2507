"""What a store keeps of sites beside their URLs: which cannot be reached, how many documents each has, and their schemes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from crawlspace.model import State
from crawlspace.state.changes import Reclassified
from crawlspace.state.store import Store
from crawlspace.state.unreachable import ALL_SCHEMES, UnreachableSite
from tests.contract.conftest import NOW, Known, new

A, B = "a.example:80", "b.example:80"
ROW = UnreachableSite(A, 612, since=NOW - 9, runs=2, counted_at=NOW)


def test_the_row_of_a_site_is_replaced_and_removed(open_store: Callable[[], Store]) -> None:
    store = open_store()
    assert store.unreachable() == []
    store.set_unreachable(B, UnreachableSite(B, 680, NOW, 1, NOW, "the name é does not exist"))
    store.set_unreachable(A, UnreachableSite(A, 613, NOW - 9, 1, NOW - 9))
    store.set_unreachable(A, ROW)
    assert store.unreachable() == [ROW, UnreachableSite(B, 680, NOW, 1, NOW, "the name é does not exist")]
    if not hasattr(store, "_unreachable"):  # one in memory keeps nothing
        with closing(open_store()) as again:
            assert again.unreachable() == store.unreachable()
    store.set_unreachable(A, None)
    store.set_unreachable("unknown.example:80", None)
    assert [row.site for row in store.unreachable()] == [B]


def test_documents_are_counted_by_site(known: Known) -> None:
    store = known.store
    known.crawled(("a.example/1", "one"), ("a.example/2", "two"), ("b.example/long", "one"), ("b.example/2", "three"))
    counts = [store.documents([A, B, "unknown:80"])]
    known.record(known.change("a.example/1", forget=True))  # its duplicate at the other host takes its place
    counts.append(store.documents([A, B]))
    known.record(known.change("b.example/2", checksum=None, state=State.EXCLUDED, status=2004))
    counts.append(store.documents([A, B]))
    store.reclassify(Reclassified(excluded=[known.get("a.example/2").id], given_up=[known.get("b.example/long").id]), now=NOW)
    counts.append(store.documents([A, B]))
    assert counts == [{A: 2, B: 1, "unknown:80": 0}, {A: 1, B: 2}, {A: 1, B: 1}, {A: 0, B: 0}]


def test_what_is_out_of_the_crawl_space_or_missing_does_not_count_as_a_url_of_its_host(known: Known) -> None:
    store = known.store
    known.crawled(("a.example/1", "one"), ("a.example/2", "two"), ("http://a.example:8080/3", "three"))
    known.discover("a.example/4", "a.example/5")
    counts = [store.host_count("a.example")]

    def ids(*urls: str) -> list[int]:
        return [known.get(url).id for url in urls]

    steps = [
        Reclassified(excluded=ids("a.example/1"), given_up=ids("http://a.example:8080/3")),
        Reclassified(excluded=ids("a.example/1"), unindexed=ids("a.example/2")),
        Reclassified(returned=ids("a.example/1")),
        Reclassified(unindexed=ids("http://a.example:8080/3")),
    ]
    for step in steps:
        store.reclassify(step, now=NOW)
        counts.append(store.host_count("a.example"))
    for change in (
        known.change("a.example/4", state=State.EXCLUDED, status=760),
        known.change("a.example/5", state=State.EXCLUDED, status=740),
        known.change("a.example/4", forget=True),
        known.change("a.example/5", state=State.GONE, status=404),
    ):
        known.record(change)
        counts.append(store.host_count("a.example"))
    assert counts == [5, 3, 3, 4, 5, 4, 4, 4, 3]
    assert store.known_of_host("a.example") == 4


@pytest.mark.parametrize(
    ("urls", "site", "schemes"),
    [
        (["http://a.example:8080/"], "a.example:8080", {"http"}),
        (["https://a.example:8080/"], "a.example:8080", {"https"}),
        (["http://a.example:8080/", "https://a.example:8080/x"], "a.example:8080", {"http", "https"}),
        (["http://a.example/"], A, {"http"}),
        (["https://a.example/"], "a.example:443", {"https"}),
        (["https://a.example:80/", "http://a.example/"], A, {"http", "https"}),
        (["http://a.example/"], "unknown.example:8080", ALL_SCHEMES),
    ],
)
def test_schemes_of_a_site(known: Known, urls: list[str], site: str, schemes: set[str]) -> None:
    known.discover(*map(new, urls))
    assert known.store.schemes(site) == schemes


def test_a_wait_is_kept_with_its_length(store: Store) -> None:
    store.wait_site(A, NOW + 5, wait_s=7)
    assert [(site.wait_until, site.wait_s) for site in store.sites()] == [(NOW + 5, 7)]
