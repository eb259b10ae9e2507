"""The state of a collection in one SQLite file: the default store.

One process crawls and holds the crawl lock; commands open the file beside it, read while it writes, and write between
its transactions. Nothing but the page cache grows with the number of URLs, and that is bounded.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from crawlspace.clock import Clock, SystemClock
from crawlspace.errors import StoreDamaged
from crawlspace.model import IndexOrder, NewUrl, Op, Source, State, UrlState
from crawlspace.state import sqlite_outbox, sqlite_record, sqlite_tally
from crawlspace.state.sqlite_discovery import SiteIds
from crawlspace.state.sqlite_file import CrawlLock, SqliteFile, sign, sign_off
from crawlspace.state.sqlite_rows import URL_COLUMNS, integers, url_states
from crawlspace.state.sqlite_tally import Tally
from crawlspace.state.store import Change, Counts, Effects, RobotsEntry, Site
from crawlspace.urls import url_key

_PAGE = 1_000

# A partial index is used only where its own condition stands in the query, word for word.
_PENDING = "url INDEXED BY url_pending WHERE state = 0 AND lease_until IS NULL"
_DUE = "url INDEXED BY url_due WHERE next_fetch IS NOT NULL AND state <> 0 AND lease_until IS NULL"

# From one pair of site and source straight to the next one: as many looks into an index as there are pairs, not URLs.
_NEXT_PENDING = f"SELECT site, source, 0 FROM {_PENDING} AND (site, source) > (?, ?) ORDER BY site, source LIMIT 1"
_NEXT_DUE = (
    f"SELECT site, due_source, next_fetch FROM {_DUE} AND (site, due_source) > (?, ?)"
    " ORDER BY site, due_source, next_fetch LIMIT 1"
)


class SqliteStore:
    """A Store in the file `path`; see `open_for_crawl` for the one that may crawl."""

    def __init__(
        self, path: Path, *, clock: Clock | None = None, sinks: Sequence[str] = ("index",), read_only: bool = False
    ) -> None:
        """Open the file, and make it unless `read_only`. `sinks` names the indexes that orders are given to.

        Raises StoreDamaged, StoreVersionError, StoreFull, StoreLocked or StoreError.
        """
        self.path = path
        self._clock = clock or SystemClock()
        self._sinks = tuple(sinks)
        self._sites = SiteIds()
        self._lock: CrawlLock | None = None
        self._file = SqliteFile(path, read_only=read_only)

    @classmethod
    def open_for_crawl(cls, path: Path, *, clock: Clock | None = None, sinks: Sequence[str] = ("index",)) -> SqliteStore:
        """Open the file as the one process that crawls; the leases of the one before, which is dead, are ended.

        Raises StoreLocked while another process crawls, and what opening raises.
        """
        lock = CrawlLock(path)
        try:
            store = cls(path, clock=clock, sinks=sinks)
        except BaseException:
            lock.close()
            raise
        store._lock = lock
        try:
            with store._file.writing() as db:
                db.execute("UPDATE url INDEXED BY url_leased SET lease_until = NULL WHERE lease_until IS NOT NULL")
                sign(db, store._clock)
        except BaseException:
            store._let_go()
            raise
        return store

    # discovery
    def discover(self, urls: Sequence[NewUrl], *, now: int) -> Effects:
        with self._writing() as db:
            return sqlite_record.discover(db, urls, sites=self._sites, now=now)

    # the frontier's queue
    def sites(self) -> Iterator[Site]:
        with self._file.snapshot() as db:
            rows = list(db.execute("SELECT id, site, wait_until FROM site ORDER BY site"))
            pending: dict[int, tuple[Source, ...]] = {}
            for site_id, source, _ in _leap(db, _NEXT_PENDING):
                pending[site_id] = (*pending.get(site_id, ()), Source(source))
            due: dict[int, int] = {}
            for site_id, _, next_fetch in _leap(db, _NEXT_DUE):
                due[site_id] = min(due.get(site_id, next_fetch), next_fetch)
        for site_id, site, wait_until in rows:
            if site_id in pending or site_id in due or wait_until is not None:
                yield Site(site, site_id in pending, due.get(site_id), wait_until, pending.get(site_id, ()))

    def lease(self, site: str, limit: int, *, now: int, until: int, source: Source | None = None) -> list[UrlState]:
        if limit <= 0:
            return []
        with self._writing() as db:
            site_id = self._sites.find(db, site)
            if site_id is None:
                return []
            ids = _ready(db, site_id, limit, now, source)
            if not ids:
                return []
            db.execute("UPDATE url SET lease_until = ? WHERE id IN (SELECT value FROM carray(?))", (until, integers(ids)))
            return url_states(
                db.execute(
                    f"SELECT {URL_COLUMNS} FROM carray(?) AS leased CROSS JOIN url ON url.id = leased.value"
                    " CROSS JOIN site ON site.id = url.site",
                    (integers(ids),),
                )
            )

    def release(self, ids: Iterable[int]) -> None:
        with self._writing() as db:
            db.execute("UPDATE url SET lease_until = NULL WHERE id IN (SELECT value FROM carray(?))", (integers(ids),))

    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
        with self._writing() as db:
            ended = dict(
                db.execute(
                    "SELECT site.site, count(*) FROM url INDEXED BY url_leased JOIN site ON site.id = url.site"
                    " WHERE lease_until <= ? AND url.id NOT IN (SELECT value FROM carray(?)) GROUP BY site.id",
                    (now, integers(keep)),
                )
            )
            if ended:
                db.execute(
                    "UPDATE url INDEXED BY url_leased SET lease_until = NULL"
                    " WHERE lease_until <= ? AND id NOT IN (SELECT value FROM carray(?))",
                    (now, integers(keep)),
                )
            return ended

    def next_due(self, site: str) -> int | None:
        with self._file.snapshot() as db:
            site_id = self._sites.find(db, site)
            firsts = [
                db.execute(f"SELECT min(next_fetch) FROM {_DUE} AND site = ? AND due_source = ?", (site_id, source)).get
                for source in Source
            ]
        return min((first for first in firsts if first is not None), default=None)

    def wait_site(self, site: str, until: int | None) -> None:
        with self._writing() as db:
            db.execute("UPDATE site SET wait_until = ? WHERE id = ?", (until, self._sites.find_or_add(db, site)))

    def note_pending(self, site: str, status: int | None) -> None:
        with self._writing() as db:
            site_id = self._sites.find(db, site)
            if site_id is None:
                return
            tally = Tally()
            for old, count in db.execute(
                f"SELECT status, count(*) FROM {_PENDING} AND site = ? AND status IS NOT ? GROUP BY status", (site_id, status)
            ):
                if old is not None:
                    tally[f"status {old}"] -= count
                if status is not None:
                    tally[f"status {status}"] += count
            db.execute(
                "UPDATE url INDEXED BY url_pending SET status = ?1"
                " WHERE state = 0 AND lease_until IS NULL AND site = ?2 AND status IS NOT ?1",
                (status, site_id),
            )
            sqlite_tally.add(db, tally)

    # results
    def record(self, changes: Sequence[Change], *, now: int) -> Effects:
        with self._writing() as db:
            return sqlite_record.record(db, changes, sites=self._sites, sinks=self._sinks, now=now)

    # looking
    def get(self, url: str) -> UrlState | None:
        return self._one("url.key = ? AND url.url = ?", (url_key(url), url))

    def get_by_id(self, id: int) -> UrlState | None:
        return self._one("url.id = ?", (id,))

    def urls(
        self,
        *,
        state: State | None = None,
        leased: bool = False,
        status: int | None = None,
        host: str | None = None,
    ) -> Iterator[UrlState]:
        """Read in pages, so that neither memory nor a snapshot is held while the caller works."""
        wanted = {"url.state": state, "url.status": status, "site.host": host}
        chosen = {column: value for column, value in wanted.items() if value is not None}
        statement = (
            f"SELECT {URL_COLUMNS} FROM url {'INDEXED BY url_leased' if leased else 'NOT INDEXED'}"
            " CROSS JOIN site ON site.id = url.site WHERE url.id > ?"
            + "".join(f" AND {column} = ?" for column in chosen)
            + (" AND url.lease_until IS NOT NULL" if leased else "")
            + " ORDER BY url.id LIMIT ?"
        )
        last = 0
        while True:
            with self._file.reading() as db:
                page = url_states(db.execute(statement, (last, *chosen.values(), _PAGE)))
            yield from page
            if len(page) < _PAGE:
                return
            last = page[-1].id

    def counts(self) -> Counts:
        with self._file.snapshot() as db:
            numbers = sqlite_tally.read_all(db)
            leased = dict(
                db.execute("SELECT state, count(*) FROM url INDEXED BY url_leased WHERE lease_until IS NOT NULL GROUP BY state")
            )
            hosts = db.execute("SELECT count(DISTINCT host) FROM site WHERE urls > 0").get
        by_state = {state.label: numbers.get(f"state {int(state)}", 0) - leased.get(state, 0) for state in State}
        by_state["leased"] = sum(leased.values())
        return Counts(
            by_state={label: count for label, count in by_state.items() if count},
            by_status={int(name[7:]): count for name, count in numbers.items() if name.startswith("status ")},
            indexed=numbers.get("indexed", 0),
            outbox=sum(count for name, count in numbers.items() if name.startswith("waiting ")),
            parked=sum(count for name, count in numbers.items() if name.startswith("parked ")),
            hosts=hosts,
            retrying=numbers.get("retrying", 0),
        )

    def host_count(self, host: str) -> int:
        with self._file.reading() as db:
            return int(db.execute("SELECT coalesce(sum(urls), 0) FROM site WHERE host = ?", (host,)).get)

    # robots.txt
    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        with self._file.reading() as db:
            row = db.execute("SELECT * FROM robots WHERE site = ? AND scheme = ?", (site, scheme)).fetchone()
        return RobotsEntry(*row) if row else None

    def save_robots(self, entry: RobotsEntry) -> None:
        with self._writing() as db:
            db.execute(
                "INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?, ?)",
                (entry.site, entry.scheme, entry.status, entry.body, entry.fetched_at),
            )

    # refusals, counted across runs
    def count_refusals(self, by_reason: Mapping[str, int]) -> None:
        with self._writing() as db:
            db.executemany(
                "INSERT INTO refusal VALUES (?, ?) ON CONFLICT (reason) DO UPDATE SET times = times + excluded.times",
                [(str(reason), times) for reason, times in by_reason.items()],
            )

    def refusals(self) -> Mapping[str, int]:
        with self._file.reading() as db:
            return dict(db.execute("SELECT reason, times FROM refusal"))

    # the outbox
    def orders(self, sink: str, limit: int, *, now: int) -> list[IndexOrder]:
        self._file.make_durable()  # an index may keep what it is sent longer than this file would after a power failure
        with self._file.snapshot() as db:
            return sqlite_outbox.next_orders(db, sink, limit)

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        with self._writing() as db:
            tally = Tally()
            sqlite_outbox.acknowledge(db, sink, orders, tally)
            sqlite_tally.add(db, tally)

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        with self._writing() as db:
            tally = Tally()
            sqlite_outbox.park(db, sink, order, reason, tally)
            sqlite_tally.add(db, tally)

    def parked(self, sink: str) -> list[tuple[Op, str, str]]:
        with self._file.reading() as db:
            return sqlite_outbox.parked_orders(db, sink)

    def backlog(self, sink: str) -> int:
        with self._file.reading() as db:
            return sqlite_tally.read(db, f"waiting {sink}")

    # key-value odds and ends
    def get_meta(self, name: str) -> str | None:
        with self._file.reading() as db:
            row = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def set_meta(self, name: str, value: str) -> None:
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def check(self) -> None:
        with self._file.reading() as db:
            found = str(db.execute("PRAGMA quick_check(1)").get)
        if found != "ok":
            raise StoreDamaged(
                f"{self.path} is damaged ({found.splitlines()[-1]}): put a backup in its place, or move it away and crawl anew"
            )

    def close(self) -> None:
        if self._lock is not None:
            with self._file.writing() as db:
                sign_off(db)
        self._let_go()

    # private
    def _let_go(self) -> None:
        self._file.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        try:
            with self._file.writing() as db:
                yield db
        except BaseException:
            self._sites.clear()  # ids of sites that were rolled back
            raise

    def _one(self, condition: str, values: tuple[int | str, ...]) -> UrlState | None:
        with self._file.reading() as db:
            found = url_states(
                db.execute(f"SELECT {URL_COLUMNS} FROM url CROSS JOIN site ON site.id = url.site WHERE {condition}", values)
            )
        return found[0] if found else None


def _ready(db: apsw.Connection, site: int, limit: int, now: int, source: Source | None) -> list[int]:
    """Ids in the order in which they are to be leased."""
    only = "" if source is None else f" AND source = {int(source)}"
    ids = [
        id
        for (id,) in db.execute(f"SELECT id FROM {_PENDING} AND site = ?{only} ORDER BY source, shift, id LIMIT ?", (site, limit))
    ]
    for waits_in in Source if source is None else (source,):
        if len(ids) >= limit:
            break
        due = db.execute(
            f"SELECT id FROM {_DUE} AND site = ? AND due_source = ? AND next_fetch <= ? ORDER BY next_fetch, id LIMIT ?",
            (site, waits_in, now, limit - len(ids)),
        )
        ids.extend(id for (id,) in due)
    return ids


def _leap(db: apsw.Connection, statement: str) -> Iterator[tuple[int, int, int]]:
    """Run a statement that finds the next pair of site and source, until there is none."""
    row = db.execute(statement, (0, -1)).fetchone()
    while row:
        yield row
        row = db.execute(statement, row[:2]).fetchone()
