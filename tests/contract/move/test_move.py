"""Moves: there and back again, killed at any moment, damaged or full stores, and moves that are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from crawlspace.errors import StoreAway, StoreError, StoreFull, StoreLocked
from crawlspace.state.dump import BYTES, CopyMark, CopyTarget, Record, UrlRecord, encode, move, refuse_unfinished_copy
from crawlspace.state.redis.dump import RedisSide, address_of
from crawlspace.state.redis.workers import Worker
from crawlspace.state.sqlite.dump import SqliteSide
from crawlspace.state.sqlite.store import SqliteStore
from tests.contract.conftest import NOW, SINKS, Known, new
from tests.contract.move.stores import KINDS, NAME, PLACES, WAYS, Stopping, Stores, all_of, changing, fill, looking, seen
from tests.contract.pending_files import Importer, drawn, exported
from tests.quick import some
from tests.servers import another_client, redis_server


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


@pytest.mark.parametrize("late", some([False, True], 1))
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


@pytest.mark.parametrize(("here", "there"), WAYS)
def test_realms_and_times_move_with_their_collection(stores: Stores, tmp_path: Path, here: str, there: str) -> None:
    text = drawn(100)
    with looking(stores, here) as store:
        Importer(store, tmp_path)(text)
    stores.move(here, there)
    with looking(stores, there) as store:
        assert exported(store) == text


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("HSET", "{walk}:links", "1", "of nobody"), "what Redis keeps of this collection is damaged"),
        (("HSET", "{walk}:document", "1", "of nobody"), "what Redis keeps of this collection is damaged"),
        (("HSET", "{walk}:counters", "orders", "many"), "what Redis keeps of this collection is damaged"),
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


# --- moves that are refused -----------------------------------------------------------------------------------------


def refused(stores: Stores, here: str, there: str, sentence: str, *, kind: type[StoreError] = StoreError) -> None:
    """Demand that a move is refused and that nothing changes by it."""
    before = {each: all_of(stores, each) for each in KINDS}
    with pytest.raises(kind, match=sentence):
        stores.move(here, there)
    assert {each: all_of(stores, each) for each in KINDS} == before


def test_nothing_is_to_be_moved(stores: Stores, filled: tuple[str, str]) -> None:
    here, there = filled
    refused(stores, there, here, "has no walk: it has never been crawled there")


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

        with pytest.raises(StoreLocked, match="is being crawled or moved by another process"):
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

    with pytest.raises(StoreLocked, match="is being crawled or moved by another process"):
        stores.move("sqlite", "redis", watch=changing(watch))


def test_a_source_that_was_crawled_since_is_copied_again(stores: Stores, filled: tuple[str, str]) -> None:
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


def test_a_copy_that_is_not_like_its_source_is_never_used(stores: Stores, filled: tuple[str, str]) -> None:
    here, there = filled

    class Wrong(Stopping):
        def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
            for one in batch:
                if isinstance(one, UrlRecord):
                    one.links = one.links[8:]
            super().write(batch, mark)

    with pytest.raises(StoreError, match=r"the copy of walk is not like .*: its URLs differ; .* copies it again"):
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
                client.hincrby("{walk}:counters", "retrying", 1)

    with pytest.raises(StoreError, match="its numbers differ"):
        stores.move("sqlite", "redis", watch=Wrong)
