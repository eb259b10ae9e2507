"""The file of a snapshot: the URLs in the order of their text, each with its position, and the folders with their counts.

A folder's URLs are a range of positions, and so are those of any prefix; an index of the other columns has the positions of each value in order.
A new snapshot is a new file, which takes the place of the old one when it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import apsw

from crawlspace.console.snapshot.folders import LEASED, FolderCounter, FolderCounts, Mark, UrlEntry, names_of
from crawlspace.private_files import make_file
from crawlspace.state.sqlite.file import process_exists

FORMAT = 5
"""`PRAGMA user_version`: a file of another one is made again."""
STEP = 1_000
"""URLs between two pauses."""
_CACHE_KIB = 8 * 1024
_LARGEST = chr(0x10FFFF)

_COLUMNS = ", ".join(FolderCounts._fields)
_SCHEMA = f"""
-- URLs are kept apart from what selects them, so that a filter reads 25 bytes a URL: a list of a million takes a tenth of a second, whatever
-- selects it.
CREATE TABLE url (position INTEGER PRIMARY KEY, url TEXT NOT NULL) STRICT;
CREATE TABLE facts (
    position INTEGER PRIMARY KEY,
    id       INTEGER NOT NULL,
    folder   INTEGER NOT NULL,
    -- the number of its state, or LEASED
    label    INTEGER NOT NULL,
    status   INTEGER,
    marks    INTEGER NOT NULL
) STRICT;
CREATE TABLE folder ({_COLUMNS.replace("id,", "id INTEGER PRIMARY KEY,", 1)});
CREATE TABLE about (taken_at REAL NOT NULL, seconds REAL NOT NULL, stamp TEXT NOT NULL, ages TEXT NOT NULL, totals TEXT NOT NULL);
"""
_INDEXES = """
CREATE INDEX facts_found ON facts (id, folder, label, status, marks);
CREATE UNIQUE INDEX folder_name ON folder (parent, name);
CREATE INDEX folder_urls ON folder (parent, urls);
"""


class About(NamedTuple):
    """When a snapshot was taken, for how many seconds the store was read and the file written, and the state of the store then.

    `totals` are those of `totals.py`, as JSON.
    """

    taken_at: float
    seconds: float
    stamp: str
    ages: str = ""
    """Of the documents in the index, the numbers by the age of their last fetch, as `DocumentAges.written` has them."""
    totals: str = "{}"


@dataclass(frozen=True, slots=True)
class Filters:
    """What selects URLs, all of it together. `host` may have a port; `direct`: only URLs in the folder `prefix` itself."""

    labels: Sequence[int] = ()
    statuses: range | None = None
    host: str = ""
    prefix: str = ""
    marks: int = 0
    direct: bool = False


class SnapshotFile:
    """An open snapshot."""

    def __init__(self, path: Path) -> None:
        """Raises SnapshotUnreadable where there is none, or one of another version."""
        try:
            self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        except apsw.Error as error:
            raise SnapshotUnreadable(path) from error
        try:
            self._db.pragma("cache_size", -_CACHE_KIB)
            if self._db.pragma("user_version") != FORMAT:
                raise SnapshotUnreadable(path)
            self.about = About._make(
                self._db.execute("SELECT taken_at, seconds, stamp, ages, totals FROM about").fetchone() or ()
            )
            self.total = FolderCounts._make(self._db.execute(f"SELECT {_COLUMNS} FROM folder WHERE id = 0").fetchone() or ())  # noqa: S608
        except (apsw.Error, TypeError) as error:
            self._db.close()
            raise SnapshotUnreadable(path) from error
        except SnapshotUnreadable:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    # folders
    def folder(self, prefix: str) -> FolderCounts | None:
        """Return the counts of a folder; those of all URLs for the empty text, None for one without URLs."""
        found: FolderCounts | None = self.total
        for name in names_of(prefix):
            if found is None:
                return None
            found = self._folder("parent = ? AND name = ?", found.id, name)
        return found

    def children(
        self, folder: FolderCounts, *, order: str, descending: bool, first: int, most: int, containing: str = ""
    ) -> list[FolderCounts]:
        """Return some of the folders in a folder, by a field of FolderCounts, those whose name contains a text."""
        if order not in FolderCounts._fields:
            raise ValueError(order)
        direction = "DESC" if descending else "ASC"
        where = "AND instr(name, ?) > 0" if containing else ""
        statement = (
            f"SELECT {_COLUMNS} FROM folder WHERE parent = ? AND id > 0 {where}"  # noqa: S608 - a field of ours
            f" ORDER BY {order} {direction}, name LIMIT ? OFFSET ?"
        )
        values = (folder.id, *((containing,) if containing else ()), most, first)
        return list(map(FolderCounts._make, self._db.execute(statement, values)))

    def _folder(self, where: str, *values: int | str) -> FolderCounts | None:
        row = self._db.execute(f"SELECT {_COLUMNS} FROM folder WHERE {where}", values).fetchone()  # noqa: S608 - ours
        return None if row is None else FolderCounts._make(row)

    # URLs
    def count(self, filters: Filters) -> int:
        """Return the number of the selected URLs."""
        total = 0
        for low, high in self._ranges(filters):
            if not (filters.labels or filters.statuses is not None or filters.marks or filters.direct):
                total += high - low
                continue
            statement, values = _selecting("count(*)", filters, low, high, self._direct(filters))
            total += int(self._db.execute(statement, values).get)
        return total

    def ids(
        self, filters: Filters, *, first: int = 0, most: int | None = None, by: str = "position", descending: bool = False
    ) -> Iterator[int]:
        """Yield the ids of the selected URLs, by `position`, which is by URL, or by `id`, which is in order of discovery."""
        direction = "DESC" if descending else "ASC"
        ranges = sorted(self._ranges(filters), reverse=descending)
        parts, all_values = [], list[int]()
        for low, high in ranges:
            statement, values = _selecting("id, position", filters, low, high, self._direct(filters), by=by)
            parts.append(statement)
            all_values += values
        if not parts:
            return
        by = {"position": "position", "id": "id"}[by]
        statement = f"{' UNION ALL '.join(parts)} ORDER BY {by} {direction} LIMIT ? OFFSET ?"
        for id, _ in self._db.execute(statement, (*all_values, -1 if most is None else most, first)):
            yield id

    def _direct(self, filters: Filters) -> int | None:
        if not filters.direct:
            return None
        folder = self.folder(filters.prefix)
        return -1 if folder is None else folder.id

    def _ranges(self, filters: Filters) -> list[tuple[int, int]]:
        """Return the ranges of positions with the host and the prefix: from the first position up to the one after the last."""
        low, high = 0, self.total.urls
        if filters.prefix:
            low, high = self._first(filters.prefix), self._first(filters.prefix + _LARGEST)
        ranges = [(low, high)]
        if filters.host:
            statement = f"SELECT {_COLUMNS} FROM folder WHERE parent = 0 AND id > 0"  # noqa: S608 - of ours
            origins = map(FolderCounts._make, self._db.execute(statement))
            hosts = ((one.first, one.first + one.urls) for one in origins if is_of_host(one.name, filters.host))
            ranges = [(max(low, begin), min(high, end)) for begin, end in hosts]
        return [(begin, end) for begin, end in ranges if begin < end]

    def _first(self, text: str) -> int:
        """Return the position of the first URL that is not before a text."""
        low, high = 0, self.total.urls
        while low < high:
            middle = (low + high) // 2
            if self._db.execute("SELECT url FROM url WHERE position = ?", (middle,)).get < text:
                low = middle + 1
            else:
                high = middle
        return low

    def similar(self, text: str, most: int) -> list[str]:
        """Return URLs of the same host around the place that a URL would have."""
        at, names = self._first(text), names_of(text)
        host = self.folder(names[0]) if names else None
        if host is None:
            return []
        low, high = max(host.first, at - most // 2), min(host.first + host.urls, at + (most + 1) // 2)
        return [url for (url,) in self._db.execute("SELECT url FROM url WHERE position >= ? AND position < ?", (low, high))]


class SnapshotUnreadable(Exception):
    """There is no snapshot, or it cannot be read: another is taken."""


def is_of_host(origin: str, host: str) -> bool:
    """Whether the folder of a host, `https://www.example.com/`, is that of a host name, which may have a port."""
    scheme, _, rest = origin.partition("://")
    site = rest.rstrip("/")
    if site == host:
        return True
    port = {"http": "80", "https": "443"}.get(scheme, "")
    return host == f"{site}:{port}" or (site.startswith(f"{host}:") and site[len(host) + 1 :].isdigit())


def _selecting(
    what: str, filters: Filters, low: int, high: int, folder: int | None, *, by: str = "position"
) -> tuple[str, list[int]]:
    """Return a statement that selects URLs in a range of positions, with its values. The index has all columns, in order of discovery."""
    where, values = ["position >= ?", "position < ?"], [low, high]
    if filters.labels:
        where.append(f"label IN ({', '.join('?' * len(filters.labels))})")
        values += filters.labels
    if filters.statuses is not None:
        where.append("status >= ? AND status < ?")
        values += [filters.statuses.start, filters.statuses.stop]
    if filters.marks:
        where.append("marks & ? = ?")
        values += [filters.marks, filters.marks]
    if folder is not None:
        where.append("folder = ?")
        values.append(folder)
    index = "INDEXED BY facts_found" if by == "id" else "NOT INDEXED"
    return f"SELECT {what} FROM facts {index} WHERE {' AND '.join(where)}", values  # noqa: S608 - constants only


# --- taking --------------------------------------------------------------------------------------------------------


def write_snapshot(path: Path, entries: Iterable[UrlEntry], about: Callable[[], About], *, pause: Callable[[int], None]) -> None:
    """Write the snapshot of URLs in any order; it takes the place of the old one at the end. `pause` is called after every thousand URLs, with
    their number: each is passed over twice.

    Raises apsw.Error and OSError.
    """
    with _new_file(path) as new, closing(apsw.Connection(str(new))) as db:
        for name, value in (("journal_mode", "off"), ("synchronous", "off"), ("cache_size", -_CACHE_KIB)):
            db.pragma(name, value)
        db.execute(
            "ATTACH '' AS unsorted; CREATE TABLE unsorted.entry (url TEXT, id INTEGER, state INTEGER, status INTEGER, marks INTEGER)"
        )
        db.execute(f"BEGIN; {_SCHEMA}")
        db.executemany("INSERT INTO unsorted.entry VALUES (?, ?, ?, ?, ?)", _pausing(entries, pause))
        counter = FolderCounter()
        ordered = map(UrlEntry._make, db.execute("SELECT * FROM unsorted.entry ORDER BY url"))
        for step in _steps(_pausing(ordered, pause)):
            first = counter.position
            db.executemany("INSERT INTO url VALUES (?, ?)", ((first + n, one.url) for n, one in enumerate(step)))
            db.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?)", [_facts(one, counter) for one in step])
            _write_folders(db, counter.complete())
        _write_folders(db, [counter.end(), *counter.complete()])
        db.execute(_INDEXES)
        db.execute("INSERT INTO about VALUES (?, ?, ?, ?, ?)", about())
        db.execute(f"COMMIT; PRAGMA user_version = {FORMAT}")


def _pausing(entries: Iterable[UrlEntry], pause: Callable[[int], None]) -> Iterator[UrlEntry]:
    for number, entry in enumerate(entries, 1):
        yield entry
        if number % STEP == 0:
            pause(STEP)


def _steps(entries: Iterator[UrlEntry]) -> Iterator[list[UrlEntry]]:
    while step := list(islice(entries, STEP)):
        yield step


def _facts(entry: UrlEntry, counter: FolderCounter) -> tuple[int | None, ...]:
    position = counter.position
    folder = counter.add(entry)
    return position, entry.id, folder, LEASED if entry.marks & Mark.LEASED else entry.state, entry.status, entry.marks


def _write_folders(db: apsw.Connection, folders: Sequence[FolderCounts]) -> None:
    db.executemany(f"INSERT INTO folder VALUES ({', '.join('?' * len(FolderCounts._fields))})", folders)  # noqa: S608


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """Yield the path of a new file, which takes the place of the old one at the end; remove those of processes that were killed."""
    for left in path.parent.glob(f"{path.name}.*.new"):
        process = left.name.split(".")[-2]
        if not (process.isdigit() and int(process) != os.getpid() and process_exists(int(process))):
            left.unlink(missing_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    make_file(new)
    try:
        yield new
        new.replace(path)
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)
