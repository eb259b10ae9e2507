"""Moves a collection from one store to another: a stream of records, written in batches and compared in the end.

Each batch is written together with a mark of how many records there are. So a move that was stopped or killed goes on where it was, and a
crawl sees that a store is an unfinished copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from crawlspace.errors import StoreError, StoreLocked
from crawlspace.state.move.records import OrderRecord, Record, Summary, UrlRecord, ValueRecord
from crawlspace.state.views import Counts

MOVING = "moving"
"""The name of the mark among the metadata of a store."""
RECORDS = 500
BYTES = 4_000_000
"""At most so much is written at once."""


class CopyMark(msgspec.Struct, frozen=True):
    """How far a move has come; stands in the unfinished copy."""

    source: str
    version: str
    """Of the source: what was copied of another version is of no use."""
    records: int = 0
    """So many are copied."""

    def encoded(self) -> str:
        return msgspec.json.encode(self).decode()


class CopySource(Protocol):
    """What a collection is copied from. All that is read and written may raise StoreError and its kinds."""

    name: str
    """For people, and to recognise it; without password."""

    def version(self) -> str:
        """Another text whenever anybody has written since."""

    def mark(self) -> CopyMark | None:
        """Where this is an unfinished copy: how far it has come."""

    def count(self) -> int:
        """Known URLs."""

    def records(self) -> Iterator[Record]:
        """All records, in an order that is the same in every store."""


class CopyTarget(CopySource, Protocol):
    """A store to which a collection is moved."""

    def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
        """Add records and set the mark, as a whole or not at all; None: the copy is done."""

    def clear(self) -> None:
        """Remove an unfinished copy."""

    def counts(self) -> Counts: ...


class HasMeta(Protocol):
    def get_meta(self, name: str) -> str | None: ...


Report = Callable[[str, int, int], None]
"""Takes what is being done, with how many URLs that has been done, and of how many."""


class Moved(NamedTuple):
    urls: int
    orders: int
    """Index orders that wait or are parked."""


def read_mark(encoded: str | None) -> CopyMark | None:
    """Return a mark as it is stored; where that cannot be read, it is a mark all the same."""
    try:
        return msgspec.json.decode(encoded, type=CopyMark) if encoded else None
    except (msgspec.MsgspecError, RecursionError):
        return CopyMark("a store that is not known", "")


def refuse_unfinished_copy(store: HasMeta, collection: str) -> None:
    """Raise StoreError where a store is an unfinished copy of another one."""
    mark = read_mark(store.get_meta(MOVING))
    if mark is not None:
        raise StoreError(
            f"{collection} is here only in part, because copying it from {mark.source} has not ended: wait for it, or run the command"
            f" that copies it again (`scrapy move-store {collection} …` for another store), which continues where it stopped"
        )


def check_source(source: CopySource, collection: str) -> None:
    """Raise StoreError where there is nothing to be copied, or only a part of it."""
    if source.mark() is not None:
        raise StoreError(f"{source.name} is itself an unfinished copy of {collection}: name the store that it is copied from")
    if not _holds_anything(source):
        raise StoreError(f"{source.name} knows nothing of {collection}: it has never been crawled there")


def move(
    source: CopySource, target: CopyTarget, collection: str, *, report: Report = lambda *_: None, records: int = RECORDS
) -> Moved:
    """Copy all that the source holds and compare the copy with it; a move of the same source that was stopped goes on where it was.

    Raises StoreError where the source holds nothing, the target holds anything else, one of them is changed meanwhile, or the copy is
    not like the source; and what reading and writing raises. The source is as it was.
    """
    mark = _begun(source, target, collection)
    total = max(source.count(), 1)
    target.write([], mark)
    wanted = Summary(lambda urls: report("copying", urls, total))
    for batch in _batches(source.records(), wanted, mark.records, records):
        mark = msgspec.structs.replace(mark, records=mark.records + len(batch))
        target.write(batch, mark)
    found = Summary(lambda urls: report("comparing", urls, total))
    for record in target.records():
        found.add(record)
    if source.version() != mark.version:
        raise changed(source, collection)
    wrong = wanted.differences(found) + (["numbers"] if target.counts() != wanted.counts else [])
    if wrong:
        target.write([], CopyMark(mark.source, ""))  # the next one begins anew
        raise StoreError(
            f"the copy of {collection} is not like {source.name}: {', '.join(f'its {kind} differ' for kind in wrong)};"
            " nothing was changed there, please report it; the same command copies it anew"
        )
    target.write([], None)
    return Moved(wanted[UrlRecord], wanted[OrderRecord])


def changed(source: CopySource, collection: str) -> StoreLocked:
    """Return the error for a source that somebody has written to meanwhile."""
    return StoreLocked(
        f"{source.name} was changed while {collection} was copied, so the copy is of no use:"
        " run the same again while nobody else changes it"
    )


def _begun(source: CopySource, target: CopyTarget, collection: str) -> CopyMark:
    """Return the mark to go on from; a copy that is of no use any more is removed."""
    if source.name == target.name:
        raise StoreError(f"{collection} is to be moved from {source.name} to the same: name two stores")
    check_source(source, collection)
    new = CopyMark(source.name, source.version())
    mark = target.mark()
    if mark is None:
        if _holds_anything(target):
            raise StoreError(
                f"{target.name} holds {collection} already, and nothing of that was changed:"
                " remove it there, if it is not needed any more, or name another store"
            )
        return new
    if mark.source != source.name:
        raise StoreError(
            f"{target.name} holds an unfinished copy of {collection} from {mark.source}: move that to its end, or remove it there"
        )
    if mark.version != new.version:
        target.clear()
        return new
    return mark


def _holds_anything(source: CopySource) -> bool:
    """Return whether there is anything but metadata."""
    return any(not isinstance(one, ValueRecord) or one.table != "meta" for one in source.records())


def _batches(found: Iterable[Record], summary: Summary, done: int, most: int) -> Iterator[list[Record]]:
    """Add all records to the summary, and yield those after the first `done` in lists of one kind: so many, or fewer where they are large."""
    batch: list[Record] = []
    size = 0
    for number, record in enumerate(found):
        own = len(summary.add(record))
        if number < done:
            continue
        if batch and (len(batch) >= most or size + own > BYTES or type(batch[0]) is not type(record)):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += own
    if batch:
        yield batch
