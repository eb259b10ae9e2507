"""Stores of each kind, opened for a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from crawlspace.config.sinks import EMBEDDED
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from tests.contract.memory.store import MemoryStore
from tests.servers import another_client, emptied

LOCAL = ("memory", "sqlite")
KINDS = (*LOCAL, "redis")


def store_of(kind: str, file: Path, *, name: str = "demo", sinks: Sequence[str] = (EMBEDDED,)) -> Store:
    """Open a store in memory, in a file, or by its name on the server of the tests."""
    if kind == "redis":
        return RedisStore(another_client(), name, sinks=sinks)
    return SqliteStore(file, sinks=sinks) if kind == "sqlite" else MemoryStore(sinks=sinks)


@contextmanager
def new_store(kind: str, folder: Path, *, name: str = "demo", sinks: Sequence[str] = (EMBEDDED,)) -> Iterator[Store]:
    """Open a store that holds nothing, and close it at the end; a file is `state.db` in the folder."""
    if kind == "redis":
        emptied().close()
    with closing(store_of(kind, folder / "state.db", name=name, sinks=sinks)) as store:
        yield store
