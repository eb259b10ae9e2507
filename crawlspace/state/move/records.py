"""What is kept of a collection, as records that are the same whatever store they come from.

A collection is a stream of records in the order of the kinds below: sites, robots.txt files and URLs each in their order, then
the sample of refused links by host, then index orders, then named values. A record is an array in MessagePack that begins with the name of its kind. Ids and the numbers of orders are
part of it; leases and the crawling processes are not: what was leased is pending or due again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import groupby
from typing import Literal

import msgspec

from crawlspace.model import Document, Op, UrlState
from crawlspace.state.refused_links import LETTERS, RefusedLink, by_letter, by_reason, reason_of
from crawlspace.state.site_health import NEW_SITE, Health
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import Counts, RobotsEntry

FORMAT = 2
"""Of the records: another number whenever a kind or a field is added, changed or taken out."""
NOT_KEPT = ("moving", "born", "durable", "sessions")
"""Names of metadata about a store and not about what is in it; sessions are kept otherwise in each kind of store."""


class SiteRecord(msgspec.Struct, array_like=True, tag="sites"):
    """What is known of a site without its URLs; only for sites of which anything is."""

    site: str
    wait_until: int | None = None
    wait_s: int = 0
    health: Health = NEW_SITE
    unreachable: UnreachableSite | None = None


class RobotsRecord(msgspec.Struct, array_like=True, tag="robots.txt files"):
    entry: RobotsEntry


class UrlRecord(UrlState, array_like=True, tag="URLs"):
    """A URL with all that is kept of it. `lease_until` is None."""

    links: bytes = b""
    """Keys of eight bytes each, least significant first."""
    document: Document | None = None
    """Without URL, text and duplicates."""
    text: str | None = None
    """Of its checksum; where several URLs have that checksum, it is with the one that stands for their group."""
    aside_in: bytes | None = None
    """The group of the canonical page for which it stands aside."""
    incumbent: bool = False
    """It stands for its group although another URL has a better rank."""
    left: bool = False
    """Its document was left in the index for another collection."""
    link_metadata: str | None = None
    inherited_from: int | None = None
    inherited_mark: int | None = None
    """When it was last due for its inherited metadata, see `inherited_metadata.due_at`."""


class RefusedLinksRecord(msgspec.Struct, array_like=True, tag="refused links"):
    """The entries that the sample of refused links has of a host: URL, page, and the place of the rule; the oldest first."""

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
    """What is to be pushed, whatever becomes of the URL; without its URL."""


class ValueRecord(msgspec.Struct, array_like=True, tag="values"):
    """A named value: the last number given out (`tally`: `id` of URLs, `sequence` of orders), metadata, a mark of a depth by key, or
    the name of a file of the archive by number."""

    table: Literal["archive_file", "meta", "tally", "depth_mark"]
    name: str
    value: int | str


Record = SiteRecord | RobotsRecord | UrlRecord | RefusedLinksRecord | OrderRecord | ValueRecord
encode = msgspec.msgpack.Encoder().encode


class Summary:
    """What a stream of records comes to: how many there are of each kind, a checksum over them, and the numbers of `Store.counts`."""

    def __init__(self, report: Callable[[int], None] = lambda _: None) -> None:
        """`report` is called now and then with the number of URLs so far."""
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
        """What `Store.counts` is to return of a store with these records."""
        names = ("indexed", "outbox", "parked", "retrying", "held", "left_to_others", "orphaned", "duplicates")
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
        self._numbers["held"] += (url.indexed or url.left) and url.held is not None
        self._numbers["left_to_others"] += url.left
        self._numbers["orphaned"] += url.orphaned is not None
