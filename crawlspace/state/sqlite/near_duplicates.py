"""Groups of near duplicates in SQLite: see `state/near_duplicates.py`."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Collection, Iterable

import apsw

from crawlspace.simhash import bands, number_of, probes
from crawlspace.state.near_duplicates import (
    MOST_IN_BAND,
    MOST_NEAR,
    NEAR_EPOCH_META,
    NEAR_META,
    NearPage,
    joined_text,
    leading_text,
)
from crawlspace.state.sqlite.duplicates import Groups, MovedUrl
from crawlspace.state.sqlite.schema import IS_NEAR, NAMES_A_PAGE
from crawlspace.state.sqlite.transaction import Tally, blobs, integers

_PAGE = "SELECT url.id, url.checksum, url.simhash, url.named, url.rank, site.host"
_IS_PAGE = f"(alternate = 0 OR {IS_NEAR})"
_ALL = (1 << 64) - 1
_META = "SELECT value FROM meta WHERE name = ?"
_MOVED = "SELECT id, key, canonical, site, indexed, grp, checksum"


class SqliteNearTexts:
    """The leading texts, and whether more may join them."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def within(self) -> int:
        """Return the distance of the setting."""
        return int(self._db.execute(_META, (NEAR_META,)).get or 0)

    def signature(self, text: bytes) -> bytes | None:
        found: bytes | None = self._db.execute("SELECT signature FROM near_text WHERE checksum = ?", (text,)).get
        return found

    def leading(self, signature: bytes, within: int) -> set[tuple[int, bytes]]:
        simhash = number_of(signature)
        found = self._db.execute(
            "SELECT simhash, text FROM carray(?) AS probe CROSS JOIN near_band ON band = probe.value",
            (integers(probes(signature, within)),),
        )
        near = {text: apart for other, text in found if (apart := ((simhash ^ other) & _ALL).bit_count()) <= within}
        texts = self._db.execute(
            "SELECT id, checksum FROM carray(?) AS near JOIN near_text ON id = near.value", (integers(near),)
        )
        return {(near[id], text) for id, text in texts}

    def is_full(self, group: bytes) -> bool:
        of_group = f"SELECT 1 FROM url INDEXED BY url_group WHERE grp = ? AND {IS_NEAR} LIMIT 1 OFFSET ?"
        return bool(self._db.execute(f"SELECT EXISTS ({of_group})", (group, MOST_NEAR - 1)).get)

    def lead(self, text: bytes, signature: bytes | None) -> None:
        old = self._db.execute("DELETE FROM near_text WHERE checksum = ? RETURNING id, signature", (text,)).fetchone()
        if old is not None:
            values = [(band, old[0]) for band in bands(old[1])]
            self._db.executemany("DELETE FROM near_band WHERE band = ? AND text = ?", values)
        if signature is not None:
            id = self._db.execute("INSERT INTO near_text (checksum, signature) VALUES (?, ?) RETURNING id", (text, signature)).get
            rows = [(band, id, number_of(signature)) for band in bands(signature)]
            is_free = f"(SELECT count(*) FROM near_band WHERE band = ?1) < {MOST_IN_BAND}"
            self._db.executemany(f"INSERT INTO near_band SELECT ?1, ?2, ?3 WHERE {is_free}", rows)


class SqliteNearGroups(SqliteNearTexts):
    """The groups in a transaction."""

    def __init__(self, db: apsw.Connection, groups: Groups, tally: Tally) -> None:
        super().__init__(db)
        self._groups = groups
        self._tally = tally

    def epoch(self) -> int:
        return int(self._db.execute(_META, (NEAR_EPOCH_META,)).get or 0)

    def leading_of(self, texts: Collection[bytes]) -> list[bytes]:
        """Return those of the texts that are leading ones."""
        rows = self._db.execute(
            "SELECT checksum FROM carray(?) AS wanted CROSS JOIN near_text ON checksum = wanted.value", (blobs(texts),)
        )
        return [text for (text,) in rows]

    def near_pages(self, group: bytes) -> list[NearPage]:
        return self._pages("url INDEXED BY url_group", f"grp = ? AND {IS_NEAR}", group)

    def group_of(self, text: bytes) -> bytes | None:
        found: bytes | None = self._db.execute(
            f"SELECT grp FROM url INDEXED BY url_other_text WHERE checksum = ? AND {IS_NEAR} LIMIT 1", (text,)
        ).get
        return found

    def page(self, id: int) -> tuple[bytes, NearPage] | None:
        found = self._pages("url NOT INDEXED", f"url.id = ? AND grp IS NOT NULL AND {_IS_PAGE}", id)
        return (self._db.execute("SELECT grp FROM url WHERE id = ?", (id,)).get, found[0]) if found else None

    def host_before(self, group: bytes, near: Iterable[NearPage]) -> str | None:
        before = self._groups.before(group)
        if before is None:
            return None
        found = self._pages("url NOT INDEXED", f"url.id = ? AND grp = ? AND {_IS_PAGE}", before, group)
        return found[0].host if found else None

    def first_of_host(self, group: bytes, host: str | None) -> NearPage | None:
        of_host, values = ("", (group,)) if host is None else (" AND site.host = ?", (group, host))
        order = "ORDER BY url.alternate, url.named DESC, url.rank, url.id LIMIT 1"
        found = self._pages("url INDEXED BY url_group", f"grp = ? AND alternate = 0{of_host} {order}", *values)
        return found[0] if found else None

    def has_many(self, group: bytes, most: int) -> bool:
        return bool(
            self._db.execute(
                "SELECT EXISTS (SELECT 1 FROM url INDEXED BY url_group WHERE grp = ? AND alternate = 0 LIMIT 1 OFFSET ?)",
                (group, most),
            ).get
        )

    def choose(self, group: bytes, page: NearPage) -> None:
        self._groups.choose(group, page.id)

    def move(self, text: bytes, group: bytes, into: bytes) -> None:
        wanted = "alternate = 0" if text == group else IS_NEAR
        rows = self._db.execute(
            f"{_MOVED} FROM url INDEXED BY url_group WHERE grp = ? AND checksum = ? AND {wanted} ORDER BY id", (group, text)
        )
        for row in map(MovedUrl._make, list(rows)):
            self._groups.move(row, into, int(into != text))
            if row.canonical is None and self._canonical_page(row.key) == row.id:
                self._move_alternates(row.key, into)

    def _pages(self, table: str, condition: str, *values: bytes | int | str) -> list[NearPage]:
        rows = self._db.execute(f"{_PAGE} FROM {table} CROSS JOIN site ON site.id = url.site WHERE {condition}", values)
        return [NearPage(id, checksum, simhash, bool(named), rank, host) for id, checksum, simhash, named, rank, host in rows]

    def _move_alternates(self, key: int, into: bytes) -> None:
        rows = self._db.execute(
            f"{_MOVED} FROM url INDEXED BY url_canonical WHERE canonical = ? AND {NAMES_A_PAGE} ORDER BY id", (key,)
        )
        for row in map(MovedUrl._make, list(rows)):
            self._groups.move(row, into, 1 if row.checksum == into else 2)

    def _canonical_page(self, key: int) -> int | None:
        """Return the id of the page with a key that is the canonical page of those that name it."""
        found: int | None = self._db.execute(
            "SELECT min(id) FROM url INDEXED BY url_key WHERE key = ? AND checksum IS NOT NULL AND canonical IS NULL", (key,)
        ).get
        return found


def has_near_texts(db: apsw.Connection) -> bool:
    """Return whether there are texts that near duplicates may join."""
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM near_text)").get)


def near_text(db: apsw.Connection, simhash: bytes) -> bytes | None:
    """Return the leading text whose group a text would join."""
    texts = SqliteNearTexts(db)
    within = texts.within()
    return leading_text(texts, simhash, within) if within else None


def is_near_duplicate(db: apsw.Connection, id: int, checksum: bytes, simhash: bytes) -> bool:
    """Return whether the text of a URL would join a group that another one represents."""
    texts = SqliteNearTexts(db)
    within = texts.within()
    if not within:
        return False
    others = f"SELECT 1 FROM url INDEXED BY url_group WHERE grp = own.grp AND id <> own.id AND {_IS_PAGE}"
    left = db.execute(f"SELECT grp FROM url AS own WHERE id = ? AND grp <> ? AND NOT EXISTS ({others})", (id, checksum)).get
    text = joined_text(texts, checksum, simhash, within, left=left)
    if text is None:
        return False
    return not db.execute("SELECT indexed FROM url WHERE id = ? AND grp = ?", (id, text)).get
