"""Moving a collection between stores: whatever has been done to it before, nothing that can be seen or follows later may differ."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
import redis
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from msgspec import structs
from redis.backoff import NoBackoff
from redis.retry import Retry

from crawlspace.errors import StoreAway, StoreError, StoreFull, StoreLocked
from crawlspace.model import Document, Held, Source, State
from crawlspace.state.changes import Change
from crawlspace.state.memory.store import MemoryStore
from crawlspace.state.move import sqlite as sqlite_side
from crawlspace.state.move.move import BYTES, CopyMark, CopyTarget, move, refuse_unfinished_copy
from crawlspace.state.move.records import Record, UrlRecord, encode
from crawlspace.state.move.redis import RedisSide, address_of
from crawlspace.state.move.sqlite import SqliteSide
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker
from crawlspace.state.site_health import Health
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import RobotsEntry
from crawlspace.urls import url_key
from tests.contract.conftest import NOW, SINKS, Known, key, new
from tests.contract.test_store_walk import SITES, TWIN, WALK, Lying, RedisWalk, SqliteWalk, StoreWalk, times
from tests.servers import another_client, emptied, redis_server

Side = SqliteSide | RedisSide
KINDS = ("sqlite", "redis")
WAYS = [("sqlite", "redis"), ("redis", "sqlite")]
NAME = "walk"
NAMES = ("one", "two")
"""Of odds and ends."""


class Stores:
    """The two stores of one collection, of which there may be one, both or none."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / NAME / "state.db"
        self.file.parent.mkdir()
        self.urls = 0
        """Written by the last move that might be stopped."""

    def open(self, kind: str) -> Store:
        return RedisStore(another_client(), NAME, sinks=SINKS) if kind == "redis" else SqliteStore(self.file, sinks=SINKS)

    def side(self, kind: str, *, writes: bool = False) -> Side:
        if kind == "redis":
            return RedisSide(another_client(), NAME, timeout_s=30)
        return SqliteSide(self.file, writes=writes)

    def move(
        self, here: str, there: str, *, records: int = 3, watch: Callable[[CopyTarget], CopyTarget] = lambda target: target
    ) -> int:
        with closing(self.side(here)) as source, closing(self.side(there, writes=True)) as target:
            return move(source, watch(target), NAME, records=records).urls

    def stopped(self, here: str, there: str, *, stop: int, late: bool = False) -> int | None:
        """Move until it is killed; return the URLs that were written, None where it came to its end."""
        targets: list[Stopping] = []

        def watch(target: CopyTarget) -> CopyTarget:
            targets.append(Stopping(target, stop, late=late))
            return targets[0]

        try:
            self.move(here, there, watch=watch)
        except KeyboardInterrupt:
            return targets[0].urls
        finally:
            self.urls = targets[0].urls
        return None

    def remove(self, kind: str) -> None:
        if kind == "redis":
            emptied().close()
            return
        for path in self.file.parent.glob("state.db*"):
            path.unlink()


class Stopping:
    """A target of a move that is killed at the n-th time that it is written to, before that or after it; counts the URLs written."""

    def __init__(self, target: CopyTarget, stop: int = -1, *, late: bool = False) -> None:
        self._target = target
        self._left = stop
        self._late = late
        self.urls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
        if self._left == 0 and not self._late:
            raise KeyboardInterrupt
        self._target.write(batch, mark)
        self.urls += sum(isinstance(one, UrlRecord) for one in batch)
        if self._left == 0:
            raise KeyboardInterrupt
        self._left -= 1


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    emptied().close()
    return Stores(tmp_path)


# --- whatever has been done ---------------------------------------------------------------------------------------


class MovedWalk(StoreWalk):
    """A walk on one store, which goes on in the other one now and then."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="move"))
        self.client = emptied()
        self.stores = Stores(self.folder)
        self.kind = "sqlite"
        # A made-up key of a URL that may not be known any more is not found again from the URL, as a real one is.
        self.keys = patch.object(sqlite_side, "url_key", lambda url: TWIN.key if url == TWIN.url else url_key(url))
        self.keys.start()
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        self.keys.stop()
        self.client.close()
        shutil.rmtree(self.folder)

    def reopened(self) -> Store:
        return self.stores.open(self.kind)

    def lies(self) -> Lying:
        return (RedisWalk if self.kind == "redis" else SqliteWalk).lies(self)  # type: ignore[arg-type]

    @rule(records=st.integers(1, 5), stopped=st.none() | st.integers(0, 2))
    def move(self, records: int, stopped: int | None) -> None:
        here, there = self.kind, KINDS[self.kind == "sqlite"]
        self.store.close()
        if stopped is not None:
            late = stopped < 2 and records % 2 == 1  # the third time may be the last
            assert self.stores.stopped(here, there, stop=stopped, late=late) is not None
        self.stores.move(here, there, records=records)
        self.stores.remove(here)
        self.model.release([state.id for state in self.model.urls()])
        self.kind = there
        self.store = self.reopened()

    @rule(records=st.integers(1, 5))
    def move_again(self, records: int) -> None:
        """So that a walk has more than one move or two."""
        self.move(records, None)

    @rule(name=st.sampled_from(NAMES), value=st.sampled_from(["", "x", "é"]))
    def set_meta(self, name: str, value: str) -> None:
        self.both(lambda store: store.set_meta(name, value))

    @rule(site=st.sampled_from([*SITES, "robots.example:80"]), scheme=st.sampled_from(["http", "https"]), at=times)
    def save_robots(self, site: str, scheme: str, at: int) -> None:
        self.both(lambda store: store.save_robots(RobotsEntry(site, scheme, 200, "User-agent: *", at)))

    @rule(times_=st.integers(1, 3))
    def count_refusals(self, times_: int) -> None:
        self.both(lambda store: store.count_refusals({"domain": times_}))

    @invariant()
    def same_odds_and_ends(self) -> None:
        self.both(lambda store: [store.get_meta(name) for name in NAMES])
        self.both(lambda store: dict(store.refusals()))
        self.both(lambda store: [store.robots(site, "http") for site in (*SITES, "robots.example:80")])

    @invariant()
    def nobody_is_in_a_group_that_is_gone(self) -> None:
        if self.kind == "redis":
            RedisWalk.nobody_is_in_a_group_that_is_gone(self)  # type: ignore[arg-type]


TestMovedWalk = MovedWalk.TestCase
TestMovedWalk.settings = settings(WALK, max_examples=6)


# --- stopped at any moment ----------------------------------------------------------------------------------------

PLACES = [f"{host}.example/{name}" for host in "ab" for name in ("", "x", "y", "z", "long", "out", "left")]


def fill(store: Store) -> None:
    """Have a bit of everything."""
    known = Known(store)
    known.discover(*PLACES, structs.replace(TWIN, key=url_key(TWIN.url)))
    known.record(known.page("a.example/", "one"), known.page("a.example/x", "one"), known.page("b.example/left", "two"))
    known.acknowledge_all()
    known.record(
        known.page("a.example/y", "three", canonical=key("a.example/")),
        known.page(
            "b.example/x", "four", links=[key("a.example/"), key("b.example/y")], etag='"e"', fetched_at=NOW, interval_s=60
        ),
        known.page("b.example/y", "one", canonical=key("b.example/z")),
        known.change("b.example/left", checksum=None, state=State.EXCLUDED, status=761, keep_in_index=True),
        known.page("a.example/z", "five", held=Held.MANY, retries=1, next_fetch=NOW + 5, asked=True, fields_mark=-7),
        known.page("a.example/left", "six"),
    )
    known.record(known.change("a.example/left", checksum=None, state=State.EXCLUDED, status=761, keep_in_index=True))
    known.record(known.change("b.example/z", forget=True), known.change("a.example/out", state=State.GONE, status=404))
    known.record(known.change("a.example/x", checksum=None, state=State.GONE, status=404))
    link_metadata = '{"c":"red"}'
    store.record(
        [
            Change(
                structs.replace(known.get("b.example/"), state=State.DONE, checksum=b"seven", rules=1),
                Document("", text="T", fields={"c": "red"}),
                [key("a.example/long")],
                [structs.replace(new("a.example/long"), inherited=link_metadata)],
            )
        ],
        now=NOW,
        health={"a.example:80": Health(3, 5, 2)},
    )
    store.park("index", store.orders("index", 100, now=NOW)[-1], "too large")
    store.park("log", store.orders("log", 1, now=NOW)[0], "no")
    store.wait_site("b.example:80", NOW + 9, wait_s=30)
    store.set_unreachable("dead.example:80", UnreachableSite("dead.example:80", 612, NOW - 9, 2, NOW))
    store.save_robots(RobotsEntry("other.example:443", "https", 404, "", NOW))
    store.save_robots(RobotsEntry("a.example:80", "http", 200, "Disallow: /é", NOW))
    store.count_refusals({"domain": 3})
    store.set_meta("rules_hash", "0123")


def seen(store: Store) -> dict[str, object]:
    """All that can be seen of a store."""
    states = list(store.urls())
    return {
        "states": states,
        "sites": list(store.sites()),
        "counts": store.counts(),
        "outbox": [(store.orders(sink, 100, now=NOW), store.parked(sink), store.backlog(sink)) for sink in SINKS],
        "links": store.lost_links([state.id for state in states]),
        "unreachable": store.unreachable(),
        "documents": store.documents([f"{host}.example:80" for host in "abc"]),
        "health": [store.health(f"{host}.example:80") for host in "abc"],
        "robots": [store.robots("other.example:443", "https"), store.robots("a.example:80", "http")],
        "rest": [dict(store.refusals()), store.get_meta("rules_hash"), store.get_meta("moving")],
    }


@contextmanager
def looking(stores: Stores, kind: str) -> Iterator[Store]:
    with closing(stores.open(kind)) as store:
        yield store


def all_of(stores: Stores, kind: str) -> dict[str, object]:
    with looking(stores, kind) as store:
        return seen(store)


@pytest.mark.parametrize(("here", "there"), WAYS)
def test_there_and_back_again(stores: Stores, here: str, there: str) -> None:
    with looking(stores, here) as store:
        fill(store)
        before = seen(store)
    assert stores.move(here, there) == 14
    assert all_of(stores, there) == before
    assert all_of(stores, here) == before, "the source is as it was"
    stores.remove(here)
    stores.move(there, here)
    assert all_of(stores, here) == before


@pytest.mark.parametrize(("here", "there"), WAYS)
def test_the_schemes_of_a_site_are_moved(stores: Stores, here: str, there: str) -> None:
    with looking(stores, here) as store:
        store.discover([new("https://a.example:8443/"), new("a.example/")], now=NOW)
    stores.move(here, there)
    with looking(stores, there) as store:
        assert [store.schemes(site) for site in ("a.example:8443", "a.example:80")] == [{"https"}, {"http"}]


@pytest.mark.parametrize(("here", "there"), WAYS)
def test_what_was_leased_is_pending_or_due_again(stores: Stores, here: str, there: str) -> None:
    with looking(stores, here) as store:
        fill(store)
        store.lease("a.example:80", 3, now=NOW, until=NOW + 600)
        stores.move(here, there)
        store.release(range(100))
        assert all_of(stores, there) == seen(store)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("here", "there"), WAYS)
def test_a_move_that_was_killed_goes_on_where_it_was(stores: Stores, here: str, there: str, *, late: bool) -> None:
    with looking(stores, here) as store:
        fill(store)
        before = seen(store)
    at_once: list[int] = []
    while True:
        first = stores.stopped(here, there, stop=len(at_once), late=late)
        if first is None:
            break
        at_once.append(first)
        with looking(stores, there) as copy:
            is_marked = copy.get_meta("moving") is not None
            if is_marked:
                with pytest.raises(StoreError, match=r"here only in part, because copying it from .* has not ended"):
                    refuse_unfinished_copy(copy, NAME)
        if is_marked or not (late or first):
            rest = stores.stopped(here, there, stop=-1)
            assert rest is None
            assert stores.urls + first == len(before["states"]), "nothing is copied twice"  # type: ignore[arg-type]
        assert all_of(stores, there) == before
        stores.remove(there)
    assert len(at_once) > 10
    assert set(at_once) == {0, 3, 6, 9, 12, 14}


# --- what follows later -------------------------------------------------------------------------------------------

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


def hastened(known: Known) -> None:
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
    "not twice on a day": (hastened, lambda known: source_page(known, "a.example/", RED, "a.example/x")),
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
    "who stood aside comes back": (
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
@pytest.mark.parametrize(("here", "there"), WAYS)
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


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.fixture(params=WAYS, ids="-".join)
def filled(request: pytest.FixtureRequest, stores: Stores) -> tuple[str, str]:
    """From where to where; there is something in the first store."""
    with looking(stores, request.param[0]) as store:
        fill(store)
    here, there = request.param
    return here, there


def refused(stores: Stores, here: str, there: str, sentence: str, *, kind: type[StoreError] = StoreError) -> None:
    """Demand that a move is refused and that nothing changes by it."""
    before = {each: all_of(stores, each) for each in KINDS}
    with pytest.raises(kind, match=sentence):
        stores.move(here, there)
    assert {each: all_of(stores, each) for each in KINDS} == before


def test_nothing_is_to_be_moved(stores: Stores, filled: tuple[str, str]) -> None:
    here, there = filled
    refused(stores, there, here, "knows nothing of walk: it has never been crawled there")


def test_there_is_a_collection_already(stores: Stores, filled: tuple[str, str]) -> None:
    here, there = filled
    with looking(stores, there) as store:
        store.discover([new("c.example/")], now=NOW)
    refused(stores, here, there, "holds walk already, and nothing of that was changed")


def test_the_two_stores_are_one(stores: Stores, filled: tuple[str, str]) -> None:
    with closing(stores.side(filled[0])) as source, pytest.raises(StoreError, match="to the same: name two stores"):
        move(source, source, NAME)


def test_an_unfinished_copy_is_no_source_and_takes_nothing_else(stores: Stores, filled: tuple[str, str]) -> None:
    here, there = filled
    assert stores.stopped(here, there, stop=4) == 3
    refused(stores, there, here, "is itself an unfinished copy of walk")
    with looking(stores, there) as copy:
        written = copy.get_meta("moving") or ""
        copy.set_meta("moving", msgspec.structs.replace(CopyMark("", ""), source="redis://elsewhere:6379/0").encoded())
        refused(stores, here, there, "holds an unfinished copy of walk from redis://elsewhere:6379/0: move that to its end")
        copy.set_meta("moving", written)
    assert stores.stopped(here, there, stop=-1) is None


@contextmanager
def crawled(stores: Stores, kind: str) -> Iterator[None]:
    if kind == "sqlite":
        with closing(SqliteStore.open_for_crawl(stores.file, sinks=SINKS)):
            yield
        return
    with looking(stores, kind) as store:
        worker = Worker(store, timeout_s=30)  # type: ignore[arg-type]
        worker.begin("rules")
        yield
        worker.leave()


@pytest.mark.parametrize("crawled_kind", KINDS)
def test_somebody_crawls(stores: Stores, filled: tuple[str, str], crawled_kind: str) -> None:
    with crawled(stores, crawled_kind):
        refused(stores, *filled, "walk is being crawled", kind=StoreLocked)


def test_a_worker_that_died_is_in_nobodys_way(stores: Stores) -> None:
    with looking(stores, "redis") as store:
        fill(store)
        Worker(store, timeout_s=30).begin("rules")  # type: ignore[arg-type]
    with (
        closing(RedisSide(another_client(), NAME, timeout_s=0)) as source,
        closing(stores.side("sqlite", writes=True)) as target,
    ):
        assert move(source, target, NAME).urls == 14
    with pytest.raises(StoreLocked, match="walk is being crawled by process"):
        stores.side("redis")


def test_somebody_begins_to_crawl_an_unfinished_copy(stores: Stores) -> None:
    with looking(stores, "sqlite") as store:
        fill(store)
    with looking(stores, "redis") as copy:

        def watch(target: CopyTarget) -> CopyTarget:
            Worker(copy, timeout_s=30).begin("rules")  # type: ignore[arg-type]
            return target

        with pytest.raises(StoreLocked, match="is being crawled or moved by somebody else"):
            stores.move("sqlite", "redis", watch=watch)
        assert not list(copy.urls())


def test_two_moves_to_one_server(stores: Stores) -> None:
    with looking(stores, "sqlite") as store:
        fill(store)

    def watch(target: CopyTarget) -> CopyTarget:
        client = another_client()
        client.hset("{walk}:meta", "moving", CopyMark("another", "").encoded())
        client.close()
        return target

    with pytest.raises(StoreLocked, match="is being crawled or moved by somebody else"):
        stores.move("sqlite", "redis", watch=changing(watch))


# --- what changes meanwhile ---------------------------------------------------------------------------------------


def test_a_source_that_was_crawled_since_is_copied_anew(stores: Stores, filled: tuple[str, str]) -> None:
    here, there = filled
    assert stores.stopped(here, there, stop=5) == 6
    with looking(stores, here) as store:
        store.discover([new("c.example/")], now=NOW)
    assert stores.stopped(here, there, stop=-1) is None
    assert stores.urls == 15
    assert all_of(stores, there) == all_of(stores, here)


def test_a_source_that_changes_while_it_is_copied(stores: Stores, filled: tuple[str, str]) -> None:
    here, there = filled

    def watch(target: CopyTarget) -> CopyTarget:
        with looking(stores, here) as store:
            store.discover([new("c.example/")], now=NOW)
        return target

    with pytest.raises(StoreLocked, match="was changed while walk was copied"):
        stores.move(here, there, watch=changing(watch))
    with looking(stores, there) as copy, pytest.raises(StoreError, match="here only in part"):
        refuse_unfinished_copy(copy, NAME)
    stores.move(here, there)
    assert all_of(stores, there) == all_of(stores, here)


def changing(change: Callable[[CopyTarget], CopyTarget]) -> Callable[[CopyTarget], CopyTarget]:
    """Have the change made when the target is written to for the first time."""

    class Changing(Stopping):
        def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
            if not self.urls:
                change(self._target)
            super().write(batch, mark)

    return lambda target: Changing(target)


def test_a_copy_that_is_not_like_its_source_is_never_used(stores: Stores, filled: tuple[str, str]) -> None:
    here, there = filled

    class Wrong(Stopping):
        def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
            for one in batch:
                if isinstance(one, UrlRecord):
                    one.links = one.links[8:]
            super().write(batch, mark)

    with pytest.raises(StoreError, match=r"the copy of walk is not like .*: its URLs differ; .* copies it anew"):
        stores.move(here, there, watch=Wrong)
    with looking(stores, there) as copy, pytest.raises(StoreError, match="here only in part"):
        refuse_unfinished_copy(copy, NAME)
    stores.move(here, there)
    assert all_of(stores, there) == all_of(stores, here)


def test_numbers_that_are_wrong_are_noticed(stores: Stores) -> None:
    with looking(stores, "sqlite") as store:
        fill(store)

    class Wrong(Stopping):
        def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
            super().write(batch, mark)
            with closing(another_client()) as client:
                client.hincrby("{walk}:n", "retrying", 1)

    with pytest.raises(StoreError, match="its numbers differ"):
        stores.move("sqlite", "redis", watch=Wrong)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("HSET", "{walk}:links", "1", "of nobody"), "what Redis keeps of this collection is damaged"),
        (("HSET", "{walk}:document", "1", "of nobody"), "what Redis keeps of this collection is damaged"),
        (("HSET", "{walk}:n", "orders", "many"), "what Redis keeps of this collection is damaged"),
        (("SET", "{walk}:robots", "of nobody"), "what Redis keeps of this collection is damaged"),
        (("HSET", "{walk}:meta", "moving", "of nobody"), "is itself an unfinished copy"),
    ],
)
def test_what_is_not_ours_is_a_sentence(stores: Stores, command: tuple[str, ...], sentence: str) -> None:
    with looking(stores, "redis") as store:
        fill(store)
    with closing(another_client()) as client:
        client.execute_command(*command)
    with pytest.raises(StoreError, match=sentence):
        stores.move("redis", "sqlite")


def test_a_full_disk(stores: Stores) -> None:
    with looking(stores, "redis") as store:
        fill(store)
        Known(store).record(Known(store).page("a.example/", "large", text="x" * 100_000))

    def watch(target: CopyTarget) -> CopyTarget:
        assert isinstance(target, SqliteSide)
        db = target._file.db
        db.pragma("max_page_count", db.pragma("page_count"))
        return target

    with pytest.raises(StoreFull, match="is full: free some space and start again"):
        stores.move("redis", "sqlite", records=100, watch=watch)
    stores.move("redis", "sqlite")
    assert all_of(stores, "sqlite") == all_of(stores, "redis")


def test_a_full_server(stores: Stores) -> None:
    with looking(stores, "sqlite") as store:
        fill(store)
    with closing(another_client()) as client:

        def watch(target: CopyTarget) -> CopyTarget:
            client.config_set("maxmemory", 1)
            return target

        try:
            with pytest.raises(StoreFull, match="Redis is full"):
                stores.move("sqlite", "redis", watch=changing(watch))
        finally:
            client.config_set("maxmemory", 0)
    stores.move("sqlite", "redis")
    assert all_of(stores, "sqlite") == all_of(stores, "redis")


def test_a_server_that_is_away() -> None:
    with pytest.raises(StoreAway, match="Redis cannot be reached"):
        RedisSide(redis.Redis(port=1, retry=Retry(NoBackoff(), 0)), NAME, timeout_s=30)


def test_a_password_is_not_shown(stores: Stores) -> None:
    client = redis.Redis.from_url(f"redis://user:secret@localhost:{redis_server().port}/0")
    assert address_of(client) == f"redis://localhost:{redis_server().port}/0"
    client.close()
    assert address_of(redis.Redis(unix_socket_path="/run/redis.sock", db=2)) == "unix:///run/redis.sock?db=2"


# --- large ones ---------------------------------------------------------------------------------------------------


def test_large_texts_are_moved_few_at_a_time(stores: Stores, filled: tuple[str, str]) -> None:
    here, there = filled
    with looking(stores, here) as store:
        known = Known(store)
        known.record(*(known.page(place, f"large {place}", text="x" * (BYTES // 3)) for place in PLACES[:6]))
    sizes: list[int] = []

    class Sizes(Stopping):
        def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
            sizes.append(sum(len(encode(one)) for one in batch))
            super().write(batch, mark)

    stores.move(here, there, records=100, watch=Sizes)
    assert max(sizes) <= BYTES
    assert all_of(stores, there) == all_of(stores, here)
