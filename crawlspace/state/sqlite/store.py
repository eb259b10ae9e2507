"""The state of a collection in one SQLite file: the default store.

One process crawls and holds the crawl lock; commands open the file beside it, read while it writes, and write between
its transactions. Nothing but the page cache grows with the number of URLs, and that is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from crawlspace.clock import Clock, SystemClock
from crawlspace.decision import Reason
from crawlspace.errors import StoreDamaged
from crawlspace.model import IndexOrder, NewUrl, Op, Queue, State, UrlState
from crawlspace.state.changes import Change, Effects, Reclassified
from crawlspace.state.refused_links import RefusedLink
from crawlspace.state.site_health import NEW_SITE, Health, signatures_of
from crawlspace.state.sqlite import counters, outbox, reading, refused_links, rule_change
from crawlspace.state.sqlite import queue as sqlite_queue
from crawlspace.state.sqlite import record as sqlite_record
from crawlspace.state.sqlite import sites as sqlite_sites
from crawlspace.state.sqlite.archive import SqliteArchive
from crawlspace.state.sqlite.counters import Tally
from crawlspace.state.sqlite.crawl_lock import CrawlLock, sign, sign_off
from crawlspace.state.sqlite.depths import SqliteDepths
from crawlspace.state.sqlite.discovery import SiteIds, Writing, discover
from crawlspace.state.sqlite.due_times import SqliteDueTimes
from crawlspace.state.sqlite.file import SqliteFile
from crawlspace.state.sqlite.inherited_metadata import drop_inherited
from crawlspace.state.sqlite.outbox import Outgoing
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import MOST_BYTES_AT_ONCE, Counts, FoldedUrl, KnownUrl, RobotsEntry, Site
from crawlspace.urls import url_key

_NAMED_VALUES = "SELECT meta.value FROM json_each(?) AS wanted LEFT JOIN meta ON meta.name = wanted.value ORDER BY wanted.key"


class SqliteStore(SqliteArchive, SqliteDepths, SqliteDueTimes):
    """A Store in the file `path`; see `open_for_crawl` for the one that may crawl."""

    changed_at_once = 50_000

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock | None = None,
        sinks: Sequence[str] = ("index",),
        read_only: bool = False,
        alone: bool = False,
    ) -> None:
        """Open the file, and make it unless `read_only`. `sinks` names the indexes that orders are given to.

        `alone`: the caller holds the lock of the crawl.
        Raises StoreDamaged, StoreVersionError, StoreFull, StoreLocked or StoreError.
        """
        self.path = path
        self._clock = clock or SystemClock()
        self._sinks = tuple(sinks)
        self._sites = SiteIds()
        self._lock: CrawlLock | None = None
        self._run_began: int | None = None
        self._is_joined = False
        """Whether what is written is part of an open transaction."""
        self._file = SqliteFile(path, read_only=read_only, alone=alone)

    @classmethod
    def open_for_crawl(cls, path: Path, *, clock: Clock | None = None, sinks: Sequence[str] = ("index",)) -> SqliteStore:
        """Open the file as the one process that crawls; the leases of the previous one, which has ended, are released.

        Waits for a command that sends to the index. Raises StoreLocked while another process crawls, and what opening raises.
        """
        lock = CrawlLock(path, waits=True)
        try:
            store = cls(path, clock=clock, sinks=sinks, alone=True)
        except BaseException:
            lock.close()
            raise
        store._lock = lock
        try:
            with store._file.writing() as db:
                sqlite_queue.release_all(db)
                sign(db, store._clock)
        except BaseException:
            store._release_sites()
            raise
        return store

    # discovery
    def discover(self, urls: Sequence[NewUrl], *, now: int) -> Effects:
        with self._writing() as db:
            return discover(db, urls, sites=self._sites, now=now)

    # the frontier's queue
    def sites(self) -> Iterator[Site]:
        with self._file.snapshot() as db:
            found = list(sqlite_queue.sites(db))
        yield from found

    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]:
        if limit <= 0:
            return []
        with self._writing() as db:
            site_id = self._sites.find(db, site)
            return (
                []
                if site_id is None
                else sqlite_queue.lease(db, site_id, limit, now=now, until=until, queue=queue, run_began=self._run_began)
            )

    def release(self, ids: Iterable[int]) -> None:
        with self._writing() as db:
            sqlite_queue.release(db, ids)

    def begin_run(self, at: int | None, *, goes_on: bool = False) -> None:
        self._run_began = at
        self._file.begin_run()
        has_more = not goes_on
        while has_more:
            with self._writing() as db:
                has_more = sqlite_queue.restore_set_aside(db)
                if not has_more:
                    sqlite_sites.end_waits_of_unreachable(db)

    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
        with self._writing() as db:
            return sqlite_queue.reclaim(db, now=now, keep=keep)

    def due(self, site: str) -> list[tuple[Queue, int]]:
        with self._file.snapshot() as db:
            site_id = self._sites.find(db, site)
            return [] if site_id is None else sqlite_queue.due(db, site_id)

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        with self._writing() as db:
            place = self._sites.find_or_add(db, site)
            db.execute("UPDATE site SET wait_until = ?, wait_s = ? WHERE id = ?", (until, wait_s, place))

    # results
    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        with self._writing() as db:
            writing = Writing(db, self._sites, now)
            effects = self._finish(writing, sqlite_record.record(writing, changes))
            if health:
                rows = [
                    (how.answers, how.recent, how.missing, how.shown_as_text, self._sites.find_or_add(db, site))
                    for site, how in health.items()
                ]
                db.executemany("UPDATE site SET answers = ?, recent = ?, missing = ?, shown = ? WHERE id = ?", rows)
            return effects

    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects:
        wanted = list(dict.fromkeys(ids))
        with self._writing() as db:
            changes = [made for state in reading.by_ids(db, wanted) if (made := change(state)) is not None]
            writing = Writing(db, self._sites, now)
            return self._finish(writing, sqlite_record.record(writing, changes))

    def reclassify(self, found: Reclassified, *, now: int) -> Effects:
        with self._writing() as db:
            writing = Writing(db, self._sites, now)
            return self._finish(writing, rule_change.reclassify(writing, found))

    @contextmanager
    def one_transaction(self) -> Iterator[None]:
        with self._writing():
            self._is_joined = True
            try:
                yield
            finally:
                self._is_joined = False

    def drop_inherited(self) -> None:
        with self._writing() as db:
            drop_inherited(db)

    def hasten_retries(self, latest: int) -> int:
        with self._writing() as db:  # none of them is set aside
            return sqlite_queue.hasten_retries(db, latest)

    def health(self, site: str) -> Health:
        with self._file.reading() as db:
            row = db.execute("SELECT answers, recent, missing, shown FROM site WHERE site = ?", (site,)).fetchone()
        if row is None:
            return NEW_SITE
        answers, recent, missing, shown = row
        return Health(answers, recent, missing, signatures_of(shown))

    def is_duplicate(self, id: int, *, checksum: bytes, canonical: int | None) -> bool:
        with self._file.reading() as db:
            return reading.is_duplicate(db, id, checksum=checksum, canonical=canonical)

    def lost_links(self, ids: Collection[int]) -> set[int]:
        with self._file.snapshot() as db:
            return reading.lost_links(db, ids)

    def refused_links(
        self, *, reason: Reason | None = None, host: str | None = None, page: int | None = None
    ) -> list[RefusedLink]:
        with self._file.reading() as db:
            return refused_links.select(db, reason=reason, host=host, page=page)

    # reading
    def scan(self, after: int, limit: int) -> list[KnownUrl]:
        with self._file.reading() as db:
            return reading.scan(db, after, limit)

    def version(self) -> int:
        with self._file.reading() as db:
            return int(db.pragma("data_version"))

    def get(self, url: str) -> UrlState | None:
        with self._file.reading() as db:
            return reading.one(db, "url.key = ? AND url.url = ?", url_key(url), url)

    def get_by_id(self, id: int) -> UrlState | None:
        with self._file.reading() as db:
            return reading.one(db, "url.id = ?", id)

    def get_by_ids(self, ids: Sequence[int]) -> list[UrlState]:
        with self._file.reading() as db:
            return reading.by_ids(db, ids)

    def urls_to_fold(self, ids: Collection[int]) -> list[FoldedUrl]:
        with self._file.reading() as db:
            return reading.urls_to_fold(db, ids)

    def left_to_others(self, ids: Collection[int]) -> set[int]:
        with self._file.reading() as db:
            return reading.left_to_others(db, ids)

    def urls(
        self,
        *,
        state: State | None = None,
        leased: bool = False,
        status: int | None = None,
        host: str | None = None,
        held: bool = False,
    ) -> Iterator[UrlState]:
        """Read in pages, so that neither memory nor a snapshot is occupied while the caller works."""
        return self._in_pages(reading.pages(state=state, leased=leased, status=status, host=host, held=held))

    def folded_urls(self) -> Iterator[UrlState]:
        return self._in_pages(reading.folded_urls)

    def _in_pages(self, page_after: Callable[[apsw.Connection, int], list[UrlState]]) -> Iterator[UrlState]:
        last = 0
        while True:
            with self._file.reading() as db:
                page = page_after(db, last)
            yield from page
            if len(page) < reading.PAGE:
                return
            last = page[-1].id

    def counts(self) -> Counts:
        with self._file.snapshot() as db:
            return reading.counts(db)

    def known_of_host(self, host: str) -> int:
        with self._file.reading() as db:
            return int(db.execute("SELECT coalesce(sum(urls), 0) FROM site WHERE host = ?", (host,)).get)

    def host_count(self, host: str) -> int:
        with self._file.reading() as db:
            return int(db.execute("SELECT coalesce(sum(urls - uncounted), 0) FROM site WHERE host = ?", (host,)).get)

    # sites that cannot be reached
    def unreachable(self) -> list[UnreachableSite]:
        with self._file.reading() as db:
            return sqlite_sites.unreachable(db)

    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None:
        with self._writing() as db:
            sqlite_sites.set_unreachable(db, self._sites.find_or_add(db, site), row)

    def documents(self, sites: Iterable[str]) -> dict[str, int]:
        with self._file.snapshot() as db:
            return sqlite_sites.documents(db, sites)

    def schemes(self, site: str) -> frozenset[str]:
        with self._file.reading() as db:
            return sqlite_sites.schemes(db, site)

    # robots.txt
    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        with self._file.reading() as db:
            return sqlite_sites.robots(db, site, scheme)

    def save_robots(self, entry: RobotsEntry) -> None:
        with self._writing() as db:
            sqlite_sites.save_robots(db, entry)

    def forget_robots(self, *, read_after: int) -> None:
        with self._writing() as db:
            sqlite_sites.forget_robots(db, read_after)

    # the outbox
    def orders(self, sink: str, limit: int, *, now: int, most_bytes: int = MOST_BYTES_AT_ONCE) -> list[IndexOrder]:
        self._file.make_durable()  # an index may keep what it is sent longer than this file would after a power failure
        with self._file.snapshot() as db:
            return outbox.next_orders(db, sink, limit, most_bytes)

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        with self._writing() as db:
            tally = Tally()
            outbox.acknowledge(db, sink, orders, tally)
            counters.add(db, tally)

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        with self._writing() as db:
            tally = Tally()
            outbox.park(db, sink, order, reason, tally)
            counters.add(db, tally)

    def parked(self, sink: str) -> list[tuple[Op, str, str]]:
        with self._file.reading() as db:
            return outbox.parked_orders(db, sink)

    def unpark(self, sink: str) -> int:
        with self._writing() as db:
            tally = Tally()
            number = outbox.unpark(db, sink, tally)
            counters.add(db, tally)
            return number

    def backlog(self, sink: str) -> int:
        with self._file.reading() as db:
            return counters.read(db, f"waiting {sink}")

    # values by name
    def get_meta(self, name: str) -> str | None:
        with self._file.reading() as db:
            row = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def get_metas(self, names: Sequence[str]) -> list[str | None]:
        with self._file.reading() as db:  # one statement, so that the values are of one moment
            return [value for (value,) in db.execute(_NAMED_VALUES, (json.dumps(names),))]

    def set_meta(self, name: str, value: str) -> None:
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def claim(self, name: str, *, seconds: int) -> bool:
        return True  # one process crawls

    def end_claim(self, name: str) -> None: ...

    def check(self) -> None:
        with self._file.reading() as db:
            found = str(db.execute("PRAGMA quick_check(1)").get)
        if found != "ok":
            raise StoreDamaged(
                f"{self.path} is damaged ({found.splitlines()[-1]}): put a backup in its place, or move it away and crawl anew"
            )

    @property
    def is_in_place(self) -> bool:
        """Whether the file that was opened is still the one that has its name; what is written to another one is lost."""
        return self._file.is_in_place

    def close(self) -> None:
        try:
            if self._lock is not None:
                with self._file.writing() as db:
                    sign_off(db)
        finally:
            self._release_sites()

    # private
    def _release_sites(self) -> None:
        self._file.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        if self._is_joined:
            yield self._file.db
            return
        try:
            with self._file.writing() as db:
                yield db
        except BaseException:
            self._sites.clear()  # ids of sites that were rolled back
            raise

    def _finish(self, writing: Writing, outgoing: Outgoing) -> Effects:
        """Give the orders that follow from what was written, and store what it has counted."""
        settlement, names = outgoing
        outbox.give(writing.db, settlement, sinks=self._sinks, names=names, tally=writing.tally)
        counters.add(writing.db, writing.tally)
        effects = writing.effects
        effects.pushes, effects.deletes = len(settlement.push), len(settlement.delete)
        effects.displaced = settlement.displaced
        return effects
