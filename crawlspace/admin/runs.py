"""The runs of a collection: those that crawl now, and the last ones, each with its numbers and its summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from crawlspace.crawl.run_log import RunNumbers, RunRecord, numbers_together, run_records
from crawlspace.state.store import MetaStore
from crawlspace.state.views import Crawler

RUNNING = "running"
KILLED = "killed"
_RECENT_S = 60


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One run: the records of the processes that crawled together, in the order in which they began."""

    run: int
    records: Sequence[RunRecord]
    is_running: bool

    @property
    def outcome(self) -> str:
        """`running`, or the worst that became of a process: `failed`, `killed`, `stopped`, `done`."""
        if self.is_running:
            return RUNNING
        outcomes = {KILLED if one.summary is None else str(one.summary.get("outcome", "")) for one in self.records}
        return next((one for one in ("failed", KILLED, "stopped") if one in outcomes), "done")

    @property
    def began(self) -> int:
        return min(one.began for one in self.records)

    @property
    def ended(self) -> int | None:
        """When the last process ended, or was last seen; None while one runs."""
        return None if self.is_running else max(one.ended or one.written for one in self.records)

    @property
    def written(self) -> int:
        """When its numbers were written last."""
        return max(one.written for one in self.records)

    @property
    def took_s(self) -> int:
        """From its beginning to its end, or to the last numbers."""
        return max(0, (self.ended or self.written) - self.began)

    @property
    def numbers(self) -> RunNumbers:
        """Those of all processes together."""
        return self.records[0].numbers if len(self.records) == 1 else numbers_together(self.records)


def recent_rate(run: KeptRun) -> float:
    """Return the fetches per second in the last minute of a run's numbers, or in its last point, if that is longer."""
    series, took_s = run.numbers.series, run.written - run.began
    last = took_s // series.step_s
    first = max(0, last + 1 - max(1, _RECENT_S // series.step_s))
    fetched = sum(sum(counts[first : last + 1]) for counts in series.points.values())
    return fetched / max(1, took_s - first * series.step_s)


def kept_runs(store: MetaStore, crawlers: Sequence[Crawler]) -> list[KeptRun]:
    """Return the runs that are kept, the newest first; `crawlers` are the processes that crawl now."""
    found = []
    for run, of_run in groupby(run_records(store), key=lambda record: record.run):
        records = sorted(of_run, key=lambda record: record.began)
        found.append(KeptRun(run, records, any(_is_running(one, crawlers) for one in records)))
    return found


def live(store: MetaStore, crawlers: Sequence[Crawler]) -> KeptRun | None:
    """Return the run that crawls now, with the processes that do; None where there is none."""
    for run in kept_runs(store, crawlers) if crawlers else ():
        if run.is_running:
            return KeptRun(run.run, [one for one in run.records if _is_running(one, crawlers)], is_running=True)
    return None


def silent_since(run: KeptRun, crawlers: Sequence[Crawler]) -> int | None:
    """Return when a process wrote its numbers last that has gone without an end, while others crawl on; None where there is none."""
    gone = [one.written for one in run.records if one.ended is None and not _is_running(one, crawlers)]
    return min(gone) if gone and run.is_running else None


def _is_running(record: RunRecord, crawlers: Iterable[Crawler]) -> bool:
    return record.ended is None and any(
        record.process == one.process and (one.share is None or one.share.host == record.host) for one in crawlers
    )
