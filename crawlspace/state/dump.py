"""A collection as a stream of records, identical for all kinds of stores: to be copied, or written to a file.

The records come in the order of the kinds below: sites, robots.txt files and URLs each in their order, then the sample of refused links by
host, index orders, and named values. A record is an array in MessagePack that begins with the name of its kind. Ids and the numbers of
orders are part of it; leases and crawling processes are not: leased URLs are pending or due again.

`move` copies the records of one store to another in batches, and compares the two in the end. Each batch is written together with a mark of
the number of records. So a move that was stopped or killed continues, and a crawl detects an unfinished copy.

`dump` writes them to one file, which can be the source of a move. After a line that names the format come a header, the records and a
trailer, each after its length and its CRC-32 in four bytes each. The trailer has the number of records of each kind and a checksum over all
of them: truncation and damage are detected.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import BinaryIO, Literal, NamedTuple, Protocol

import msgspec

from crawlspace.document import Document, Op
from crawlspace.errors import StoreDamaged, StoreError, StoreLocked, StoreVersionError
from crawlspace.model import UrlState
from crawlspace.state.refused_links import LETTERS, RefusedLink, by_letter, by_reason, reason_of
from crawlspace.state.site_health import NEW_SITE, Health
from crawlspace.state.store import MetaStore
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import Counts, RobotsEntry

FORMAT = 5
"""Format of the records: changed whenever a kind or a field is added, changed or removed."""
NOT_KEPT = ("moving", "born", "durable", "sessions")
"""Names of metadata about the store, not its contents; each kind of store keeps sessions differently."""
MOVING = "moving"
"""The name of the mark among the metadata of a store."""
RECORDS = 500
BYTES = 4_000_000
"""Maximal bytes written at once."""
_FIRST_LINE = b"crawlspace dump\n"
_MOST_BYTES = 1 << 30
"""Bytes of a record: a larger size is damage."""


class SiteRecord(msgspec.Struct, array_like=True, tag="sites"):
    """The state of a site, without its URLs; only for sites that have any."""

    site: str
    wait_until: int | None = None
    wait_s: int = 0
    health: Health = NEW_SITE
    unreachable: UnreachableSite | None = None


class RobotsRecord(msgspec.Struct, array_like=True, tag="robots.txt files"):
    entry: RobotsEntry


class UrlRecord(UrlState, array_like=True, tag="URLs"):
    """A URL with all its stored data. `lease_until` is None."""

    links: bytes = b""
    """Keys of eight bytes each, least significant first."""
    document: Document | None = None
    """Without URL, text and duplicates."""
    text: str | None = None
    """Of its checksum; where several URLs share that, stored with the representative of their group."""
    alternate_in: bytes | None = None
    """The group of the canonical page of which it is an alternate, or in which it is a near duplicate."""
    near: bool = False
    """It is a near duplicate in that group."""
    representative: bool = False
    """It represents its group although another URL has a better rank."""
    left: bool = False
    """Its document was left in the index for another collection."""
    link_metadata: str | None = None
    inherited_from: int | None = None
    inherited_mark: int | None = None
    """Time when it was last due because of inherited metadata, see `inherited_metadata.due_at`."""


class RefusedLinksRecord(msgspec.Struct, array_like=True, tag="refused links"):
    """The entries that the sample of refused links has of a host: URL, page, and where the rule is; the oldest first."""

    letter: str
    host: str
    entries: list[tuple[str, int, str | None]]

    def links(self) -> list[RefusedLink]:
        return [RefusedLink(reason_of(self.letter), self.host, *entry) for entry in self.entries]


def refused_links_records(links: Iterable[RefusedLink]) -> Iterator[RefusedLinksRecord]:
    """Yield the records of the sample, which is in the order of `Store.refused_links`."""
    for (letter, host), of_host in groupby(links, key=lambda link: (LETTERS[link.reason], link.host)):
        yield RefusedLinksRecord(letter, host, [(link.url, link.page, link.rule) for link in of_host])


class OrderRecord(msgspec.Struct, array_like=True, tag="index orders"):
    """By sink: deletes and pushes that wait, then those that are parked."""

    sink: str
    op: Op
    number: int
    id: int
    url: str
    reason: str | None = None
    """Why it is parked."""
    document: Document | None = None
    """The document to push, independent of the URL's later state; without its URL."""


class ValueRecord(msgspec.Struct, array_like=True, tag="values"):
    """A named value: the last number given out (`tally`: `id` of URLs, `sequence` of orders), metadata, a mark of a depth by key, or
    the name of a file of the archive by number."""

    table: Literal["archive_file", "meta", "tally", "depth_mark"]
    name: str
    value: int | str


Record = SiteRecord | RobotsRecord | UrlRecord | RefusedLinksRecord | OrderRecord | ValueRecord
encode = msgspec.msgpack.Encoder().encode


class Summary:
    """The totals of a stream of records: their numbers by kind, checksums, and the numbers of `Store.counts`."""

    def __init__(self, report: Callable[[int], None] = lambda _: None) -> None:
        """`report` is called periodically with the number of URLs so far."""
        self._report = report
        self._checksums: dict[str, blake2b] = {}
        self._numbers: Counter[str] = Counter()
        self._states: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._refused: Counter[str] = Counter()
        self._hosts: set[str] = set()

    def add(self, record: msgspec.Struct) -> bytes:
        """Add a record, and return it encoded."""
        encoded = encode(record)
        kind = str(record.__struct_config__.tag)
        self._numbers[kind] += 1
        self._checksums.setdefault(kind, blake2b(digest_size=16)).update(encoded)
        if isinstance(record, UrlRecord):
            self._count(record)
        elif isinstance(record, OrderRecord):
            self._numbers["outbox" if record.reason is None else "parked"] += 1
        return encoded

    def __getitem__(self, kind: type[msgspec.Struct]) -> int:
        """The number of records of a kind."""
        return self._numbers[str(kind.__struct_config__.tag)]

    @property
    def by_kind(self) -> dict[str, tuple[int, bytes]]:
        """The number of records and their checksum."""
        return {kind: (self._numbers[kind], checksum.digest()) for kind, checksum in self._checksums.items()}

    @property
    def counts(self) -> Counts:
        """Return what `Store.counts` must return for a store with these records."""
        names = ("indexed", "outbox", "parked", "retrying", "left_to_others", "orphaned", "duplicates")
        numbers = {name: self._numbers[name] for name in names}
        return Counts(
            by_state=dict(self._states),
            by_status=dict(self._statuses),
            hosts=len(self._hosts),
            refused=by_reason(self._refused.items()),
            **numbers,
        )

    def differences(self, other: Summary) -> list[str]:
        """The kinds of records that differ."""
        one, two = self.by_kind, other.by_kind
        return [kind for kind in sorted({**one, **two}) if one.get(kind) != two.get(kind)]

    def _count(self, url: UrlRecord) -> None:
        if self[UrlRecord] % 500 == 0:
            self._report(self[UrlRecord])
        self._states[url.state.label] += 1
        if url.status is not None:
            self._statuses[url.status] += 1
        for letter, number in by_letter(url.refused):
            self._refused[letter] += number
        self._hosts.add(url.site.rpartition(":")[0])
        self._numbers["indexed"] += url.indexed
        self._numbers["duplicates"] += url.checksum is not None and not url.indexed
        self._numbers["retrying"] += url.retries > 0
        self._numbers["left_to_others"] += url.left
        self._numbers["orphaned"] += url.orphaned is not None


class CopyMark(msgspec.Struct, frozen=True):
    """The progress of a move, stored in the unfinished copy."""

    source: str
    version: str
    """Of the source: a copy of another version is discarded."""
    records: int = 0
    """Number of copied records."""

    def encoded(self) -> str:
        return msgspec.json.encode(self).decode()


class CopySource(Protocol):
    """The source of a copy. Reading and writing may raise StoreError and its subclasses."""

    name: str
    """For messages, and to recognise it; without password."""

    def version(self) -> str:
        """A text that changes whenever the source is written to."""

    def mark(self) -> CopyMark | None:
        """The progress, if this is an unfinished copy."""

    def count(self) -> int:
        """Known URLs."""

    def records(self) -> Iterator[Record]:
        """All records, in an order that is the same in every store."""


class CopyTarget(CopySource, Protocol):
    """A store to which a collection is moved."""

    def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
        """Add records and set the mark, atomically; None: the copy is complete."""

    def clear(self) -> None:
        """Remove an unfinished copy."""

    def counts(self) -> Counts: ...


Report = Callable[[str, int, int], None]
"""Called with the present phase, the number of URLs done, and of all."""


class Moved(NamedTuple):
    urls: int
    orders: int
    """Index orders that wait or are parked."""


class Header(msgspec.Struct, array_like=True, tag="header"):
    """The first fields in every format."""

    format: int
    collection: str
    source: str
    """The store that it was read from, for people."""
    version: str
    """Of that store, to tell one dump from another."""
    urls: int


class Trailer(msgspec.Struct, array_like=True, tag="trailer"):
    by_kind: dict[str, tuple[int, bytes]]
    """See `Summary.by_kind`."""


_Part = Header | Record | Trailer
_decode: Callable[[bytes], _Part] = msgspec.msgpack.Decoder(_Part).decode


def read_mark(encoded: str | None) -> CopyMark | None:
    """Return a stored mark; an unreadable one is still a mark."""
    try:
        return msgspec.json.decode(encoded, type=CopyMark) if encoded else None
    except (msgspec.MsgspecError, RecursionError):
        return CopyMark("a store that is not known", "")


def refuse_unfinished_copy(store: MetaStore, collection: str) -> None:
    """Raise StoreError where a store is an unfinished copy of another one."""
    mark = read_mark(store.get_meta(MOVING))
    if mark is not None:
        raise StoreError(
            f"{collection} is here only in part, because copying it from {mark.source} has not ended: wait for it, or run the command"
            f" that copies it again (`scrapy move-store {collection} …` for another store, `scrapy restore {collection} …` for a backup), which"
            " continues where it stopped"
        )


def check_source(source: CopySource, collection: str) -> None:
    """Raise StoreError where there is nothing to be copied, or only a part of it."""
    if source.mark() is not None:
        raise StoreError(f"{source.name} is itself an unfinished copy of {collection}: name the store that it is copied from")
    if not _holds_anything(source):
        raise StoreError(f"{source.name} has no {collection}: it has never been crawled there")


def move(
    source: CopySource,
    target: CopyTarget,
    collection: str,
    *,
    report: Report = lambda *_: None,
    records: int = RECORDS,
    finish: Callable[[], Sequence[Record]] = tuple,
) -> Moved:
    """Copy the source and compare the copy with it; a stopped move of the same source continues.

    `finish` is called before the copy counts as complete. The records that it returns are written in the transaction that completes it.
    Raises StoreError if the source is empty, the target has other contents, one of them is changed meanwhile, or the copy differs from the
    source; and the errors of reading and writing. The source is not changed.
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
        target.write([], CopyMark(mark.source, ""))  # the next move starts over
        raise StoreError(
            f"the copy of {collection} is not like {source.name}: {', '.join(f'its {kind} differ' for kind in wrong)};"
            " nothing was changed there, please report it; the same command copies it again"
        )
    target.write(finish(), None)
    return Moved(wanted[UrlRecord], wanted[OrderRecord])


def changed(source: CopySource, collection: str) -> StoreLocked:
    """Return the error for a source that was written to meanwhile."""
    return StoreLocked(
        f"{source.name} was changed while {collection} was copied, so the copy is unusable:"
        " run the same command again while nobody else changes it"
    )


def dump(source: CopySource, file: BinaryIO, collection: str, *, report: Report = lambda *_: None) -> Moved:
    """Write the contents of a store to a file. Raises as `move`, and OSError for the file, which is unusable then."""
    check_source(source, collection)
    header = Header(FORMAT, collection, source.name, source.version(), source.count())
    summary = Summary(lambda urls: report("copying", urls, max(header.urls, 1)))
    file.write(_FIRST_LINE)
    _write(file, header, summary)
    for record in source.records():
        _write(file, record, summary)
    if source.version() != header.version:
        raise changed(source, collection)
    _write(file, Trailer(summary.by_kind), summary)
    file.flush()
    return Moved(summary[UrlRecord], summary[OrderRecord])


class DumpReader:
    """A dump as the source of a move. The file must be seekable; `name` is its path for messages."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Raises StoreDamaged for a file that is no dump, and StoreVersionError for another format."""
        self.name = name
        self._file = file
        self._read = 0
        header = self._next() if file.read(len(_FIRST_LINE)) == _FIRST_LINE else None
        if not isinstance(header, Header):
            raise StoreDamaged(f"{name} is no dump of a collection")
        if header.format != FORMAT:
            raise StoreVersionError(
                f"{name} was written by another version of crawlspace (dump format {header.format}, this one reads {FORMAT}):"
                " use that version"
            )
        self.header = header
        self._first = file.tell()

    def version(self) -> str:
        return self.header.version

    def mark(self) -> CopyMark | None:
        return None

    def count(self) -> int:
        return self.header.urls

    def records(self) -> Iterator[Record]:
        """Yield all records. Raises StoreDamaged, at the latest after the last of them."""
        self._file.seek(self._first)
        self._read = 0
        found = Summary()
        found.add(self.header)
        while not isinstance(record := self._next(), Header | Trailer):
            found.add(record)
            yield record
        if isinstance(record, Header) or record.by_kind != found.by_kind:
            raise self._damaged("records are missing, or there are too many")

    def _next(self) -> _Part:
        head = self._file.read(8)
        size, checksum = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
        encoded = self._file.read(min(size, _MOST_BYTES))
        if len(head) < 8 or len(encoded) < min(size, _MOST_BYTES):
            raise StoreDamaged(f"{self.name} is cut off after {self._read:,} records: use another copy of it")
        self._read += 1
        try:
            if zlib.crc32(encoded) != checksum:
                raise ValueError("its checksum differs")
            return _decode(encoded)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise self._damaged(f"record {self._read:,}: {error}") from error

    def _damaged(self, what: str) -> StoreDamaged:
        return StoreDamaged(f"{self.name} is damaged ({what}): use another copy of it")


def _begun(source: CopySource, target: CopyTarget, collection: str) -> CopyMark:
    """Return the mark to continue from; an obsolete copy is removed."""
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
    """Return whether there are records besides metadata."""
    return any(not isinstance(one, ValueRecord) or one.table != "meta" for one in source.records())


def _batches(found: Iterable[Record], summary: Summary, done: int, most: int) -> Iterator[list[Record]]:
    """Add all records to the summary, and yield those after the first `done` in lists of one kind, shorter if records are large."""
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


def _write(file: BinaryIO, record: msgspec.Struct, summary: Summary) -> None:
    encoded = summary.add(record)
    file.write(len(encoded).to_bytes(4, "big") + zlib.crc32(encoded).to_bytes(4, "big") + encoded)
