"""Marks, by which store and index are compared.

Each batch of orders has a number. The index stores it with the batch, in the same transaction; the store records it as soon as
the batch is durable there. After a kill between the two, the index is one batch ahead, and that batch is sent again. Any other
difference means that one of the two was lost or restored from a copy.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from secrets import token_hex
from typing import Protocol, runtime_checkable

import msgspec

from crawlspace.document import IndexOrder

MOST_IN_BATCH = 2_000
"""Orders. A larger batch would not be found again in the outbox."""


class Agreement(StrEnum):
    """The relation of index and store."""

    SAME = "same"
    INDEX_BEHIND = "the index is older than the stored state of the pages"
    STORE_BEHIND = "the stored state of the pages is older than the index"
    RESTORED = "the stored state of the pages was restored from a backup"
    OTHERS = "the index and the stored state are not of the same collection, or one of the two was created again"


class BatchMark(msgspec.Struct, frozen=True):
    """The last batch of a collection that a sink has committed."""

    generation: str
    """Identifies the collection's state: a collection that was created again has another one."""
    batch: int
    """Number of the batch, from 1."""
    sequence: int = 0
    """The largest sequence number of an order sent."""

    def written(self) -> str:
        return msgspec.json.encode(self).decode()

    def may_follow(self, before: BatchMark | None) -> bool:
        """Return whether an index with mark `before` has all earlier batches; the same batch may be sent twice."""
        if before is None:
            return self.batch == 1
        return self.generation == before.generation and self.batch in (before.batch, before.batch + 1)

    def relation_to(self, found: BatchMark | None) -> Agreement:
        """Return the relation of an index with the mark `found` to the store whose next batch this is. Batch 1 starts again with the index."""
        if found is None:
            return Agreement.SAME if self.batch == 1 else Agreement.INDEX_BEHIND
        if found.generation != self.generation:
            return Agreement.OTHERS
        if self.batch == 1 or found.batch in (self.batch - 1, self.batch):
            return Agreement.SAME
        return Agreement.INDEX_BEHIND if found.batch < self.batch else Agreement.STORE_BEHIND


@runtime_checkable
class MarkKeeper(Protocol):
    """An index on a server that has the mark of each batch."""

    def check_mark(self, mark: BatchMark) -> None:
        """Log a warning if the index does not have the mark of the batch before this one. Raises IndexUnavailable."""

    def lacks_mark(self) -> bool:
        """Return whether the index lacks the mark, because it is another one or missing. Raises IndexUnavailable."""


class NoteStore(Protocol):
    """Keeps values by name."""

    def get_meta(self, name: str) -> str | None: ...
    def set_meta(self, name: str, value: str) -> None: ...


class MarkedStore(NoteStore, Protocol):
    """The outbox and the meta values of a store."""

    def backlog(self, sink: str) -> int: ...
    def orders(self, sink: str, limit: int, *, now: int, most_bytes: int = ...) -> list[IndexOrder]: ...


def stored_mark(store: NoteStore, sink: str) -> BatchMark | None:
    """Return the mark recorded in the store; None if nothing was ever sent to the sink."""
    return read_mark(store.get_meta(name_of_mark(sink)))


def note_mark(store: NoteStore, sink: str, mark: BatchMark) -> None:
    """Record that a batch is durable. Called before its orders are acknowledged, so that none is lost."""
    store.set_meta(name_of_mark(sink), mark.written())


def forget_mark(store: NoteStore, sink: str) -> None:
    """Start again with a server, as if nothing had been sent to it: the next batch is the first."""
    last = stored_mark(store, sink)
    if last is not None:
        note_mark(store, sink, BatchMark(last.generation, 0))


def next_mark(store: NoteStore, sink: str, batch: Sequence[IndexOrder]) -> BatchMark:
    """Return the mark of the batch that is sent next."""
    last = stored_mark(store, sink)
    if last is None:
        last = BatchMark(token_hex(8), 0)
        note_mark(store, sink, last)  # first: a kill may follow when the index has this batch
    return BatchMark(last.generation, last.batch + 1, max(last.sequence, *(order.sequence for order in batch)))


def read_mark(written: str | None) -> BatchMark | None:
    """Return the mark of a stored text; None without a valid one, so that everything is sent again."""
    try:
        return msgspec.json.decode(written, type=BatchMark) if written else None
    except (msgspec.MsgspecError, RecursionError):
        return None


def agreement(store: MarkedStore, sink: str, found: BatchMark | None, *, now: int) -> Agreement:
    """Compare the mark found in an index with the one in the store."""
    stored = stored_mark(store, sink)
    if found is None:
        return Agreement.SAME if stored is None or stored.batch == 0 else Agreement.INDEX_BEHIND
    if stored is None:
        return Agreement.OTHERS
    if stored.generation != found.generation:
        return Agreement.OTHERS
    if found.batch < stored.batch:
        return Agreement.INDEX_BEHIND
    if found.batch == stored.batch or (found.batch == stored.batch + 1 and _waits(store, sink, found, now)):
        return Agreement.SAME
    return Agreement.STORE_BEHIND


def _waits(store: MarkedStore, sink: str, found: BatchMark, now: int) -> bool:
    """Return whether the outbox still has a batch of the index, or orders that replaced it."""
    if store.backlog(sink) > MOST_IN_BATCH:
        return True
    return any(order.sequence >= found.sequence for order in store.orders(sink, MOST_IN_BATCH, now=now, most_bytes=sys.maxsize))


def name_of_mark(sink: str) -> str:
    """Return the name among the metadata of a store under which it keeps the mark of a sink."""
    return f"sent:{sink}"
