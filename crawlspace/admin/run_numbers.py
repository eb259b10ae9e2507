"""The numbers of a run as people see them: its points over time, its fetches in sentences, and how long the rest will take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crawlspace.admin.runs import KeptRun, live, recent_rate
from crawlspace.clock import iso
from crawlspace.crawl.fetch_times import BOUNDS_S, Histogram, SiteTimes
from crawlspace.crawl.run_log import RunNumbers
from crawlspace.outcome import OutcomeKind
from crawlspace.state.store import MetaStore
from crawlspace.state.views import Crawler
from crawlspace.status import Status
from crawlspace.text import counted, duration

Outcomes = Mapping[OutcomeKind, int] | Mapping[str, int]
KINDS = tuple(kind.value for kind in OutcomeKind)
_OUTCOMES = {
    OutcomeKind.DOCUMENT: "with a document",
    OutcomeKind.UNCHANGED: "unchanged",
    OutcomeKind.REDIRECTED: "redirected",
    OutcomeKind.EXCLUDED: "not to be indexed",
}
_STATUSES_SHOWN = 8
_SLOWEST = 5


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

    def as_json(self) -> dict[str, object]:
        """Return the numbers of a run that is not over, for programs."""
        numbers = self.numbers
        return {
            "run": self.kept.run,
            "began": iso(self.kept.began),
            "fetched": numbers.fetched,
            "per_second": round(self.recent, 2),
            "outcomes": numbers.outcomes,
            "status": {str(code): count for code, count in sorted(numbers.status.items())},
            "p50_s": None if self.p50_s is None else round(self.p50_s, 3),
            "p95_s": None if self.p95_s is None else round(self.p95_s, 3),
            "slowest": [{"site": one.site, "fetches": one.count, "mean_s": one.mean_s} for one in numbers.slowest[:_SLOWEST]],
        }

    @property
    def slowest(self) -> Sequence[SiteTimes]:
        return self.numbers.slowest


def shown_run(kept: KeptRun) -> ShownRun:
    """Return a run with the sums that pages show."""
    numbers = kept.numbers
    return ShownRun(kept, numbers, numbers.fetched / max(1, kept.took_s), recent_rate(kept), _documents_in_index(kept))


def running(store: MetaStore, crawlers: Sequence[Crawler]) -> ShownRun | None:
    """Return the run that crawls now, with the processes that do; None where there is none."""
    kept = live(store, crawlers)
    return None if kept is None else shown_run(kept)


def outcome_parts(outcomes: Outcomes, status: Mapping[int, int]) -> list[str]:
    """Return `60 with a document`, `20 redirected`, `14 errors`: the parts add up to the number of fetches."""
    sitemaps, indexes = status.get(Status.SITEMAP, 0), status.get(Status.SITEMAP_INDEX, 0)
    taken_off = {OutcomeKind.EXCLUDED: sitemaps, OutcomeKind.REDIRECTED: indexes}
    numbers = {kind: outcomes.get(kind, 0) - taken_off.get(kind, 0) for kind in _OUTCOMES}
    parts = [f"{numbers[kind]:,} {what}" for kind, what in _OUTCOMES.items() if numbers[kind]]
    if sitemaps + indexes:
        parts.append(counted(sitemaps + indexes, "sitemap"))
    errors = outcomes.get(OutcomeKind.FAILED, 0) + outcomes.get(OutcomeKind.GONE, 0)
    if errors:
        parts.append(counted(errors, "error"))
    return parts


def lines_of_fetches(
    outcomes: Outcomes, status: Mapping[int, int], times: Histogram, slowest: Sequence[SiteTimes]
) -> list[tuple[str, str]]:
    """Return what became of the fetches of a run and how long they took, each line with its label."""
    lines = [("outcomes", " · ".join(outcome_parts(outcomes, status)))]
    ranked = sorted(status.items(), key=lambda row: -row[1])
    shown = [f"{count:,} × {code}" for code, count in sorted(ranked[:_STATUSES_SHOWN])]
    if rest := sum(count for _, count in ranked[_STATUSES_SHOWN:]):
        shown.append(f"{rest:,} others")
    lines.append(("status", " · ".join(shown)))
    if times.count:
        latencies = [f"p50 {duration(times.quantile_s(0.5))}", f"p95 {duration(times.quantile_s(0.95))}"]
        if slowest:
            latencies.append(f"slowest {slowest[0].site}, {duration(slowest[0].mean_s)} on average")
        lines.append(("latency", " · ".join(latencies)))
    return [(label, text) for label, text in lines if text]


def lines_of_run(run: ShownRun, *, waiting: int) -> list[tuple[str, str]]:
    """Return the numbers of a run, each line with its label; `waiting` is the number of URLs that are pending or leased."""
    numbers = run.numbers
    pace = [f"{counted(numbers.fetched, 'page')} in {duration(run.kept.took_s)}", f"{run.recent:,.1f}/s in the last minute"]
    if waiting and (left := run.left_s(waiting)) is not None:
        pace.append(f"about {duration(left)} for the {waiting:,} that wait")
    return [("fetched", " · ".join(pace)), *lines_of_fetches(numbers.outcomes, numbers.status, numbers.times, numbers.slowest)]


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
