"""Inserts new URLs, and lowers the depth of known ones and of what they link to."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import chain, count

import apsw
from msgspec import structs

from crawlspace.model import NewUrl, State
from crawlspace.state.changes import Effects
from crawlspace.state.depths import LOWERED, leads_on
from crawlspace.state.link_keys import unpack_keys
from crawlspace.state.sqlite.counters import Tally, add, take
from crawlspace.state.sqlite.inherited_metadata import pass_to_all
from crawlspace.state.sqlite.rows import integers
from crawlspace.state.sqlite.sites import SCHEME_BITS

_CACHED_SITES = 100_000
_INSERTED_AT_ONCE = 100
"""In one statement: a fifth less time than one at a time, and the text of more would not stay prepared."""
_ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT = (
    "INSERT INTO url (id, key, url, site, source, shift, depth, redirects, rank, host_as_written, discovered_at, depth_from)"
    f" VALUES {_ROW}"
)
_INSERT_MANY = _INSERT + f", {_ROW}" * (_INSERTED_AT_ONCE - 1)


def discover(db: apsw.Connection, urls: Sequence[NewUrl], *, sites: SiteIds, now: int) -> Effects:
    """Insert unknown URLs and lower the depth of known ones, inside an open transaction."""
    writing = Writing(db, sites, now)
    discovery = Discovery(writing)
    discovery.discover(urls)
    discovery.carry()
    pass_to_all(db, urls)
    add(db, writing.tally)
    return writing.effects


class SiteIds:
    """Ids of sites by `host:port`, cached across transactions; call `clear` when one is rolled back."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def clear(self) -> None:
        self._ids.clear()

    def find(self, db: apsw.Connection, site: str) -> int | None:
        id = self._ids.get(site)
        if id is None:
            row = db.execute("SELECT id FROM site WHERE site = ?", (site,)).fetchone()
            if row is None:
                return None
            if len(self._ids) >= _CACHED_SITES:
                self._ids.clear()
            id = self._ids[site] = int(row[0])
        return id

    def find_or_add(self, db: apsw.Connection, site: str) -> int:
        id = self.find(db, site)
        if id is None:
            db.execute("INSERT INTO site (site, host) VALUES (?, ?)", (site, site.rpartition(":")[0]))
            id = self._ids[site] = db.last_insert_rowid()
        return id


@dataclass(slots=True)
class Writing:
    """An open transaction: what it counts, and its effects."""

    db: apsw.Connection
    sites: SiteIds
    now: int
    tally: Tally = field(default_factory=Tally)
    effects: Effects = field(default_factory=Effects)


@dataclass(slots=True)
class _Known:
    id: int
    depth: int
    state: int
    source: int
    depth_from: int = 0
    changed: bool = False


class Discovery:
    """The discoveries of one transaction. `nearer` holds ids whose depth went down, with the depth they had."""

    def __init__(self, writing: Writing) -> None:
        self.nearer: dict[int, int] = {}
        self._db = writing.db
        self._sites = writing.sites
        self._now = writing.now
        self._tally = writing.tally
        self._effects = writing.effects

    def discover(self, urls: Sequence[NewUrl]) -> None:
        if not urls:
            return
        known = self._known(urls)
        fresh: dict[str, NewUrl] = {}
        for new in urls:
            row = known.get(new.url)
            if row is not None:
                self._find_again(row, new)
            elif (twin := fresh.setdefault(new.url, new)) is not new:
                nearer = new if new.depth < twin.depth else twin
                fresh[new.url] = structs.replace(
                    twin, source=min(twin.source, new.source), depth=nearer.depth, depth_from=nearer.depth_from
                )
        self._db.executemany(
            "UPDATE url SET depth = ?, source = ?, depth_from = ? WHERE id = ?",
            [(row.depth, row.source, row.depth_from, row.id) for row in known.values() if row.changed],
        )
        if fresh:
            self._insert(fresh)

    def carry(self) -> None:
        """Lower the depth of what URLs with a lower depth link to, lowest first, until nothing changes; report what was crawled already."""
        if not self.nearer:
            return
        states: dict[int, int] = {}
        depths: dict[int, int] = {}
        leading: set[int] = set()
        for id, depth, state, status in self._db.execute(
            "SELECT id, depth, state, status FROM url WHERE id IN (SELECT value FROM carray(?))", (integers(self.nearer),)
        ):
            depths[id], states[id] = depth, state
            if leads_on(state, status):
                leading.add(id)
        queue = [(depth, id) for id, depth in depths.items()]
        heapify(queue)
        lowered: dict[int, int] = {}
        while queue:
            depth, id = heappop(queue)
            if depth > depths[id] or id not in leading:
                continue
            reach = depth if states[id] == State.REDIRECTED else depth + 1
            for target, stored, state, status in self._farther(id, reach):
                if reach < depths.setdefault(target, stored):
                    self.nearer.setdefault(target, stored)
                    depths[target], states[target] = reach, state
                    if leads_on(state, status):
                        leading.add(target)
                    lowered[target] = id
                    heappush(queue, (reach, target))
                elif reach == depths[target] and target in lowered:
                    lowered[target] = min(lowered[target], id)
        self._db.executemany(
            "UPDATE url SET depth = ?, depth_from = ? WHERE id = ?", [(depths[id], page, id) for id, page in lowered.items()]
        )
        self._effects.lowered = [
            (id, self.nearer[id], depths[id])
            for id in sorted(self.nearer)
            if states[id] != State.PENDING and depths[id] < self.nearer[id]
        ]
        if self._effects.lowered:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (LOWERED,))

    def _known(self, urls: Sequence[NewUrl]) -> dict[str, _Known]:
        rows = self._db.execute(
            "SELECT url.url, url.id, depth, state, source, depth_from FROM carray(?) AS wanted CROSS JOIN url INDEXED BY url_key"
            " ON url.key = wanted.value",
            (integers(sorted(new.key for new in urls)),),
        )
        known = {}
        for text, *values in rows:
            known[text] = _Known(*values)
        return known

    def _find_again(self, row: _Known, new: NewUrl) -> None:
        if row.state == State.PENDING and new.source < row.source:
            row.source = new.source
            row.changed = True
            self._effects.pending_sites.setdefault(new.site, 0)
        if new.depth < row.depth:
            self.nearer.setdefault(row.id, row.depth)
            row.depth, row.depth_from = new.depth, new.depth_from
            row.changed = True

    def _insert(self, fresh: Mapping[str, NewUrl]) -> None:
        first = take(self._db, "id", len(fresh))
        self._effects.ids = dict(zip(fresh, count(first), strict=False))
        by_site = Counter([new.site for new in fresh.values()])
        over_https = Counter([new.site for new in fresh.values() if new.url.startswith("https:")])
        schemes = {
            site: (SCHEME_BITS["https"] if over_https[site] else 0) | (SCHEME_BITS["http"] if over_https[site] < number else 0)
            for site, number in by_site.items()
        }
        site_ids = {site: self._sites.find_or_add(self._db, site) for site in by_site}
        rows = [
            (
                id,
                new.key,
                new.url,
                site_ids[new.site],
                new.source,
                new.shift,
                new.depth,
                new.redirects,
                new.rank,
                new.host_as_written,
                self._now,
                new.depth_from,
            )
            for id, new in enumerate(fresh.values(), first)
        ]
        at_once = len(rows) - len(rows) % _INSERTED_AT_ONCE
        for start in range(0, at_once, _INSERTED_AT_ONCE):
            self._db.execute(_INSERT_MANY, tuple(chain.from_iterable(rows[start : start + _INSERTED_AT_ONCE])))
        self._db.executemany(_INSERT, rows[at_once:])
        self._db.executemany(
            "UPDATE site SET urls = urls + ?, schemes = schemes | ? WHERE id = ?",
            [(number, schemes[site], site_ids[site]) for site, number in by_site.items()],
        )
        self._tally["state 0"] += len(fresh)
        self._effects.discovered += len(fresh)
        pending = self._effects.pending_sites
        for site, number in by_site.items():
            pending[site] = pending.get(site, 0) + number

    def _farther(self, id: int, reach: int) -> list[tuple[int, int, int, int | None]]:
        """Yield id, depth, state and status of the URLs that a URL links to and whose depth is larger than `reach`."""
        row = self._db.execute("SELECT targets FROM links WHERE id = ?", (id,)).fetchone()
        if row is None:
            return []
        return list(
            self._db.execute(
                "SELECT url.id, depth, state, status FROM carray(?) AS wanted CROSS JOIN url INDEXED BY url_key"
                " ON url.key = wanted.value WHERE depth > ?",
                (integers(unpack_keys(row[0])), reach),
            )
        )
