"""Comparisons of two runs, made on a thread when a page asks for one, and kept for the next pages of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice

import apsw

from crawlspace.admin.run_changes import ChangeKind, ComparedUrl, RunChanges, Statuses
from crawlspace.admin.runs import KeptRun
from crawlspace.clock import Clock
from crawlspace.crawl.run_events import EVENTS_FOLDER
from crawlspace.errors import CrawlspaceError, StoreError
from crawlspace.runtime.session.paths import CollectionPaths

logger = logging.getLogger(__name__)

KEPT = 4
"""Comparisons, each with a temporary file and an open store; those that are in the making or in use stay as well."""
MOST = 8
"""All of them: no other one is begun then."""
LONGEST_S = 600.0
"""After which one is made again: what commands change may make URLs unknown."""
AFTER_FAULT_S = 10.0
OF_RUNNING = 20
"""One with a run that crawls is made again after so many times the seconds that it took, and ten at least."""
PATIENCE_S = 0.5
"""How long a page waits for one that is being made."""
_AT_ONCE = 500


Numbers = Mapping[tuple[ChangeKind, int | None, int | None], int]
"""Numbers of URLs by kind, and status before and after."""


class Comparison:
    """Two runs compared. `changes` may be used by one thread at a time, inside `alone`."""

    def __init__(self, began_at: float) -> None:
        self.began_at = began_at
        """By the monotonic clock."""
        self.took_s = 0.0
        self.is_complete = threading.Event()
        self.fault = ""
        self.alone = threading.Lock()
        self.changes: RunChanges | None = None
        self.numbers: Numbers = {}
        """Of the changes; they stay as they are."""
        self.users = 0
        self._opened = ExitStack()

    def make(self, paths: CollectionPaths, first: int, second: int) -> None:
        """Compare the runs; what is opened for it stays so until `close`. Raises CrawlspaceError."""
        with ExitStack() as opening:
            opened = opening.enter_context(paths.crawled(paths.store.reading()))
            folder = paths.state_file.parent / EVENTS_FOLDER
            changes = opening.enter_context(RunChanges(folder, opened.store, first=first, second=second))
            self.numbers = changes.numbers()
            self.changes = changes
            self._opened = opening.pop_all()

    def page(self, kind: ChangeKind, statuses: Statuses | None, *, first: int, most: int) -> list[ComparedUrl]:
        """Return some of the URLs of a kind."""
        if self.changes is None:
            return []
        with self.alone:
            return list(islice(self.changes.urls(kind, statuses=statuses, first=first, at_once=most), most))

    def all(self, kind: ChangeKind, statuses: Statuses | None) -> Iterator[ComparedUrl]:
        """Yield all URLs of a kind; others may read between them."""
        if self.changes is None:
            return
        urls = self.changes.urls(kind, statuses=statuses)
        while True:
            with self.alone:
                some = list(islice(urls, _AT_ONCE))
            if not some:
                return
            yield from some

    def close(self) -> None:
        self._opened.close()


_Key = tuple[str, int, int, int, int | None]
"""With the end of the second run, after which what was compared while it crawled is out of date."""


class Comparisons:
    """The comparisons that a console keeps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._one_at_a_time = threading.Lock()
        self._kept: dict[_Key, Comparison] = {}
        """The one used last is the last."""

    @contextmanager
    def of(self, paths: CollectionPaths, first: KeptRun, second: KeptRun) -> Iterator[Comparison]:
        """Yield a comparison that stays open meanwhile; it may still be in the making. Raises StoreError if too many are."""
        key = (paths.name, first.run, second.run, second.began, second.ended)
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None and self._is_old(found, is_running=second.is_running):
                self._drop(found)
                found = None
            is_new = found is None
            unused = [one for one, kept in self._kept.items() if not kept.users and kept.is_complete.is_set()]
            for one in unused[: max(0, len(self._kept) + 1 - KEPT)]:
                self._drop(self._kept.pop(one))
            if is_new and len(self._kept) >= MOST:
                raise StoreError("many runs are being compared already: try again when one of these comparisons is complete")
            found = self._kept[key] = found or Comparison(self._clock.monotonic())
            found.users += 1
        if is_new:
            made = (found, paths, first.run, second.run)
            try:
                threading.Thread(target=self._make, args=made, name="comparison", daemon=True).start()
            except RuntimeError:  # there are too many threads
                found.fault = "the machine has no room for another thread: try again later"
                found.is_complete.set()
        found.is_complete.wait(PATIENCE_S)
        try:
            yield found
        finally:
            with self._lock:
                found.users -= 1
                if found is not self._kept.get(key):
                    self._drop(found)

    def _is_old(self, one: Comparison, *, is_running: bool) -> bool:
        longest_s = AFTER_FAULT_S if one.fault else max(10.0, OF_RUNNING * one.took_s) if is_running else LONGEST_S
        return one.is_complete.is_set() and self._clock.monotonic() - one.began_at > longest_s

    def _drop(self, one: Comparison) -> None:
        """Close a comparison, unless it is used; then that is done later."""
        if not one.users and one.is_complete.is_set():
            one.close()

    def _make(self, one: Comparison, paths: CollectionPaths, first: int, second: int) -> None:
        try:
            with self._one_at_a_time:
                one.began_at = self._clock.monotonic()
                one.make(paths, first, second)
        except CrawlspaceError as error:
            one.fault = str(error)
        except apsw.Error as error:
            one.fault = f"the runs cannot be compared in a temporary file: {error}"
        except Exception:
            logger.exception("runs %d and %d of %s could not be compared", first, second, paths.name)
            one.fault = "a fault of crawlspace: the log of the console has it"
        finally:
            one.took_s = self._clock.monotonic() - one.began_at
            one.is_complete.set()


def csv_row(one: ComparedUrl) -> Sequence[object]:
    """Return a URL as a row of CSV_COLUMNS."""
    return (one.url, one.kind.value, one.status_before, one.status_after, one.state_before.label, one.state_after.label)


CSV_COLUMNS = ("url", "change", "status_before", "status_after", "state_before", "state_after")
