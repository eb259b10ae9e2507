"""Recording outcomes in SQLite: one batch of changes, folded first and then written table by table.

Folding keeps the last word on each URL, so every row is written once, by prepared statements that run over the whole batch.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apsw

from crawlspace.model import Document, NewUrl, State, UrlState
from crawlspace.state.groups import Standing
from crawlspace.state.sqlite_discovery import Discovery, SiteIds
from crawlspace.state.sqlite_groups import Groups
from crawlspace.state.sqlite_outbox import give
from crawlspace.state.sqlite_rows import integers, pack_document, pack_keys
from crawlspace.state.sqlite_tally import Tally, add
from crawlspace.state.store import Change, Effects


def discover(db: apsw.Connection, urls: Sequence[NewUrl], *, sites: SiteIds, now: int) -> Effects:
    """Insert what is unknown and lower what is nearer, inside an open transaction."""
    effects, tally = Effects(), Tally()
    discovery = Discovery(db, sites, tally, effects)
    discovery.discover(urls, now)
    discovery.carry()
    add(db, tally)
    return effects


def record(db: apsw.Connection, changes: Sequence[Change], *, sites: SiteIds, sinks: Sequence[str], now: int) -> Effects:
    """Make all changes with everything that follows from them, inside an open transaction."""
    effects, tally = Effects(), Tally()
    discovery = Discovery(db, sites, tally, effects)
    groups = Groups(db, tally)
    batch = _Batch(db, changes, discovery.nearer, effects)
    batch.regroup(groups)
    batch.write(groups, tally)
    groups.name()
    discovery.discover(batch.discovered, now)
    discovery.carry()
    settlement, standings = groups.settle(batch.documents.keys())
    batch.write_texts(standings)
    names = {id: (row.key, row.url) for id, row in batch.rows.items()}
    give(db, settlement, sinks=sinks, names=names, tally=tally)
    effects.pushes, effects.deletes = len(settlement.push), len(settlement.delete)
    add(db, tally)
    return effects


@dataclass(slots=True)
class _Row:
    """A stored URL and what becomes of it: first what was stored, then what the changes so far have made of it."""

    id: int
    key: int
    url: str
    site: int
    old_state: int
    old_status: int | None
    old_retries: int
    old_redirects: int
    old_checksum: bytes | None
    old_canonical: int | None
    indexed: int
    named: int
    state: int
    depth: int
    lease_until: int | None
    checksum: bytes | None
    last: UrlState | None = None
    forgotten: bool = False


class _Batch:
    def __init__(self, db: apsw.Connection, changes: Sequence[Change], nearer: dict[int, int], effects: Effects) -> None:
        self.discovered: list[NewUrl] = []
        self.documents: dict[int, Document] = {}
        self.rows = {
            row[0]: _Row(*row)
            for row in db.execute(
                "SELECT id, key, url, site, state, status, retries, redirects, checksum, canonical, indexed, named,"
                " state, depth, lease_until, checksum FROM url WHERE id IN (SELECT value FROM carray(?))",
                (integers([change.state.id for change in changes]),),
            )
        }
        self._db = db
        self._nearer = nearer
        self._effects = effects
        self._links: dict[int, Sequence[int]] = {}
        for change in changes:
            row = self.rows.get(change.state.id)
            if row is not None and not row.forgotten:
                self._fold(change, row)

    def regroup(self, groups: Groups) -> None:
        """Say who leaves and joins which group; before any row is written."""
        for row in self.rows.values():
            new = row.last
            stays = row.checksum == row.old_checksum and not row.forgotten
            if stays and (new is None or (new.redirects, new.canonical) == (row.old_redirects, row.old_canonical)):
                if row.checksum is not None and row.id in self.documents:
                    groups.touch(row.checksum)
                continue
            if row.old_checksum is not None:
                groups.leave(row.old_checksum, row.id, row.old_canonical)
                row.indexed = row.named = 0
            if row.checksum is not None and new is not None:
                groups.join(row.checksum, row.id, key=row.key, canonical=new.canonical)

    def write(self, groups: Groups, tally: Tally) -> None:
        forgotten = [row for row in self.rows.values() if row.forgotten]
        if forgotten:
            self._write_forgotten(forgotten, tally)
        updates = []
        unwanted = []
        for row in self.rows.values():
            new = row.last
            if new is None or row.forgotten:
                continue
            if row.checksum is not None and groups.wins_alone(row.checksum, row.id):
                row.indexed, row.named = 1, int(new.canonical == row.key)
            if row.checksum is None and row.old_checksum is not None:
                unwanted.append((row.id,))
            _count(row, new, tally)
            updates.append(
                (
                    new.state,
                    new.status,
                    new.source,
                    new.shift,
                    row.depth,
                    new.redirects,
                    new.fetched_at,
                    new.next_fetch,
                    new.interval_s,
                    new.retries,
                    new.errors,
                    new.etag,
                    new.last_modified,
                    new.rules,
                    row.checksum,
                    new.canonical,
                    row.indexed,
                    row.named,
                    row.id,
                )
            )
        self._db.executemany(
            "UPDATE url SET state = ?, status = ?, source = ?, shift = ?, depth = ?, redirects = ?, fetched_at = ?,"
            " next_fetch = ?, interval_s = ?, retries = ?, errors = ?, lease_until = NULL, etag = ?, last_modified = ?,"
            " rules = ?, checksum = ?, canonical = ?, indexed = ?, named = ? WHERE id = ?",
            updates,
        )
        self._db.executemany("DELETE FROM document WHERE id = ?", unwanted)
        self._db.executemany(
            "INSERT OR REPLACE INTO document VALUES (?, ?)",
            [(id, pack_document(document)) for id, document in self.documents.items()],
        )
        self._write_links()

    def write_texts(self, standings: Mapping[bytes, Standing]) -> None:
        """Keep one text a group: the winner's own where it came, else the first."""
        for id in sorted(self.documents):
            checksum, text = self.rows[id].checksum, self.documents[id].text
            if checksum is not None:
                wins = standings[checksum].winner == id
                self._db.execute(
                    "INSERT INTO content (checksum, text) VALUES (?, ?) ON CONFLICT (checksum) DO "
                    + ("UPDATE SET text = excluded.text" if wins else "NOTHING"),
                    (checksum, text),
                )
        self._db.executemany(
            "DELETE FROM content WHERE checksum = ?",
            [(checksum,) for checksum, now in standings.items() if now.winner is None],
        )

    def _fold(self, change: Change, row: _Row) -> None:
        new = change.state
        self.discovered.extend(change.discovered)
        if change.forget:
            row.forgotten, row.checksum = True, None
            self.documents.pop(row.id, None)
            self._links[row.id] = ()
            self._nearer.pop(row.id, None)
            return
        checksum = new.checksum
        if checksum is not None and change.document is None:
            checksum = row.checksum
        if new.depth != row.depth:
            self._nearer.setdefault(row.id, max(new.depth, row.depth))
            row.depth = min(new.depth, row.depth)
        if new.state == State.PENDING and not (row.state == State.PENDING and row.lease_until is None):
            pending = self._effects.pending_sites
            pending[new.site] = pending.get(new.site, 0) + 1
        if checksum is None:
            self.documents.pop(row.id, None)
        elif change.document is not None:
            self.documents[row.id] = change.document
        if change.links is not None:
            self._links[row.id] = change.links
        row.state, row.lease_until, row.checksum, row.last = new.state, None, checksum, new

    def _write_links(self) -> None:
        self._db.executemany("DELETE FROM links WHERE id = ?", [(id,) for id, keys in self._links.items() if not keys])
        self._db.executemany(
            "INSERT OR REPLACE INTO links VALUES (?, ?)", [(id, pack_keys(keys)) for id, keys in self._links.items() if keys]
        )

    def _write_forgotten(self, rows: Sequence[_Row], tally: Tally) -> None:
        ids = [(row.id,) for row in rows]
        self._db.executemany("DELETE FROM url WHERE id = ?", ids)
        self._db.executemany("DELETE FROM document WHERE id = ?", ids)
        self._db.executemany("UPDATE site SET urls = urls - 1 WHERE id = ?", [(row.site,) for row in rows])
        for row in rows:
            _count(row, None, tally)


def _count(row: _Row, new: UrlState | None, tally: Tally) -> None:
    """Move a URL from where it was counted to where it is now."""
    tally[f"state {row.old_state}"] -= 1
    if row.old_status is not None:
        tally[f"status {row.old_status}"] -= 1
    tally["retrying"] -= row.old_retries > 0
    if new is not None:
        tally[f"state {int(new.state)}"] += 1
        if new.status is not None:
            tally[f"status {int(new.status)}"] += 1
        tally["retrying"] += new.retries > 0
