"""Who crawls a collection at this moment, for the commands that look at one without crawling it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from crawlspace.state.sqlite.file import SqliteFile
from crawlspace.state.sqlite.lock_file import is_locked, lock_of, process_exists


@dataclass(frozen=True, slots=True)
class Share:
    """What one of several workers owns, and the numbers of its last report."""

    host: str
    unseen_s: float
    sites: int
    urls: int
    """Leased by it."""
    fetched: int = 0
    errors: int = 0
    documents: int = 0
    per_second: float = 0.0
    """Fetched since it began."""


@dataclass(frozen=True, slots=True)
class Crawler:
    """A process that crawls, and since when (seconds since 1970, UTC; 0: unknown)."""

    process: int
    since: int
    share: Share | None = None
    """Where the collection is shared."""


def who_crawls(path: Path) -> Crawler | None:
    """Return who crawls the collection with the state file `path`, if anybody does. Writes nothing.

    The row of a killed crawl remains, so the lock is checked too, which the operating system releases. It is checked last, and only if a
    process of that number exists, because the check delays a crawl that starts at that moment.
    """
    with closing(SqliteFile(path, read_only=True)) as file, file.reading() as db:
        row = db.execute("SELECT process, since FROM crawl").fetchone()
    if row is None:
        return None
    crawler = Crawler(*row)
    return crawler if process_exists(crawler.process) and is_locked(lock_of(path)) else None
