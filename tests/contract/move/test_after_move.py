"""What follows later from what was done before a move."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from crawlspace.model import Source, State
from tests.contract.conftest import NOW, SINKS, Known, key, new
from tests.contract.memory.store import MemoryStore
from tests.contract.move.stores import WAYS, Stores, looking, seen
from tests.quick import some

RED, BLUE = '{"c":"red"}', '{"c":"blue"}'


@pytest.mark.parametrize(("here", "there"), WAYS)
def test_who_stands_for_a_group_stays(stores: Stores, here: str, there: str) -> None:
    """Although a page of another host has a better rank."""
    with looking(stores, here) as store:
        known = Known(store)
        known.discover("a.example/folder/", "a.example/other/folder/", "b.example/")
        known.record(known.page("a.example/folder/", "one"))
        known.record(known.page("b.example/", "one"), known.page("a.example/other/folder/", "one"))
    stores.move(here, there)
    with looking(stores, there) as store:
        known = Known(store)
        assert [state.indexed for state in store.urls()] == [True, False, False]
        known.record(known.page("a.example/other/folder/", "one"))
        assert known.get("b.example/").duplicate_of == 1
        known.record(known.change("a.example/folder/", forget=True))
        assert known.get("b.example/").indexed


def source_page(known: Known, url: str, link_metadata: str | None, *leads: str, rules: int = 1) -> None:
    """Have a page be fetched that hands something to those that it leads to."""
    found = [structs.replace(new(other), inherited=link_metadata) for other in leads]
    known.record(known.page(url, url, links=[one.key for one in found], discovered=found, rules=rules, next_fetch=NOW + 99_999))


def fetched(known: Known, *urls: str, fields: dict[str, str] | None = None) -> None:
    for url in urls:
        inherited = known.get(url).inherited
        page = known.page(url, url, inherited=inherited, next_fetch=NOW + 99_999, rules=1)
        assert page.document is not None
        page.document.fields = dict(fields or {})
        known.record(page)


def one_has_link_metadata(known: Known) -> None:
    known.discover("a.example/", "a.example/x", "b.example/")
    source_page(known, "a.example/", RED, "a.example/x")
    fetched(known, "a.example/x", fields={"c": "red"})


def left_behind(known: Known) -> None:
    known.crawled(("a.example/", "one"), ("a.example/x", "one"))
    leaves = known.change("a.example/", checksum=None, state=State.EXCLUDED, status=761, keep_in_index=True)
    known.record(leaves)
    known.acknowledge_all()


def two_with_one_text(known: Known) -> None:
    known.crawled(("a.example/", "one"), ("a.example/x", "one"), ("b.example/", "two"))
    known.record(known.page("b.example/", "two", canonical=key("a.example/")))
    known.acknowledge_all()


def named(known: Known, naming: int, page: int) -> None:
    """Have nine equal pages, of which one names another one as canonical, which would else come last."""
    urls = [f"a.example/{n}" for n in range(9)]
    urls[page] += "/and/so/on"
    known.discover(*urls)
    known.record(*(known.page(url, "one", canonical=key(urls[page]) if n == naming else None) for n, url in enumerate(urls)))


def leading_on(known: Known) -> None:
    known.discover(*(new(f"a.example/{n}", depth=n) for n in range(5)))
    for n in range(4):
        known.record(known.page(f"a.example/{n}", f"page {n}", links=[key(f"a.example/{n + 1}")]))


def due_changes(known: Known) -> None:
    one_has_link_metadata(known)
    source_page(known, "a.example/", BLUE, "a.example/x")
    assert known.get("a.example/x").next_fetch == NOW
    fetched(known, "a.example/x", fields={"c": "blue"})


def parked(known: Known) -> None:
    known.discover("a.example/")
    known.record(known.page("a.example/", "one"))
    known.store.park("index", known.store.orders("index", 1, now=NOW)[0], "too large")


def forgotten(known: Known) -> None:
    known.crawled(("a.example/", "one"))
    known.record(known.change("a.example/", forget=True))


# before the move, after it
LATER: dict[str, tuple[Callable[[Known], object], Callable[[Known], object]]] = {
    "a page says otherwise": (one_has_link_metadata, lambda known: source_page(known, "a.example/", BLUE, "a.example/x")),
    "a page leads there no more": (one_has_link_metadata, lambda known: source_page(known, "a.example/", RED, "b.example/")),
    "another page is not heard": (one_has_link_metadata, lambda known: source_page(known, "b.example/", BLUE, "a.example/x")),
    "a page hands again what it handed": (
        one_has_link_metadata,
        lambda known: (
            known.discover("b.example/new"),
            known.record(known.page("a.example/", "a.example/", links=None, rules=1)),
            known.record(known.change("a.example/x", forget=True)),
            known.discover("a.example/x"),
            known.record(known.change("a.example/", links=None, rules=1, checksum=b"a.example/")),
        ),
    ),
    "not twice on a day": (due_changes, lambda known: source_page(known, "a.example/", RED, "a.example/x")),
    "what nobody hands is taken back": (
        lambda known: known.discover(structs.replace(new("a.example/"), inherited=RED), "a.example/x"),
        lambda known: known.store.drop_inherited(),
    ),
    "the collection has a say again": (
        left_behind,
        lambda known: known.record(known.change("a.example/", checksum=None, state=State.GONE, status=404)),
    ),
    "what was left is forgotten": (left_behind, lambda known: known.record(known.change("a.example/", forget=True))),
    "another one stands for the group": (
        two_with_one_text,
        lambda known: known.record(known.change("a.example/", checksum=None, state=State.GONE, status=404)),
    ),
    "an alternate comes back": (
        two_with_one_text,
        lambda known: known.record(*(known.change(f"a.example/{name}", forget=True) for name in ("", "x"))),
    ),
    "the one that is named goes first": (lambda known: named(known, 0, 8), lambda known: known.acknowledge_all()),
    "the one that was named goes first": (lambda known: named(known, 8, 0), lambda known: known.acknowledge_all()),
    "one joins a group and is named": (
        two_with_one_text,
        lambda known: (
            known.discover("b.example/y"),
            known.record(known.page("b.example/y", "one", canonical=key("a.example/x"))),
        ),
    ),
    "what a page leads to is nearer": (leading_on, lambda known: known.discover(new("a.example/1", depth=0))),
    "a link is lost": (leading_on, lambda known: known.record(known.change("a.example/2", forget=True))),
    "a document is kept with its order": (
        lambda known: (
            known.discover("a.example/"),
            known.record(known.page("a.example/", "one")),
            known.record(known.change("a.example/", checksum=None, state=State.EXCLUDED, status=761, keep_in_index=True)),
        ),
        lambda known: known.record(known.change("a.example/", state=State.PENDING, checksum=None)),
    ),
    "ids are never given twice": (
        lambda known: (
            known.discover("a.example/", "a.example/x"),
            known.record(known.change("a.example/x", forget=True)),
        ),
        lambda known: known.discover("b.example/"),
    ),
    "an order takes the place of an older one": (
        lambda known: (known.discover("a.example/"), known.record(known.page("a.example/", "one"))),
        lambda known: known.record(known.page("a.example/", "two")),
    ),
    "a new order replaces what is parked": (
        parked,
        lambda known: known.record(known.page("a.example/", "two")),
    ),
    "what is parked waits again": (parked, lambda known: known.store.unpark("index")),
    "a delete of what is forgotten is replaced": (
        forgotten,
        lambda known: (known.discover("a.example/"), known.record(known.page("a.example/", "two"))),
    ),
    "what waits comes in its order": (
        lambda known: known.discover(*(new(f"a.example/{n}", shift=n % 2, source=Source(n % 5)) for n in range(9))),
        lambda known: [known.leased("a.example", 2) for _ in range(5)],
    ),
}


@pytest.mark.parametrize("what", LATER)
@pytest.mark.parametrize(("here", "there"), some(WAYS, 1))
def test_what_follows_later_is_the_same(stores: Stores, here: str, there: str, what: str) -> None:
    before, after = LATER[what]
    model = MemoryStore(sinks=SINKS)
    before(Known(model))
    with looking(stores, here) as store:
        before(Known(store))
    stores.move(here, there)
    with looking(stores, there) as moved:
        assert seen(moved) == seen(model)
        after(Known(moved))
        after(Known(model))
        assert seen(moved) == seen(model)
        for one in (Known(moved), Known(model)):
            one.acknowledge_all()
            one.discover("a.example/")
            fetched(one, "a.example/")
        assert seen(moved) == seen(model)
