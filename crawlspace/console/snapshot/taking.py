"""Takes snapshots of collections on a thread of its own, when a page asks for one and the last is out of date.

The store is read a thousand URLs at a time, with pauses between, and a pass begins only after a multiple of the time that the last one took:
pages that are open cost a crawl less than a fiftieth of its time, however many URLs there are.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import apsw

from crawlspace.clock import Clock
from crawlspace.console.snapshot.ages import DocumentAges
from crawlspace.console.snapshot.file import About, SnapshotFile, SnapshotUnreadable, write_snapshot
from crawlspace.console.snapshot.folders import Mark, UrlEntry
from crawlspace.console.snapshot.totals import Totals, TotalsCounter, totals_of
from crawlspace.errors import CrawlspaceError
from crawlspace.model import State
from crawlspace.private_files import make_folder
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore

logger = logging.getLogger(__name__)

SHARE = 50
"""A pass begins only after so many times the seconds that the last one took."""
OLDEST_S = 3600
"""Also without changes of the store another one is taken then: URLs become overdue."""
PATIENCE_S = 0.5
"""How long a page waits for a pass over few URLs, which is complete by then."""
_AFTER_FAULT_S = 600
"""Before another pass begins, because pages may ask every few seconds."""
TOTALS_EVERY_S = 300
"""Seconds between passes that nothing but totals is needed of."""
_FEW = 2 * 20_000
_PAUSE, _PAUSE_OF_CRAWL = 1, 3
"""Pauses, as a multiple of the time used."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass over the store, as a page shows it. `fault`: why the last one failed."""

    is_running: bool = False
    read: int = 0
    """URLs that have been read, of `total`: first in the store, then in the order of their text."""
    total: int = 0
    fault: str = ""

    @property
    def percent(self) -> int:
        return min(99, 100 * self.read // self.total) if self.total else 0


class _Taking:
    """The pass of one collection that runs, or waits for that of another."""

    def __init__(self, total: int) -> None:
        self.read = 0
        self.total = 2 * total
        self.is_complete = threading.Event()


class _Fault(NamedTuple):
    """Why the last pass failed, and when another one may begin."""

    sentence: str
    again_at: float


_NO_FAULT = _Fault("", 0)


class Snapshots:
    """The snapshots of all collections of a console."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._one_at_a_time = threading.Lock()
        self._taking: dict[str, _Taking] = {}
        self._faults: dict[str, _Fault] = {}

    @contextmanager
    def open(self, paths: CollectionPaths, opened: OpenStore) -> Iterator[tuple[SnapshotFile | None, Pass]]:
        """Open the newest snapshot, and have another one taken if it is out of date; None while the first one is taken."""
        found = _readable(paths)
        if found is None or self._is_old(found.about, opened):
            taking = self._begin(paths, opened)
            if taking is not None and taking.total <= _FEW and taking.is_complete.wait(PATIENCE_S):
                if found is not None:
                    found.close()
                found = _readable(paths)
        try:
            yield found, self._pass(paths.name)
        finally:
            if found is not None:
                found.close()

    def totals(self, paths: CollectionPaths, opened: OpenStore) -> tuple[Totals, float] | None:
        """Return the totals of the newest snapshot, and when it was taken; None while the first one is taken. Waits for none.

        Another one is taken if the last is out of date, at most every few minutes, because programs ask all the time.
        """
        found = _readable(paths)
        if found is None:
            self._begin(paths, opened)
            return None
        found.close()
        is_young = 0 <= self._clock.now() - found.about.taken_at < TOTALS_EVERY_S
        if not is_young and self._is_old(found.about, opened):
            self._begin(paths, opened)
        return totals_of(found.about.totals), found.about.taken_at

    def _is_old(self, about: About, opened: OpenStore) -> bool:
        age_s = self._clock.now() - about.taken_at
        if age_s < 0:
            return True  # the clock was set back
        return age_s >= SHARE * about.seconds and (age_s > OLDEST_S or about.stamp != opened.stamp())

    def _begin(self, paths: CollectionPaths, opened: OpenStore) -> _Taking | None:
        """Begin a pass, if none is running; return it, or None shortly after one has failed."""
        with self._lock:
            running = self._taking.get(paths.name)
            if running is not None:
                return running
            if 0 < self._faults.get(paths.name, _NO_FAULT).again_at - self._clock.now() <= OLDEST_S:
                return None
        taking, is_crawled = _Taking(sum(opened.store.counts().by_state.values())), bool(opened.crawlers())
        with self._lock:
            running = self._taking.setdefault(paths.name, taking)
        if running is taking:
            try:
                threading.Thread(target=self._take, args=(paths, taking, is_crawled), name="snapshot", daemon=True).start()
            except RuntimeError:  # there are too many threads
                self._end(paths.name, taking, "the machine has no room for another thread")
        return running

    def _pass(self, name: str) -> Pass:
        with self._lock:
            running = self._taking.get(name)
            fault = self._faults.get(name, _NO_FAULT).sentence
        return Pass(fault=fault) if running is None else Pass(True, running.read, running.total, fault)  # noqa: FBT003

    def _take(self, paths: CollectionPaths, taking: _Taking, is_crawled: bool) -> None:  # noqa: FBT001 - of a thread
        fault = ""
        try:
            with self._one_at_a_time, paths.store.reading() as opened:
                if opened is not None:
                    self._write(paths, opened, taking, pause=_PAUSE_OF_CRAWL if is_crawled else _PAUSE)
        except CrawlspaceError as error:
            fault = str(error)
        except apsw.FullError:
            fault = f"the disk holding {path_of(paths).parent}, or that of temporary files, is full"
        except (apsw.Error, OSError) as error:
            fault = f"{path_of(paths)} cannot be written: {error}"
        except Exception:
            logger.exception("the URLs of %s could not be counted", paths.name)
            fault = "a fault of crawlspace: the log of the console has it"
        finally:
            self._end(paths.name, taking, fault)

    def _end(self, name: str, taking: _Taking, fault: str) -> None:
        with self._lock:
            self._faults[name] = _Fault(fault, self._clock.now() + _AFTER_FAULT_S) if fault else _NO_FAULT
            del self._taking[name]
        taking.is_complete.set()

    def _write(self, paths: CollectionPaths, opened: OpenStore, taking: _Taking, *, pause: int) -> None:
        stamp, now = opened.stamp(), self._clock.now()
        # a server works for us while we wait; beside a file, time in which other programs have the processor costs them nothing
        used = time.monotonic if paths.store.is_shared else time.thread_time
        total_s, since = 0.0, used()
        resting = threading.Event()

        def rest(urls: int) -> None:
            nonlocal total_s, since
            taking.read += urls
            step_s = used() - since
            resting.wait(pause * step_s)
            total_s, since = total_s + step_s, used()

        def about() -> About:
            return About(now, round(total_s + used() - since, 3), stamp, ages.written(), counter.as_json())

        make_folder(path_of(paths).parent)  # of a store on a server it may be missing here
        counter = TotalsCounter(int(now))
        ages = DocumentAges(int(now))
        write_snapshot(path_of(paths), entries(paths, opened, now=int(now), ages=ages, counter=counter), about, pause=rest)


def path_of(paths: CollectionPaths) -> Path:
    """Return the file of the snapshot of a collection."""
    return paths.state_file.parent / "console.db"


def entries(
    paths: CollectionPaths, opened: OpenStore, *, now: int, ages: DocumentAges, counter: TotalsCounter
) -> Iterator[UrlEntry]:
    """Yield all URLs of a store, and count them and the ages of their documents."""
    unreachable = {one.row.site: one for one in paths.unreachable(opened.store)}
    for state in opened.store.urls():
        counter.add(state)
        site, status = unreachable.get(state.site), state.status
        if site is not None and state.state is State.PENDING:
            status = site.row.status
        marks = 0
        if state.lease_until is not None:
            marks |= Mark.LEASED
        if state.indexed:
            marks |= Mark.INDEXED
            ages.add(state.fetched_at)
            if state.held is not None or (site is not None and site.held):
                marks |= Mark.HELD
        if state.duplicate_of is not None:
            marks |= Mark.DUPLICATE
        if state.orphaned is not None:
            marks |= Mark.ORPHANED
        if (
            state.state is not State.PENDING
            and state.next_fetch is not None
            and state.next_fetch <= now
            and not marks & Mark.LEASED
        ):
            marks |= Mark.OVERDUE
        yield UrlEntry(state.url, state.id, int(state.state), status, marks)


def _readable(paths: CollectionPaths) -> SnapshotFile | None:
    try:
        return SnapshotFile(path_of(paths))
    except SnapshotUnreadable:
        return None
