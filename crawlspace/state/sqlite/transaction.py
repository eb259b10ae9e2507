"""One transaction of the SQLite store: its sites, its changes of the stored counts, and its effects.

Counts are stored and changed in the same transaction as the rows, because counting ten million rows takes seconds.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields

import apsw

from crawlspace.model import UrlState
from crawlspace.state.changes import Effects
from crawlspace.state.refused_links import by_letter

_CACHED_SITES = 100_000


def integers(values: Iterable[int]) -> apsw.CArrayBinding | None:
    """Bind integers as the table `carray(?)`: one query for a batch instead of one a row."""
    bound = array("q", values)
    return apsw.carray(bound) if bound else None  # apsw refuses an empty array; `carray(NULL)` is an empty table


def blobs(values: Iterable[bytes]) -> apsw.CArrayBinding | None:
    """Bind checksums as the table `carray(?)`."""
    bound = tuple(values)
    return apsw.carray(bound) if bound else None


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


class Tally(Counter[str]):
    """Changes of each count by a transaction, by name."""

    def __init__(self, *counts: Mapping[str, int], **named: int) -> None:
        super().__init__(*counts, **named)
        self.documents: Counter[int] = Counter()
        """Changes of the number of indexed documents, by id of their site."""
        self.uncounted: Counter[int] = Counter()
        """Changes of the number of URLs that do not count towards the limit of their host (UNCOUNTED), by id of their site."""

    def count_refused(self, text: str | None, sign: int) -> None:
        """Add the refused links of a page to the counts, or subtract them."""
        for letter, number in by_letter(text):
            self[f"refused {letter}"] += sign * number


@dataclass(slots=True)
class Transaction:
    """An open transaction: its counts, and its effects."""

    db: apsw.Connection
    sites: SiteIds
    now: int
    tally: Tally = field(default_factory=Tally)
    effects: Effects = field(default_factory=Effects)


@dataclass(slots=True)
class ChangedUrl:
    """A stored URL, before (`old_…`) and after the changes so far; by the names of its columns."""

    id: int
    key: int
    url: str
    site: int
    old_state: int
    old_status: int | None
    old_retries: int
    old_checksum: bytes | None
    old_canonical: int | None
    old_indexed: int
    old_grp: bytes | None
    old_alternate: int
    old_simhash: bytes | None
    old_refused: str | None
    indexed: int
    named: int
    state: int
    depth: int
    lease_until: int | None
    checksum: bytes | None
    canonical: int | None
    simhash: bytes | None
    grp: bytes | None
    alternate: int
    left_behind: int
    """Whether it leaves, or has left, its document in the index."""
    inherited: str | None
    has_left_group: bool = False
    """Whether it leaves its group, because the rules exclude it and its deletion is held."""
    taken_back: bool = False
    """Whether it had left its document there, and this collection decides about it again."""
    archived: int | None = None
    """Its new location in the archive."""
    last: UrlState | None = None
    forgotten: bool = False


_STORED = tuple(field.name.removeprefix("old_") for field in fields(ChangedUrl) if field.default is MISSING)
_CHANGED = f"SELECT {', '.join(_STORED)} FROM url WHERE id IN (SELECT value FROM carray(?))"  # noqa: S608 - constants only


def changed_urls(db: apsw.Connection, ids: Collection[int]) -> dict[int, ChangedUrl]:
    """Return the stored ones of the URLs, by id."""
    return {row[0]: ChangedUrl(*row) for row in db.execute(_CHANGED, (integers(ids),))}


def add_counts(db: apsw.Connection, tally: Tally) -> None:
    db.executemany(
        "INSERT INTO tally VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        [(name, by) for name, by in tally.items() if by],
    )
    changed = [(tally.documents[site], tally.uncounted[site], site) for site in tally.documents.keys() | tally.uncounted.keys()]
    db.executemany("UPDATE site SET documents = documents + ?, uncounted = uncounted + ? WHERE id = ?", changed)


def take_numbers(db: apsw.Connection, name: str, count: int) -> int:
    """Return the first of `count` numbers that were never returned before."""
    add_counts(db, Tally({name: count}))
    return read_count(db, name) - count + 1


def read_count(db: apsw.Connection, name: str) -> int:
    row = db.execute("SELECT value FROM tally WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0


def read_counts(db: apsw.Connection) -> dict[str, int]:
    return dict(db.execute("SELECT name, value FROM tally WHERE value <> 0"))
