"""The state of a collection in one SQLite file: the default store.

One process crawls and holds the crawl lock; commands open the file meanwhile, read while it writes, and write between its
transactions. Only the page cache grows with the number of URLs, and it is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from crawlspace.clock import Clock, SystemClock
from crawlspace.document import Document, IndexOrder
from crawlspace.errors import StoreDamaged
from crawlspace.model import Held, NewUrl, Queue, State, UrlState
from crawlspace.state.changes import Change, Effects, Reclassified
from crawlspace.state.depths import PageLinks
from crawlspace.state.link_keys import folded_links
from crawlspace.state.site_health import Health
from crawlspace.state.site_pauses import PAUSES, Pauses, SitePause, pause_of, read_pauses, with_pause
from crawlspace.state.sqlite import inherited_metadata, near_duplicates, outbox, record, rows, rule_change
from crawlspace.state.sqlite import links as sqlite_links
from crawlspace.state.sqlite import queue as sqlite_queue
from crawlspace.state.sqlite import sites as sqlite_sites
from crawlspace.state.sqlite.file import CrawlLock, SqliteFile, sign, sign_off
from crawlspace.state.sqlite.outbox import Outgoing
from crawlspace.state.sqlite.transaction import SiteIds, Tally, Transaction, add_counts, read_count
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import MOST_BYTES_AT_ONCE, Site, WaitingUrls
from crawlspace.urls import url_key

P = ParamSpec("P")
R = TypeVar("R")
_NAMED_VALUES = "SELECT meta.value FROM json_each(?) AS wanted LEFT JOIN meta ON meta.name = wanted.value ORDER BY wanted.key"


def _within(
    opens: Callable[[SqliteStore], AbstractContextManager[apsw.Connection]],
    operation: Callable[Concatenate[apsw.Connection, P], R],
) -> Callable[Concatenate[SqliteStore, P], R]:
    """Return a method that calls a function of a module with the connection that `opens` gives, and its own arguments."""

    def method(store: SqliteStore, /, *args: P.args, **named: P.kwargs) -> R:
        with opens(store) as db:
            return operation(db, *args, **named)

    return method


def _counted(operation: Callable[Concatenate[apsw.Connection, Tally, P], R]) -> Callable[Concatenate[SqliteStore, P], R]:
    """Return the same for a function that writes, and counts what it does."""

    def method(store: SqliteStore, /, *args: P.args, **named: P.kwargs) -> R:
        with store._counting() as (db, tally):
            return operation(db, tally, *args, **named)

    return method


class SqliteStore:
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
        """Open the file, and create it unless `read_only`. `sinks` names the sinks that get orders.

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
        """Whether writes are part of an open transaction."""
        self._file = SqliteFile(path, read_only=read_only, alone=alone)

    @classmethod
    def open_for_crawl(cls, path: Path, *, clock: Clock | None = None, sinks: Sequence[str] = ("index",)) -> SqliteStore:
        """Open the file as the one process that crawls; the leases of the previous one are released.

        Waits for a command that sends to the index. Raises StoreLocked while another process crawls, and the errors of opening.
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
            store._close_files()
            raise
        return store

    # how an operation runs
    def _reading(self) -> AbstractContextManager[apsw.Connection]:
        return self._file.reading()

    def _snapshot(self) -> AbstractContextManager[apsw.Connection]:
        return self._file.snapshot()

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        if self._is_joined:
            yield self._file.db
            return
        try:
            with self._file.writing() as db:
                yield db
        except BaseException:
            self._sites.clear()  # they may have been rolled back
            raise

    @contextmanager
    def _counting(self) -> Iterator[tuple[apsw.Connection, Tally]]:
        """Begin a transaction, and store its counts at its end."""
        with self._writing() as db:
            tally = Tally()
            yield db, tally
            add_counts(db, tally)

    # discovery
    def discover(self, urls: Sequence[NewUrl], *, now: int) -> Effects:
        with self._writing() as db:
            return sqlite_links.discover(db, urls, sites=self._sites, now=now)

    # the frontier's queue
    def sites(self) -> Iterator[Site]:
        with self._snapshot() as db:
            found = list(sqlite_queue.sites(db))
        yield from found

    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]:
        if limit <= 0:
            return []
        with self._writing() as db:
            site_id = self._sites.find(db, site)
            return (
                []
                if site_id is None or pause_of(self.site_pauses(), site) is not None
                else sqlite_queue.lease(db, site_id, limit, now=now, until=until, queue=queue, run_began=self._run_began)
            )

    release = _within(_writing, sqlite_queue.release)

    def begin_run(self, at: int | None, *, resumes: bool = False) -> None:
        self._run_began = at
        self._file.begin_run()
        has_more = not resumes
        while has_more:
            with self._writing() as db:
                has_more = sqlite_queue.release_deferred(db)
                if not has_more:
                    sqlite_sites.end_waits_of_unreachable(db)

    reclaim = _within(_writing, sqlite_queue.reclaim)

    def due(self, site: str) -> list[tuple[Queue, int]]:
        with self._snapshot() as db:
            site_id = self._sites.find(db, site)
            return [] if site_id is None else sqlite_queue.due(db, site_id)

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        with self._writing() as db:
            sqlite_sites.set_wait(db, self._sites.find_or_add(db, site), until, wait_s)

    def site_pauses(self) -> Pauses:
        return read_pauses(self.get_meta(PAUSES))

    def set_site_pause(self, pattern: str, pause: SitePause | None) -> None:
        with self._writing():
            self._put_meta(PAUSES, with_pause(self.get_meta(PAUSES), pattern, pause))

    # results
    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        with self._writing() as db:
            transaction = Transaction(db, self._sites, now)
            effects = self._finish(transaction, record.record(transaction, changes))
            if health:
                sqlite_sites.save_health(db, self._sites, health)
            return effects

    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects:
        wanted = list(dict.fromkeys(ids))
        with self._writing() as db:
            changes = [made for state in rows.by_ids(db, wanted) if (made := change(state)) is not None]
            transaction = Transaction(db, self._sites, now)
            return self._finish(transaction, record.record(transaction, changes))

    def reclassify(self, found: Reclassified, *, now: int) -> Effects:
        with self._writing() as db:
            transaction = Transaction(db, self._sites, now)
            return self._finish(transaction, rule_change.reclassify(transaction, found))

    @contextmanager
    def one_transaction(self) -> Iterator[None]:
        with self._writing():
            self._is_joined = True
            try:
                yield
            finally:
                self._is_joined = False

    drop_inherited = _within(_writing, inherited_metadata.drop_inherited)

    # due times
    make_due_by = _within(_writing, sqlite_queue.make_due_by)
    schedule = _within(_writing, sqlite_queue.schedule)
    set_due_by_age = _within(_writing, sqlite_queue.set_due_by_age)
    make_retries_due_by = _within(_writing, sqlite_queue.make_retries_due_by)
    health = _within(_reading, sqlite_sites.health)
    is_duplicate = _within(_reading, rows.is_duplicate)
    leading_text = _within(_reading, near_duplicates.near_text)
    lost_links = _within(_snapshot, rows.lost_links)
    refused_links = _within(_reading, sqlite_links.refused_links)

    # reading
    scan = _within(_reading, rows.scan)

    def version(self) -> int:
        with self._reading() as db:
            return int(db.pragma("data_version"))

    def get(self, url: str) -> UrlState | None:
        with self._reading() as db:
            return rows.one(db, "url.key = ? AND url.url = ?", url_key(url), url)

    def get_by_id(self, id: int) -> UrlState | None:
        with self._reading() as db:
            return rows.one(db, "url.id = ?", id)

    get_by_ids = _within(_reading, rows.by_ids)
    urls_to_fold = _within(_reading, rows.urls_to_fold)
    left_to_others = _within(_reading, rows.left_to_others)

    def urls(
        self,
        *,
        state: State | None = None,
        leased: bool = False,
        status: int | None = None,
        host: str | None = None,
        held: bool = False,
        reason: Held | None = None,
        after: int = 0,
    ) -> Iterator[UrlState]:
        """Read in pages, so that neither memory nor a snapshot is occupied while the caller works."""
        return self._in_pages(
            rows.pages(state=state, leased=leased, status=status, host=host, held=held, reason=reason), after=after
        )

    def folded_urls(self) -> Iterator[UrlState]:
        return self._in_pages(rows.folded_urls)

    def _in_pages(self, page_after: Callable[[apsw.Connection, int], list[UrlState]], *, after: int = 0) -> Iterator[UrlState]:
        last = after
        while True:
            with self._reading() as db:
                page = page_after(db, last)
            yield from page
            if len(page) < rows.PAGE:
                return
            last = page[-1].id

    counts = _within(_snapshot, rows.counts)
    held_numbers = _within(_reading, rows.held_numbers)
    known_of_host = _within(_reading, sqlite_sites.known_of_host)
    host_count = _within(_reading, sqlite_sites.host_count)

    # link depths
    depth_marks = _within(_reading, sqlite_links.depth_marks)
    set_depth_marks = _within(_writing, sqlite_links.set_depth_marks)
    depths_of = _within(_reading, sqlite_links.depths_of)
    scan_depths = _within(_reading, sqlite_links.scan_depths)
    orphans = _within(_reading, sqlite_links.orphans)
    set_depths = _within(_writing, sqlite_links.set_depths)
    links_of = _within(_reading, sqlite_links.links_of)
    scan_links = _within(_reading, sqlite_links.scan_links)

    def links_to(self, keys: Collection[int]) -> Iterator[PageLinks]:
        wanted = frozenset(keys)
        last: int | None = 0
        while last is not None:  # some thousand pages to a statement
            with self._reading() as db:
                last, pages = sqlite_links.links_to(db, wanted, after=last)
            yield from pages

    relink = _within(_writing, sqlite_links.relink)
    move_links = _within(_writing, sqlite_links.move_links)

    def fold_links(self, into: Mapping[int, int]) -> None:
        last = 0
        while pages := self._stored_links(last):
            if new := folded_links(pages, into):
                with self._writing() as db:
                    sqlite_links.write_packed(db, new)
            last = pages[-1][0]

    def _stored_links(self, after: int) -> list[tuple[int, bytes]]:
        with self._reading() as db:
            return sqlite_links.stored_links(db, after)

    # unreachable sites
    unreachable = _within(_reading, sqlite_sites.unreachable)

    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None:
        with self._writing() as db:
            sqlite_sites.set_unreachable(db, self._sites.find_or_add(db, site), row)

    documents = _within(_snapshot, sqlite_sites.documents)
    known_sites = _within(_snapshot, sqlite_sites.known_sites)

    def waiting_urls(self, sites: Iterable[str], *, now: int) -> dict[str, WaitingUrls]:
        with self._snapshot() as db:
            ids = {site: self._sites.find(db, site) for site in sites}
            return {
                site: WaitingUrls(0, 0) if id is None else sqlite_queue.waiting_urls(db, id, now=now) for site, id in ids.items()
            }

    schemes = _within(_reading, sqlite_sites.schemes)

    # robots.txt
    robots = _within(_reading, sqlite_sites.robots)
    save_robots = _within(_writing, sqlite_sites.save_robots)
    forget_robots = _within(_writing, sqlite_sites.forget_robots)

    # the outbox
    def orders(self, sink: str, limit: int, *, now: int, most_bytes: int = MOST_BYTES_AT_ONCE) -> list[IndexOrder]:
        self._file.make_durable()  # after a power failure an index may have orders that this file would lose
        with self._snapshot() as db:
            return outbox.next_orders(db, sink, limit, most_bytes)

    acknowledge = _counted(outbox.acknowledge)
    park = _counted(outbox.park)
    parked = _within(_reading, outbox.parked)
    unpark = _counted(outbox.unpark)

    def backlog(self, sink: str, *, parked: bool = False) -> int:
        with self._reading() as db:
            return read_count(db, outbox.counter_of(sink, parked=parked))

    waiting_since = _within(_reading, outbox.waiting_since)
    ordered = _within(_reading, outbox.ordered)

    def in_index(self, urls: Sequence[str]) -> set[str]:
        with self._reading() as db:
            return {url for (_, url), (_, in_index) in outbox.stored(db, urls).items() if in_index}

    def push_again(self, documents: Mapping[int, Document | None], *, sink: str | None = None) -> list[int]:
        with self._counting() as (db, tally):
            sinks = self._sinks if sink is None else (sink,)
            return outbox.push_again(db, documents, sinks=sinks, to_all=sink is None, tally=tally, now=int(self._clock.now()))

    def delete_again(self, sink: str, urls: Sequence[str]) -> None:
        with self._counting() as (db, tally):
            outbox.delete_again(db, tally, sink, urls, now=int(self._clock.now()))

    withdraw = _counted(outbox.withdraw)

    def use_sinks(self, sinks: Sequence[str]) -> None:
        self._sinks = tuple(sinks)

    # the archive
    def archive_files(self) -> dict[int, str]:
        with self._reading() as db:
            return dict(db.execute("SELECT number, name FROM archive_file"))

    def add_archive_file(self, name: str) -> int:
        with self._writing() as db:
            db.execute("INSERT OR IGNORE INTO archive_file (name) VALUES (?)", (name,))
            return int(db.execute("SELECT number FROM archive_file WHERE name = ?", (name,)).get)

    def move_archived(self, moves: Sequence[tuple[int, int, int | None]]) -> None:
        with self._writing() as db:
            db.executemany("UPDATE url SET archived = ?3 WHERE id = ?1 AND archived = ?2", moves)

    link_metadata = _within(_reading, inherited_metadata.link_metadata)

    # values by name
    def get_meta(self, name: str) -> str | None:
        with self._reading() as db:
            row = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def get_metas(self, names: Sequence[str]) -> list[str | None]:
        with self._reading() as db:  # one statement, so that the values are of one moment
            return [value for (value,) in db.execute(_NAMED_VALUES, (json.dumps(names),))]

    def set_meta(self, name: str, value: str) -> None:
        with self._writing():
            self._put_meta(name, value)

    def replace_meta(self, name: str, before: str | None, after: str) -> bool:
        with self._writing():
            is_same = self.get_meta(name) == before
            if is_same:
                self._put_meta(name, after)
            return is_same

    def claim(self, name: str, *, seconds: int) -> bool:
        return True  # one process crawls

    def end_claim(self, name: str) -> None: ...

    def check(self) -> None:
        with self._reading() as db:
            found = str(db.execute("PRAGMA quick_check(1)").get)
        if found != "ok":
            raise StoreDamaged(
                f"{self.path} is damaged ({found.splitlines()[-1]}): put a backup in its place, or move it away and crawl again"
            )

    @property
    def is_in_place(self) -> bool:
        """Return whether the file that was opened is still the one with its name; writes to another one are lost."""
        return self._file.is_in_place

    def close(self) -> None:
        try:
            if self._lock is not None:
                with self._file.writing() as db:
                    sign_off(db)
        finally:
            self._close_files()

    # private
    def _put_meta(self, name: str, value: str) -> None:
        """Inside a transaction."""
        self._file.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def _close_files(self) -> None:
        self._file.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _finish(self, transaction: Transaction, outgoing: Outgoing) -> Effects:
        """Give the orders that follow from a transaction, and store its counts."""
        settlement, names = outgoing
        outbox.give(transaction.db, settlement, sinks=self._sinks, names=names, tally=transaction.tally, now=transaction.now)
        add_counts(transaction.db, transaction.tally)
        effects = transaction.effects
        effects.pushes, effects.deletes = len(settlement.push), len(settlement.delete)
        effects.displaced = settlement.displaced
        return effects
