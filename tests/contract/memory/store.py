"""A store in memory: the reference of what the contract means, and the double for tests.

It is written to be obviously right. The SQLite store does the same with indexes, and a random walk in the contract
suite compares the two after every step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from crawlspace.document import IndexOrder, Op
from crawlspace.model import Held, NewUrl, Queue, State, UrlState
from crawlspace.state import refused_links
from crawlspace.state.changes import HELD, HELD_FOLDED, NOT_HELD, PENDING_AGAIN, Change, Effects, Reclassified
from crawlspace.state.depths import leads_again
from crawlspace.state.due_times import at_once
from crawlspace.state.duplicates import canonical_page
from crawlspace.state.lifecycle import excluded, unindexed
from crawlspace.state.near_duplicates import NEAR_EPOCH_META, NEAR_META
from crawlspace.state.refused_links import RefusedLink
from crawlspace.state.site_health import Health
from crawlspace.state.unreachable import ALL_SCHEMES
from crawlspace.state.views import MOST_BYTES_AT_ONCE, Counts, FoldedUrl, KnownSite, KnownUrl, Site, WaitingUrls, folded_url
from crawlspace.status import UNCOUNTED, Status
from tests.contract.memory.archive import MemoryArchive
from tests.contract.memory.depths import MemoryDepths
from tests.contract.memory.due_times import MemoryDueTimes
from tests.contract.memory.duplicates import Before, MemoryDuplicates
from tests.contract.memory.inherited_metadata import MemoryInheritance
from tests.contract.memory.outbox import MemoryOutbox
from tests.contract.memory.queue_order import Deferred, is_ready, may_be_due, queue_place
from tests.contract.memory.sites import MemoryRefusedLinks, MemorySites


@dataclass(slots=True)
class _TransactionEffects:
    """The effects of one transaction so far."""

    before: Before = field(default_factory=Before)
    effects: Effects = field(default_factory=Effects)
    nearer: dict[int, int] = field(default_factory=dict)
    """Ids whose depth went down, with the depth they had."""
    refused_links: dict[int, Sequence[RefusedLink]] = field(default_factory=dict)
    """New entries of the sample, by page; empty where its entries are out of date."""


class MemoryStore(MemoryArchive, MemoryDepths, MemoryDueTimes, MemoryRefusedLinks, MemorySites):
    """A store that is lost when the process ends."""

    changed_at_once = 10_000

    def __init__(self, *, sinks: Sequence[str] = ("index",)) -> None:
        super().__init__()
        self._ids: dict[str, int] = {}
        self._sites: defaultdict[str, set[int]] = defaultdict(set)
        self._outbox = MemoryOutbox(sinks)
        self._groups = MemoryDuplicates(
            self._urls,
            self._with_key,
            outbox=self._outbox,
            within=lambda: int(self.get_meta(NEAR_META) or 0),
            epoch=lambda: int(self.get_meta(NEAR_EPOCH_META) or 0),
        )
        self._inheritance = MemoryInheritance(self._urls, self._with_key, self._links)
        self._last_id = 0
        self._deferred = Deferred()

    # discovery
    def discover(self, urls: Sequence[NewUrl], *, now: int) -> Effects:
        batch = _TransactionEffects()
        self._discover(urls, batch, now)
        self._carry(batch.nearer, batch.effects)
        for new in urls:
            row = self._urls[self._ids[new.url]]
            row.inherited = row.inherited or new.inherited
        return batch.effects

    # the frontier's queue
    def sites(self) -> Iterator[Site]:
        for site in sorted(self._sites.keys() | self._waits.keys()):
            free = [row for row in self._rows(site) if row.lease_until is None]
            pending = {row.queue for row in free if row.state is State.PENDING}
            due, wait = self.due(site), self._waits.get(site)
            if pending or due or wait is not None:
                yield Site(site, tuple(sorted(pending)), tuple(due), *(wait or ()))

    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]:
        if self.is_paused(site):
            return []
        ready = [row for row in self._rows(site) if is_ready(row, now) and queue in (None, row.queue)]
        self._deferred.put(ready)
        ready = sorted((row for row in ready if row not in self._deferred), key=queue_place)
        for row in ready[:limit]:
            row.lease_until = until
        return [self._copy(row) for row in ready[:limit]]

    def release(self, ids: Iterable[int]) -> None:
        for id in ids:
            if id in self._urls:
                self._urls[id].lease_until = None

    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
        ended: Counter[str] = Counter()
        for row in self._urls.values():
            if row.lease_until is not None and row.lease_until <= now and row.id not in keep:
                row.lease_until = None
                ended[row.site] += 1
        return dict(ended)

    def begin_run(self, at: int | None, *, resumes: bool = False) -> None:
        self._deferred.begin(at, resumes=resumes)
        for row in () if resumes else self.unreachable():
            self.wait_site(row.site, None)

    def due(self, site: str) -> list[tuple[Queue, int]]:
        first: dict[Queue, int] = {}
        for row in self._rows(site):
            if row.next_fetch is not None and may_be_due(row) and row not in self._deferred:
                first[row.queue] = min(first.get(row.queue, row.next_fetch), row.next_fetch)
        return sorted(first.items())

    # results
    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        self._outbox.now = now
        batch = _TransactionEffects(self._groups.before(self._stored(change.state.id for change in changes)))
        discovered: list[NewUrl] = []
        keys = {row.id: row.key for row in self._stored(change.state.id for change in changes)}
        before = self._before_links_are_lost(keys)
        for change in changes:
            if change.state.id in self._urls:
                discovered.extend(change.discovered)
                self._apply(change, batch)
        self._discover(discovered, batch, now)
        self._carry(batch.nearer, batch.effects)
        self._mark_depths(before)
        self._groups.settle(batch.before, batch.effects)
        self._inheritance.settle(keys, changes, batch.effects, now=now)
        self._replace_refused_links(batch.refused_links)
        self._health.update(health or {})
        return batch.effects

    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects:
        states = [state for id in dict.fromkeys(ids) if (state := self.get_by_id(id)) is not None]
        return self.record([made for state in states if (made := change(state)) is not None], now=now)

    def reclassify(self, found: Reclassified, *, now: int) -> Effects:
        held = (*found.held, *found.held_unindexed, *found.held_folded)
        leaving = (*found.excluded, *found.given_up, *found.unindexed, *found.forgotten, *held)
        self._outbox.now = now
        batch = _TransactionEffects(self._groups.before(self._stored(leaving)))
        for row in self._stored(found.forgotten):
            self._apply(Change(row, forget=True), batch)
        for row in self._stored(found.excluded):
            self._apply(Change(excluded(row, Status.EXCLUDED)), batch)
        for row in self._stored(found.given_up):
            self._apply(Change(excluded(row, Status.EXCLUDED_HERE), keep_in_index=True), batch)
        for row in self._stored(found.unindexed):
            self._apply(Change(unindexed(row, now)), batch)
        others = [
            structs.replace(row, **values, held_mark=mark)
            for ids, values, mark in (
                (found.held, HELD, 0),
                (found.held_unindexed, HELD, 1),
                (found.held_folded, HELD_FOLDED, 0),
            )
            for row in self._stored(ids)
        ]

        def due(row: UrlState) -> dict[str, int]:
            return {"rules": 0, "next_fetch": at_once(now, row.fetched_at)}

        for row in self._stored(found.returned):
            if row.status in (Status.EXCLUDED, Status.EXCLUDED_HERE):
                others.append(structs.replace(row, **PENDING_AGAIN))
            elif row.state is not State.PENDING:
                others.append(structs.replace(row, **NOT_HELD, **due(row)))
        others += [
            structs.replace(row, **due(row))
            for row in self._stored(found.due)
            if row.state is not State.PENDING and row.next_fetch is not None
        ]
        for row in others:  # what they have in the index stays, whatever that is
            self._apply(Change(row, keep_in_index=True), batch)
        for id, queue in found.moved:
            if id in self._urls:
                self._urls[id].source, self._urls[id].shift = queue
        self._groups.settle(batch.before, batch.effects)
        self._replace_refused_links(batch.refused_links)
        return batch.effects

    def _background(self, after: int) -> list[UrlState]:
        return [self._urls[id] for id in sorted(self._urls) if id > after]

    def drop_inherited(self) -> None:
        self._inheritance.drop()

    def is_duplicate(self, id: int, *, checksum: bytes, canonical: int | None, simhash: bytes | None = None) -> bool:
        if canonical is not None and canonical_page(self._with_key(canonical)) is not None:
            return True
        if simhash is not None and self._groups.has_near(checksum, simhash, id):
            return True
        return self._groups.has_other(checksum, id)

    def leading_text(self, simhash: bytes) -> bytes | None:
        return self._groups.leading_text(simhash)

    def lost_links(self, ids: Collection[int]) -> set[int]:
        return {id for id in ids if not all(self._keys.get(key) for key in self._links.get(id, ()))}

    # reading
    def scan(self, after: int, limit: int) -> list[KnownUrl]:
        rows = [self._copy(row) for row in self._background(after)][:limit]
        return [_known_url(row, left_to_others=self._groups.has_left(row.id)) for row in rows]

    def version(self) -> int:
        return 0

    def get(self, url: str) -> UrlState | None:
        return self.get_by_id(self._ids.get(url, 0))

    def get_by_id(self, id: int) -> UrlState | None:
        row = self._urls.get(id)
        return self._copy(row) if row else None

    def get_by_ids(self, ids: Sequence[int]) -> list[UrlState]:
        return [self._copy(row) for row in self._stored(ids)]

    def urls_to_fold(self, ids: Collection[int]) -> list[FoldedUrl]:
        return [folded_url(self._copy(row), left_to_others=self._groups.has_left(row.id)) for row in self._stored(ids)]

    def left_to_others(self, ids: Collection[int]) -> set[int]:
        return {id for id in ids if self._groups.has_left(id)}

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
        for id in sorted(id for id in self._urls if id > after):
            row = self._urls.get(id)
            if (
                row
                and reason in (None, row.held)
                and (not (held or reason) or (row.held is not None and self._groups.is_in_index(row)))
                and (state is None or row.state is state)
                and (not leased or row.lease_until is not None)
                and (status is None or row.status == status)
                and (host is None or _host(row.site) == host)
            ):
                yield self._copy(row)

    def folded_urls(self) -> Iterator[UrlState]:
        return (state for state in self.urls() if state.held is Held.FOLDED)

    def held_numbers(self) -> dict[tuple[Held, str], int]:
        return dict(Counter((row.held, row.site) for row in self.urls(held=True) if row.held is not None))

    def counts(self) -> Counts:
        rows = self._urls.values()
        waiting, parked = self._outbox.counts()
        return Counts(
            by_state=Counter("leased" if row.lease_until is not None else row.state.label for row in rows),
            by_status=Counter(row.status for row in rows if row.status is not None),
            indexed=self._groups.indexed,
            outbox=waiting,
            parked=parked,
            hosts=len({_host(row.site) for row in rows}),
            retrying=sum(1 for row in rows if row.retries),
            refused=refused_links.total(row.refused for row in rows),
            left_to_others=sum(1 for row in rows if self._groups.has_left(row.id)),
            orphaned=sum(1 for row in rows if row.orphaned is not None),
            duplicates=sum(1 for row in rows if row.checksum is not None and not self._groups.is_indexed(row)),
        )

    def known_of_host(self, host: str) -> int:
        return sum(len(ids) for site, ids in self._sites.items() if _host(site) == host)

    def host_count(self, host: str) -> int:
        sites = [site for site in self._sites if _host(site) == host]
        return sum(row.status not in UNCOUNTED for site in sites for row in self._rows(site))

    # unreachable sites
    def documents(self, sites: Iterable[str]) -> dict[str, int]:
        return {site: sum(self._groups.is_indexed(row) for row in self._rows(site)) for site in sites}

    def known_sites(self) -> list[KnownSite]:
        found = self.documents(sorted(self._sites))
        return [
            KnownSite(site, urls, documents, self.health(site))
            for site, documents in found.items()
            if (urls := self.known_of_host(_host(site)))
        ]

    def waiting_urls(self, sites: Iterable[str], *, now: int) -> dict[str, WaitingUrls]:
        found = {}
        for site in sites:
            ready = [row for row in self._rows(site) if is_ready(row, now) and row not in self._deferred]
            pending = sum(row.state is State.PENDING for row in ready)
            found[site] = WaitingUrls(pending, len(ready) - pending)
        return found

    def schemes(self, site: str) -> frozenset[str]:
        return frozenset(row.url.partition(":")[0] for row in self._rows(site)) or ALL_SCHEMES

    # the outbox
    def use_sinks(self, sinks: Sequence[str]) -> None:
        self._outbox.use(sinks)

    def withdraw(self, sink: str, *, deletes: bool) -> None:
        self._groups.drop_texts(self._outbox.withdraw(sink, deletes=deletes))

    def orders(self, sink: str, limit: int, *, now: int, most_bytes: int = MOST_BYTES_AT_ONCE) -> list[IndexOrder]:
        return self._outbox.next(sink, limit, self._groups, most_bytes)

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        self._groups.drop_texts(self._outbox.acknowledge(sink, orders))

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        self._outbox.park(sink, order, reason)

    def parked(self, sink: str) -> list[tuple[Op, str, str]]:
        return self._outbox.parked(sink)

    def unpark(self, sink: str) -> int:
        return self._outbox.unpark(sink)

    def backlog(self, sink: str, *, parked: bool = False) -> int:
        return self._outbox.backlog(sink, parked=parked)

    def waiting_since(self, sink: str) -> int | None:
        return self._outbox.waiting_since(sink)

    def check(self) -> None:
        """Nothing outside the process can damage this store."""

    def close(self) -> None:
        """Nothing to close."""

    # private
    def _rows(self, site: str) -> list[UrlState]:
        return [self._urls[id] for id in sorted(self._sites.get(site, ()))]

    def _copy(self, row: UrlState) -> UrlState:
        representative = self._groups.ranking_of_group(row).representative
        return structs.replace(
            row, indexed=representative == row.id, duplicate_of=None if representative == row.id else representative
        )

    def _discover(self, urls: Iterable[NewUrl], batch: _TransactionEffects, now: int) -> None:
        effects = batch.effects
        for new in urls:
            row = self._urls.get(self._ids.get(new.url, 0))
            if row is None:
                self._insert(new, now)
                effects.discovered += 1
                effects.pending_sites[new.site] = effects.pending_sites.get(new.site, 0) + 1
                continue
            if row.state is State.PENDING and new.source < row.source:
                row.source, row.shift = new.source, new.shift
                effects.pending_sites.setdefault(row.site, 0)
            if new.depth < row.depth:
                batch.nearer.setdefault(row.id, row.depth)
                row.depth, row.depth_from = new.depth, new.depth_from

    def _insert(self, new: NewUrl, now: int) -> None:
        self._last_id += 1
        self._urls[self._last_id] = UrlState(
            id=self._last_id,
            key=new.key,
            url=new.url,
            site=new.site,
            source=new.source,
            shift=new.shift,
            depth=new.depth,
            redirects=new.redirects,
            rank=new.rank,
            host_as_written=new.host_as_written,
            discovered_at=now,
            depth_from=new.depth_from,
        )
        self._ids[new.url] = self._last_id
        self._keys[new.key].add(self._last_id)
        self._sites[new.site].add(self._last_id)

    def _apply(self, change: Change, batch: _TransactionEffects) -> None:
        old = self._urls[change.state.id]
        of_document = self._groups.change(old, change, batch.before)
        if change.refused_links or (old.refused is not None and change.drops_refused_links):
            batch.refused_links[old.id] = change.refused_links
        if change.forget:
            self._forget(old)
            batch.nearer.pop(old.id, None)
            return
        new = structs.replace(
            change.state,
            key=old.key,
            url=old.url,
            site=old.site,
            rank=old.rank,
            redirects=old.redirects,
            host_as_written=old.host_as_written,
            discovered_at=old.discovered_at,
            inherited=old.inherited,
            depth=min(old.depth, change.state.depth),
            depth_from=old.depth_from,
            archived=old.archived if change.archived is None else change.archived or None,
            ordered=old.ordered,
            lease_until=None,
            **of_document,
        )
        self._urls[new.id] = new
        if change.links is not None:
            self._links[new.id] = tuple(change.links)
        if old.depth != change.state.depth or leads_again(old.state, old.status, new.state, new.status):
            batch.nearer.setdefault(new.id, max(old.depth, change.state.depth))
        if new.state is State.PENDING and not (old.state is State.PENDING and old.lease_until is None):
            pending = batch.effects.pending_sites
            pending[new.site] = pending.get(new.site, 0) + 1

    def _forget(self, row: UrlState) -> None:
        del self._urls[row.id]
        del self._ids[row.url]
        self._keys[row.key].discard(row.id)
        self._sites[row.site].discard(row.id)
        self._links.pop(row.id, None)


def _host(site: str) -> str:
    return site.rpartition(":")[0]


def _known_url(state: UrlState, *, left_to_others: bool) -> KnownUrl:
    """Return these fields of a whole state."""
    return KnownUrl(
        state.id,
        state.key,
        state.url,
        state.site,
        int(state.state),
        state.status,
        state.depth,
        state.host_as_written,
        has_document=state.checksum is not None,
        indexed=state.indexed,
        held=state.held,
        never_due=state.state is not State.PENDING and state.next_fetch is None,
        source=state.source,
        shift=state.shift,
        refused=state.refused,
        archived=state.archived,
        left_to_others=left_to_others,
        ordered=state.ordered,
    )
