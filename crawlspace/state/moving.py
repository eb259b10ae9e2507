"""Moves a collection from one store to another: all that is kept of it, in parts, and compared in the end.

A store is read and written as one stream of records, the same for all kinds of stores: sites, URLs in order of discovery, index orders,
and what there is once only. Each part is written together with a mark of how far the move has come. So a move that was stopped or killed
goes on where it was, and a crawl sees that a store is an unfinished copy.

Ids, numbers of orders and their order are the same in the copy. Leases are not moved: what was leased is pending or due again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import blake2b
from typing import Protocol

import msgspec

from crawlspace.errors import StoreError, StoreLocked
from crawlspace.model import Document, Op, UrlState
from crawlspace.state.health import Health
from crawlspace.state.store import Counts, RobotsEntry

MOVING = "moving"
"""The name of the mark among the odds and ends of a store."""
NOT_MOVED = frozenset({MOVING, "born", "durable", "upgrading"})
"""Odds and ends that are about the store and not about what is in it."""
RECORDS = 500
BYTES = 4_000_000
"""So much is written at once."""

Place = str | int | tuple[str, int, int]
"""Where a record stands among those of its kind."""


class Stage(StrEnum):
    """The kinds of records, in the order in which they are moved; the value names them for people."""

    SITES = "sites"
    URLS = "URLs"
    ORDERS = "index orders"
    REST = "odds and ends"


FIRST: Mapping[Stage, Place] = {Stage.SITES: "", Stage.URLS: 0, Stage.ORDERS: ("", 0, 0), Stage.REST: ""}
"""Before all places."""


@dataclass(slots=True)
class SiteRecord:
    """What is known of a site, without its URLs; only of those of which anything is."""

    site: str
    wait_until: int | None = None
    health: Health | None = None
    robots: list[RobotsEntry] = field(default_factory=list)

    @property
    def place(self) -> Place:
        return self.site

    @property
    def size(self) -> int:
        return sum(len(entry.body) for entry in self.robots)


@dataclass(slots=True)
class UrlRecord:
    state: UrlState
    """Not leased."""
    links: bytes = b""
    """Keys of eight bytes each, least significant first."""
    document: Document | None = None
    """Without URL, text and duplicates."""
    text: str | None = None
    """Of its checksum; where several URLs have that, with the one that stands for their group."""
    aside_in: bytes | None = None
    """The group of the canonical page for which it stands aside."""
    left: bool = False
    """It has left its document in the index."""
    hands: str | None = None
    handed_by: int | None = None
    handed_mark: int | None = None
    """When it was last due for what is handed to it, see `handed.due_at`."""

    @property
    def place(self) -> Place:
        return self.state.id

    @property
    def size(self) -> int:
        return len(self.links) + len(self.text or "")


ORDER_KINDS = 3
"""The orders of a sink: deletes that wait, pushes that wait, and what is parked."""


@dataclass(slots=True)
class OrderRecord:
    sink: str
    number: int
    op: Op
    id: int
    url: str
    reason: str | None = None
    """Why it is parked."""
    document: Document | None = None
    """What is to be pushed, whatever becomes of the URL; without its URL."""

    @property
    def kind(self) -> int:
        if self.reason is not None:
            return ORDER_KINDS - 1
        return int(self.op is Op.PUSH)

    @property
    def place(self) -> Place:
        return self.sink, self.kind, self.number

    @property
    def size(self) -> int:
        return len(self.document.text) if self.document is not None else 0


@dataclass(slots=True)
class RestRecord:
    """What there is once: the last numbers given out, the counts of refusals, and the odds and ends."""

    last_id: int
    last_order: int
    refusals: dict[str, int]
    meta: dict[str, str]
    place: Place = "all"

    @property
    def size(self) -> int:
        return 0


Record = SiteRecord | UrlRecord | OrderRecord | RestRecord


class Mark(msgspec.Struct, frozen=True):
    """How far a move has come; stands in the unfinished copy."""

    source: str
    version: str
    """Of the source: what was copied of another version is of no use."""
    stage: Stage = Stage.SITES
    after: Place = FIRST[Stage.SITES]
    urls: int = 0
    """Copied so far."""

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

    def read(self, stage: Stage, after: Place) -> Iterator[Record]:
        """The records of a kind that stand behind a place, in their order."""


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
    return msgspec.json.decode(written, type=Mark) if written else None


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
    mark = _begun(source, target, collection)
    total = max(source.count(), 1)
    target.write([], mark)
    stages = list(Stage)
    for stage in stages[stages.index(mark.stage) :]:
        after = mark.after if stage is mark.stage else FIRST[stage]
        for part in _parts(source.read(stage, after), records):
            urls = mark.urls + len(part) * (stage is Stage.URLS)
            mark = replace_mark(mark, stage=stage, after=part[-1].place, urls=urls)
            target.write(part, mark)
            told("copying", mark.urls, total)
    moved, wrong = _compared(source, target, lambda done: told("comparing", done // 2, total))
    if source.version() != mark.version:
        raise StoreLocked(
            f"{source.name} was changed while {collection} was copied, so the copy is of no use:"
            " run the same again while nobody else changes it"
        )
    if wrong:
        target.write([], replace_mark(mark, version=""))  # the next one begins anew
        raise StoreError(
            f"the copy of {collection} is not like {source.name}: {wrong}; nothing was changed there, please report it;"
            " the same command copies it anew"
        )
    target.write([], None)
    return moved


def replace_mark(mark: Mark, **fields: object) -> Mark:
    changed: Mark = msgspec.structs.replace(mark, **fields)
    return changed


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
    return replace_mark(mark, version=new.version)


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
    """What a store holds, in little: a digest of the records of each kind, and their numbers as `counts` tells them."""

    def __init__(self, side: Side, told: Callable[[int], None]) -> None:
        encode = msgspec.msgpack.Encoder(order="deterministic").encode
        self.digests: dict[Stage, bytes] = {}
        self.urls = 0
        self._states: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._hosts: set[str] = set()
        self._numbers: Counter[str] = Counter()
        for stage in Stage:
            digest = blake2b()
            for record in side.read(stage, FIRST[stage]):
                digest.update(encode(record))
                self._add(record)
                if isinstance(record, UrlRecord) and self.urls % RECORDS == 0:
                    told(self.urls)
            self.digests[stage] = digest.digest()

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
        )

    def _add(self, record: Record) -> None:
        if isinstance(record, UrlRecord):
            state = record.state
            self.urls += 1
            self._states[state.state.label] += 1
            if state.status is not None:
                self._statuses[state.status] += 1
            self._hosts.add(state.site.rpartition(":")[0])
            self._numbers["indexed"] += state.indexed
            self._numbers["retrying"] += state.retries > 0
            self._numbers["held"] += state.indexed and state.held is not None
        elif isinstance(record, OrderRecord):
            self._numbers["outbox" if record.reason is None else "parked"] += 1


def _compared(source: Side, target: Target, told: Callable[[int], None]) -> tuple[Moved, str]:
    """Return what the source holds, and in what the copy differs; empty: in nothing."""
    wanted = _Sum(source, told)
    found = _Sum(target, lambda done: told(wanted.urls + done))
    wrong = [f"its {stage} differ" for stage in Stage if wanted.digests[stage] != found.digests[stage]]
    if target.counts() != wanted.counts:
        wrong.append("its numbers differ")
    counts = wanted.counts
    return Moved(wanted.urls, counts.outbox + counts.parked), ", ".join(wrong)


def unleased(state: UrlState) -> UrlState:
    """Return the state as it is after a move."""
    return replace(state, lease_until=None)


def bare(document: Document | None) -> Document | None:
    """Return a document without what is kept elsewhere."""
    return None if document is None else replace(document, url="", text="", duplicates=[])
