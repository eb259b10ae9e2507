"""What the crawler needs of a store: the only place that remembers anything, and the frontier's queue.

A store is dumb: what becomes of a URL is decided in `lifecycle`, and handed in as a `Change`.
Three things are the store's own duty, because they must hold in the same transaction as the rest:

* **Known means known.** A URL is inserted once; its link depth only ever goes down, and takes what it leads to with it.
* **One of a group.** URLs with one checksum are a group, and a page that names another page as its canonical one is in
  that page's group, as long as that page has a document and names no other page itself. Exactly one of a group is
  `indexed`: of its host the one with the smallest `rank`, and between hosts the one that was first (`standing` in
  `duplicates.py`); those with the same checksum are noted on its document as duplicates.
  Whatever joins, leaves or changes, the store gives the orders that make the index follow (`settle` in `duplicates.py`).
* **Handed along.** What a page hands is with all URLs it leads to, new or known; `inherited_metadata.py` says whose word holds.

`SqliteStore` and `MemoryStore` pass the same contract suite.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from crawlspace.model import Document, IndexOrder, NewUrl, Op, Queue, Source, State, UrlState
from crawlspace.state.hastening import AT_ONCE, Hastened
from crawlspace.state.site_health import Health
from crawlspace.state.unreachable import UnreachableSite


@dataclass(slots=True)
class Change:
    """The effect of one outcome, to be made as a whole.

    `state` replaces the stored row of that id (`held` and `held_mark` too), but for what the store owns: `indexed`,
    `duplicate_of`, `handed` and the depth, of which the smaller is kept; and for what a URL is born with: key, url, site, path_length,
    host_as_written, discovered_at. `state.checksum` says whether the document is wanted in the index, and in which group: None
    takes it out, a new one comes with its `document`, and so does a new `canonical`. Without a document the stored checksum and
    canonical stay, because what they stand for stays.
    """

    state: UrlState
    document: Document | None = None
    """The new document, where its content is new or changed: then it is pushed. None: what is stored stays."""
    links: Sequence[int] | None = None
    """Keys of all URLs the page leads to (the admitted ones); None where the stored ones stay.

    For a redirected URL: its target, which has the same depth and not one more. Links alone lower no depth: a URL that
    the page may have brought nearer is among `discovered`."""
    discovered: Sequence[NewUrl] = ()
    forget: bool = False
    """Remove the URL; `state` only names it. A document it had in the index is deleted."""
    keep_in_index: bool = False
    """The document leaves this collection and not the index, because another crawler has it: no delete order is given, and an
    order of the URL that waits stays as it is.

    The store remembers that it was left there, until a change of the URL says that this collection has a say again (`is_left` in
    `duplicates.py`): then it is deleted, unless it is pushed. For a URL that is forgotten it means nothing."""

    @property
    def link_metadata(self) -> str | None:
        """What the page hands to all of `links`, as a JSON object: each of `discovered` carries it, and there is one at least."""
        return self.discovered[-1].inherited if self.discovered else None


@dataclass(slots=True)
class Effects:
    """What a batch did, for the frontier and the counters."""

    discovered: int = 0
    """URLs inserted."""
    pending_sites: dict[str, int] = field(default_factory=dict)
    """New pending URLs by site: the inserted ones, and those a change made pending again. 0 for a site of which known ones only wait
    elsewhere from now on, with a smaller source number."""
    lowered: list[tuple[int, int, int]] = field(default_factory=list)
    """(id, old depth, new depth) of URLs already crawled that turned out to be nearer to a start URL, by id.

    One that was lowered while it was fetched is reported when its outcome is recorded: its links were judged by the old depth."""
    due: list[tuple[str, Queue, int]] = field(default_factory=list)
    """(site, queue, time) of known URLs that are due sooner than they were, for what is handed to them is not what it was."""
    pushes: int = 0
    """Orders given to each sink, after those of one URL have replaced each other."""
    deletes: int = 0
    displaced: int = 0
    """Documents that left the index although their pages are documents still: another one stands for them now."""


@dataclass(frozen=True, slots=True)
class Site:
    """What the frontier must know of a site before it leases from it."""

    site: str
    pending: tuple[Queue, ...] = ()
    """The queues in which URLs are pending that are not leased."""
    due: tuple[tuple[Queue, int], ...] = ()
    """The queues in which known URLs are due, now or later, and when the first one is."""
    wait_until: int | None = None
    """It is to be left alone until then (Retry-After, robots.txt unavailable, a long delay)."""
    wait_s: int = 0
    """For how many seconds that was when it was written down; 0 where that is not known."""

    def left_s(self, now: float, *, longest_s: float) -> float:
        """Return for how many seconds yet it is to be left alone.

        Never longer than when that was written down, should the clock have been set back since, and never longer than `longest_s`
        where that is not known.
        """
        return max(0.0, min((self.wait_until or now) - now, self.wait_s or longest_s))

    @property
    def next_due(self) -> int | None:
        """When its first known URL is due, if any."""
        return min((at for _, at in self.due), default=None)


class KnownUrl(NamedTuple):
    """As much of a URL as deciding anew whether it is in the crawl space takes; read for a million of them."""

    id: int
    url: str
    site: str
    state: int
    status: int | None
    depth: int
    host_as_written: str | None
    has_document: bool
    """It has a checksum: its document is in the index, or a duplicate of it is."""
    indexed: bool
    held: int | None
    never_due: bool
    """It is not pending and is never due."""
    source: int = Source.INDEX_FOLLOW
    shift: int = 0
    left_to_others: bool = False
    """It has no document, and the index has one of it all the same: left there for another collection."""


@dataclass(slots=True)
class Reclassified:
    """Ids of URLs, by what a change of the rules makes of them; an id stands in one list at most."""

    excluded: Sequence[int] = ()
    """Become excluded with status 760 and are never due; their documents leave the index."""
    given_up: Sequence[int] = ()
    """Become excluded with status 761 and are never due; their documents stay in the index, for another crawler has them
    (see `Change.keep_in_index`)."""
    held: Sequence[int] = ()
    """Stay as they are, held for Held.RULES, and are never due."""
    returned: Sequence[int] = ()
    """Those with status 760 or 761 become pending as if they were new; the others lose their hold and are due at once,
    to be fetched unconditionally (`rules` 0)."""
    unindexed: Sequence[int] = ()
    """Become excluded with status 2004 and are due at once, for their links; their documents leave the index."""
    held_unindexed: Sequence[int] = ()
    """As `held`; when that is approved they become as `unindexed`."""
    moved: Sequence[tuple[int, Queue]] = ()
    """Ids with the source and the shift they have from now on; they may stand in another list too."""


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
    """Orders not yet acknowledged, of all sinks; parked ones not counted."""
    parked: int
    hosts: int
    """Hosts that have a URL, whatever the port."""
    retrying: int
    """URLs with a retry of this run outstanding."""
    held: int = 0
    """Documents in the index whose deletion is held."""
    left_to_others: int = 0
    """URLs without a document of which the index has one, left there for another collection; not counted in `indexed`."""

    @property
    def has_work(self) -> bool:
        """Something is pending or leased."""
        return bool(self.by_state.get("pending") or self.by_state.get("leased"))


class Store(Protocol):
    """All times are whole seconds since 1970. Every method that writes is one transaction.

    Raises StoreFull, StoreDamaged, StoreLocked or StoreError, and then has changed nothing.
    """

    # discovery
    def discover(self, urls: Sequence[NewUrl], *, now: int) -> Effects:
        """Insert the unknown among `urls` as pending, in their order; lower the depth of known ones that were found nearer.

        A known URL keeps its source and shift, except that a pending one takes a smaller source number. What they come with is handed
        to those to which nothing is, until a page hands anything there.
        """

    # the frontier's queue
    def sites(self) -> Iterator[Site]:
        """Every site that has something pending, due in the future, or asked to wait. Costs time by sites, not by URLs."""

    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]:
        """Hand out up to `limit` URLs of a site until the deadline, in order: source, shift, first discovered.

        In a queue first the pending ones, then known ones whose `next_fetch` has come, earliest due first: such a URL waits in its own
        source while a retry is outstanding, in source user where a person asked for it, and in source refresh otherwise.
        With `queue`, only URLs that wait in that one.
        """

    def release(self, ids: Iterable[int]) -> None:
        """Give leases back unfetched; the URLs are as before they were leased."""

    def begin_run(self, at: int | None, *, goes_on: bool = False) -> None:
        """Have no known URL be leased that was fetched from that time on, but for what `once_a_run` excepts; None: there is no such bound.

        Where several crawl, the earliest of their times holds. What was set aside for the last run may be leased again; it is
        restored in many transactions, which may be interrupted. A site that gave no answer in the last run is not to wait any longer.
        `goes_on`: the run is the same, and turns out to have begun then.
        """

    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
        """End the leases whose deadline has passed, but for ids that the caller still holds; return how many by site."""

    def due(self, site: str) -> list[tuple[Queue, int]]:
        """The queues of a site in which known URLs that are not leased are due, now or later, and when the first one is."""

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        """Remember that a site is to be left alone until then, which is in so many seconds; None ends it."""

    # results
    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        """Make all changes, end their leases, insert what they discovered, settle the groups and give the index orders: one transaction.

        `health` is written down for the sites it names, in the same transaction.

        First all changes in their order, then all discoveries in theirs, so that a URL forgotten and found again in one batch is pending.
        Then what the pages hand, what they take back first. What has a document that lacks it, or has too much, is due at once, unless
        it is being fetched: then it is when its outcome is recorded.
        A change whose URL is no longer stored, or was forgotten meanwhile, is passed over.
        """

    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects:
        """Read URLs as they are now and record what `change` makes of them, in one transaction: for commands beside a crawl.

        A URL that is not stored is passed over, as is one for which `change` returns None. What `change` raises is raised, and
        nothing has changed then.
        """

    def reclassify(self, found: Reclassified, *, now: int) -> Effects:
        """Make what a change of the rules means for many URLs, in one transaction; settles the groups and gives the orders.

        Ids that are not stored are passed over. Leases of the URLs end.
        """

    def drop_inherited(self) -> None:
        """Take back what was handed by pages that are outside the crawl space by now (760, 761), or by nobody knows whom.

        The documents of the URLs that had it are due at once, and so are redirects.
        """

    def hasten(self, latest: int, *, after: int = 0, limit: int = AT_ONCE, fetched_by: int | None = None) -> Hastened:
        """Have up to `limit` known URLs that are due later than that be due then, in order of discovery, behind the one with that id.

        `fetched_by`: only those that were fetched at that time or before, or never.
        """

    def hasten_retries(self, latest: int) -> int:
        """The same for all that are not leased and wait in another source than refresh, for a retry or because a person asks for them."""

    def health(self, site: str) -> Health:
        """How a site has answered; that of a new site where nothing is known."""

    def is_duplicate(self, id: int, *, checksum: bytes, canonical: int | None) -> bool:
        """Whether a document of this URL, with that checksum and naming the page of that key, would not be the only one: another URL
        has one with the checksum in its own group, or the page has one and names none itself."""

    def lost_links(self, ids: Collection[int]) -> set[int]:
        """Those of the pages that lead to a URL that is no longer stored."""

    # looking
    def scan(self, after: int, limit: int) -> list[KnownUrl]:
        """The next URLs in order of discovery, behind the one with that id."""

    def version(self) -> int:
        """Another number whenever another process has written since the last call."""

    def get(self, url: str) -> UrlState | None:
        """The state of a URL in normal form."""

    def get_by_id(self, id: int) -> UrlState | None: ...

    def left_to_others(self, ids: Collection[int]) -> set[int]:
        """Those of the URLs whose document was left in the index for another collection."""

    def urls(
        self,
        *,
        state: State | None = None,
        leased: bool = False,
        status: int | None = None,
        host: str | None = None,
        held: bool = False,
    ) -> Iterator[UrlState]:
        """URL states in order of discovery; `host` is the host without port. `leased` selects only leased ones, `held`
        only those in the index whose deletion is held."""

    def counts(self) -> Counts: ...

    def known_of_host(self, host: str) -> int:
        """Known URLs of a host on all its ports."""

    def host_count(self, host: str) -> int:
        """Known URLs of a host on all its ports, but for those out of the crawl space or missing (760, 761, 404, 410)."""

    # sites that cannot be reached
    def unreachable(self) -> list[UnreachableSite]:
        """The rows of all sites that gave no answer in their last runs, by name."""

    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None:
        """Write the row of a site; None removes it, for the site has answered."""

    def documents(self, sites: Iterable[str]) -> dict[str, int]:
        """How many documents of each of these sites are in the index. Costs time by sites, not by URLs."""

    def schemes(self, site: str) -> frozenset[str]:
        """The schemes of the URLs of a site, and perhaps one more: all, where that is not known."""

    # robots.txt
    def robots(self, site: str, scheme: str) -> RobotsEntry | None: ...

    def save_robots(self, entry: RobotsEntry) -> None: ...

    # refusals, counted across runs
    def count_refusals(self, by_reason: Mapping[str, int]) -> None:
        """Add to the counts of refused candidates by reason."""

    def refusals(self) -> Mapping[str, int]: ...

    # the outbox
    def orders(self, sink: str, limit: int, *, now: int) -> list[IndexOrder]:
        """The next orders of a sink: deletes first, then pushes, oldest first; with each push the document as it is now.

        There is at most one order a URL and sink: a newer one takes the place of an older one that is not yet acknowledged,
        so that an order can neither be overtaken nor be sent after it has become untrue. Parked orders are left out.
        """

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        """The sink has made these orders durable. One that has been replaced by a newer one meanwhile stays."""

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        """Put an order aside that the index refuses for itself; a newer order of the same URL takes its place."""

    def parked(self, sink: str) -> list[tuple[Op, str, str]]:
        """The parked orders of a sink: op, URL and reason, oldest first."""

    def backlog(self, sink: str) -> int:
        """Orders not yet acknowledged, parked ones not counted."""

    # key-value odds and ends of a collection (rule-set hash, epoch …)
    def get_meta(self, name: str) -> str | None: ...

    def get_metas(self, names: Sequence[str]) -> list[str | None]: ...

    def set_meta(self, name: str, value: str) -> None: ...

    def check(self) -> None:
        """Raise StoreDamaged unless the store is sound (SQLite: quick_check)."""

    def close(self) -> None: ...


__all__ = [
    "Change",
    "Counts",
    "Effects",
    "Hastened",
    "Health",
    "KnownUrl",
    "Reclassified",
    "RobotsEntry",
    "Site",
    "Store",
]
