"""Data read from a store, besides the state of a URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

from crawlspace.decision import Reason
from crawlspace.model import Queue, Source, UrlState
from crawlspace.state.site_health import Health

MOST_BYTES_AT_ONCE = 16_000_000
"""Maximal size of the documents in one batch of orders, unless one is larger: a batch is in memory as a whole."""


@dataclass(frozen=True, slots=True)
class Site:
    """The state of a site that the frontier needs before it leases from it."""

    site: str
    pending: tuple[Queue, ...] = ()
    """The queues in which URLs are pending and not leased."""
    due: tuple[tuple[Queue, int], ...] = ()
    """The queues in which known URLs are due, now or later, each with the time of the first one."""
    wait_until: int | None = None
    """The site is paused until then (Retry-After, robots.txt unavailable, a long delay)."""
    wait_s: int = 0
    """Length of that pause in seconds when it was stored; 0 if unknown."""

    def left_s(self, now: float, *, longest_s: float) -> float:
        """Return the seconds that are left to wait.

        Never more than when they were stored, in case the clock was set back since, and never more than `longest_s` if that is
        unknown.
        """
        return max(0.0, min((self.wait_until or now) - now, self.wait_s or longest_s))

    @property
    def next_due(self) -> int | None:
        """The due time of its first known URL, if any."""
        return min((at for _, at in self.due), default=None)


class KnownSite(NamedTuple):
    """What a store keeps count of for each site."""

    site: str
    urls: int
    """Known URLs of its host, on all ports."""
    documents: int
    """Its indexed documents."""
    health: Health


class WaitingUrls(NamedTuple):
    """The URLs of a site that may be fetched now, without leased ones."""

    pending: int
    due: int


class KnownUrl(NamedTuple):
    """The fields of a URL that a rule change needs; read for a million of them."""

    id: int
    key: int
    url: str
    site: str
    state: int
    status: int | None
    depth: int
    host_as_written: str | None
    has_document: bool
    """It has a checksum: its document or a duplicate of it is in the index."""
    indexed: bool
    held: int | None
    never_due: bool
    """It is not pending and is never due."""
    source: int = Source.INDEX_FOLLOW
    shift: int = 0
    refused: str | None = None
    """As in UrlState."""
    archived: int | None = None
    """As in UrlState."""
    left_to_others: bool = False
    """It has no document here, but the index has one, left there for another collection."""
    ordered: int = 0
    """As in UrlState."""


class FoldedUrl(Struct, gc=False):
    """The fields of a URL that its folding needs; read for a million of them. As in UrlState, except for the last."""

    id: int
    key: int
    url: str
    state: int
    status: int | None
    source: Source
    shift: int
    depth: int
    redirects: int
    host_as_written: str | None
    held: int | None
    inherited: str | None
    depth_from: int
    orphaned: int | None
    in_index: bool
    """The index has a document of it, its own or one left for another collection."""


def folded_url(state: UrlState, *, left_to_others: bool) -> FoldedUrl:
    """Return these fields of a whole state."""
    return FoldedUrl(*(*_folded_fields(state), state.indexed or left_to_others))


_folded_fields = attrgetter(*FoldedUrl.__struct_fields__[:-1])


@dataclass(frozen=True, slots=True)
class RobotsEntry:
    """A site's robots.txt as last read. `status` is its HTTP code or one of ours; `body` is empty unless it was 200."""

    site: str
    scheme: str
    status: int
    body: str
    fetched_at: int


@dataclass(frozen=True, slots=True)
class Counts:
    by_state: Mapping[str, int]
    """State label to number of URLs; leased ones are counted as `leased`, not under their state. Only those that occur."""
    by_status: Mapping[int, int]
    indexed: int
    outbox: int
    """Unacknowledged orders of all sinks, without parked ones."""
    parked: int
    hosts: int
    """Hosts that have a URL, whatever the port."""
    retrying: int
    """URLs with an outstanding retry of this run."""
    refused: Mapping[Reason, int] = field(default_factory=dict)
    """Links that were refused, of all pages as last fetched."""
    orphaned: int = 0
    """URLs that cannot be reached from a start URL."""
    left_to_others: int = 0
    """URLs without a document here whose document was left in the index for another collection; not counted in `indexed`."""
    duplicates: int = 0
    """URLs whose document is indexed under another URL, because it is equal or names that one as canonical."""

    @property
    def has_work(self) -> bool:
        """Something is pending or leased."""
        return bool(self.by_state.get("pending") or self.by_state.get("leased"))


@dataclass(frozen=True, slots=True)
class Share:
    """The sites and URLs of one of several workers, and the numbers of its last report."""

    host: str
    unseen_s: float
    sites: int
    urls: int
    """Leased by it."""
    fetched: int = 0
    errors: int = 0
    documents: int = 0
    per_second: float = 0.0
    """Fetched since it began."""


@dataclass(frozen=True, slots=True)
class Crawler:
    """A process that crawls, and since when (seconds since 1970, UTC; 0: unknown)."""

    process: int
    since: int
    share: Share | None = None
    """Where the collection is shared."""
