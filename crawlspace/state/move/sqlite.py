"""A collection's state file as one side of a move: read in one snapshot, or written in parts; nobody can crawl it meanwhile."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from pathlib import Path

import apsw

from crawlspace.model import Op
from crawlspace.state.move.move import MOVING, Mark, read_mark
from crawlspace.state.move.records import NOT_MOVED, PARKED, OrderRecord, Record, RestRecord, SiteRecord, Stage, UrlRecord
from crawlspace.state.move.sqlite_parts import write_orders, write_rest, write_sites, write_urls
from crawlspace.state.site_health import NEW_SITE, Health
from crawlspace.state.sqlite import reading
from crawlspace.state.sqlite.counters import Tally, add, read
from crawlspace.state.sqlite.discovery import SiteIds
from crawlspace.state.sqlite.file import CrawlLock, SqliteFile, told
from crawlspace.state.sqlite.rows import integers, unpack_document, unpack_whole
from crawlspace.state.sqlite.sites import unreachable
from crawlspace.state.views import Counts, RobotsEntry

_PAGE = 250
_MORE = (
    "SELECT url.id, url.grp, url.aside, url.left_behind, links.targets, document.body, content.text, link_metadata.fields, inheritance.page,"
    " inheritance.mark, url.indexed AND EXISTS (SELECT 1 FROM incumbent WHERE incumbent.grp = url.grp) FROM carray(?) AS wanted CROSS JOIN url ON url.id = wanted.value LEFT JOIN links ON links.id = url.id"
    " LEFT JOIN document ON document.id = url.id LEFT JOIN link_metadata ON link_metadata.id = url.id LEFT JOIN inheritance ON inheritance.id = url.id"
    " LEFT JOIN content ON content.checksum = url.checksum AND (url.indexed OR url.aside = 2)"
)
_ORDERS = "SELECT op, sequence, id, url, reason, document FROM outbox WHERE sink = ? AND parked = ?"
_SINKS = (
    "WITH RECURSIVE found (sink) AS (SELECT min(sink) FROM outbox"
    " UNION ALL SELECT (SELECT min(sink) FROM outbox WHERE sink > found.sink) FROM found WHERE found.sink IS NOT NULL)"
    " SELECT sink FROM found WHERE sink IS NOT NULL"
)
_OF_KIND = ("AND op = 0", "AND op = 1", "")
_OPS = (Op.DELETE, Op.PUSH)


class SqliteSide:
    """The state file `path`. Raises StoreLocked while somebody crawls it, and what opening raises."""

    def __init__(self, path: Path, *, writes: bool = False) -> None:
        """Open the file to read it, or to copy something to it, for which it is made."""
        self.path = path
        self.name = str(path.resolve())
        self._writes = writes
        self._sites = SiteIds()
        self._lock = CrawlLock(path)
        try:
            self.found = self.version()
            self._open()
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        self._file.close()
        self._lock.close()

    def version(self) -> str:
        """When the file and its log were written last; a log that is empty is as good as none."""
        found = []
        for path in (self.path, self._beside("-wal")):
            try:
                status = path.stat()
            except OSError:
                continue
            if status.st_size:
                found.append(f"{status.st_mtime_ns}:{status.st_size}")
        return " ".join(found)

    def holds_anything(self) -> bool:
        with self._file.reading() as db:
            tables = " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in ("url", "site", "outbox", "robots", "refusal"))
            return bool(db.execute(f"SELECT {tables}").get)

    def mark(self) -> Mark | None:
        with self._file.reading() as db:
            return read_mark(self._meta(db).get(MOVING))

    def count(self) -> int:
        with self._file.reading() as db:
            return int(db.execute("SELECT coalesce(sum(value), 0) FROM tally WHERE name GLOB 'state *'").get)

    def counts(self) -> Counts:
        with self._file.reading() as db:
            return reading.counts(db)

    # reading
    def read(self, stage: Stage) -> Iterator[Record]:
        with told(self.path):
            match stage:
                case Stage.SITES:
                    yield from self._read_sites()
                case Stage.URLS:
                    yield from self._read_urls()
                case Stage.ORDERS:
                    for (sink,) in self._file.db.execute(_SINKS):
                        for kind in range(len(_OF_KIND)):
                            yield from self._read_orders(sink, kind)
                case Stage.REST:
                    yield self._read_rest()

    def _read_sites(self) -> Iterator[SiteRecord]:
        db = self._file.db
        failed = {row.site: row for row in unreachable(db)}
        for (name,) in db.execute("SELECT site FROM site UNION SELECT site FROM robots ORDER BY 1"):
            found = db.execute("SELECT wait_until, wait_s, answers, recent, missing FROM site WHERE site = ?", (name,)).fetchone()
            wait, wait_s, *health = found or (None, 0, *astuple(NEW_SITE))
            robots = [RobotsEntry(*row) for row in db.execute("SELECT * FROM robots WHERE site = ? ORDER BY scheme", (name,))]
            how = Health(*health)
            row = failed.get(name)
            if wait is not None or how != NEW_SITE or robots or row is not None:
                yield SiteRecord(name, wait, None if how == NEW_SITE else how, robots, 0 if wait is None else wait_s, row)

    def _read_urls(self) -> Iterator[UrlRecord]:
        db, after = self._file.db, 0
        while ids := [
            id for (id,) in db.execute("SELECT id FROM url NOT INDEXED WHERE id > ? ORDER BY id LIMIT ?", (after, _PAGE))
        ]:
            rest = db.execute(_MORE, (integers(ids),))
            for state, row in zip(reading.by_ids(db, ids), list(rest), strict=True):
                id, group, aside, left, links, body, text, link_metadata, page, mark, incumbent = row
                assert id == state.id
                state.lease_until = None
                document = None if body is None else unpack_document(body, url="", text="", duplicates=[])
                yield UrlRecord(
                    state,
                    links=links or b"",
                    document=document,
                    text=text,
                    aside_in=group if aside else None,
                    incumbent=bool(incumbent),
                    left=bool(left),
                    link_metadata=link_metadata,
                    inherited_from=page,
                    inherited_mark=mark,
                )
            after = ids[-1]

    def _read_orders(self, sink: str, kind: int) -> Iterator[OrderRecord]:
        parked = kind == PARKED
        statement = f"{_ORDERS} {_OF_KIND[kind]} ORDER BY sequence"
        for op, sequence, id, url, reason, whole in self._file.db.execute(statement, (sink, int(parked))):
            document = None if whole is None else replace(unpack_whole(whole, url=url), url="")
            yield OrderRecord(sink, sequence, _OPS[op], id, url, (reason or "") if parked else None, document)

    def _read_rest(self) -> RestRecord:
        db = self._file.db
        meta = {name: value for name, value in self._meta(db).items() if name not in NOT_MOVED}
        return RestRecord(read(db, "id"), read(db, "sequence"), dict(db.execute("SELECT reason, times FROM refusal")), meta)

    # writing
    def write(self, part: Sequence[Record], mark: Mark | None) -> None:
        tally = Tally()
        with self._file.writing() as db:
            write_sites(db, [one for one in part if isinstance(one, SiteRecord)], self._sites)
            write_urls(db, [one for one in part if isinstance(one, UrlRecord)], self._sites, tally)
            write_orders(db, [one for one in part if isinstance(one, OrderRecord)], tally)
            for one in part:
                if isinstance(one, RestRecord):
                    write_rest(db, one)
            add(db, tally)
            if mark is None:
                db.execute("DELETE FROM meta WHERE name = ?", (MOVING,))
            else:
                db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (MOVING, mark.written()))
        if mark is None:
            self._file.make_durable()

    def clear(self) -> None:
        """Remove the file and make a new one. The log goes first: a new file must not find it."""
        self._file.close()
        self._sites.clear()
        for path in (self._beside("-wal"), self._beside("-shm"), self.path):
            path.unlink(missing_ok=True)
        self._open()

    # private
    def _open(self) -> None:
        self._file = SqliteFile(self.path, read_only=not self._writes)
        if not self._writes:
            self._file.db.execute("BEGIN")  # until it is closed

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    @staticmethod
    def _meta(db: apsw.Connection) -> dict[str, str]:
        return dict(db.execute("SELECT name, value FROM meta"))
