"""Inherited metadata in SQLite, without costs unless rules add metadata that is inherited along links.

Table `link_metadata` has the metadata of source pages, `url.inherited` what a URL inherits, and table `inheritance` its source page; see
`state.inherited_metadata`. No other table is read, and inserting a URL costs nothing more.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import apsw

from crawlspace.model import NewUrl
from crawlspace.state.changes import Effects
from crawlspace.state.inherited_metadata import (
    InheritingUrl,
    MetadataChanges,
    RecordedPage,
    StoredDocument,
    dropped,
    metadata_changes,
)
from crawlspace.state.link_keys import unpack_keys
from crawlspace.state.sqlite.rows import by_ids, fields_of
from crawlspace.state.sqlite.transaction import integers

_GIVEN = "IN (SELECT value FROM carray(?))"
_DROPPED_AT_ONCE = 5_000


def settle(
    db: apsw.Connection, pages: Sequence[RecordedPage], inherited: Mapping[int, str | None], *, now: int, effects: Effects
) -> None:
    """Update inherited metadata after a batch, inside an open transaction. `inherited` has the previous inheritance of its pages, by id."""
    changes = metadata_changes(pages, _SqliteMetadata(db, inherited), now=now)
    _write(db, changes)
    changes.add_to(effects)


def pass_to_all(db: apsw.Connection, urls: Iterable[NewUrl]) -> None:
    """Store metadata of found URLs that inherit none, without a source page."""
    given = [(new.inherited, new.key, new.url) for new in urls if new.inherited is not None]
    if given:
        db.executemany("UPDATE url SET inherited = ? WHERE key = ? AND url = ? AND inherited IS NULL", given)
        db.executemany(
            "INSERT OR IGNORE INTO inheritance (id) SELECT id FROM url WHERE key = ? AND url = ?", [row[1:] for row in given]
        )


def drop_inherited(db: apsw.Connection) -> None:
    """Remove metadata inherited from pages that are outside the crawl space by now, or not stored."""
    stored, last = _SqliteMetadata(db, {}), 0
    while rows := list(
        db.execute(
            "SELECT url.id, url.key, url.inherited, inheritance.page, page.id, page.status FROM inheritance"
            " CROSS JOIN url ON url.id = inheritance.id LEFT JOIN url AS page ON page.id = inheritance.page"
            " WHERE inheritance.id > ? AND url.inherited IS NOT NULL ORDER BY inheritance.id LIMIT ?",
            (last, _DROPPED_AT_ONCE),
        )
    ):
        source_pages = {id: status for *_, id, status in rows if id is not None}
        _write(db, dropped([InheritingUrl(*row[:4]) for row in rows], source_pages, stored))
        last = rows[-1][0]


def link_metadata(db: apsw.Connection, ids: Collection[int]) -> dict[int, str]:
    return dict(db.execute(f"SELECT id, fields FROM link_metadata WHERE id {_GIVEN}", (integers(ids),)))


class _SqliteMetadata:
    """See `StoredMetadata`."""

    def __init__(self, db: apsw.Connection, inherited: Mapping[int, str | None]) -> None:
        self._db = db
        self._inherited = inherited

    def link_metadata(self, pages: Collection[int]) -> Mapping[int, str]:
        return link_metadata(self._db, pages)

    def links(self, pages: Collection[int]) -> Mapping[int, Sequence[int]]:
        rows = self._db.execute(f"SELECT id, targets FROM links WHERE id {_GIVEN}", (integers(pages),))
        return {id: unpack_keys(targets) for id, targets in rows}

    def inherited(self, ids: Collection[int]) -> Mapping[int, str | None]:
        return self._inherited

    def with_source(self, pages: Collection[int]) -> Iterator[InheritingUrl]:
        return map(
            InheritingUrl._make,
            self._db.execute(
                "SELECT url.id, url.key, url.inherited, page FROM inheritance INDEXED BY inheritance_page"
                f" CROSS JOIN url ON url.id = inheritance.id WHERE page IS NOT NULL AND page {_GIVEN}",
                (integers(pages),),
            ),
        )

    def without_source(self, keys: Collection[int]) -> Iterator[InheritingUrl]:
        return map(
            InheritingUrl._make,
            self._db.execute(
                "SELECT url.id, url.key, inherited, NULL FROM carray(?) AS offered CROSS JOIN url INDEXED BY url_key"
                " ON url.key = offered.value LEFT JOIN inheritance ON inheritance.id = url.id WHERE page IS NULL",
                (integers(sorted(keys)),),
            ),
        )

    def documents(self, ids: Collection[int]) -> Iterator[StoredDocument]:
        marks = dict(self._db.execute(f"SELECT id, mark FROM inheritance WHERE id {_GIVEN}", (integers(ids),)))
        bodies = dict(self._db.execute(f"SELECT id, body FROM document WHERE id {_GIVEN}", (integers(ids),)))
        for state in by_ids(self._db, ids):
            yield StoredDocument(state, fields_of(bodies.get(state.id)), marks.get(state.id))


def _write(db: apsw.Connection, changes: MetadataChanges) -> None:
    metadata = changes.link_metadata.items()
    db.executemany("DELETE FROM link_metadata WHERE id = ?", [(id,) for id, fields in metadata if fields is None])
    db.executemany("INSERT OR REPLACE INTO link_metadata VALUES (?, ?)", [one for one in metadata if one[1] is not None])
    urls = [url for _, url in changes.inherited.values()]
    db.executemany("UPDATE url SET inherited = ? WHERE id = ?", [(url.inherited, url.id) for url in urls])
    db.executemany(
        "INSERT INTO inheritance (id, page) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET page = excluded.page",
        [(url.id, url.source_page) for url in urls],
    )
    db.executemany("UPDATE url SET next_fetch = ? WHERE id = ?", [(one.at, one.state.id) for one in changes.due])
    db.executemany(
        "INSERT INTO inheritance (id, mark) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET mark = excluded.mark",
        [(one.state.id, one.mark) for one in changes.due if one.mark is not None],
    )
