"""Moves that are refused, and what changes while a collection is copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import msgspec
import pytest

from crawlspace.errors import StoreError, StoreLocked
from crawlspace.state.dump import CopyMark, CopyTarget, Record, UrlRecord, move, refuse_unfinished_copy
from crawlspace.state.redis.dump import RedisSide
from crawlspace.state.redis.workers import Worker
from crawlspace.state.sqlite.store import SqliteStore
from tests.contract.conftest import NOW, SINKS, new
from tests.contract.move.stores import KINDS, NAME, Stopping, Stores, all_of, changing, fill, looking
from tests.servers import another_client


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
