"""Groups of equal documents in SQLite, and of pages that name a canonical page.

The representative of a group is the first entry of an index, whatever the size of the group. A page that names no canonical page costs one
entry in a look-up for the whole transaction: whether another page names it.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import apsw

from crawlspace.state.duplicates import NO_MEMBERS, NOTED, GroupRanking, Settlement, ranking_of, settle
from crawlspace.state.sqlite.schema import NAMES_A_PAGE
from crawlspace.state.sqlite.transaction import ChangedUrl, Tally, blobs, integers

_BY_RANK = "ORDER BY alternate, named DESC, rank, id"
_BEST = f"FROM url INDEXED BY url_group WHERE grp = {{}} {_BY_RANK} LIMIT {NOTED + 1}"
_BEST_OF_ONE = "SELECT id, alternate " + _BEST.format("?")
_BEST_OF_ALL = (
    f"SELECT value, best FROM (SELECT value, (SELECT group_concat(id || ' ' || alternate, ' ' {_BY_RANK}) FROM (SELECT id, alternate, named, rank "
    + _BEST.format("wanted.value")
    + ")) AS best FROM carray(?) AS wanted) WHERE best IS NOT NULL"
)
_HOST_BEST = (
    "SELECT url.id FROM url INDEXED BY url_group CROSS JOIN site ON site.id = url.site WHERE url.grp = ?1 AND url.alternate = 0"
    " AND site.host = ?2 ORDER BY url.alternate, url.named DESC, url.rank, url.id LIMIT 1"
)
"""Skips pages of other hosts with a smaller rank, of which there may be many."""
_HOST_BEST_OF = (
    "SELECT url.id FROM url NOT INDEXED CROSS JOIN site ON site.id = url.site WHERE url.id IN ("
    "SELECT value FROM carray(?3) UNION SELECT url.id FROM carray(?4) AS named CROSS JOIN url INDEXED BY url_key ON url.key = named.value)"
    " AND url.grp = ?1 AND url.alternate = 0 AND site.host = ?2 ORDER BY url.named DESC, url.rank, url.id LIMIT 1"
)
_OTHER_TEXT = 2
"""The value of `alternate` for an alternate of a page with another text."""
_REPRESENTATIVES = "SELECT grp, id FROM representative WHERE grp IN (SELECT value FROM carray(?))"
_NAME = f"""
    UPDATE url INDEXED BY url_key
    SET named = EXISTS (SELECT 1 FROM url AS page INDEXED BY url_canonical WHERE page.canonical = ?2 AND page.grp = ?1
        AND {NAMES_A_PAGE})
    WHERE key = ?2 AND grp = ?1
"""


@dataclass(slots=True)
class AffectedAlternate:
    """A URL whose group changes because its canonical page changes."""

    id: int
    key: int
    checksum: bytes
    canonical: int
    old_grp: bytes
    old_alternate: int
    grp: bytes = b""
    alternate: int = 0


def assign_groups(db: apsw.Connection, pages: Mapping[int, ChangedUrl]) -> list[AffectedAlternate]:
    """Set `grp` and `alternate` of the pages; return the URLs whose group changes with them. Call it before any row is written."""
    changed = {
        page.key
        for page in pages.values()
        if (page.checksum if page.canonical is None else None) != (page.old_checksum if page.old_canonical is None else None)
    }
    affected = [one for one in _pages_naming(db, changed) if one.id not in pages]
    for page in pages.values():  # as if none were alternates: the canonical pages of others are none
        was_near = page.old_alternate == 1 and page.old_grp != page.old_checksum
        is_near = was_near and page.checksum == page.old_checksum and page.simhash is not None
        page.grp, page.alternate = (page.old_grp, 1) if is_near else (page.checksum, 0)
    named = {page.canonical for page in pages.values() if page.canonical is not None and page.checksum is not None}
    named.update(one.canonical for one in affected)
    groups = _canonical_groups(db, named, pages) if named else {}
    for page in pages.values():
        group = None if page.canonical is None or page.checksum is None else groups.get(page.canonical)
        if group is not None:
            page.grp, page.alternate = group, _alternate_code(page.checksum, group)
    for one in affected:
        group = groups.get(one.canonical)
        one.grp, one.alternate = group or one.checksum, _alternate_code(one.checksum, group)
    return [one for one in affected if (one.grp, one.alternate) != (one.old_grp, one.old_alternate)]


class MovedUrl(NamedTuple):
    """A stored URL that changes its group."""

    id: int
    key: int
    canonical: int | None
    site: int
    indexed: int
    grp: bytes
    checksum: bytes


@dataclass(slots=True)
class _Touched:
    """A group that a transaction changes: its first members before it, and its ranking."""

    best: list[int]
    before: GroupRanking
    representative: int | None = None
    """The representative, where it isn't the member with the smallest rank."""
    left: set[int] = field(default_factory=set)
    joined: set[int] = field(default_factory=set)
    names: set[int] = field(default_factory=set)
    """Keys that may have become named, or unnamed, by pages of the group."""
    chosen: int | None = None
    """The page that represents it from now on, whichever did before; None: decided by rank."""

    def few(self) -> set[int] | None:
        """Return all members after the transaction, if known without a query."""
        return set(self.best) - self.left | self.joined if len(self.best) <= NOTED else None

    def present(self) -> int | None:
        """Return the representative that stays unless it has left the group."""
        return self.before.representative if self.chosen is None else self.chosen


class Groups:
    """The groups that one transaction changes.

    Call order: note which members leave, join and change; write the rows; `name`; `settle`.
    """

    def __init__(self, db: apsw.Connection, tally: Tally) -> None:
        self._db = db
        self._tally = tally
        self._touched: dict[bytes, _Touched] = {}
        self._moved: set[bytes] = set()
        """Groups that `move` has changed."""

    def look_up(self, checksums: Collection[bytes]) -> None:
        """Read the groups that will change: most are new, which one query shows for all."""
        self._touched = self._read(checksums)

    def _read(self, checksums: Collection[bytes]) -> dict[bytes, _Touched]:
        touched = {checksum: _Touched([], NO_MEMBERS) for checksum in checksums}
        known = {checksum: _read_best(best) for checksum, best in self._db.execute(_BEST_OF_ALL, (blobs(sorted(checksums)),))}
        representatives = dict(self._db.execute(_REPRESENTATIVES, (blobs(list(known)),))) if known else {}
        for checksum, best in known.items():
            representative = representatives.get(checksum)
            touched[checksum] = _Touched([id for id, _ in best], _ranked(best, representative), representative)
        return touched

    def leave(self, checksum: bytes, id: int, canonical: int | None) -> None:
        group = self._touched[checksum]
        group.left.add(id)
        group.joined.discard(id)
        if canonical is not None:
            group.names.add(canonical)

    def join(self, checksum: bytes, id: int, *, key: int, canonical: int | None) -> None:
        group = self._touched[checksum]
        group.joined.add(id)
        group.names.add(key)
        if canonical is not None:
            group.names.add(canonical)

    def touched(self) -> list[bytes]:
        """Return the groups that the transaction changes."""
        return list(self._touched)

    def before(self, checksum: bytes) -> int | None:
        """Return the representative of a group before the transaction, or that which was chosen since."""
        if checksum not in self._touched:
            self._touched |= self._read([checksum])
        return self._touched[checksum].present()

    def choose(self, checksum: bytes, id: int) -> None:
        """Make a member that has joined a group its representative."""
        self._touched[checksum].chosen = id

    def move(self, row: MovedUrl, into: bytes, alternate: int) -> None:
        """Move a stored URL to another group, after all rows are written: a near duplicate, or an alternate of one."""
        for group in (row.grp, into):
            if group not in self._touched:
                self._touched |= self._read([group])
        self._unmark_alone(into)
        self.leave(row.grp, row.id, row.canonical)
        self.join(into, row.id, key=row.key, canonical=row.canonical)
        self._moved |= {row.grp, into}
        self._tally.documents[row.site] -= row.indexed
        self._db.execute("UPDATE url SET grp = ?, alternate = ?, indexed = 0, named = 0 WHERE id = ?", (into, alternate, row.id))
        for group, key in ((row.grp, row.canonical), (into, row.canonical), (into, row.key)):
            if key is not None:
                self._db.execute(_NAME, (group, key))

    def _unmark_alone(self, checksum: bytes) -> None:
        """Note that the only member of a group, which may be marked as its representative already, gets others: `settle` decides."""
        group = self._touched[checksum]
        for id in group.joined if len(group.joined) == 1 and group.few() == group.joined else ():
            unmarked = self._db.execute("UPDATE url SET indexed = 0 WHERE id = ? AND indexed RETURNING site", (id,))
            self._tally.documents.subtract(site for (site,) in unmarked)

    def is_alone(self, checksum: bytes, id: int) -> bool:
        """Return whether a URL joined a group as its only member: then its row can be written as the representative's at once."""
        group = self._touched.get(checksum)
        return group is not None and id in group.joined and group.few() == {id}

    def name(self) -> None:
        """Update which members are named as canonical."""
        for checksum, group in self._touched.items():
            if group.few() == group.joined and len(group.joined) <= 1:
                continue  # empty, or written as alone
            for key in group.names:
                self._db.execute(_NAME, (checksum, key))

    def settle(self, changed: Collection[int]) -> tuple[Settlement, Mapping[bytes, GroupRanking]]:
        """Mark the representatives; return the orders that follow and the ranking of each group."""
        before = {checksum: group.before for checksum, group in self._touched.items()}
        after = {checksum: self._ranking(checksum, group) for checksum, group in self._touched.items()}
        settlement = settle(before, after, changed)
        representatives = [
            (now.representative,) for checksum, now in after.items() if self._needs_mark(checksum, now, before[checksum])
        ]
        documents = self._tally.documents
        documents.subtract(
            site
            for (site,) in self._db.executemany(
                "UPDATE url SET indexed = 0 WHERE id = ? AND indexed RETURNING site", [(id,) for id in settlement.delete]
            )
        )
        documents.update(
            site
            for (site,) in self._db.executemany(
                "UPDATE url SET indexed = 1 WHERE id = ? AND NOT indexed RETURNING site", representatives
            )
        )
        self._tally["indexed"] += sum(group.representative is not None for group in after.values())
        self._tally["indexed"] -= sum(group.representative is not None for group in before.values())
        return settlement, after

    def _best(self, checksum: bytes) -> list[tuple[int, int]]:
        """Return the first members by rank, each with its `alternate`."""
        return list(self._db.execute(_BEST_OF_ONE, (checksum,)))

    def _ranking(self, checksum: bytes, group: _Touched) -> GroupRanking:
        if not group.left and not group.joined:
            return group.before
        few = group.few()
        if few is not None and len(few) <= 1:
            self._keep(checksum, group, None)
            return ranking_of(list(few)) if few else NO_MEMBERS
        best = self._best(checksum)
        self._keep(checksum, group, self._kept_representative(checksum, group, best[0][0]) if best else None)
        return _ranked(best, group.representative)

    def _kept_representative(self, checksum: bytes, group: _Touched, first: int) -> int | None:
        """Return the representative of a group, if it isn't the member with the smallest rank: see `rank_members`."""
        then = group.present()
        if then is None or then == first:
            return None
        found = self._db.execute(
            "SELECT url.key, site.host FROM url CROSS JOIN site ON site.id = url.site WHERE url.id = ? AND url.grp = ? AND url.alternate = 0",
            (then, checksum),
        ).fetchone()
        if found is None:
            return None
        key, host = found
        if then in group.joined or key in group.names:  # it may have another rank
            best = self._db.execute(_HOST_BEST, (checksum, host)).get
        else:
            best = self._db.execute(_HOST_BEST_OF, (checksum, host, integers([then, *group.joined]), integers(group.names))).get
        return None if best == first else int(best)

    def _keep(self, checksum: bytes, group: _Touched, representative: int | None) -> None:
        if representative == group.representative:
            return
        group.representative = representative
        if representative is None:
            self._db.execute("DELETE FROM representative WHERE grp = ?", (checksum,))
        else:
            self._db.execute("INSERT OR REPLACE INTO representative VALUES (?, ?)", (checksum, representative))

    def _needs_mark(self, checksum: bytes, now: GroupRanking, before: GroupRanking) -> bool:
        group = self._touched[checksum]
        if now.representative is not None and checksum in self._moved:
            return True
        if now.representative is None or group.few() == {now.representative} == group.joined:
            return False
        return now.representative != before.representative or now.representative in group.joined


def _pages_naming(db: apsw.Connection, keys: Collection[int]) -> list[AffectedAlternate]:
    """Return the stored URLs with a document that name one of the keys as canonical."""
    if not keys:
        return []
    rows = db.execute(
        "SELECT id, key, checksum, canonical, grp, alternate FROM carray(?) AS changed"
        f" CROSS JOIN url INDEXED BY url_canonical ON canonical = changed.value WHERE {NAMES_A_PAGE}",
        (integers(keys),),
    )
    return [AffectedAlternate(*row) for row in rows]


def _canonical_groups(db: apsw.Connection, keys: Iterable[int], pages: Mapping[int, ChangedUrl]) -> dict[int, bytes]:
    """Return the groups of the canonical pages with these keys that exist after the transaction."""
    wanted = set(keys)
    found = [
        (id, key, group)
        for id, key, group in db.execute(
            "SELECT id, key, grp FROM carray(?) AS named CROSS JOIN url INDEXED BY url_key ON key = named.value"
            " WHERE checksum IS NOT NULL AND canonical IS NULL",
            (integers(wanted),),
        )
        if id not in pages
    ]
    found += [
        (page.id, page.key, page.grp)
        for page in pages.values()
        if page.key in wanted and page.grp is not None and page.canonical is None
    ]
    return {key: group for _, key, group in sorted(found, reverse=True)}


def _alternate_code(checksum: bytes | None, group: bytes | None) -> int:
    """Return the value of `alternate` for a URL, by the group of its canonical page, if there is one."""
    if group is None:
        return 0
    return 1 if group == checksum else 2


def _read_best(best: str) -> list[tuple[int, int]]:
    numbers = iter(map(int, best.split()))
    return list(zip(numbers, numbers, strict=True))


def _ranked(best: list[tuple[int, int]], representative: int | None) -> GroupRanking:
    return ranking_of([id for id, alternate in best if alternate < _OTHER_TEXT], representative=representative)
