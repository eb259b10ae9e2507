"""A store in memory: the reference of what the contract means, and the double for tests.

It is written to be obviously right. The SQLite store does the same with indexes, and a random walk in the contract
suite compares the two after every step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from crawlspace.model import Document, IndexOrder, NewUrl, Op, Source, State, UrlState
from crawlspace.state.groups import Standing, settle, standing
from crawlspace.state.queue_order import is_ready, may_be_due, queue_place, waits_in
from crawlspace.state.store import Change, Counts, Effects, RobotsEntry, Site


@dataclass(slots=True)
class _Waiting:
    """An order in the outbox of one sink; `reason` is set when it is parked."""

    sequence: int
    op: Op
    id: int
    url: str
    reason: str | None = None


class MemoryStore:
    """A Store that forgets everything when the process ends."""

    def __init__(self, *, sinks: Sequence[str] = ("index",)) -> None:
        self._urls: dict[int, UrlState] = {}
        self._ids: dict[str, int] = {}
        self._keys: defaultdict[int, set[int]] = defaultdict(set)
        self._sites: defaultdict[str, set[int]] = defaultdict(set)
        self._groups: defaultdict[bytes, set[int]] = defaultdict(set)
        self._links: dict[int, tuple[int, ...]] = {}
        self._documents: dict[int, Document] = {}
        self._texts: dict[bytes, str] = {}
        self._waits: dict[str, int] = {}
        self._outbox: dict[str, dict[str, _Waiting]] = {sink: {} for sink in sinks}
        self._robots: dict[tuple[str, str], RobotsEntry] = {}
        self._refusals: Counter[str] = Counter()
        self._meta: dict[str, str] = {}
        self._last_id = 0
        self._last_sequence = 0

    # discovery
    def discover(self, urls: Sequence[NewUrl], *, now: int) -> Effects:
        effects = Effects()
        nearer: dict[int, int] = {}
        self._discover(urls, nearer, effects, now)
        self._carry(nearer, effects)
        return effects

    # the frontier's queue
    def sites(self) -> Iterator[Site]:
        for site in sorted(self._sites.keys() | self._waits.keys()):
            free = [row for row in self._rows(site) if row.lease_until is None]
            sources = {row.source for row in free if row.state is State.PENDING}
            due, wait = self.next_due(site), self._waits.get(site)
            if sources or due is not None or wait is not None:
                yield Site(site, bool(sources), due, wait, tuple(sorted(sources)))

    def lease(self, site: str, limit: int, *, now: int, until: int, source: Source | None = None) -> list[UrlState]:
        ready = [row for row in self._rows(site) if is_ready(row, now) and source in (None, waits_in(row))]
        ready.sort(key=queue_place)
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

    def next_due(self, site: str) -> int | None:
        return min((row.next_fetch for row in self._rows(site) if row.next_fetch is not None and may_be_due(row)), default=None)

    def wait_site(self, site: str, until: int | None) -> None:
        if until is None:
            self._waits.pop(site, None)
        else:
            self._waits[site] = until

    def note_pending(self, site: str, status: int | None) -> None:
        for row in self._rows(site):
            if row.state is State.PENDING and row.lease_until is None:
                row.status = status

    # results
    def record(self, changes: Sequence[Change], *, now: int) -> Effects:
        effects = Effects()
        nearer: dict[int, int] = {}
        before: dict[bytes, Standing] = {}
        texts: dict[int, str] = {}
        names: dict[int, str] = {}
        discovered: list[NewUrl] = []
        for change in changes:
            if change.state.id in self._urls:
                names[change.state.id] = self._urls[change.state.id].url
                discovered.extend(change.discovered)
                self._apply(change, before, texts, nearer, effects)
        self._discover(discovered, nearer, effects, now)
        self._carry(nearer, effects)
        self._settle(before, texts, names, effects)
        return effects

    # looking
    def get(self, url: str) -> UrlState | None:
        return self.get_by_id(self._ids.get(url, 0))

    def get_by_id(self, id: int) -> UrlState | None:
        row = self._urls.get(id)
        return self._copy(row) if row else None

    def urls(
        self,
        *,
        state: State | None = None,
        leased: bool = False,
        status: int | None = None,
        host: str | None = None,
    ) -> Iterator[UrlState]:
        for id in sorted(self._urls):
            row = self._urls.get(id)
            if (
                row
                and (state is None or row.state is state)
                and (not leased or row.lease_until is not None)
                and (status is None or row.status == status)
                and (host is None or _host(row.site) == host)
            ):
                yield self._copy(row)

    def counts(self) -> Counts:
        rows = self._urls.values()
        orders = [order for outbox in self._outbox.values() for order in outbox.values()]
        return Counts(
            by_state=Counter("leased" if row.lease_until is not None else row.state.label for row in rows),
            by_status=Counter(row.status for row in rows if row.status is not None),
            indexed=sum(1 for members in self._groups.values() if members),
            outbox=sum(1 for order in orders if order.reason is None),
            parked=sum(1 for order in orders if order.reason is not None),
            hosts=len({_host(row.site) for row in rows}),
            retrying=sum(1 for row in rows if row.retries),
        )

    def host_count(self, host: str) -> int:
        return sum(len(ids) for site, ids in self._sites.items() if _host(site) == host)

    # robots.txt
    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        return self._robots.get((site, scheme))

    def save_robots(self, entry: RobotsEntry) -> None:
        self._robots[entry.site, entry.scheme] = entry

    # refusals, counted across runs
    def count_refusals(self, by_reason: Mapping[str, int]) -> None:
        self._refusals.update(by_reason)

    def refusals(self) -> Mapping[str, int]:
        return dict(self._refusals)

    # the outbox
    def orders(self, sink: str, limit: int, *, now: int) -> list[IndexOrder]:
        waiting = [order for order in self._of(sink).values() if order.reason is None]
        waiting.sort(key=lambda order: (order.op is Op.PUSH, order.sequence))
        return [
            IndexOrder(order.sequence, order.op, order.url, self._document(order.id) if order.op is Op.PUSH else None)
            for order in waiting[:limit]
        ]

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        outbox = self._of(sink)
        for order in orders:
            waiting = outbox.get(order.url)
            if waiting and waiting.sequence == order.sequence:
                del outbox[order.url]
                self._drop_text(waiting.id)

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        waiting = self._of(sink).get(order.url)
        if waiting and waiting.sequence == order.sequence:
            waiting.reason = reason

    def parked(self, sink: str) -> list[tuple[Op, str, str]]:
        orders = sorted(self._of(sink).values(), key=lambda order: order.sequence)
        return [(order.op, order.url, order.reason) for order in orders if order.reason is not None]

    def backlog(self, sink: str) -> int:
        return sum(1 for order in self._of(sink).values() if order.reason is None)

    # key-value odds and ends
    def get_meta(self, name: str) -> str | None:
        return self._meta.get(name)

    def set_meta(self, name: str, value: str) -> None:
        self._meta[name] = value

    def check(self) -> None:
        """Nothing outside the process can damage this store."""

    def close(self) -> None:
        """Nothing to let go of."""

    # private
    def _rows(self, site: str) -> list[UrlState]:
        return [self._urls[id] for id in sorted(self._sites.get(site, ()))]

    def _standing(self, checksum: bytes) -> Standing:
        return standing(self._urls[id] for id in self._groups[checksum])

    def _copy(self, row: UrlState) -> UrlState:
        if row.checksum is None:
            return replace(row, indexed=False, duplicate_of=None)
        winner = self._standing(row.checksum).winner
        indexed = winner == row.id
        return replace(row, indexed=indexed, duplicate_of=None if indexed else winner)

    def _document(self, id: int) -> Document | None:
        row = self._urls[id]
        stored = self._documents.get(id)
        if stored is None or row.checksum is None:
            return None
        noted = [self._urls[other].url for other in self._standing(row.checksum).noted]
        return replace(_copy_of(stored), url=row.url, text=self._texts.get(row.checksum, ""), duplicates=noted)

    def _discover(self, urls: Iterable[NewUrl], nearer: dict[int, int], effects: Effects, now: int) -> None:
        for new in urls:
            row = self._urls.get(self._ids.get(new.url, 0))
            if row is None:
                self._insert(new, now)
                effects.discovered += 1
                effects.pending_sites[new.site] = effects.pending_sites.get(new.site, 0) + 1
                continue
            if row.state is State.PENDING and new.source < row.source:
                row.source = new.source
            if new.depth < row.depth:
                nearer.setdefault(row.id, row.depth)
                row.depth = new.depth

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
            path_length=new.path_length,
            host_as_written=new.host_as_written,
            discovered_at=now,
        )
        self._ids[new.url] = self._last_id
        self._keys[new.key].add(self._last_id)
        self._sites[new.site].add(self._last_id)

    def _apply(
        self, change: Change, before: dict[bytes, Standing], texts: dict[int, str], nearer: dict[int, int], effects: Effects
    ) -> None:
        old = self._urls[change.state.id]
        checksum = change.state.checksum
        if change.forget:
            checksum = None
        elif checksum is not None and change.document is None:
            checksum = old.checksum
        for touched in (old.checksum, checksum):
            if touched is not None:
                before.setdefault(touched, self._standing(touched))
        if old.checksum is not None:
            self._groups[old.checksum].discard(old.id)
        if change.forget:
            self._forget(old)
            texts.pop(old.id, None)
            nearer.pop(old.id, None)
            return
        new = replace(
            change.state,
            key=old.key,
            url=old.url,
            site=old.site,
            path_length=old.path_length,
            host_as_written=old.host_as_written,
            discovered_at=old.discovered_at,
            depth=min(old.depth, change.state.depth),
            lease_until=None,
            checksum=checksum,
        )
        self._urls[new.id] = new
        if checksum is None:
            self._documents.pop(new.id, None)
            texts.pop(new.id, None)
        else:
            self._groups[checksum].add(new.id)
            if change.document is not None:
                self._documents[new.id] = replace(_copy_of(change.document), text="")
                texts[new.id] = change.document.text
        if change.links is not None:
            self._links[new.id] = tuple(change.links)
        if old.depth != change.state.depth:
            nearer.setdefault(new.id, max(old.depth, change.state.depth))
        if new.state is State.PENDING and not (old.state is State.PENDING and old.lease_until is None):
            effects.pending_sites[new.site] = effects.pending_sites.get(new.site, 0) + 1

    def _forget(self, row: UrlState) -> None:
        del self._urls[row.id]
        del self._ids[row.url]
        self._keys[row.key].discard(row.id)
        self._sites[row.site].discard(row.id)
        self._links.pop(row.id, None)
        self._documents.pop(row.id, None)

    def _carry(self, nearer: dict[int, int], effects: Effects) -> None:
        """Lower what the nearer URLs lead to, until nothing gets nearer any more; report what was crawled already."""
        queue = list(nearer)
        while queue:
            row = self._urls[queue.pop()]
            depth = row.depth + (row.state is not State.REDIRECTED)
            for key in self._links.get(row.id, ()):
                for id in self._keys.get(key, ()):
                    target = self._urls[id]
                    if depth < target.depth:
                        nearer.setdefault(id, target.depth)
                        target.depth = depth
                        queue.append(id)
        for id, depth in sorted(nearer.items()):
            if self._urls[id].state is not State.PENDING:
                effects.lowered.append((id, depth, self._urls[id].depth))

    def _settle(
        self, before: Mapping[bytes, Standing], texts: Mapping[int, str], names: Mapping[int, str], effects: Effects
    ) -> None:
        after = {checksum: self._standing(checksum) for checksum in before}
        for id in sorted(texts):
            checksum = self._urls[id].checksum
            if checksum is not None and (after[checksum].winner == id or checksum not in self._texts):
                self._texts[checksum] = texts[id]
        for checksum, group in after.items():
            if group.winner is None:
                self._texts.pop(checksum, None)
        pushes, deletes = settle(before, after, texts.keys())
        for op, ids in ((Op.DELETE, deletes), (Op.PUSH, pushes)):
            for id in ids:
                self._last_sequence += 1
                url = names[id] if id in names else self._urls[id].url
                for outbox in self._outbox.values():
                    outbox[url] = _Waiting(self._last_sequence, op, id, url)
        for id in pushes:
            self._drop_text(id)
        effects.pushes, effects.deletes = len(pushes), len(deletes)

    def _drop_text(self, id: int) -> None:
        """Let go of a text that nothing needs: no order waits for it, and no other URL may be pushed with it."""
        row = self._urls.get(id)
        if row is None or row.checksum is None or len(self._groups[row.checksum]) > 1:
            return
        if not any(row.url in outbox for outbox in self._outbox.values()):
            self._texts.pop(row.checksum, None)

    def _of(self, sink: str) -> dict[str, _Waiting]:
        return self._outbox.get(sink, {})


def _host(site: str) -> str:
    return site.rpartition(":")[0]


def _copy_of(document: Document) -> Document:
    return replace(document, headings=list(document.headings), fields=dict(document.fields), duplicates=[])
