"""The contract of every store, in parts by their callers: the store has all state, and is the frontier's queue.

Decisions about URLs are made outside (`lifecycle.py`) and written as a `Change`. The store computes two things, because they must be
consistent in the same transaction:

* **Known URLs.** A URL is inserted once; its depth is lowered together with the depth of its links, and stored with the page that gave it.
  When that page loses the link, the URL is marked (`depths.py`); no depth increases before it is settled.
* **Duplicates.** URLs with one checksum are a group, and a page that names another page as its canonical one is in that page's group, as
  long as that page has a document and names no other page itself. Exactly one of a group is indexed: within a host the one with the
  smallest rank, between hosts the one that was first (`rank_members` in `duplicates.py`); those with the same checksum are noted on its
  document. When a group changes, the store gives the orders that keep the index right (`settle` in `duplicates.py`).

Changes of **inherited metadata** are decided in `inherited_metadata.py` and written by the store: all URLs that a page links to, new or known,
inherit the metadata of its rules. `record` returns when that is done. Where several workers share a store it is a separate transaction,
which the next caller completes if a worker is killed before.

All stores pass the same contract suite. All times are whole seconds since 1970. Every method that writes is one transaction,
unless `one_transaction` joins several. Methods raise
StoreFull, StoreDamaged, StoreLocked or StoreError, and then have changed nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from crawlspace.decision import Reason
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.model import Held, NewUrl, Queue, State, UrlState
from crawlspace.state.changes import Change, Effects, Reclassified
from crawlspace.state.depths import DepthMark, NewDepth, PageLinks, UrlDepth
from crawlspace.state.due_times import AT_ONCE, DueChanges
from crawlspace.state.refused_links import RefusedLink
from crawlspace.state.site_health import Health
from crawlspace.state.site_pauses import Pauses, SitePause
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import MOST_BYTES_AT_ONCE, Counts, FoldedUrl, KnownSite, KnownUrl, RobotsEntry, Site, WaitingUrls


class LeaseStore(Protocol):
    """For the frontier."""

    def sites(self) -> Iterator[Site]:
        """Yield every site that has pending or due URLs, or must wait. Costs time by sites, not by URLs."""

    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]:
        """Lease up to `limit` URLs of a site until the deadline, in order of source, shift, discovery.

        In a queue first the pending ones, then known ones whose `next_fetch` has come, earliest due first. A known URL waits in its own
        source while a retry is outstanding, in source user if a person requested it, and in source refresh otherwise. With `queue`,
        only URLs that wait in that one. Nothing of a site that a person has paused.
        """

    def release(self, ids: Iterable[int]) -> None:
        """End leases of URLs that were not fetched, and restore them."""

    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
        """End the leases whose deadline has passed, except for those ids; return their number by site."""

    def due(self, site: str) -> list[tuple[Queue, int]]:
        """Return the queues of a site in which unleased known URLs are due, now or later, each with the time of the first one."""

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        """Have a site wait until then, which is in `wait_s` seconds; None ends the wait."""

    def site_pauses(self) -> Pauses:
        """Return the hosts that a person has paused. Raises StoreDamaged."""


class RunStore(Protocol):
    """For the start of a run."""

    def begin_run(self, at: int | None, *, resumes: bool = False) -> None:
        """Exclude known URLs fetched from that time on from leases, except as in `due_times.py`; None: no such bound.

        Where several workers crawl, the earliest of their times holds. URLs that were deferred in the last run may be leased again;
        that takes many transactions, and may be interrupted. The waits of sites without a response in the last run end.
        `resumes`: the same run, whose start is corrected.
        """


class ResultStore(Protocol):
    """For the outcomes of a crawl."""

    def discover(self, urls: Sequence[NewUrl], *, now: int) -> Effects:
        """Insert the unknown URLs as pending, in their order; lower the depth of known ones that were found with a lower one.

        A known URL keeps its queue, except that a pending one moves to that of a discovery with a smaller source number: source and shift,
        since that queue is the one which the frontier is told of. The metadata that they carry is inherited by those that inherit none,
        until a page gives them some.
        """

    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        """Write all changes, end their leases, insert what they discovered, settle the groups, give the index orders: one transaction.

        `health` is stored for the sites it names, in the same transaction. First all changes are made in their order, then all
        discoveries in theirs, so that a URL forgotten and found again in one batch is pending; then inherited metadata. A document whose
        metadata differs from what it inherits now is due at once, or, if it is being fetched, when its outcome is recorded. A change
        whose URL is not stored, or was forgotten meanwhile, is ignored. Last, the sample of refused links takes those of the changes, and
        drops what is beyond its bounds (`refused_links.py`).
        """

    def lost_links(self, ids: Collection[int]) -> set[int]:
        """Return those of the pages that link to a URL that is not stored any more."""

    def is_duplicate(self, id: int, *, checksum: bytes, canonical: int | None, simhash: bytes | None = None) -> bool:
        """Whether a document of this URL, with that checksum and naming the page of that key, would not be the only one of its group:
        another URL has one with the checksum, or the named page has one and names none itself, or a text with that signature would join
        the group of near duplicates that another URL represents."""

    def leading_text(self, simhash: bytes) -> bytes | None:
        """Return the checksum that names the group of near duplicates which a new text with that signature would join."""

    def health(self, site: str) -> Health:
        """Return how a site has answered; that of a new site where nothing is known."""

    def version(self) -> int:
        """Return another number whenever another process has written since the last call."""


class RefusedLinkStore(Protocol):
    """For listing refused links."""

    def refused_links(
        self, *, reason: Reason | None = None, host: str | None = None, page: int | None = None
    ) -> list[RefusedLink]:
        """Return the selected entries of the sample, by letter of the reason, then by host, the oldest first."""


class RuleChangeStore(Protocol):
    """For changes of rules, settings and the clock."""

    changed_at_once: int
    """Maximal URLs, or pages with their links, changed by one call, for which other workers wait."""

    def reclassify(self, found: Reclassified, *, now: int) -> Effects:
        """Apply a rule change to many URLs, in one transaction, with groups and orders. Their leases end. Unknown ids are ignored."""

    def urls_to_fold(self, ids: Collection[int]) -> list[FoldedUrl]:
        """Return the stored ones of up to some ten thousand URLs, in the order of the ids."""

    def one_transaction(self) -> AbstractContextManager[None]:
        """Join the writing calls inside a `with` statement into one transaction if supported; else each is one."""

    def drop_inherited(self) -> None:
        """Remove metadata inherited from pages that are outside the crawl space by now (760, 761), or from no stored page.

        The documents and redirects that had it are due at once.
        """

    def make_due_by(
        self, latest: int, *, after: int = 0, limit: int = AT_ONCE, fetched_by: int | None = None, until: int | None = None
    ) -> DueChanges:
        """Make up to `limit` known URLs that are due later due at `latest`, in order of discovery, after the id `after`.

        `fetched_by`: only those that were fetched at that time or before, or never; `until`: only those that are due before that time.
        """

    def schedule(self, at: int, *, fetched_by: int, after: int = 0, limit: int = AT_ONCE) -> DueChanges:
        """Move up to `limit` known URLs that are ever due into source index, due at that time, in the same order.

        Without those fetched between `fetched_by` and then, those already requested, and those being retried. What was
        fetched more than a minute after that time was fetched before the clock was set back.
        """

    def set_due_by_age(self, *, counts: bool, latest: int, after: int = 0, limit: int = AT_ONCE) -> DueChanges:
        """Make up to `limit` known URLs never due by age (`due_times.py`), or due again, by `latest`; in the same order."""

    def make_retries_due_by(self, latest: int) -> int:
        """Do the same for all unleased URLs that wait in another source than refresh, for a retry or at a person's request."""


class DepthStore(Protocol):
    """For link depths, once a run is over: which of them may be wrong, and the links they depend on. See `depths.py`."""

    def depth_marks(self) -> dict[int, DepthMark]:
        """Return the marks by key: `record` has made them. The URL of a key may not be stored."""

    def set_depth_marks(self, marks: Mapping[int, DepthMark | None]) -> None:
        """Write marks by key; None removes one."""

    def depths_of(self, keys: Iterable[int]) -> list[UrlDepth]:
        """Return the stored URLs with these keys, in any order."""

    def scan_depths(self, after: int, limit: int) -> list[UrlDepth]:
        """Return the next URLs in order of discovery, from the one after that id on."""

    def orphans(self) -> list[UrlDepth]:
        """Return the URLs that are orphaned, in order of discovery."""

    def links_of(self, ids: Collection[int]) -> dict[int, array[int]]:
        """Return the keys that pages lead to, by id; without those that lead nowhere."""

    def scan_links(self, after: int, limit: int) -> list[PageLinks]:
        """Return the next pages whose links count (`leads_on`), in order of discovery, from the one after that id on."""

    def set_depths(self, new: Sequence[NewDepth]) -> list[int]:
        """Write depths in one transaction; the depths of links don't change, and nothing becomes due.

        Returns the ids of unchanged ones: leased, or with another depth meanwhile.
        """

    def relink(self, links: Mapping[int, Sequence[int]]) -> None:
        """Write the keys that pages lead to, by id, in one transaction; no depth is lowered or marked for it."""

    def move_links(self, into: Mapping[int, int | None]) -> None:
        """Move the links of pages to others, by the ids of the former, in one transaction.

        Existing links of a page come first. None: no page gets these links. No depth is lowered or marked for it.
        """

    def fold_links(self, into: Mapping[int, int]) -> None:
        """Replace all links to a key of `into` by its value, in many transactions; no depth is lowered or marked for it."""


class UrlStore(Protocol):
    """For reading URLs, and changing single ones."""

    def get(self, url: str) -> UrlState | None:
        """Return the state of a URL in normal form."""

    def get_by_id(self, id: int) -> UrlState | None: ...

    def get_by_ids(self, ids: Sequence[int]) -> list[UrlState]:
        """Return the stored ones of up to some thousand URLs, in the order of the ids."""

    def links_to(self, keys: Collection[int]) -> Iterator[PageLinks]:
        """Yield the pages whose links count and that lead to one of some thousand keys, in order of discovery: one pass over all links."""

    def scan(self, after: int, limit: int) -> list[KnownUrl]:
        """Return the next URLs in order of discovery, from the one after that id on."""

    def urls(
        self,
        *,
        state: State | None = None,
        leased: bool = False,
        status: int | None = None,
        host: str | None = None,
        held: bool = False,
        reason: Held | None = None,
        after: int = 0,
    ) -> Iterator[UrlState]:
        """Yield URL states in order of discovery, from the one after that id on; `host` is the host without port. `leased` selects only leased
        ones, `held` only those in the index whose deletion is held, and `reason` those held for it."""

    def held_numbers(self) -> dict[tuple[Held, str], int]:
        """Return how many documents in the index have a held deletion, by reason and site. Costs time by these alone."""

    def folded_urls(self) -> Iterator[UrlState]:
        """Return the URLs that are held for Held.FOLDED, including those represented by another one in the index."""

    def counts(self) -> Counts: ...

    def known_of_host(self, host: str) -> int:
        """Return the number of known URLs of a host on all its ports."""

    def host_count(self, host: str) -> int:
        """Return the same without those out of the crawl space or missing (760, 761, 404, 410)."""

    def left_to_others(self, ids: Collection[int]) -> set[int]:
        """Return those of the URLs whose document was left in the index for another collection."""

    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects:
        """Read URLs and record the change that `change` returns for each, in one transaction: for commands during a crawl.

        `change` is called in the order of the ids, and again for all of them if one was changed meanwhile. URLs that are not stored, or for
        which `change` returns None, are ignored. Errors of `change` are raised, and nothing has changed then.
        """


class SiteStore(Protocol):
    """For sites: unreachable ones, their documents, their robots.txt."""

    def unreachable(self) -> list[UnreachableSite]:
        """Return the rows of all unreachable sites, by name."""

    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None:
        """Write the row of a site; None removes it, because the site has answered."""

    def set_site_pause(self, pattern: str, pause: SitePause | None) -> None:
        """Pause the hosts of a pattern (`site_pauses.py`), or resume them if it is None. Raises StoreDamaged.

        Once it has returned, nothing of them is leased; URLs that are leased already may be fetched.
        """

    def documents(self, sites: Iterable[str]) -> dict[str, int]:
        """Return the number of indexed documents of each of these sites. Costs time by sites, not by URLs."""

    def known_sites(self) -> list[KnownSite]:
        """Return all sites that have or had URLs, by name. Costs time by sites, not by URLs."""

    def waiting_urls(self, sites: Iterable[str], *, now: int) -> dict[str, WaitingUrls]:
        """Return the number of URLs of each of these sites that may be fetched now. May cost time by these URLs."""

    def schemes(self, site: str) -> frozenset[str]:
        """Return the schemes of the URLs of a site, and perhaps one more; all schemes if unknown."""

    def robots(self, site: str, scheme: str) -> RobotsEntry | None: ...

    def save_robots(self, entry: RobotsEntry) -> None: ...

    def forget_robots(self, *, read_after: int) -> None:
        """Remove robots.txt files read after a time, which is in the future."""


class OrderStore(Protocol):
    """For the index: the outbox."""

    def orders(self, sink: str, limit: int, *, now: int, most_bytes: int = MOST_BYTES_AT_ONCE) -> list[IndexOrder]:
        """Return the next orders of a sink: deletes first, then pushes, oldest first; each push with the document as it is now, and the location
        of its records in the archive while its URL has a document.

        Fewer than the limit if their stored documents exceed `most_bytes`; but always one.

        There is at most one order for a URL and sink: a newer one replaces an older one that is not acknowledged, so that an order is
        neither overtaken nor sent when outdated. Parked orders are left out.
        """

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        """Remove orders that the sink has made durable. One that was replaced by a newer one meanwhile stays."""

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        """Park an order that the index refuses; a newer order of the same URL replaces it."""

    def parked(self, sink: str) -> list[tuple[Op, str, str]]:
        """Return the parked orders of a sink, oldest first: op, URL and reason."""

    def unpark(self, sink: str) -> int:
        """Unpark the orders of a sink, each at its original position; return their number."""

    def backlog(self, sink: str, *, parked: bool = False) -> int:
        """Return the number of unacknowledged orders, without parked ones; with `parked`, of these alone."""

    def waiting_since(self, sink: str) -> int | None:
        """Return a time by which the oldest order of `backlog` was given, mostly right within a minute (`order_times.py`); None where none waits, or
        nothing is known."""

    def use_sinks(self, sinks: Sequence[str]) -> None:
        """Set the sinks that get orders from now on."""

    def withdraw(self, sink: str, *, deletes: bool) -> None:
        """Remove the pushes that wait for a sink, parked ones too, and with `deletes` all of its orders."""

    def ordered(self, sink: str, urls: Sequence[str]) -> dict[str, bool]:
        """Return those of the URLs that have an order in the outbox of a sink, each with whether it is parked."""

    def in_index(self, urls: Sequence[str]) -> set[str]:
        """Return those of the URLs whose document is in the index, or was left there for another collection, once the outbox is drained."""

    def delete_again(self, sink: str, urls: Sequence[str]) -> None:
        """Order the deletion of documents from one sink, also of URLs that are not stored; but not of those of `in_index`."""


class ArchiveStore(Protocol):
    """For the archive: its files, and the locations of URLs' records."""

    def archive_files(self) -> dict[int, str]:
        """Return the names of all files that ever were, by number."""

    def add_archive_file(self, name: str) -> int:
        """Return the number of a file, a new one for a new name."""

    def move_archived(self, moves: Sequence[tuple[int, int, int | None]]) -> None:
        """Set the locations of URLs in the archive: id, the old one, the new one. A URL that has another one by now keeps it."""

    def link_metadata(self, ids: Sequence[int]) -> Mapping[int, str]:
        """Return the metadata that links of pages inherit, a JSON object, for those that pass some on."""

    def push_again(self, documents: Mapping[int, Document | None], *, sink: str | None = None) -> list[int]:
        """Order the push of documents that are in the index, by the id of their URL, to one sink or all; return the ids that cannot be pushed.

        What is pushed is the given document, with the present duplicates; without one, that of the store, which mostly has its text no
        more. Ids that are not stored, or not indexed, are ignored.
        """


class MetaStore(Protocol):
    """For values of the whole collection, by name (hash of the rules, generation, cycle …)."""

    def get_meta(self, name: str) -> str | None: ...

    def get_metas(self, names: Sequence[str]) -> list[str | None]: ...

    def set_meta(self, name: str, value: str) -> None: ...

    def replace_meta(self, name: str, before: str | None, after: str) -> bool:
        """Set a value if it is `before` (None: not set), else change nothing; return whether it was."""

    def claim(self, name: str, *, seconds: int) -> bool:
        """Return whether this process may do a task that one process at a time does, until `end_claim`, or for `seconds` at most."""

    def end_claim(self, name: str) -> None: ...


class Store(
    LeaseStore,
    RunStore,
    ResultStore,
    RefusedLinkStore,
    RuleChangeStore,
    DepthStore,
    UrlStore,
    SiteStore,
    OrderStore,
    ArchiveStore,
    MetaStore,
    Protocol,
):
    """All of it."""

    def check(self) -> None:
        """Raise StoreDamaged unless the store is sound (SQLite: quick_check)."""

    def close(self) -> None: ...
