"""Moves a collection from one store to another: all that is kept of it, in parts, and compared in the end.

A store is read and written as one stream of records, the same for all kinds of stores: sites, URLs in order of discovery, index orders,
and what there is once only. Each part is written together with a mark of how far the move has come. So a move that was stopped or killed
goes on where it was, and a crawl sees that a store is an unfinished copy.

Ids, numbers of orders and their order are the same in the copy. Leases are not moved: what was leased is pending or due again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import msgspec

from crawlspace.errors import StoreError, StoreLocked
from crawlspace.state.move.records import FIRST, OrderRecord, Place, Record, Stage, UrlRecord
from crawlspace.state.views import Counts

MOVING = "moving"
"""The name of the mark among the odds and ends of a store."""
RECORDS = 500
BYTES = 4_000_000
"""So much is written at once."""
_STAGES = list(Stage)


class Mark(msgspec.Struct, frozen=True):
    """How far a move has come; stands in the unfinished copy."""

    source: str
    version: str
    """Of the source: what was copied of another version is of no use."""
    stage: Stage = Stage.SITES
    after: Place = FIRST
    """What stands there and before is copied."""

    def is_behind(self, stage: Stage, place: Place) -> bool:
        """Whether a record is still to be copied."""
        return (_STAGES.index(stage), place) > (_STAGES.index(self.stage), self.after)

    def written(self) -> str:
        return msgspec.json.encode(self).decode()


class Side(Protocol):
    """The store of one collection, as it is read. All that is read and written may raise StoreError and its kinds."""

    name: str
    """For people, and to know it again; without password."""
    found: str
    """Its version when it was opened."""

    def version(self) -> str:
        """Another text whenever anybody has written since."""

    def holds_anything(self) -> bool:
        """Whether there is anything but odds and ends."""

    def mark(self) -> Mark | None:
        """Where this is an unfinished copy: how far it has come."""

    def count(self) -> int:
        """Known URLs."""

    def read(self, stage: Stage) -> Iterator[Record]:
        """The records of a kind, in the order of their places."""


class Target(Side, Protocol):
    """A store to which a collection is moved."""

    def write(self, part: Sequence[Record], mark: Mark | None) -> None:
        """Add records and set the mark, as a whole or not at all; None: the copy is done."""

    def clear(self) -> None:
        """Remove an unfinished copy."""

    def counts(self) -> Counts: ...


class HasMeta(Protocol):
    def get_meta(self, name: str) -> str | None: ...


Told = Callable[[str, int, int], None]
"""Told what is being done, with how many URLs that has been done, and of how many."""


def _nobody(doing: str, done: int, total: int) -> None:
    """Told of a move that nobody waits for."""


@dataclass(frozen=True, slots=True)
class Moved:
    urls: int
    orders: int
    """Index orders that wait or are parked."""


def read_mark(written: str | None) -> Mark | None:
    """Return what a mark says; where that cannot be read, it is a mark all the same."""
    try:
        return msgspec.json.decode(written, type=Mark) if written else None
    except msgspec.MsgspecError:
        return Mark("a store that is not known", "")


def refuse_unfinished(store: HasMeta, collection: str) -> None:
    """Raise StoreError where a store is an unfinished copy of another one."""
    mark = read_mark(store.get_meta(MOVING))
    if mark is not None:
        raise StoreError(
            f"{collection} is here only in part, because moving it from {mark.source} has not ended:"
            f" wait for it, or run that `scrapy move-store {collection} …` again, which goes on where it was"
        )


def move(source: Side, target: Target, collection: str, *, told: Told = _nobody, records: int = RECORDS) -> Moved:
    """Copy all that the source holds and compare the copy with it; a move of the same source that was stopped goes on where it was.

    Raises StoreError where the source holds nothing, the target holds anything else, one of them is changed meanwhile, or the copy is
    not like the source; and what reading and writing raises. The source is as it was.
    """
    begun = mark = _begun(source, target, collection)
    total = max(source.count(), 1)
    target.write([], mark)
    wanted = _Sum(lambda done: told("copying", done, total))
    for stage in Stage:
        left = (record for record in wanted.read(source, stage) if begun.is_behind(stage, record.place))
        for part in _parts(left, records):
            mark = Mark(mark.source, mark.version, stage, part[-1].place)
            target.write(part, mark)
    wrong = _differences(wanted, target, lambda done: told("comparing", done, total))
    if source.version() != mark.version:
        raise StoreLocked(
            f"{source.name} was changed while {collection} was copied, so the copy is of no use:"
            " run the same again while nobody else changes it"
        )
    if wrong:
        target.write([], Mark(mark.source, ""))  # the next one begins anew
        raise StoreError(
            f"the copy of {collection} is not like {source.name}: {', '.join(wrong)}; nothing was changed there, please report it;"
            " the same command copies it anew"
        )
    target.write([], None)
    return Moved(wanted.urls, wanted.counts.outbox + wanted.counts.parked)


def check_source(source: Side, collection: str) -> None:
    """Raise StoreError where there is nothing to be moved, or only a part of it."""
    if source.mark() is not None:
        raise StoreError(f"{source.name} is itself an unfinished copy of {collection}: name the store that it is copied from")
    if not source.holds_anything():
        raise StoreError(f"{source.name} knows nothing of {collection}: it has never been crawled there")


def _begun(source: Side, target: Target, collection: str) -> Mark:
    """Return the mark to go on from; a copy that is of no use any more is removed."""
    if source.name == target.name:
        raise StoreError(f"{collection} is to be moved from {source.name} to the same: name two stores")
    check_source(source, collection)
    new = Mark(source.name, source.version())
    mark = target.mark()
    if mark is None:
        if target.holds_anything():
            raise StoreError(
                f"{target.name} holds {collection} already, and nothing of that was changed:"
                " remove it there, if it is not needed any more, or name another store"
            )
        return new
    if mark.source != source.name:
        raise StoreError(
            f"{target.name} holds an unfinished copy of {collection} from {mark.source}: move that to its end, or remove it there"
        )
    if mark.version != source.found:
        target.clear()
        return new
    return Mark(new.source, new.version, mark.stage, mark.after)


def _parts(found: Iterable[Record], records: int) -> Iterator[list[Record]]:
    """Yield the records in lists of so many, or fewer where they are large."""
    part: list[Record] = []
    size = 0
    for record in found:
        if part and (len(part) >= records or size + record.size > BYTES):
            yield part
            part, size = [], 0
        part.append(record)
        size += record.size
    if part:
        yield part


class _Sum:
    """What a store holds, in little: a digest of the records of each stage, and their numbers as `counts` tells them."""

    def __init__(self, told: Callable[[int], None]) -> None:
        self.digests = {stage: blake2b() for stage in Stage}
        self.urls = 0
        self._told = told
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode
        self._states: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._hosts: set[str] = set()
        self._numbers: Counter[str] = Counter()

    def read(self, side: Side, stage: Stage) -> Iterator[Record]:
        """Yield the records of a stage, and add them."""
        digest = self.digests[stage]
        for record in side.read(stage):
            digest.update(self._encode(record))
            self._add(record)
            yield record

    @property
    def counts(self) -> Counts:
        """What `counts` tells of a store with these records."""
        return Counts(
            by_state=dict(self._states),
            by_status=dict(self._statuses),
            indexed=self._numbers["indexed"],
            outbox=self._numbers["outbox"],
            parked=self._numbers["parked"],
            hosts=len(self._hosts),
            retrying=self._numbers["retrying"],
            held=self._numbers["held"],
            left_to_others=self._numbers["left"],
        )

    def _add(self, record: Record) -> None:
        if isinstance(record, UrlRecord):
            state = record.state
            self.urls += 1
            if self.urls % RECORDS == 0:
                self._told(self.urls)
            self._states[state.state.label] += 1
            if state.status is not None:
                self._statuses[state.status] += 1
            self._hosts.add(state.site.rpartition(":")[0])
            self._numbers["indexed"] += state.indexed
            self._numbers["retrying"] += state.retries > 0
            self._numbers["held"] += (state.indexed or record.left) and state.held is not None
            self._numbers["left"] += record.left
        elif isinstance(record, OrderRecord):
            self._numbers["outbox" if record.reason is None else "parked"] += 1


def _differences(wanted: _Sum, target: Target, told: Callable[[int], None]) -> list[str]:
    """Return in what a copy differs from what it should be."""
    found = _Sum(told)
    for stage in Stage:
        for _ in found.read(target, stage):
            pass
    wrong = [f"its {stage} differ" for stage in Stage if wanted.digests[stage].digest() != found.digests[stage].digest()]
    return wrong if target.counts() == wanted.counts else [*wrong, "its numbers differ"]
