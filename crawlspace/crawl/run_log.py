"""The runs of a collection, kept in the store: the numbers of one while it crawls, and of the last ones with their summaries.

Each process that crawls has a record of its run, which it writes again every few seconds while its numbers change, and for the last time
with its summary. What was written last of one that was killed stays. Where several workers crawl together, each has a record of the run.

The records are named values of the store, `run 0`, `run 1` and so on; another value lists which of these is of which run. So a record is
written without reading the others, and the space of a dropped run is used again.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event

import msgspec
from msgspec import structs

from crawlspace.clock import Clock
from crawlspace.crawl.fetch_times import Histogram, SiteTimes
from crawlspace.crawl.run import RunCounters
from crawlspace.crawl.run_events import file_name
from crawlspace.state.store import MetaStore

RUNS = "runs"
"""The name of the list in the store."""
KEEP_EVERY_S = 5.0
POINTS = 200
"""Points of a series, at most."""
SLOWEST_SITES = 50
_CLAIM_S = 10
_PAUSE_S = 0.05


class Series(msgspec.Struct):
    """Fetches over time, by kind of outcome. When there are too many points, two become one."""

    step_s: int = int(KEEP_EVERY_S)
    """Seconds of a point, the first of which begins with the run."""
    points: dict[str, list[int]] = msgspec.field(default_factory=dict)
    """By kind; a kind has no points after the last one that isn't 0."""

    def add(self, numbers: Mapping[str, int], *, at_s: float) -> None:
        """Add the fetches of the last moments, so many seconds after the beginning of the run."""
        while at_s >= self.step_s * POINTS:
            self.step_s *= 2
            self.points = {kind: [sum(of[i : i + 2]) for i in range(0, len(of), 2)] for kind, of in self.points.items()}
        number = int(at_s) // self.step_s
        for kind, count in numbers.items():
            of = self.points.setdefault(kind, [])
            of += [0] * (number + 1 - len(of))
            of[number] += count


class RunNumbers(msgspec.Struct, omit_defaults=True):
    """What one process has done in a run so far."""

    fetched: int = 0
    documents: int = 0
    errors: int = 0
    discovered: int = 0
    pushed: int = 0
    deleted: int = 0
    body_bytes: int = 0
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)
    status: dict[int, int] = msgspec.field(default_factory=dict)
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    """Links and pages, by reason."""
    times: Histogram = msgspec.field(default_factory=Histogram)
    slowest: list[SiteTimes] = msgspec.field(default_factory=list)
    series: Series = msgspec.field(default_factory=Series)


class RunRecord(msgspec.Struct, omit_defaults=True):
    """The part of one process in a run. Times are in seconds since 1970."""

    run: int
    process: int
    host: str
    began: int
    written: int
    worker: str = ""
    """Its name where several workers crawl together."""
    ended: int | None = None
    summary: dict[str, object] | None = None
    """That of `scrapy crawl --summary`; None before the end, or if the process was killed."""
    is_killed: bool = False
    """A later start has found that it had been killed."""
    numbers: RunNumbers = msgspec.field(default_factory=RunNumbers)


class _Slot(msgspec.Struct, array_like=True):
    """That the value `run SLOT` is of a run."""

    slot: int
    run: int
    worker: str


class _RunList(msgspec.Struct, omit_defaults=True):
    last: int = 0
    """The number of the last run."""
    kept: list[_Slot] = msgspec.field(default_factory=list)
    """The oldest first."""


class RunLog:
    """Keeps the record of this process, from its start to its end."""

    def __init__(
        self,
        store: MetaStore,
        clock: Clock,
        *,
        most: int,
        worker: str = "",
        is_running: Callable[[RunRecord], bool] = lambda _: False,
    ) -> None:
        """Begin a run, or join that of another process; the records of `most` runs are kept, and of this one.

        `is_running` returns whether the process of a record without an end is alive. Raises StoreError.
        """
        self._store, self._clock = store, clock
        self._began = clock.monotonic()
        self._counted: Mapping[str, int] = {}
        """The outcomes that are in the series."""
        now = int(clock.now())
        self.record = RunRecord(0, os.getpid(), socket.gethostname(), now, now, worker)
        with _alone(store):
            listed = _listed(store)
            running = _end_killed(store, listed, is_running)
            self.record.run = running if running is not None else listed.last + 1
            listed.last = self.record.run
            numbers = sorted({one.run for one in listed.kept} | {self.record.run})[-max(most, 1) :]
            dropped = [one.slot for one in listed.kept if one.run not in numbers]
            listed.kept = [one for one in listed.kept if one.run in numbers]
            used = {one.slot for one in listed.kept}
            self._slot = next(slot for slot in range(len(used) + 1) if slot not in used)
            listed.kept.append(_Slot(self._slot, self.record.run, worker))
            self._write()
            _write_list(store, listed)
            for slot in dropped:
                if slot != self._slot:
                    store.set_meta(_name(slot), "")

    @property
    def run(self) -> int:
        return self.record.run

    def is_outdated(self, counters: RunCounters) -> bool:
        """Return whether the counters differ from what is written."""
        numbers = self.record.numbers
        return (counters.fetched, counters.discovered, counters.deletes, counters.pushes) != (
            numbers.fetched,
            numbers.discovered,
            numbers.deleted,
            numbers.pushed,
        )

    def update(self, counters: RunCounters) -> Callable[[], None]:
        """Take the present numbers; return what writes them, which may be called on another thread. It raises StoreError."""
        outcomes = {kind.value: count for kind, count in counters.by_kind.items()}
        series = self.record.numbers.series
        new = {kind: count - self._counted.get(kind, 0) for kind, count in outcomes.items()}
        series.add({kind: count for kind, count in new.items() if count}, at_s=self._clock.monotonic() - self._began)
        self._counted = outcomes
        self.record.numbers = RunNumbers(
            fetched=counters.fetched,
            documents=counters.documents,
            errors=counters.errors,
            discovered=counters.discovered,
            pushed=counters.pushes,
            deleted=counters.deletes,
            body_bytes=counters.body_bytes,
            outcomes=outcomes,
            status=dict(sorted(counters.by_status.items())),
            refused={str(reason): count for reason, count in counters.refused.items()},
            times=counters.times.all,
            slowest=counters.times.slowest(SLOWEST_SITES),
            series=series,
        )
        self.record.written = int(self._clock.now())
        name, value = _name(self._slot), _encoded(self.record)
        return lambda: self._store.set_meta(name, value)

    def end(self, counters: RunCounters, summary: Mapping[str, object]) -> None:
        """Write the record for the last time. Raises StoreError."""
        self.record.summary, self.record.ended = dict(summary), int(self._clock.now())
        self.update(counters)()

    def discard(self) -> None:
        """Remove the record of a run that could not begin. Raises StoreError."""
        with _alone(self._store):
            listed = _listed(self._store)
            listed.kept = [one for one in listed.kept if one.slot != self._slot]
            if listed.last == self.run and all(one.run != self.run for one in listed.kept):
                listed.last -= 1
            _write_list(self._store, listed)

    def _write(self) -> None:
        self._store.set_meta(_name(self._slot), _encoded(self.record))


def file_of(record: RunRecord) -> str:
    """Return the name of the file with the events of a process."""
    return file_name(record.run, record.host, record.process)


def run_records(store: MetaStore) -> list[RunRecord]:
    """Return the records of all runs that are kept, the newest first. Those that cannot be read are left out."""
    kept = _listed(store).kept
    found = []
    for one, value in zip(kept, store.get_metas([_name(one.slot) for one in kept]), strict=True):
        record = _record(value)
        if record is not None and (record.run, record.worker) == (one.run, one.worker):
            found.append(record)
    return sorted(found, key=lambda record: (record.run, record.began), reverse=True)


def _end_killed(store: MetaStore, listed: _RunList, is_running: Callable[[RunRecord], bool]) -> int | None:
    """Mark the records of processes that were killed; return the run that others are in now, if any."""
    running = None
    for one, value in zip(listed.kept, store.get_metas([_name(one.slot) for one in listed.kept]), strict=True):
        record = _record(value)
        if record is None or record.ended is not None or (record.run, record.worker) != (one.run, one.worker):
            continue
        if is_running(record):
            running = max(running or 0, record.run)
        else:
            killed = structs.replace(record, ended=record.written, is_killed=True)
            store.set_meta(_name(one.slot), _encoded(killed))
    return running


@contextmanager
def _alone(store: MetaStore) -> Iterator[None]:
    """Keep other workers from changing the list."""
    for _ in range(round(_CLAIM_S / _PAUSE_S)):  # the claim of one that was killed has ended then
        if store.claim(RUNS, seconds=_CLAIM_S):
            break
        Event().wait(_PAUSE_S)
    try:
        yield
    finally:
        store.end_claim(RUNS)


def _name(slot: int) -> str:
    return f"run {slot}"


def _encoded(record: RunRecord) -> str:
    return msgspec.json.encode(record).decode()


def _record(value: str | None) -> RunRecord | None:
    try:
        return msgspec.json.decode(value, type=RunRecord) if value else None
    except (msgspec.MsgspecError, RecursionError):
        return None


def _listed(store: MetaStore) -> _RunList:
    """Return the list; an unreadable one is begun again."""
    try:
        return msgspec.json.decode(store.get_meta(RUNS) or "{}", type=_RunList)
    except (msgspec.MsgspecError, RecursionError):
        return _RunList()


def _write_list(store: MetaStore, listed: _RunList) -> None:
    store.set_meta(RUNS, msgspec.json.encode(listed).decode())
