"""What changed between the ends of two runs, URL by URL: read from the files of events.

The files have what crawls did: outcomes of fetches, and changes of rules. What a command has deleted, or the end of a run as an orphan, is
no event. Of several machines, only the files of this one are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from heapq import merge
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import apsw

from crawlspace.crawl.run_events import RunEvent, is_from_beginning, parts_of, read_events
from crawlspace.crawl.run_log import RunRecord, file_of, run_records
from crawlspace.errors import RunFileError, UsageError
from crawlspace.model import State, UrlState
from crawlspace.state.depths import UrlDepth
from crawlspace.state.fetch_history import DocumentChange
from crawlspace.state.store import MetaStore

_AT_ONCE = 500
_TABLES = """
CREATE TABLE url (
    key INTEGER PRIMARY KEY, in_before INTEGER, in_after INTEGER, status_before INTEGER, status_after INTEGER, state_before INTEGER,
    state_after INTEGER, changed INTEGER, kind TEXT
) STRICT;
CREATE TABLE text (key INTEGER PRIMARY KEY, url TEXT NOT NULL) STRICT;
"""
_ADD = """
INSERT INTO url (key, in_before, in_after, status_before, status_after, state_before, state_after, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET in_after = excluded.in_after, status_after = excluded.status_after, state_after = excluded.state_after,
    changed = max(changed, excluded.changed)
"""
_OF_KIND = """
SELECT key, status_before, status_after, state_before, state_after FROM url WHERE kind = ? AND key >= ? {} ORDER BY key LIMIT ? OFFSET ?
"""
_OF_STATUSES = "AND status_before IS ? AND status_after IS ?"
Statuses = tuple[int | None, int | None]
"""A status before and after; None while a URL is pending."""
_CLASSIFY = """
UPDATE url SET kind = CASE WHEN in_before < in_after THEN 'new' WHEN in_before > in_after THEN 'gone'
    WHEN in_after AND changed THEN 'changed' WHEN (status_before, state_before) IS NOT (status_after, state_after) THEN 'moved' END
"""


class ComparedStore(MetaStore, Protocol):
    def depths_of(self, keys: Sequence[int]) -> list[UrlDepth]: ...
    def get_by_ids(self, ids: Sequence[int]) -> list[UrlState]: ...


class ChangeKind(StrEnum):
    """What became of a URL between the ends of two runs; the first that applies."""

    NEW = "new"
    """Its document was not in the index, and is now."""
    GONE = "gone"
    """Its document was in the index, and is not any more."""
    CHANGED = "changed"
    """Its document has another text."""
    MOVED = "moved"
    """It has another status or state."""


class ComparedUrl(NamedTuple):
    """One URL; a status is None while it is pending."""

    url: str
    """Empty where it is not known any more."""
    kind: ChangeKind
    status_before: int | None
    status_after: int | None
    state_before: State
    state_after: State


@dataclass(frozen=True, slots=True)
class MissingEvents:
    """A process of a run whose events are not on this machine, or whose first ones are not kept any more."""

    run: int
    host: str


class RunChanges:
    """The changes between the ends of two runs; to be closed. In a temporary file, so that a million events need little memory."""

    def __init__(self, folder: Path, store: ComparedStore, *, first: int, second: int) -> None:
        """`first` is the older run. Raises UsageError for runs that are not kept, or in the wrong order, and RunFileError."""
        records = run_records(store)
        kept = sorted({record.run for record in records})
        for run in (first, second):
            if run not in kept:
                there = f"runs {kept[0]} to {kept[-1]} are" if kept else "none is"
                raise UsageError(f"run {run} is not kept any more: {there} (CRAWLSPACE_RUNS_KEPT)")
        if first >= second:
            raise UsageError(f"run {first} is not before run {second}: name the older one first")
        self._folder, self._store, self._second = folder, store, second
        self.missing: list[MissingEvents] = []
        self._has_texts_of_later_runs = False
        with ExitStack() as undo:
            self._db = undo.enter_context(closing(apsw.Connection("")))
            self._db.execute(_TABLES)
            with self._db, _readable(folder):
                for run in kept:
                    if first < run <= second:
                        self._add_run([record for record in records if record.run == run])
                self._db.execute(_CLASSIFY)
                self._db.execute("CREATE INDEX url_kind ON url (kind, key) WHERE kind IS NOT NULL")
            undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def numbers(self) -> Mapping[tuple[ChangeKind, int | None, int | None], int]:
        """Return the numbers of URLs by kind, and status before and after."""
        rows = self._db.execute(
            "SELECT kind, status_before, status_after, count(*) FROM url WHERE kind IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        )
        return {(ChangeKind(kind), before, after): count for kind, before, after, count in rows}

    def totals(self) -> Mapping[ChangeKind, int]:
        found: Counter[ChangeKind] = Counter()
        for (kind, _, _), count in self.numbers().items():
            found[kind] += count
        return found

    def urls(
        self, kind: ChangeKind, *, statuses: Statuses | None = None, first: int = 0, at_once: int = _AT_ONCE
    ) -> Iterator[ComparedUrl]:
        """Yield the URLs of a kind, with `statuses` only those of it, from the one with that number on; those that the store knows with their text.
        `at_once` are read together."""
        after = -(1 << 63)
        while rows := self._rows(kind, after, statuses, first, at_once):
            texts = self._texts_of([row[0] for row in rows])
            for key, status_before, status_after, before, later in rows:
                yield ComparedUrl(texts.get(key, ""), kind, status_before, status_after, State(before), State(later))
            after, first = rows[-1][0] + 1, 0

    def _rows(
        self, kind: ChangeKind, at_least: int, statuses: Statuses | None, offset: int, most: int
    ) -> list[tuple[int, int | None, int | None, int, int]]:
        if at_least >= 1 << 63:
            return []
        statement = _OF_KIND.format("" if statuses is None else _OF_STATUSES)
        return list(self._db.execute(statement, (kind.value, at_least, *(statuses or ()), most, offset)))

    def _add_run(self, records: Sequence[RunRecord]) -> None:
        files = []
        for record in records:
            parts = parts_of(self._folder / file_of(record))
            files.append(_in_order(parts))
            if not parts or record.earlier or not is_from_beginning(parts[0]):
                self.missing.append(MissingEvents(record.run, record.host))
        events = (event for _, event in merge(*files, key=lambda item: item[0]))
        self._db.executemany(_ADD, map(self._values, events))

    def _values(self, event: RunEvent) -> tuple[object, ...]:
        if event.url:
            self._db.execute("INSERT OR REPLACE INTO text VALUES (?, ?)", (event.key, event.url))
        return (
            event.key,
            int(event.in_index_before),
            int(event.in_index_after),
            event.status_before,
            event.status_after,
            int(event.state_before),
            int(event.state_after),
            int(event.change is DocumentChange.CHANGED),
        )

    def _texts_of(self, keys: Sequence[int]) -> dict[int, str]:
        states = self._store.get_by_ids([one.id for one in self._store.depths_of(keys)])
        found = {state.key: state.url for state in states}
        missing = [key for key in keys if key not in found]
        if missing and not self._has_texts_of_later_runs:
            self._has_texts_of_later_runs = True
            self._add_texts_of_later_runs()
        for key in missing:
            row = self._db.execute("SELECT url FROM text WHERE key = ?", (key,)).fetchone()
            if row is not None:
                found[key] = row[0]
        return found

    def _add_texts_of_later_runs(self) -> None:
        """Add the texts of URLs that were forgotten since."""
        with self._db, _readable(self._folder):
            for record in run_records(self._store):
                for path in parts_of(self._folder / file_of(record)) if record.run > self._second else ():
                    rows = ((event.key, event.url) for event in read_events(path) if event.url)
                    self._db.executemany("INSERT OR IGNORE INTO text VALUES (?, ?)", rows)


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise RunFileError(
            f"the events of the run cannot be read from {folder}, because a crawl has just removed those of its oldest runs: try again"
        ) from error
    except OSError as error:
        raise RunFileError(
            f"the events of the run cannot be read from {folder} ({error.strerror or error}): correct the permissions there"
        ) from error


def _in_order(paths: Sequence[Path]) -> Iterator[tuple[int, RunEvent]]:
    """Yield the events of a process with times that never go back, although the clock may have been set back."""
    at = 0
    for event in chain.from_iterable(map(read_events, paths)):
        at = max(at, event.at)
        yield at, event
