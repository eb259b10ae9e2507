"""The state file, and the lock of its crawl.

Opening detects all faults of a file before anything is written to it, and turns errors into sentences. A lock file next to it is locked by
the one process that crawls, or sends to the index.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from time import monotonic

import apsw

from crawlspace.clock import Clock, local_time
from crawlspace.errors import CrawlspaceError, StoreDamaged, StoreError, StoreFull, StoreLocked, StoreVersionError
from crawlspace.private_files import irregular, make_file
from crawlspace.simhash import bands, number_of
from crawlspace.state.sqlite.checkpoint import LOG_PAGES, Checkpoints
from crawlspace.state.sqlite.schema import APPLICATION_ID, DEVELOPMENT_IDS, SCHEMA, UPGRADES, VERSION
from crawlspace.state.views import Crawler

_BUSY_MS = 10_000
_REPORTED_AFTER_S = 1
_CACHE_KIB, _CACHE_AT_START_KIB = 64 * 1024, 128 * 1024
"""Bound the memory for any number of URLs; changes of the rules, before a run begins, access the whole file."""
_CACHE_OF_READER_KIB = 16 * 1024
"""The console opens a file for each request, some at a time."""
_WAL_BYTES_KEPT = 256 * 1024 * 1024
"""More than a log usually reaches: truncating and rewriting it costs time."""
_HARDLY_FREE_BYTES = 1024 * 1024
IN_MEMORY = Path(":memory:")
"""SQLite's name for a store in memory, which ends with the process."""
WAIT_S = 60
"""Longest wait for the lock: a command that sends to the index releases it for a crawl after its present batch."""


def limit_caches(most_bytes: int) -> None:
    """Have all files that this process opens share a cache of about that size, instead of each having its own."""
    apsw.soft_heap_limit(most_bytes)


class SqliteFile:
    """An open state file of this version. Raises StoreError and its subclasses; an unusable file is not changed."""

    def __init__(self, path: Path, *, read_only: bool = False, alone: bool = False) -> None:
        """Open the file, and create it unless `read_only`. `alone`: the caller holds the lock of the crawl while the file is open."""
        self.path = path
        with sqlite_errors(path):
            is_new = path == IN_MEMORY or _is_new(path)
            if read_only and is_new:
                raise StoreError(f"{path} holds no state yet: crawl the collection first")
            flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
            if not read_only and path != IN_MEMORY:
                make_file(path)
            self.db = apsw.Connection(str(path), flags=flags, statementcachesize=200)
            self._identity = _identity(path)
            self._changes_durable = 0
            self._checkpoints: Checkpoints | None = None
            try:
                self._prepare(read_only=read_only, alone=alone)
                if is_new:
                    self._make_tables()
                elif not read_only:
                    self._bring_up_to_date(alone=alone)
                self.db.set_busy_timeout(_BUSY_MS)
            except BaseException:
                self._close()
                raise

    def close(self) -> None:
        with sqlite_errors(self.path):
            self._close()

    @property
    def is_in_place(self) -> bool:
        """Return whether the file that was opened is still the one with its name."""
        return _identity(self.path) == self._identity

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """For a single reading statement, which has its own snapshot."""
        with sqlite_errors(self.path):
            yield self.db

    @contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """For reading statements that must be consistent, while another process may write."""
        with sqlite_errors(self.path):
            self.db.execute("BEGIN")
            try:
                yield self.db
            finally:
                self.db.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """Begin a transaction: all changes inside are made when it ends, or none."""
        with sqlite_errors(self.path):
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
                self.db.execute("COMMIT")
                if self._checkpoints is not None:
                    self._checkpoints.after_commit()
            except BaseException:
                if self.db.in_transaction:  # after some errors SQLite has rolled back already
                    self.db.execute("ROLLBACK")
                raise

    def make_durable(self) -> None:
        """Make all writes so far durable against a power failure. Costs one flush of the disk, only after changes."""
        if self._changes_durable == self.db.total_changes():
            return
        with sqlite_errors(self.path):
            self.db.pragma("synchronous", "full")  # a commit flushes the whole log up to it
            try:
                with self.writing() as db:
                    db.execute("INSERT OR REPLACE INTO meta VALUES ('durable', ?)", (str(db.total_changes()),))
            finally:
                self.db.pragma("synchronous", "normal")
        self._changes_durable = self.db.total_changes()

    def begin_run(self) -> None:
        """Use less memory from now on."""
        self.db.pragma("cache_size", -_CACHE_KIB)

    def _close(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.close()
        self.db.close()

    def _prepare(self, *, read_only: bool, alone: bool) -> None:
        self.db.set_busy_handler(Waiting(self.path).again)
        cache = _CACHE_AT_START_KIB if alone else _CACHE_OF_READER_KIB if read_only else _CACHE_KIB
        self.db.pragma("cache_size", -cache)
        self.db.pragma("temp_store", "memory")
        if read_only:
            return
        self.db.pragma("journal_mode", "wal")
        # With WAL, NORMAL may lose the last transactions at a power failure, but never a part of one. States, links and outbox roll
        # back together, so lost pages are fetched again; orders sent to an index have been made durable before.
        self.db.pragma("synchronous", "normal")
        if alone:
            self._checkpoints = Checkpoints(self.path, self.db)
        else:
            self.db.pragma("wal_autocheckpoint", LOG_PAGES)
        self.db.pragma("journal_size_limit", _WAL_BYTES_KEPT)

    def _make_tables(self) -> None:
        with self.writing() as db:
            if not _user_version(db):  # else another process was faster
                db.execute(SCHEMA)
                db.pragma("application_id", APPLICATION_ID)
                db.pragma("user_version", VERSION)

    def _bring_up_to_date(self, *, alone: bool) -> None:
        if _user_version(self.db) in UPGRADES and not alone and self._is_crawled():
            raise StoreLocked(
                f"{self.path} is of an earlier version of crawlspace, which is crawling it: let that crawl end first, or stop it"
            )
        while _user_version(self.db) in UPGRADES:
            with self.writing() as db:
                if (version := _user_version(db)) in UPGRADES:  # else another process was faster
                    db.create_scalar_function("near_band", _near_band, 2)
                    db.create_scalar_function("near_simhash", _near_simhash, 1)
                    db.execute(UPGRADES[version])
                    db.pragma("user_version", version + 1)

    def _is_crawled(self) -> bool:
        """Return whether another process crawls with this file."""
        row = self.db.execute("SELECT process FROM crawl").fetchone()
        return row is not None and row[0] != os.getpid() and process_exists(row[0]) and is_locked(lock_of(self.path))


class CrawlLock:
    """The lock of the crawl; the operating system releases it when the process dies.

    With `waits`, wait for a command that sends to the index. Raises StoreLocked, naming the crawling process.
    """

    def __init__(self, path: Path, *, waits: bool = False) -> None:
        lock = lock_of(path)
        with sqlite_errors(lock):
            db = _locked(lock)
            if db is None and waits:
                db = _waited_for(path)
        if db is None:
            raise StoreLocked(_locked_message(path))
        self._db = db

    def close(self) -> None:
        self._db.close()


def is_awaited(path: Path) -> bool:
    """Return whether a crawl waits for the lock."""
    return is_locked(_queue_of(path))


def sign(db: apsw.Connection, clock: Clock) -> None:
    """Store that this process crawls, for the message to another one."""
    db.execute("INSERT OR REPLACE INTO crawl VALUES (1, ?, ?)", (os.getpid(), int(clock.now())))


def sign_off(db: apsw.Connection) -> None:
    db.execute("DELETE FROM crawl")


def who_crawls(path: Path) -> Crawler | None:
    """Return the process that crawls with the state file `path`, if any. Writes nothing.

    The row of a killed crawl remains, so the lock, which the operating system releases, is also checked. It is checked last, and only if a
    process of that number exists, because the check delays a starting crawl.
    """
    with closing(SqliteFile(path, read_only=True)) as file, file.reading() as db:
        row = db.execute("SELECT process, since FROM crawl").fetchone()
    if row is None:
        return None
    crawler = Crawler(*row)
    return crawler if process_exists(crawler.process) and is_locked(lock_of(path)) else None


def process_exists(process: int) -> bool:
    if os.name != "posix":
        return True  # Windows has no signal without an effect
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def lock_of(path: Path) -> Path:
    """Return the lock file of a state file."""
    return path.with_name(f"{path.name}.lock")


def is_locked(lock: Path) -> bool:
    """Return whether a process has locked a file."""
    if not lock.is_file():
        return False
    with closing(apsw.Connection(str(lock), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        try:
            db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except apsw.BusyError:
            return True
        except apsw.Error:
            return False  # no lock of ours
    return False


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about a file into a StoreError with a remedy; other errors are not changed."""
    try:
        yield
    except apsw.Error as error:
        meant = _meaning(error, path)
        if meant is None:
            raise
        raise meant from error


def refuse_irregular(path: Path) -> None:
    """Raise StoreError for a pipe, a device or a folder: opening one may block forever."""
    if found := irregular(path):
        raise StoreError(f"{path} is not a file but {found}: move it away, or name another folder with CRAWLSPACE_DATA_DIR")


class Waiting:
    """Waits for a lock of another program: with a time limit, a message, and so that Ctrl-C ends it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._began = monotonic()
        self._is_reported = False

    def again(self, count: int) -> bool:
        """Wait a moment, and return whether to try once more."""
        waited_s = monotonic() - self._began
        if waited_s > _REPORTED_AFTER_S and not self._is_reported:
            self._is_reported = True
            sys.stderr.write(f"waiting for another program that has locked {self._path}\n")
        if waited_s * 1000 > _BUSY_MS:
            return False
        Event().wait(min(0.1, 0.001 * 2 ** min(count, 7)))
        return True


def _waited_for(path: Path) -> apsw.Connection | None:
    """Return the acquired lock once its holder has released it; None if the holder crawls, or another crawl waits already."""
    if not path.exists() or (queue := _locked(_queue_of(path))) is None:
        return None
    with closing(queue):
        for _ in range(WAIT_S):
            if _crawler(path) is not None:
                break
            if (db := _locked(lock_of(path), wait_s=1)) is not None:
                return db
    return None


def _queue_of(path: Path) -> Path:
    """Return the file that a crawl locks while it waits."""
    return path.with_name(f"{path.name}.waits")


def _locked(file: Path, *, wait_s: int = 0) -> apsw.Connection | None:
    refuse_irregular(file)
    make_file(file)
    db = apsw.Connection(str(file))
    try:
        db.set_busy_timeout(wait_s * 1000)
        db.execute("BEGIN EXCLUSIVE")
    except apsw.BusyError:
        db.close()
        return None
    except BaseException:
        db.close()
        raise
    return db


def _crawler(path: Path) -> Crawler | None:
    """Return the crawling process; None without one, or while it is still creating the file."""
    try:
        return who_crawls(path) if path.exists() else None
    except StoreError:
        return None


def _locked_message(path: Path) -> str:
    crawler = _crawler(path)
    by = "another process"
    if crawler is not None:
        by = f"process {crawler.process} since {local_time(crawler.since)}"
    return f"{path.parent.name} is being crawled by {by}: wait for it or stop it ({path})"


def _meaning(error: apsw.Error, path: Path) -> CrawlspaceError | None:
    match error:
        case apsw.FullError():
            return _full(path)
        case apsw.IOError() | apsw.CantOpenError() if _is_full(path):
            return _full(path)
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreDamaged(
                f"{path} is damaged or not a state file ({error}): put a backup in its place, or move it away and crawl again"
            )
        case apsw.BusyError() | apsw.LockedError():
            return StoreLocked(f"{path} is being written by another process: try again when it has finished")
        case apsw.ReadOnlyError():
            return StoreError(f"{path} cannot be written ({error}): make the file and its folder writable for this user")
        case apsw.CantOpenError() | apsw.PermissionsError() | apsw.AuthError():
            return StoreError(
                f"{path} cannot be opened ({error}): its folder must exist and this user must be allowed to write there"
            )
        case apsw.IOError() | apsw.NoLFSError() | apsw.ProtocolError():
            return StoreError(f"{path} cannot be read or written ({error}): check the disk that holds it")
    return None


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if it does not exist or is not accessible."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _full(path: Path) -> StoreFull:
    return StoreFull(f"the disk holding {path} is full: free some space and start again, nothing is lost")


def _is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _HARDLY_FREE_BYTES
    except OSError:
        return False


def _near_band(*values: object) -> int:
    signature, number = values
    assert isinstance(signature, bytes)
    assert isinstance(number, int)
    return bands(signature)[number]


def _near_simhash(*values: object) -> int:
    (signature,) = values
    assert isinstance(signature, bytes)
    return number_of(signature)


def _user_version(db: apsw.Connection) -> int:
    return int(db.pragma("user_version"))


def _is_new(path: Path) -> bool:
    """Return whether a file does not exist, or is empty. Changes nothing. Raises StoreDamaged and StoreVersionError for a foreign one."""
    refuse_irregular(path)
    if not path.exists():
        return True
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        db.set_busy_handler(Waiting(path).again)
        application, version = int(db.pragma("application_id")), _user_version(db)
        tables = db.execute("SELECT count(*) FROM sqlite_schema").get
    finally:
        db.close()
    is_development = application in DEVELOPMENT_IDS
    if application != APPLICATION_ID and not is_development and (application or version or tables):
        raise StoreDamaged(f"{path} is a database of another program: move it away, or name another state file")
    if is_development or version not in (0, VERSION, *UPGRADES):
        found = f"{version} of development" if is_development else version
        raise StoreVersionError(
            f"{path} was written by another version of crawlspace (state version {found}, this one reads {VERSION}): use that version, or"
            " move the file away and crawl again; the index goes on answering meanwhile"
        )
    return version == 0
