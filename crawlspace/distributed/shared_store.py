"""The store of a collection in Redis, with this process as one of the workers that crawl it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import redis

from crawlspace.distributed.collection_mark import CollectionMark
from crawlspace.distributed.owned_sites import Background
from crawlspace.distributed.worker_store import WorkerStore
from crawlspace.model import Source
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker


@dataclass(frozen=True, slots=True)
class SharedStore:
    store: RedisStore
    worker: Worker
    view: WorkerStore
    """How the running crawl uses the store."""
    mark: CollectionMark

    @classmethod
    def open(
        cls,
        client: redis.Redis,
        collection: str,
        *,
        sinks: Sequence[str],
        background: Background,
        timeout_s: float,
        sources: Iterable[Source] = tuple(Source),
    ) -> SharedStore:
        """`sources` are those that are not paused; a worker that the server does not hear of for `timeout_s` expires. Raises StoreError."""
        store = RedisStore(client, collection, sinks=sinks, crawls=True)
        worker = Worker(store, timeout_s=timeout_s, sources=sources)
        return cls(store, worker, WorkerStore(store, worker, background), CollectionMark(store))

    def join_again(self) -> None:
        """Join the other workers after this one expired. Raises StoreError if the server has lost the collection."""
        self.mark.check()
        self.worker.begin_again()
