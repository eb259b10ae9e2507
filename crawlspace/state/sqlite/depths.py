"""Link depths in SQLite: marks of those that may be wrong, and the links that they depend on."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import apsw

from crawlspace.model import LINKS_ONLY, Held, State, UrlState
from crawlspace.state.depths import ANY_PAGE, LEADING, DepthMark, NewDepth, PageLinks, UrlDepth, is_farther, leads_on, merged
from crawlspace.state.link_keys import folded_links, moved_links, pack_keys, unpack_keys
from crawlspace.state.sqlite.part import SqlitePart
from crawlspace.state.sqlite.rows import integers

_DEPTH = (
    f"SELECT url.id, url.key, state, status, depth, depth_from, orphaned, checksum IS NOT NULL, held IS {int(Held.FOLDED)} FROM"
)
_MAY_REDIRECT = (
    f"(state = {int(State.REDIRECTED)} OR (state IN ({int(State.FAILED)}, {int(State.PENDING)}) AND checksum IS NULL))"
)
_LEADS_ON = (
    f"(state IN ({', '.join(str(int(state)) for state in sorted(LEADING))})"
    f" OR (state = {int(State.EXCLUDED)} AND status IN ({', '.join(map(str, sorted(LINKS_ONLY)))})))"
)

_PAGE_LINKS = f"SELECT url.id, depth + NOT {_MAY_REDIRECT}, targets FROM links CROSS JOIN url ON url.id = links.id"
_PAGES, _PAGES_FOLDED = 10_000, 20_000
"""Read at once."""


class SqliteDepths(SqlitePart):
    """The part of the store that concerns link depths."""

    def depth_marks(self) -> dict[int, DepthMark]:
        with self._file.reading() as db:
            return _marks(db)

    def set_depth_marks(self, marks: Mapping[int, DepthMark | None]) -> None:
        with self._writing() as db:
            for key, mark in marks.items():
                if mark is None:
                    db.execute("DELETE FROM depth_mark WHERE key = ?", (key,))
                else:
                    _write(db, key, mark)

    def depths_of(self, keys: Iterable[int]) -> list[UrlDepth]:
        statement = f"{_DEPTH} carray(?) AS wanted CROSS JOIN url INDEXED BY url_key ON url.key = wanted.value"
        return self._depths(statement, integers(sorted(set(keys))))

    def scan_depths(self, after: int, limit: int) -> list[UrlDepth]:
        return self._depths(f"{_DEPTH} url NOT INDEXED WHERE id > ? ORDER BY id LIMIT ?", after, limit)

    def orphans(self) -> list[UrlDepth]:
        return self._depths(f"{_DEPTH} url INDEXED BY url_orphaned WHERE orphaned IS NOT NULL ORDER BY id")

    def _depths(self, statement: str, *values: int | apsw.CArrayBinding | None) -> list[UrlDepth]:
        with self._file.reading() as db:
            return list(map(UrlDepth._make, db.execute(statement, values)))

    def links_of(self, ids: Collection[int]) -> dict[int, array[int]]:
        with self._file.reading() as db:
            return _links_of(db, ids)

    def scan_links(self, after: int, limit: int) -> list[PageLinks]:
        with self._file.reading() as db:
            rows = db.execute(f"{_PAGE_LINKS} WHERE links.id > ? AND {_LEADS_ON} ORDER BY links.id LIMIT ?", (after, limit))
            return [PageLinks(id, reach, unpack_keys(targets)) for id, reach, targets in rows]

    def links_to(self, keys: Collection[int]) -> Iterator[PageLinks]:
        wanted = frozenset(keys)
        last: int | None = 0
        while last is not None:  # some thousand pages to a statement
            with self._file.reading() as db:
                last, pages = _links_to(db, wanted, after=last)
            yield from pages

    def set_depths(self, new: Sequence[NewDepth]) -> list[int]:
        with self._writing() as db:
            written = db.executemany(
                "UPDATE url SET depth = ?, depth_from = ?, orphaned = ? WHERE id = ? AND depth = ? AND lease_until IS NULL"
                " RETURNING id",
                [(one.depth, one.depth_from, one.orphaned, one.id, one.depth_before) for one in new],
            )
            ids = {id for (id,) in written}
        return [one.id for one in new if one.id not in ids]

    def relink(self, links: Mapping[int, Sequence[int]]) -> None:
        with self._writing() as db:
            relink(db, links)

    def move_links(self, into: Mapping[int, int | None]) -> None:
        with self._writing() as db:
            _move_links(db, into)

    def fold_links(self, into: Mapping[int, int]) -> None:
        last = 0
        while pages := self._stored_links(last):
            if new := folded_links(pages, into):
                with self._writing() as db:
                    db.executemany("UPDATE links SET targets = ? WHERE id = ?", new)
            last = pages[-1][0]

    def _stored_links(self, after: int) -> list[tuple[int, bytes]]:
        with self._file.reading() as db:
            return list(db.execute(f"SELECT id, targets FROM links WHERE id > ? ORDER BY id LIMIT {_PAGES_FOLDED}", (after,)))


class UrlBefore(NamedTuple):
    """A URL before a batch of changes."""

    key: int
    depth: int
    links: frozenset[int]
    """Those that count."""


class ChangedRow(Protocol):
    id: int
    key: int
    depth: int
    old_state: int
    old_status: int | None
    old_checksum: bytes | None
    forgotten: bool
    last: UrlState | None


def before(db: apsw.Connection, rows: Collection[ChangedRow]) -> dict[int, UrlBefore]:
    """Return URLs that are going to be changed as they are now."""
    leading = [row.id for row in rows if leads_on(row.old_state, row.old_status)]
    links = _links_of(db, leading)
    return {row.id: UrlBefore(row.key, row.depth, frozenset(links.get(row.id, ()))) for row in rows}


def mark(
    db: apsw.Connection, were: Mapping[int, UrlBefore], rows: Mapping[int, ChangedRow], links: Mapping[int, Sequence[int]]
) -> None:
    """Mark what changed URLs gave a depth and do not lead to any more, and those that were forgotten; `links` are new ones."""
    for id, was in sorted(were.items()):
        row = rows[id]
        if row.forgotten:
            _merge(db, [was.key], DepthMark(ANY_PAGE, was.depth))
        if not was.links or (row.last is None and not row.forgotten):
            continue
        last = None if row.forgotten else row.last
        leads = (
            last is not None
            and leads_on(last.state, last.status)
            and not is_farther(row.old_state, last.state, had_document=row.old_checksum is not None)
        )
        lost = was.links.difference(links.get(id, was.links) if leads else ())
        if lost:
            given = db.execute(
                "SELECT DISTINCT url.key FROM carray(?) AS wanted CROSS JOIN url INDEXED BY url_key ON url.key = wanted.value"
                " WHERE depth_from = ?",
                (integers(lost), id),
            )
            _merge(db, [key for (key,) in given], DepthMark(id))


def _merge(db: apsw.Connection, keys: Collection[int], one: DepthMark) -> None:
    stored = _marks(db, keys) if keys else {}
    for key in keys:
        _write(db, key, merged(stored.get(key), one))


def _marks(db: apsw.Connection, keys: Collection[int] | None = None) -> dict[int, DepthMark]:
    """Return the marks of these keys, or all."""
    if keys is None:
        rows = db.execute("SELECT key, mark FROM depth_mark")
    else:
        rows = db.execute("SELECT key, mark FROM depth_mark WHERE key IN (SELECT value FROM carray(?))", (integers(keys),))
    return {key: DepthMark(*map(int, text.split())) for key, text in rows}


def _links_of(db: apsw.Connection, ids: Collection[int]) -> dict[int, array[int]]:
    rows = db.execute("SELECT id, targets FROM links WHERE id IN (SELECT value FROM carray(?))", (integers(ids),))
    return {id: unpack_keys(targets) for id, targets in rows}


def _links_to(db: apsw.Connection, keys: frozenset[int], *, after: int) -> tuple[int | None, list[PageLinks]]:
    """Return which of the next pages lead to one of the keys, and the id of the last page looked at; None: there are no more."""
    holding = " AND instr(targets, ?2)" if len(keys) == 1 else ""  # bytes that are not all of one key are left to what follows
    rows = list(
        db.execute(
            f"SELECT id, targets FROM links WHERE id > ?1{holding} ORDER BY id LIMIT {_PAGES}",
            (after, *((pack_keys(keys),) if holding else ())),
        )
    )
    found = [id for id, targets in rows if not keys.isdisjoint(unpack_keys(targets))]
    pages = db.execute(
        f"{_PAGE_LINKS} WHERE links.id IN (SELECT value FROM carray(?)) AND {_LEADS_ON} ORDER BY links.id", (integers(found),)
    )
    last = rows[-1][0] if len(rows) == _PAGES else None
    return last, [PageLinks(id, reach, unpack_keys(targets)) for id, reach, targets in pages]


def relink(db: apsw.Connection, links: Mapping[int, Sequence[int]]) -> None:
    db.executemany("DELETE FROM links WHERE id = ?", [(id,) for id, keys in links.items() if not keys])
    db.executemany("INSERT OR REPLACE INTO links VALUES (?, ?)", [(id, pack_keys(keys)) for id, keys in links.items() if keys])


def _move_links(db: apsw.Connection, into: Mapping[int, int | None]) -> None:
    """Give most pages the row of the others as it is; the rest led somewhere already, or get the links of several."""
    moves = [(page, id) for id, page in into.items() if page is not None]
    db.executemany("UPDATE OR IGNORE links SET id = ? WHERE id = ?", moves)
    left = _links_of(db, into.keys())
    if left:
        pages = [page for id in left if (page := into[id]) is not None]
        relink(db, moved_links({**_links_of(db, pages), **left}, into))


def _write(db: apsw.Connection, key: int, one: DepthMark) -> None:
    db.execute("INSERT OR REPLACE INTO depth_mark VALUES (?, ?)", (key, _text(one)))


def _text(one: DepthMark) -> str:
    return f"{one.page} {one.depth}"
