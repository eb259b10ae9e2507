"""The state of a collection and of each URL, for users and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import islice

from crawlspace.admin.pending.export import number_of, sorted_lines
from crawlspace.admin.pending.lines import ERROR
from crawlspace.admin.pending.realms import Origins
from crawlspace.admin.rendering import RenderingReport
from crawlspace.admin.site_report import SiteReport, held_by_reason, held_sites
from crawlspace.admin.sitemaps import trust_counts
from crawlspace.clock import iso
from crawlspace.crawl.findings import ErrorExample, HashRoutes
from crawlspace.crawl.traps import Trap
from crawlspace.model import Held, State, UrlState, priority
from crawlspace.simhash import DISTANCES, distance
from crawlspace.state.due_times import real_time
from crawlspace.state.duplicates import stays_in_index
from crawlspace.state.fetch_history import DocumentChange, fetches
from crawlspace.state.site_pauses import Pauses
from crawlspace.state.store import Store
from crawlspace.state.views import Counts, Crawler
from crawlspace.status import Status

LEASED = "leased"
"""Shown instead of the state of a URL that is leased for fetching."""
STATE_LABELS = (State.PENDING.label, LEASED, *(state.label for state in State if state is not State.PENDING))


_NONE: Mapping[str, SiteReport] = {}
_NO_ROUTES: Mapping[str, HashRoutes] = {}
_READ_AT_ONCE = 500
"""URLs."""


@dataclass(frozen=True, slots=True)
class UrlReport:
    """The stored state of one URL; `duplicate_of` is the URL that represents it in the index, if another."""

    state: UrlState
    duplicate_of: str | None
    distance: int | None = None
    """The distance of its text from that of `duplicate_of`, if it is a near duplicate."""
    site: SiteReport | None = None
    """The report of its site, if that is unreachable."""
    left_to_others: bool = False
    """It has no document, but the index has one of it, left there for another collection."""
    lost: bool = False
    """Its document is not in the index at present, because another collection deleted it there."""
    text_status: str = ""
    """Why the file has no text (`TextStatus`), if that is so."""
    imported_at: int = 0
    """The time at which an older crawler indexed it, if that was imported; 0: it was not."""

    @property
    def indexed_at(self) -> int | None:
        """The time of its last indexing: its page was fetched, and the index has it as it was then, changed or not.

        Unknown for a document whose page has failed since then; of a URL that was imported and not fetched yet, it is the imported
        time.
        """
        number = number_of(self.state, self.imported_at)
        return number if number > ERROR and (self.state.indexed or self.state.fetched_at is None) else None

    @property
    def status(self) -> int | None:
        """The status code; for a pending URL of an unreachable site, that of the site."""
        if self.state.state is State.PENDING and self.site is not None:
            return self.site.row.status
        return self.state.status

    @property
    def detail(self) -> str | None:
        """Details of an error; for a pending URL of an unreachable site, those of the site."""
        if self.state.state is State.PENDING and self.site is not None:
            return self.site.row.detail or None
        return self.state.detail

    @property
    def held(self) -> Held | None:
        """Why its deletion is held, by itself or with its whole site."""
        if self.state.held is None and self.state.indexed and self.site is not None and self.site.held:
            return Held.HOST
        if self.state.held is Held.FOLDED and self.state.duplicate_of is not None:  # it has no document in the index
            return None
        return self.state.held

    @property
    def label(self) -> str:
        """One of STATE_LABELS."""
        return label_of(self.state)

    @property
    def due(self) -> int | None:
        """The time at which it is due; None for one that is never due."""
        return real_time(self.state.next_fetch)

    def as_json(self) -> dict[str, object]:
        """Return the state of the URL as JSON has it."""
        state = self.state
        return {
            "url": state.url,
            "state": self.label,
            "status": self.status,
            **({"text_status": self.text_status} if self.text_status else {}),
            "depth": state.depth,
            "orphaned": state.orphaned is not None,
            "source": state.source.label,
            "shift": state.shift,
            "priority": priority(state.source, state.shift),
            "errors": state.errors,
            "last_fetch": None if state.fetched_at is None else iso(state.fetched_at),
            "next_fetch": None if self.due is None else iso(self.due),
            "indexed": state.indexed,
            "indexed_at": None if self.indexed_at is None else iso(self.indexed_at),
            "left_to_others": self.left_to_others,
            "lost": self.lost,
            "held": None if self.held is None else self.held.label,
            "duplicate_of": self.duplicate_of,
            "detail": self.detail,
            "fetches": [
                {
                    "at": iso(one.at),
                    "status": one.status,
                    "took_s": one.took_s,
                    "document": None if one.change is DocumentChange.NONE else one.change.label,
                }
                for one in fetches(state)
            ],
        }


def near_distance(state: UrlState, representative: UrlState | None) -> int | None:
    """Return the distance between the texts of a URL and of that which represents it; None if they are equal, or not near."""
    if representative is None or representative.checksum == state.checksum or None in (state.simhash, representative.simhash):
        return None
    found = distance(state.simhash or b"", representative.simhash or b"")
    return found if found <= max(DISTANCES) else None


def label_of(state: UrlState) -> str:
    """Return the state or `leased`: one of STATE_LABELS."""
    return state.state.label if state.lease_until is None else LEASED


def known(state: UrlState, store: Store, sites: Mapping[str, SiteReport] = _NONE, *, imported_at: int | None = None) -> UrlReport:
    """Return the report of a URL, with the URL that represents it. `sites` are the unreachable ones; `imported_at` is read if it is None."""
    if imported_at is None:
        imported_at = Origins(store).of(state.id).indexed_at
    representative = None if state.duplicate_of is None else store.get_by_id(state.duplicate_of)
    left = state.checksum is None and stays_in_index(state) and bool(store.left_to_others([state.id]))
    return UrlReport(
        state,
        None if representative is None else representative.url,
        near_distance(state, representative),
        sites.get(state.site),
        left_to_others=left,
        imported_at=imported_at,
    )


def known_urls(
    store: Store,
    *,
    label: str | None = None,
    statuses: range | None = None,
    host: str | None = None,
    held: bool = False,
    orphaned: bool = False,
    has_record: Callable[[int], bool] | None = None,
    sites: Sequence[SiteReport] = (),
    by_url: bool = False,
    after: int = 0,
) -> Iterator[UrlReport]:
    """Yield the reports of the selected URLs, in order of discovery or `by_url` in that of the URLs as text, without holding them in memory.

    In the order of URLs, all are read before the first one is yielded, and read again then: URLs that are not selected any more are left out.
    Raises ExportError if they cannot be sorted.

    `label` is one of STATE_LABELS; `statuses` bounds the status codes; `host` may have a port; `held` selects URLs in the index whose
    deletion is held, `orphaned` those that cannot be reached from a start URL. With `has_record`, which returns whether the archive has a
    location, only URLs with a document that has no record. `sites` are the unreachable ones. `after`: only URLs that were discovered after
    the one with that id.
    """
    unreachable = {one.row.site: one for one in sites}
    of_pending = {one.row.status for one in sites}
    site = host if host is not None and host.rpartition(":")[2].isdigit() else None
    states = store.urls(
        state=None if label in (None, LEASED) else State[label.upper()],
        leased=label == LEASED,
        status=statuses.start if statuses is not None and len(statuses) == 1 and statuses.start not in of_pending else None,
        host=host if host is None or site is None else host.rpartition(":")[0],
        held=held and not held_sites(sites),
        after=after,
    )

    def selected(states: Iterable[UrlState]) -> Iterator[UrlReport]:
        for one in reports(states, store, unreachable):
            state = one.state
            if orphaned and state.orphaned is None:
                continue
            if has_record is not None and (state.checksum is None or (state.archived is not None and has_record(state.archived))):
                continue
            if label not in (None, label_of(state)) or site not in (None, state.site):
                continue
            if statuses is not None and (one.status is None or one.status not in statuses):
                continue
            if not held or ((state.indexed or one.left_to_others) and one.held is not None):
                yield one

    found = selected(states)
    return selected(_by_url(found, store)) if by_url else found


def reports(states: Iterable[UrlState], store: Store, sites: Mapping[str, SiteReport]) -> Iterator[UrlReport]:
    """Yield the reports of URLs; `sites` are the unreachable ones."""
    origins = Origins(store)
    left = iter(states)
    while some := list(islice(left, _READ_AT_ONCE)):
        imported = origins.of_all([state.id for state in some])
        for state in some:
            yield known(state, store, sites, imported_at=imported[state.id].indexed_at)


def _by_url(found: Iterable[UrlReport], store: Store) -> Iterator[UrlState]:
    """Yield the URLs in the order of their text. Only text and id are kept, in temporary files if there are many."""
    lines = sorted_lines(f"{one.state.url} {one.state.id}" for one in found)
    while some := [int(line.rpartition(" ")[2]) for line in islice(lines, _READ_AT_ONCE)]:
        states = {state.id: state for state in store.get_by_ids(some)}
        yield from (states[id] for id in some if id in states)


@dataclass(frozen=True, slots=True)
class Report:
    """The counts of a collection. `crawling` is the process that crawls it now, `since` its start."""

    collection: str
    urls: Mapping[str, int]
    """By label, with all labels."""
    status: Mapping[int, int]
    refused: Mapping[str, int]
    """Refused links by reason, of all pages as last fetched."""
    documents: int
    outbox: int
    parked: int
    hosts: int
    crawling: int | None = None
    since: int | None = None
    held: Mapping[Held, int] = field(default_factory=dict)
    """Documents in the index whose deletion is held, by reason."""
    workers: Sequence[Crawler] | None = None
    """The processes that crawl it now, if it is shared."""
    unreachable: Sequence[SiteReport] = ()
    pauses: Pauses = field(default_factory=dict)
    """The hosts that a person has paused."""
    orphaned: int = 0
    """URLs that cannot be reached from a start URL."""
    left_to_others: int = 0
    """Documents in the index left there for another collection; not included in `documents`."""
    duplicates: int = 0
    """URLs whose document is in the index under another URL."""
    lost: int = 0
    """Documents included in `documents` that are not in the index at present, because another collection deleted them there."""

    rendering: RenderingReport | None = None
    """Costs of rendering; None if no page was rendered."""
    errors: Sequence[ErrorExample] = ()
    """Examples of errors with details."""
    traps: Sequence[Trap] = ()
    routes: Mapping[str, HashRoutes] = field(default_factory=dict)
    """Links to routes behind #, by site."""
    sitemaps: Mapping[str, int] = field(default_factory=dict)
    """Sitemaps with lastmod, by how far that is trusted."""

    @property
    def known(self) -> int:
        return sum(self.urls.values())

    def as_json(self) -> dict[str, object]:
        """Return the numbers of `status` as JSON has them."""
        return {
            "collection": self.collection,
            "crawling": self.crawling,
            "since": None if self.since is None else iso(self.since),
            **({} if self.workers is None else {"workers": [_worker_as_json(one) for one in self.workers]}),
            "urls": dict(self.urls),
            "orphaned": self.orphaned,
            "status": {str(code): count for code, count in sorted(self.status.items())},
            "errors": [one.as_json() for one in self.errors],
            "refused": dict(sorted(self.refused.items())),
            "index": {
                "documents": self.documents,
                "duplicates": self.duplicates,
                "left_to_others": self.left_to_others,
                "lost": self.lost,
                "outbox": self.outbox,
                "held": sum(self.held.values()),
                "parked": self.parked,
            },
            "held": {reason.label: self.held.get(reason, 0) for reason in Held},
            "hosts": self.hosts,
            "unreachable": [site.as_json() for site in self.unreachable],
            "paused": {pattern: one.as_json() for pattern, one in self.pauses.items()},
            "sitemaps": dict(self.sitemaps),
            "traps": [one.as_json() for one in self.traps],
            "hash_routes": {site: one.as_json() for site, one in self.routes.items()},
            **({} if self.rendering is None else {"rendering": self.rendering.as_json()}),
        }


def report(
    collection: str,
    store: Store | None,
    *,
    crawlers: Sequence[Crawler] = (),
    is_shared: bool = False,
    sites: Sequence[SiteReport] = (),
    errors: Sequence[ErrorExample] = (),
    traps: Sequence[Trap] = (),
    routes: Mapping[str, HashRoutes] = _NO_ROUTES,
) -> Report:
    """Return the counts of a collection; all are 0 without a store. `crawlers` are sorted by start."""
    counts = Counts({}, {}, indexed=0, outbox=0, parked=0, hosts=0, retrying=0) if store is None else store.counts()
    return Report(
        collection=collection,
        urls={label: counts.by_state.get(label, 0) for label in STATE_LABELS},
        status=dict(counts.by_status),
        refused={reason.value: number for reason, number in counts.refused.items()},
        documents=counts.indexed,
        duplicates=counts.duplicates,
        left_to_others=counts.left_to_others,
        orphaned=counts.orphaned,
        outbox=counts.outbox,
        parked=counts.parked,
        hosts=counts.hosts,
        crawling=crawlers[0].process if crawlers else None,
        since=crawlers[0].since if crawlers else None,
        held={} if store is None else held_by_reason(store, sites),
        workers=crawlers if is_shared else None,
        unreachable=sites,
        pauses={} if store is None else store.site_pauses(),
        errors=errors,
        traps=traps,
        routes=routes,
        sitemaps={} if store is None else trust_counts(store),
    )


def _worker_as_json(crawler: Crawler) -> dict[str, object]:
    share = crawler.share
    assert share is not None  # present on every shared store
    return {
        "host": share.host,
        "process": crawler.process,
        "since": iso(crawler.since),
        "silent_s": round(share.unseen_s, 1),
        "sites": share.sites,
        "urls": share.urls,
        "fetched": share.fetched,
        "errors": share.errors,
        "documents": share.documents,
        "per_second": round(share.per_second, 2),
    }


def status_sentence(code: int) -> str:
    """Return the meaning of a status code of HTTP or of the crawler; empty for an undefined one."""
    try:
        return Status(code).sentence
    except ValueError:
        pass
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""
