"""The lock of a crawl: one process at a time crawls a collection, or sends to its index."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import apsw

from crawlspace.clock import Clock
from crawlspace.errors import StoreError, StoreLocked
from crawlspace.private_files import make_file
from crawlspace.state.sqlite.file import refuse_irregular, sqlite_errors
from crawlspace.state.sqlite.lock_file import is_locked, lock_of
from crawlspace.state.who_crawls import Crawler, who_crawls

WAIT_S = 60
"""A command that sends to the index makes way for a crawl after the batch that it is sending."""


class CrawlLock:
    """The lock of the crawl; the operating system releases it when the process dies.

    With `waits`, wait for a command that sends to the index. Raises StoreLocked, naming the process that crawls.
    """

    def __init__(self, path: Path, *, waits: bool = False) -> None:
        lock = lock_of(path)
        with sqlite_errors(lock):
            db = _locked(lock)
            if db is None and waits:
                db = _waited_for(path)
        if db is None:
            raise StoreLocked(_who_has_it(path))
        self._db = db

    def close(self) -> None:
        self._db.close()


def is_awaited(path: Path) -> bool:
    """Return whether a crawl waits for the lock."""
    return is_locked(_queue_of(path))


def sign(db: apsw.Connection, clock: Clock) -> None:
    """Store that this process crawls, for the message to a second one."""
    db.execute("INSERT OR REPLACE INTO crawl VALUES (1, ?, ?)", (os.getpid(), int(clock.now())))


def sign_off(db: apsw.Connection) -> None:
    db.execute("DELETE FROM crawl")


def _waited_for(path: Path) -> apsw.Connection | None:
    """Return the locked lock, once who has it makes way; None where that one crawls, or another crawl waits already."""
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
    """Return who crawls; None where nobody does, or has only begun to make the file."""
    try:
        return who_crawls(path) if path.exists() else None
    except StoreError:
        return None


def _who_has_it(path: Path) -> str:
    crawler = _crawler(path)
    by = "another process"
    if crawler is not None:
        by = f"process {crawler.process} since {datetime.fromtimestamp(crawler.since, UTC).astimezone():%Y-%m-%d %H:%M}"
    return f"{path.parent.name} is being crawled by {by}: wait for it or stop it ({path})"
