"""A collection's state file as one side of a move: read in one snapshot, or written in batches.

It cannot be crawled meanwhile, except while it is read for a backup: SQLite keeps the snapshot, and the crawl goes on in the log.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from secrets import token_hex

import apsw
from msgspec import structs

from crawlspace.document import Op
from crawlspace.model import UrlState
from crawlspace.private_files import real_path
from crawlspace.state.dump import (
    MOVING,
    NOT_KEPT,
    CopyMark,
    OrderRecord,
    Record,
    RefusedLinksRecord,
    RobotsRecord,
    SiteRecord,
    UrlRecord,
    ValueRecord,
    read_mark,
    refused_links_records,
)
from crawlspace.state.site_health import Health, signatures_of
from crawlspace.state.sqlite import links, rows
from crawlspace.state.sqlite.file import CrawlLock, SqliteFile
from crawlspace.state.sqlite.near_duplicates import SqliteNearTexts
from crawlspace.state.sqlite.rows import pack_document, pack_whole, unpack_document, unpack_whole
from crawlspace.state.sqlite.schema import NAMES_A_PAGE, readable
from crawlspace.state.sqlite.sites import scheme_bit, set_unreachable
from crawlspace.state.sqlite.transaction import SiteIds, Tally, add_counts, integers
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import Counts, RobotsEntry
from crawlspace.status import UNCOUNTED
from crawlspace.urls import url_key

_PAGE = 250
_SITES = (
    "SELECT site.site, wait_until, iif(wait_until IS NULL, 0, wait_s), answers, recent, missing, ifnull(site.shown, ''), status, since, runs, counted_at,"
    " ifnull(unreachable.detail, '')"
    " FROM site LEFT JOIN unreachable ON unreachable.site = site.id ORDER BY site.site"
)
_KEPT = (
    "SELECT links.targets, document.body, content.text, iif(url.alternate, url.grp, NULL),"
    " ifnull(url.alternate = 1 AND url.checksum <> url.grp, 0), url.indexed AND representative.grp IS NOT NULL,"
    " url.left_behind, link_metadata.fields, inheritance.page, inheritance.mark FROM carray(?) AS wanted CROSS JOIN url ON url.id = wanted.value"
    " LEFT JOIN links ON links.id = url.id LEFT JOIN document ON document.id = url.id"
    " LEFT JOIN content ON content.checksum = url.checksum AND (url.indexed OR url.checksum <> url.grp)"
    " LEFT JOIN representative ON representative.grp = url.grp"
    " LEFT JOIN link_metadata ON link_metadata.id = url.id LEFT JOIN inheritance ON inheritance.id = url.id"
)
"""The fields of a UrlRecord after those of UrlState, in their order."""
_VALUES = "SELECT 'meta', name, value FROM meta UNION ALL SELECT 'tally', name, value FROM tally WHERE name IN ('id', 'sequence')"
_FILES = "SELECT 'archive_file', CAST(number AS TEXT), name FROM archive_file"
_MARKS = "SELECT 'depth_mark', CAST(key AS TEXT), mark FROM depth_mark"
_OPS = (Op.DELETE, Op.PUSH)
_COLUMNS = tuple(name for name in UrlState.__struct_fields__ if name not in ("site", "lease_until", "duplicate_of"))
_ADD_URL = (
    f"INSERT INTO url ({', '.join(_COLUMNS)}, site, grp, alternate, left_behind, named) VALUES ({'?, ' * len(_COLUMNS)} ?, ?, ?, ?,"
    f" EXISTS (SELECT 1 FROM url AS naming INDEXED BY url_canonical WHERE naming.canonical = ? AND naming.grp = ? AND {NAMES_A_PAGE}))"
)


class SqliteSide:
    """The state file `path`. Raises the errors of opening it, and StoreLocked while it is crawled, unless it is open `during_crawl`."""

    def __init__(self, path: Path, *, writes: bool = False, during_crawl: bool = False) -> None:
        """Open the file to read it, or create it as the target of a copy. `during_crawl`: read it as it is at this moment."""
        self.path = path
        self.name = str(real_path(path))
        self._writes = writes
        self._sites = SiteIds()
        self._snapshot = token_hex(8) if during_crawl else ""
        self._lock = None if during_crawl else CrawlLock(path)
        try:
            self._open()
        except BaseException:
            self._release()
            raise

    def close(self) -> None:
        self._file.close()
        self._release()

    def version(self) -> str:
        """Return when the file and its log were written last; an empty log counts as none. A snapshot has a random version."""
        if self._snapshot:
            return self._snapshot
        found = []
        for path in (self.path, self._with_suffix("-wal")):
            try:
                status = path.stat()
            except OSError:
                continue
            if status.st_size:
                found.append(f"{status.st_mtime_ns}:{status.st_size}")
        return " ".join(found)

    def mark(self) -> CopyMark | None:
        with self._file.reading() as db:
            return read_mark(db.execute("SELECT value FROM meta WHERE name = ?", (MOVING,)).get)

    def count(self) -> int:
        with self._file.reading() as db:
            return int(db.execute("SELECT coalesce(sum(value), 0) FROM tally WHERE name GLOB 'state *'").get)

    def counts(self) -> Counts:
        with self._file.reading() as db:
            return rows.counts(db)

    def records(self) -> Iterator[Record]:
        with self._file.reading() as db:
            for site, until, wait_s, answers, recent, missing, shown, *failed in db.execute(readable(_SITES, db)):
                unreachable = None if failed[0] is None else UnreachableSite(site, *failed)
                found = SiteRecord(site, until, wait_s, Health(answers, recent, missing, signatures_of(shown)), unreachable)
                if found != SiteRecord(site):
                    yield found
            for row in db.execute("SELECT site, scheme, status, body, fetched_at FROM robots ORDER BY site, scheme"):
                yield RobotsRecord(RobotsEntry(*row))
            yield from self._urls(db)
            yield from refused_links_records(links.refused_links(db))
            for sink, parked, op, number, url, id, reason, whole in db.execute(
                "SELECT sink, parked, op, sequence, url, id, reason, document FROM outbox ORDER BY sink, parked, op, sequence"
            ):
                document = None if whole is None else replace(unpack_whole(whole, url=url), url="")
                yield OrderRecord(sink, _OPS[op], number, id, url, (reason or "") if parked else None, document)
            yield from (
                ValueRecord(*row)
                for row in db.execute(f"{_FILES} UNION ALL {_MARKS} UNION ALL {_VALUES} ORDER BY 1, 2")
                if row[1] not in NOT_KEPT
            )

    def _urls(self, db: apsw.Connection) -> Iterator[UrlRecord]:
        pages, after = "SELECT id FROM url NOT INDEXED WHERE id > ? ORDER BY id LIMIT ?", 0
        while ids := [id for (id,) in db.execute(pages, (after, _PAGE))]:
            for state, row in zip(rows.by_ids(db, ids), db.execute(readable(_KEPT, db), (integers(ids),)), strict=True):
                links, body, text, alternate_in, near, representative, left, *inherited = row
                document = None if body is None else unpack_document(body, url="", text="", duplicates=[])
                state.lease_until = None
                kept = links or b"", document, text, alternate_in, bool(near), bool(representative), bool(left), *inherited
                yield UrlRecord(*(*structs.astuple(state), *kept))
            after = ids[-1]

    def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
        tally = Tally()
        with self._file.writing() as db:
            for one in batch:
                match one:
                    case SiteRecord():
                        self._add_site(db, one)
                    case RobotsRecord():
                        db.execute("INSERT INTO robots VALUES (?, ?, ?, ?, ?)", astuple(one.entry))
                    case UrlRecord():
                        self._add_url(db, one, tally)
                    case RefusedLinksRecord():
                        links.add_refused(db, one.links())
                    case OrderRecord():
                        _add_order(db, one, tally)
                    case ValueRecord():
                        db.execute(f"INSERT OR REPLACE INTO {one.table} VALUES (?, ?)", (one.name, one.value))
            add_counts(db, tally)
            if mark is None:
                db.execute("DELETE FROM meta WHERE name = ?", (MOVING,))
            else:
                db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (MOVING, mark.encoded()))
        if mark is None:
            self._file.make_durable()

    def clear(self) -> None:
        """Remove the file and create a new one. The log is removed first: it must not apply to a new file."""
        self._file.close()
        self._sites.clear()
        for path in (self._with_suffix("-wal"), self._with_suffix("-shm"), self.path):
            path.unlink(missing_ok=True)
        self._open()

    def _add_site(self, db: apsw.Connection, one: SiteRecord) -> None:
        site = self._sites.find_or_add(db, one.site)
        db.execute(
            "UPDATE site SET wait_until = ?, wait_s = ?, answers = ?, recent = ?, missing = ?, shown = ? WHERE id = ?",
            (one.wait_until, one.wait_s, *astuple(one.health)[:3], one.health.shown_as_text, site),
        )
        set_unreachable(db, site, one.unreachable)

    def _add_url(self, db: apsw.Connection, one: UrlRecord, tally: Tally) -> None:
        site, group = self._sites.find_or_add(db, one.site), one.alternate_in or one.checksum
        alternate = 0 if one.alternate_in is None else 1 if one.near or one.alternate_in == one.checksum else 2
        values = [getattr(one, name) for name in _COLUMNS]
        db.execute(_ADD_URL, (*values, site, group, alternate, one.left, one.key, group))
        if one.canonical is not None and group is not None:
            db.execute("UPDATE url INDEXED BY url_key SET named = 1 WHERE key = ? AND grp = ?", (one.canonical, group))
        db.execute("UPDATE site SET urls = urls + 1, schemes = schemes | ? WHERE id = ?", (scheme_bit(one.url), site))
        if one.links:
            db.execute("INSERT INTO links VALUES (?, ?)", (one.id, one.links))
        if one.document is not None:
            db.execute("INSERT INTO document VALUES (?, ?)", (one.id, pack_document(one.document)))
        if one.text is not None:
            db.execute("INSERT OR IGNORE INTO content (checksum, text) VALUES (?, ?)", (one.checksum, one.text))
        if one.checksum is not None and one.simhash is not None and one.alternate_in is None:
            SqliteNearTexts(db).lead(one.checksum, one.simhash)
        if one.representative:
            db.execute("INSERT INTO representative VALUES (?, ?)", (group, one.id))
        if one.link_metadata is not None:
            db.execute("INSERT INTO link_metadata VALUES (?, ?)", (one.id, one.link_metadata))
        if (one.inherited, one.inherited_from, one.inherited_mark) != (None, None, None):
            db.execute("INSERT INTO inheritance VALUES (?, ?, ?)", (one.id, one.inherited_from, one.inherited_mark))
        tally[f"state {int(one.state)}"] += 1
        if one.status is not None:
            tally[f"status {one.status}"] += 1
        tally["retrying"] += one.retries > 0
        tally.count_refused(one.refused, 1)
        tally["with document"] += one.checksum is not None
        tally["indexed"] += one.indexed
        tally.documents[site] += one.indexed
        tally.uncounted[site] += one.status in UNCOUNTED

    def _open(self) -> None:
        self._file = SqliteFile(self.path, read_only=not self._writes)
        if not self._writes:
            with self._file.reading() as db:
                db.execute("BEGIN")  # until it is closed
                db.execute("SELECT 1 FROM meta LIMIT 1").fetchall()  # the first statement takes the snapshot

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def _with_suffix(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)


def _add_order(db: apsw.Connection, one: OrderRecord, tally: Tally) -> None:
    parked, op = one.reason is not None, _OPS.index(one.op)
    known = db.execute("SELECT key FROM url WHERE id = ? AND url = ?", (one.id, one.url)).get
    key, document = url_key(one.url) if known is None else known, None if one.document is None else pack_whole(one.document)
    db.execute(
        "INSERT INTO outbox (sink, parked, op, sequence, key, url, id, reason, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (one.sink, parked, op, one.number, key, one.url, one.id, one.reason, document),
    )
    tally[f"{'parked' if parked else 'waiting'} {one.sink}"] += 1
