"""Recording outcomes in SQLite: one batch of changes, merged first and then written table by table.

Merging keeps the last change of each URL, so every row is written once, by prepared statements that run over the whole batch.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter

import apsw
from msgspec import structs

from crawlspace.document import Document, packed_text
from crawlspace.model import Held, NewUrl, State, UrlState
from crawlspace.state.changes import Change, Effects
from crawlspace.state.depths import leads_again
from crawlspace.state.duplicates import (
    NO_MEMBERS,
    NO_PAGE,
    GroupRanking,
    Settlement,
    held_checksum,
    stays_in_index,
    stored_checksum,
)
from crawlspace.state.fields import WRITTEN
from crawlspace.state.inherited_metadata import recorded_pages
from crawlspace.state.near_duplicates import regroup
from crawlspace.state.refused_links import RefusedLink
from crawlspace.state.sqlite import inherited_metadata, links, outbox
from crawlspace.state.sqlite.duplicates import AffectedAlternate, Groups, assign_groups
from crawlspace.state.sqlite.links import Discovery
from crawlspace.state.sqlite.near_duplicates import SqliteNearGroups, has_near_texts
from crawlspace.state.sqlite.outbox import Outgoing
from crawlspace.state.sqlite.rows import pack_document
from crawlspace.state.sqlite.transaction import ChangedUrl, Tally, Transaction, changed_urls, integers
from crawlspace.status import UNCOUNTED

_OF_ROW = ("depth", "checksum", "canonical", "simhash", "indexed", "named", "grp", "alternate", "left_behind")
_UPDATE = (
    f"UPDATE url SET {', '.join(f'{column} = ?' for column in (*WRITTEN, *_OF_ROW))}, archived = nullif(ifnull(?, archived), 0),"
    " lease_until = NULL WHERE id = ?"
)
_NEW_TEXT = "UPDATE SET text = excluded.text"
_IS_ALONE = (
    "(SELECT count(*) FROM (SELECT 1 FROM url INDEXED BY url_group WHERE grp = excluded.checksum AND checksum = grp"
    " UNION ALL SELECT 1 FROM url INDEXED BY url_other_text WHERE checksum = excluded.checksum AND checksum <> grp LIMIT 2)) = 1"
)
"""No other URL has a document with this checksum."""
_written = attrgetter(*WRITTEN)
_of_row = attrgetter(*_OF_ROW, "archived", "id")


def record(
    transaction: Transaction, changes: Sequence[Change], *, forgotten: Sequence[int] = (), inherit: bool = True
) -> Outgoing:
    """Make all changes with their consequences, except for the orders, inside an open transaction.

    The ids of forgotten URLs may be given without a change. Without `inherit` the inherited metadata of other URLs stays, and no depth is
    marked. Returns the orders to be given, with key and URL of the changed ids.
    """
    db, tally = transaction.db, transaction.tally
    discovery = Discovery(transaction)
    groups = Groups(db, tally)
    batch = _Batch(db, changes, forgotten, discovery.nearer, transaction.effects, inherit=inherit)

    batch.regroup(groups)
    batch.write(groups, tally)
    groups.name()
    discovery.discover(batch.discovered)
    discovery.carry()
    if inherit:
        links.mark_depths(db, batch.before, batch.rows, batch.links)
        pages = recorded_pages(changes, {row.id: row.key for row in batch.rows.values()})
        inherited = {row.id: row.inherited for row in batch.rows.values()}
        inherited_metadata.settle(db, pages, inherited, now=transaction.now, effects=transaction.effects)
    batch.regroup_near(groups, tally)
    settlement, rankings = groups.settle(batch.documents.keys())
    batch.write_texts(rankings)
    return batch.follow(settlement, rankings), {id: (row.key, row.url) for id, row in batch.rows.items()}


class _Batch:
    def __init__(
        self,
        db: apsw.Connection,
        changes: Sequence[Change],
        forgotten: Sequence[int],
        nearer: dict[int, int],
        effects: Effects,
        *,
        inherit: bool,
    ) -> None:
        self.discovered: list[NewUrl] = []
        self.documents: dict[int, Document] = {}
        self.rows = changed_urls(db, [*forgotten, *(change.state.id for change in changes)])
        self._db = db
        self._nearer = nearer
        self._effects = effects
        self.before = links.urls_before(db, self.rows.values()) if inherit else {}
        self.links: dict[int, Sequence[int]] = {}
        """New links, by id."""
        self._refused_links: dict[int, Sequence[RefusedLink]] = {}
        """New entries of the sample, by page; empty if its entries are out of date."""
        self._affected: list[AffectedAlternate] = []
        for change in changes:
            row = self.rows.get(change.state.id)
            if row is not None and not row.forgotten:
                self._merge(change, row)
        for id in forgotten:
            if id in self.rows:
                self._forget(self.rows[id])

    def regroup(self, groups: Groups) -> None:
        """Note which URLs leave and join which group; before any row is written."""
        for row in self.rows.values():
            if row.left_behind and row.checksum is not None:
                row.left_behind, row.taken_back = 0, True
        self._affected = assign_groups(self._db, self.rows)
        moving = [row for row in self.rows.values() if _moves(row)]
        concerned = {self.rows[id].grp for id in self.documents}
        concerned.update(group for row in moving for group in (row.old_grp, row.grp))
        concerned.update(group for one in self._affected for group in (one.old_grp, one.grp))
        groups.look_up([group for group in concerned if group is not None])
        for row in moving:
            if row.old_grp is not None:
                groups.leave(row.old_grp, row.id, row.old_canonical)
                row.indexed = row.named = 0
            if row.grp is not None:
                groups.join(row.grp, row.id, key=row.key, canonical=row.canonical)
        for one in self._affected:
            groups.leave(one.old_grp, one.id, one.canonical)
            groups.join(one.grp, one.id, key=one.key, canonical=one.canonical)

    def write(self, groups: Groups, tally: Tally) -> None:
        outbox.keep(
            self._db,
            [row.id for row in self.rows.values() if (row.left_behind or row.has_left_group) and row.old_checksum is not None],
        )
        forgotten = [row for row in self.rows.values() if row.forgotten]
        if forgotten:
            self._write_forgotten(forgotten, tally)
        updates = []
        unwanted = []
        for row in self.rows.values():
            new = row.last
            if new is None or row.forgotten:
                continue
            if row.grp is not None and groups.is_alone(row.grp, row.id):
                row.indexed, row.named = 1, int(row.canonical == row.key)
            if row.checksum is None and row.old_checksum is not None:
                unwanted.append((row.id,))
            _count(row, new, tally)
            if row.indexed != row.old_indexed:
                tally.documents[row.site] += row.indexed - row.old_indexed
            updates.append((*_written(new), *_of_row(row)))
        self._db.executemany(_UPDATE, updates)
        if self._affected:
            self._write_affected(groups, tally)
        self._db.executemany("DELETE FROM document WHERE id = ?", unwanted)
        self._db.executemany(
            "INSERT OR REPLACE INTO document VALUES (?, ?)",
            [(id, pack_document(document)) for id, document in self.documents.items()],
        )
        self._write_links()
        if self._refused_links:
            links.replace_refused(self._db, self._refused_links)

    def regroup_near(self, groups: Groups, tally: Tally) -> None:
        """Update the groups of near duplicates, after all rows are written."""
        if not any(row.simhash or row.old_simhash for row in self.rows.values()) and not has_near_texts(self._db):
            return
        changed = [row for row in self.rows.values() if row.grp is not None and (_moves(row) or row.simhash != row.old_simhash)]
        ids = {*(row.id for row in changed), *(one.id for one in self._affected)}
        near = SqliteNearGroups(self._db, groups, tally)
        regroup(near, ids, near.leading_of(groups.touched()), near.within())

    def write_texts(self, rankings: Mapping[bytes, GroupRanking]) -> None:
        """Keep one text a checksum, as long as a URL with it may have to be pushed.

        It is that of the only page, or of the representative where it came; else the first.
        """
        texts: tuple[list[tuple[bytes, str]], list[tuple[bytes, str]]] = ([], [])
        for id in sorted(self.documents):
            checksum = self.rows[id].checksum
            if checksum is not None:
                texts[rankings.get(checksum, NO_MEMBERS).representative == id].append((checksum, packed_text(self.documents[id])))
        for rows, otherwise in zip(texts, (f"{_NEW_TEXT} WHERE {_IS_ALONE}", _NEW_TEXT), strict=True):
            self._db.executemany(
                f"INSERT INTO content (checksum, text) VALUES (?, ?) ON CONFLICT (checksum) DO {otherwise}", rows
            )
        empty = {checksum for checksum, now in rankings.items() if now.representative is None}
        empty.update(row.old_checksum for row in self.rows.values() if row.old_alternate and row.old_checksum is not None)
        self._db.executemany(
            "DELETE FROM content WHERE checksum = ?1"
            " AND NOT EXISTS (SELECT 1 FROM url INDEXED BY url_group WHERE grp = ?1 AND checksum = grp)"
            " AND NOT EXISTS (SELECT 1 FROM url INDEXED BY url_other_text WHERE checksum = ?1 AND checksum <> grp)",
            [(checksum,) for checksum in empty],
        )

    def follow(self, settlement: Settlement, rankings: Mapping[bytes, GroupRanking]) -> Settlement:
        """Return the orders without documents that stay in the index, and with those left there that must not stay."""
        left = {row.id for row in self.rows.values() if row.left_behind}
        back = {row.id for row in self.rows.values() if row.taken_back and not _is_representative(row, rankings)}
        push = settlement.push
        without_document = [id for id in push if id not in self.documents]
        if without_document:  # a document that has left its group has no text
            textless = self._db.execute(
                "SELECT id FROM url WHERE id IN (SELECT value FROM carray(?))"
                " AND NOT EXISTS (SELECT 1 FROM content WHERE content.checksum = url.checksum)",
                (integers(without_document),),
            )
            gone = {id for (id,) in textless}
            push = [id for id in push if id not in gone]
        delete = [id for id in settlement.delete if id not in left]
        displaced = sum(id not in self.rows or self.rows[id].checksum is not None for id in delete)
        return Settlement(push, sorted({*delete, *back}) if back else delete, displaced)

    def _merge(self, change: Change, row: ChangedUrl) -> None:
        new = change.state
        self.discovered.extend(change.discovered)
        if change.forget:
            self._forget(row)
            return
        before = row.old_refused if row.last is None else row.last.refused
        if change.refused_links or (before is not None and change.drops_refused_links):
            self._refused_links[row.id] = change.refused_links
        checksum, canonical, simhash = new.checksum, new.canonical, new.simhash
        if checksum is not None and change.document is None:
            checksum, canonical, simhash = row.checksum, row.canonical, row.simhash
        group_checksum = stored_checksum(new, checksum, indexed=bool(row.old_indexed), new=change.document is not None)
        if group_checksum != checksum:
            row.has_left_group = row.has_left_group or group_checksum is not None
            checksum, canonical = group_checksum, NO_PAGE
            if group_checksum is None and new.held is Held.MANY:
                new = structs.replace(new, held=None)  # a duplicate: it has nothing in the index
        elif checksum == held_checksum(row.id):
            canonical = NO_PAGE
        if checksum is None:
            self.documents.pop(row.id, None)
            _part(row, change)
        elif change.document is not None:
            self.documents[row.id] = change.document
        row.checksum = checksum
        row.simhash = None if checksum is None or checksum == held_checksum(row.id) else simhash
        status = row.old_status if row.last is None else row.last.status
        if new.depth != row.depth or leads_again(row.state, status, new.state, new.status):
            self._nearer.setdefault(row.id, max(new.depth, row.depth))
            row.depth = min(new.depth, row.depth)
        if new.state == State.PENDING and not (row.state == State.PENDING and row.lease_until is None):
            pending = self._effects.pending_sites
            pending[new.site] = pending.get(new.site, 0) + 1
        if change.links is not None:
            self.links[row.id] = change.links
        if change.archived is not None:
            row.archived = change.archived
        row.state, row.lease_until, row.canonical, row.last = new.state, None, canonical, new

    def _forget(self, row: ChangedUrl) -> None:
        row.forgotten, row.checksum, row.canonical, row.simhash = True, None, None, None
        if row.left_behind:
            row.left_behind, row.taken_back = 0, True
        if row.old_refused is not None or row.id in self._refused_links:
            self._refused_links[row.id] = ()
        self.documents.pop(row.id, None)
        self.links[row.id] = ()
        self._nearer.pop(row.id, None)

    def _write_affected(self, groups: Groups, tally: Tally) -> None:
        updates = []
        rows = {
            id: (site, indexed)
            for id, site, indexed in self._db.execute(
                "SELECT id, site, indexed FROM url WHERE id IN (SELECT value FROM carray(?))",
                (integers([one.id for one in self._affected]),),
            )
        }
        for one in self._affected:
            alone = groups.is_alone(one.grp, one.id)
            site, indexed = rows[one.id]
            tally.documents[site] += alone - indexed
            updates.append((one.grp, one.alternate, int(alone), int(alone and one.canonical == one.key), one.id))
        self._db.executemany("UPDATE url SET grp = ?, alternate = ?, indexed = ?, named = ? WHERE id = ?", updates)

    def _write_links(self) -> None:
        links.relink(self._db, self.links)

    def _write_forgotten(self, rows: Sequence[ChangedUrl], tally: Tally) -> None:
        ids = [(row.id,) for row in rows]
        self._db.executemany("DELETE FROM url WHERE id = ?", ids)
        self._db.executemany("DELETE FROM document WHERE id = ?", ids)
        self._db.executemany("DELETE FROM inheritance WHERE id = ?", ids)
        by_site = Counter([row.site for row in rows])
        self._db.executemany("UPDATE site SET urls = urls - ? WHERE id = ?", [(count, site) for site, count in by_site.items()])
        for row in rows:
            _count(row, None, tally)
            tally.documents[row.site] -= row.old_indexed


def _part(row: ChangedUrl, change: Change) -> None:
    """Note whether the index keeps the document of a URL without one."""
    if row.checksum is not None and change.keep_in_index:
        if row.old_indexed or row.left_behind or row.taken_back:
            row.left_behind, row.taken_back = 1, False
    elif row.left_behind and not (change.keep_in_index or stays_in_index(change.state)):
        row.left_behind, row.taken_back = 0, True


def _moves(row: ChangedUrl) -> bool:
    """Return whether a URL joins or leaves a group, or gets another rank in its own."""
    if (row.grp, row.alternate, row.checksum) != (row.old_grp, row.old_alternate, row.old_checksum):
        return True
    return row.last is not None and row.canonical != row.old_canonical


def _is_representative(row: ChangedUrl, rankings: Mapping[bytes, GroupRanking]) -> bool:
    return row.grp is not None and rankings.get(row.grp, NO_MEMBERS).representative == row.id


def _count(row: ChangedUrl, new: UrlState | None, tally: Tally) -> None:
    """Move a URL between counts: from its old state to the new one."""
    left, entered = row.old_status in UNCOUNTED, new is not None and new.status in UNCOUNTED
    if left != entered:
        tally.uncounted[row.site] += entered - left
    tally[f"state {row.old_state}"] -= 1
    if row.old_status is not None:
        tally[f"status {row.old_status}"] -= 1
    tally["retrying"] -= row.old_retries > 0
    tally["with document"] += (row.checksum is not None) - (row.old_checksum is not None)
    now_refused = None if new is None else new.refused
    if row.old_refused != now_refused:
        tally.count_refused(row.old_refused, -1)
        tally.count_refused(now_refused, 1)
    if new is not None:
        tally[f"state {int(new.state)}"] += 1
        if new.status is not None:
            tally[f"status {int(new.status)}"] += 1
        tally["retrying"] += new.retries > 0
