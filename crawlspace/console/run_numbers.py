"""The numbers of a run as pages show them: its points over time, the histogram of its fetches, and how long the rest will take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crawlspace.admin.runs import KeptRun, recent_rate
from crawlspace.crawl.fetch_times import BOUNDS_S, Histogram, SiteTimes
from crawlspace.crawl.run_log import RunNumbers
from crawlspace.outcome import OutcomeKind

KINDS = tuple(kind.value for kind in OutcomeKind)


@dataclass(frozen=True, slots=True)
class Point:
    """The fetches of some seconds of a run."""

    at: int
    seconds: int
    counts: Sequence[int]
    """Of each of KINDS."""

    @property
    def rate(self) -> float:
        """Fetches per second."""
        return sum(self.counts) / self.seconds


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run, with the sum of the numbers of all its processes."""

    kept: KeptRun
    numbers: RunNumbers
    rate: float
    """Fetches per second, on average."""
    recent: float
    """The same in the last minute."""
    documents_in_index: int | None
    """At its end; None where that is not known."""

    @property
    def p50_s(self) -> float | None:
        return self.numbers.times.quantile_s(0.5) if self.numbers.times.count else None

    @property
    def p95_s(self) -> float | None:
        return self.numbers.times.quantile_s(0.95) if self.numbers.times.count else None

    @property
    def faults(self) -> Sequence[str]:
        """What was wrong in it, as the summaries of its processes have it."""
        found = [one.summary.get("faults") for one in self.kept.records if one.summary is not None]
        return list(dict.fromkeys(str(fault) for faults in found if isinstance(faults, list) for fault in faults))

    def points(self) -> Sequence[Point]:
        """Return its points over time, up to the last one with a fetch."""
        series = self.numbers.series
        length = max(map(len, series.points.values()), default=0)
        last = self.kept.took_s - (length - 1) * series.step_s
        return [
            Point(
                self.kept.began + number * series.step_s,
                series.step_s if number < length - 1 else max(1, min(series.step_s, last)),
                [_at(series.points.get(kind, ()), number) for kind in KINDS],
            )
            for number in range(length)
        ]

    def left_s(self, waiting: int) -> float | None:
        """Return how long so many URLs take at the rate of the last minute; None if that is not known."""
        return waiting / self.recent if self.kept.is_running and self.recent > 0 else None

    @property
    def slowest(self) -> Sequence[SiteTimes]:
        return self.numbers.slowest


def shown_run(kept: KeptRun) -> ShownRun:
    """Return a run with the sums that pages show."""
    numbers = kept.numbers
    return ShownRun(kept, numbers, numbers.fetched / max(1, kept.took_s), recent_rate(kept), _documents_in_index(kept))


def latency(times: Histogram) -> Sequence[tuple[str, int]]:
    """Return the groups of a histogram with what they are called."""
    labels = [f"≤ {bound * 1000:g} ms" if bound < 1 else f"≤ {bound:g} s" for bound in BOUNDS_S]
    return list(zip([*labels, f"> {BOUNDS_S[-1]:g} s"], times.counts, strict=True))


def _at(counts: Sequence[int], number: int) -> int:
    return counts[number] if number < len(counts) else 0


def _documents_in_index(kept: KeptRun) -> int | None:
    ended = [one for one in kept.records if one.summary is not None]
    if not ended:
        return None
    summary = max(ended, key=lambda one: one.ended or 0).summary or {}
    index = summary.get("index")
    found = index.get("documents") if isinstance(index, Mapping) else None
    return found if isinstance(found, int) else None
