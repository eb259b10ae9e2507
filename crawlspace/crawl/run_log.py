"""The runs of a collection, kept in the store: the numbers of one while it crawls, and of the last ones with their summaries.

Each process that crawls has a record of its run, which it writes again every few seconds while its numbers change, and for the last time
with its summary. What was written last of one that was killed stays. Where several workers crawl together, each has a record of the run.

The records are named values of the store, `run 0`, `run 1` and so on; another value lists which of these is of which run. So a record is
written without reading the others, and the space of a dropped run is used again. The list is replaced only if it is as it was read, since
several workers may start at the same time.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce

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
MOST_PROCESSES = 50
"""Records of one run, without those of processes that crawl; two older ones become one, as in a container that is restarted again and again."""


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
    start: str = ""
    """In the name of the file with its events; another one for each start."""
    earlier: int = 0
    """Processes that ended earlier in the same run, whose numbers are in this record, and whose events are not kept."""
    ended: int | None = None
    summary: dict[str, object] | None = None
    """That of `scrapy crawl --summary`; None before the end, or if the process was killed."""
    is_killed: bool = False
    """A later start has found that it had been killed."""
    numbers: RunNumbers = msgspec.field(default_factory=RunNumbers)
    disk: dict[str, int] = msgspec.field(default_factory=dict)
    """Bytes of the collection on the disk of this process's machine at its end, by part; empty in records of earlier versions."""


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
        running: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """Begin a run, or join that of other workers; the records of `most` runs are kept, and of this one.

        `running` returns the names of the other workers that crawl now. Raises StoreError.
        """
        self._store, self._clock = store, clock
        self._began = clock.monotonic()
        self._counted: Mapping[str, int] = {}
        """The outcomes that are in the series."""
        now = int(clock.now())
        self.record = RunRecord(0, os.getpid(), socket.gethostname(), now, now, worker, secrets.token_hex(4))
        while True:  # another worker may start at the same time
            seen = store.get_meta(RUNS)
            kept = _KeptRecords(store, _read_list(seen), running())
            listed = kept.list_with(worker, most=max(most, 1))
            self._slot, self.record.run = listed.kept[-1].slot, listed.kept[-1].run
            if store.replace_meta(RUNS, seen, _encoded(listed)):
                break
        self._write()
        for slot, value in kept.changes(listed):
            store.replace_meta(_name(slot), kept.values[slot], value)  # unless another worker uses it by now

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

    def end(self, counters: RunCounters, summary: Mapping[str, object], *, disk: Mapping[str, int] | None = None) -> None:
        """Write the record for the last time; `disk` is that of the record. Raises StoreError."""
        self.record.summary, self.record.ended, self.record.disk = dict(summary), int(self._clock.now()), dict(disk or {})
        self.update(counters)()

    def discard(self) -> None:
        """Remove the record of a run that could not begin. Raises StoreError."""
        while True:
            seen = self._store.get_meta(RUNS)
            listed = _read_list(seen)
            listed.kept = [one for one in listed.kept if one.slot != self._slot]
            if listed.last == self.run and all(one.run != self.run for one in listed.kept):
                listed.last -= 1
            if self._store.replace_meta(RUNS, seen, _encoded(listed)):
                return

    def _write(self) -> None:
        self._store.set_meta(_name(self._slot), _encoded(self.record))


def file_of(record: RunRecord) -> str:
    """Return the name of the file with the events of a process."""
    return file_name(record.run, record.host, record.process, record.start)


def run_records(store: MetaStore) -> list[RunRecord]:
    """Return the records of all runs that are kept, the newest first. Those that cannot be read are left out."""
    kept = _read_list(store.get_meta(RUNS)).kept
    found = []
    for one, value in zip(kept, store.get_metas([_name(one.slot) for one in kept]), strict=True):
        record = _record(value)
        if record is not None and (record.run, record.worker) == (one.run, one.worker):
            found.append(record)
    return sorted(found, key=lambda record: (record.run, record.began), reverse=True)


class _KeptRecords:
    """The list of records as it was read, with the records."""

    def __init__(self, store: MetaStore, listed: _RunList, running: Collection[str]) -> None:
        self._listed, self._running = listed, running
        slots = [one.slot for one in listed.kept]
        self.values = dict(zip(slots, store.get_metas([_name(slot) for slot in slots]), strict=True))
        self._records: dict[int, RunRecord] = {}
        """By slot; without those that cannot be read, or that their process has not written yet."""
        self._ended: dict[int, RunRecord] = {}
        """Those that change: of processes that were killed, and of several that become one."""
        for one in listed.kept:
            record = _record(self.values[one.slot])
            if record is not None and (record.run, record.worker) == (one.run, one.worker):
                self._records[one.slot] = record
                if record.ended is None and one.worker not in running:
                    killed = structs.replace(record, ended=record.written, is_killed=True)
                    self._records[one.slot] = self._ended[one.slot] = killed

    def list_with(self, worker: str, *, most: int) -> _RunList:
        """Return the list with a new record, the last one, of the run that others are in now, or of a new one; records of `most` runs are kept."""
        run = max((one.run for one in self._listed.kept if self._is_running(one)), default=self._listed.last + 1)
        numbers = sorted({one.run for one in self._listed.kept} | {run})[-most:]
        kept = [one for one in self._listed.kept if one.run in numbers]
        ended = [one for one in kept if one.run == run and not self._is_running(one)]
        while len(ended) >= MOST_PROCESSES:
            oldest = ended.pop(0)
            kept.remove(oldest)
            self._add(oldest, to=ended[0])
        used = {one.slot for one in kept}
        slot = next(slot for slot in range(len(used) + 1) if slot not in used)
        return _RunList(max(run, self._listed.last), [*kept, _Slot(slot, run, worker)])

    def changes(self, listed: _RunList) -> list[tuple[int, str]]:
        """Return the values of slots that change once another list is written."""
        own = listed.kept[-1].slot
        kept = {one.slot for one in listed.kept}
        dropped = [(slot, "") for slot, value in self.values.items() if slot not in kept and value]
        return dropped + [(slot, _encoded(record)) for slot, record in self._ended.items() if slot in kept and slot != own]

    def _is_running(self, one: _Slot) -> bool:
        record = self._records.get(one.slot)
        return one.worker in self._running and (record is None or record.ended is None)

    def _add(self, older: _Slot, *, to: _Slot) -> None:
        """Add the numbers of a record to those of a newer one."""
        two = [record for slot in (older.slot, to.slot) if (record := self._records.get(slot)) is not None]
        if two:
            whole = structs.replace(
                two[-1],
                worker=to.worker,
                began=min(one.began for one in two),
                earlier=sum(one.earlier for one in two) + len(two) - 1,
                numbers=numbers_together(two),
            )
            self._records[to.slot] = self._ended[to.slot] = whole


def numbers_together(records: Sequence[RunRecord]) -> RunNumbers:
    """Return the sums of the numbers of several processes."""
    began = min(one.began for one in records)
    all_numbers = [one.numbers for one in records]
    return RunNumbers(
        fetched=sum(one.fetched for one in all_numbers),
        documents=sum(one.documents for one in all_numbers),
        errors=sum(one.errors for one in all_numbers),
        discovered=sum(one.discovered for one in all_numbers),
        pushed=sum(one.pushed for one in all_numbers),
        deleted=sum(one.deleted for one in all_numbers),
        body_bytes=sum(one.body_bytes for one in all_numbers),
        outcomes=dict(sum((Counter(one.outcomes) for one in all_numbers), Counter())),
        status=dict(sum((Counter(one.status) for one in all_numbers), Counter())),
        refused=dict(sum((Counter(one.refused) for one in all_numbers), Counter())),
        times=reduce(Histogram.plus, (one.times for one in all_numbers)),
        slowest=sorted((site for one in all_numbers for site in one.slowest), key=lambda site: -site.mean_s)[:SLOWEST_SITES],
        series=_series_together(records, began=began),
    )


def _series_together(records: Sequence[RunRecord], *, began: int) -> Series:
    """Return the series of several processes as one, with the longest step of them."""
    series = Series(max(one.numbers.series.step_s for one in records))
    for record in records:
        of = record.numbers.series
        for kind, counts in of.points.items():
            for number, count in enumerate(counts):
                series.add({kind: count}, at_s=record.began - began + number * of.step_s)
    return series


def _name(slot: int) -> str:
    return f"run {slot}"


def _encoded(value: RunRecord | _RunList) -> str:
    return msgspec.json.encode(value).decode()


def _record(value: str | None) -> RunRecord | None:
    try:
        return msgspec.json.decode(value, type=RunRecord) if value else None
    except (msgspec.MsgspecError, RecursionError):
        return None


def _read_list(value: str | None) -> _RunList:
    """Return the list; an unreadable one is begun again."""
    try:
        return msgspec.json.decode(value or "{}", type=_RunList)
    except (msgspec.MsgspecError, RecursionError):
        return _RunList()
