"""The runs of a collection: all that are kept, one with its numbers, and what has changed between two."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from crawlspace.admin.run_changes import ChangeKind, Statuses
from crawlspace.admin.run_numbers import KINDS, latency, shown_run
from crawlspace.admin.runs import KeptRun, kept_runs
from crawlspace.console.comparisons import CSV_COLUMNS, Comparison, csv_row
from crawlspace.console.routes import Asked, FileDownload, NoSuchThing, NotNow, Routes, View, page
from crawlspace.errors import StoreError, UsageError
from crawlspace.text import quoted

ROWS = 100
"""Rows of a page."""
_PENDING = "pending"
"""Stands for no status in a query."""


def show(asked: Asked) -> View:
    """Show the runs that are kept."""
    number = asked.page_number()
    runs, was_crawled = _runs(asked)
    first = (number - 1) * ROWS
    some = runs[first : first + ROWS]
    return View(
        "runs.html",
        {
            "was_crawled": was_crawled,
            "runs": [shown_run(one) for one in some],
            "total": len(runs),
            "number": number,
            "has_more": len(runs) > first + ROWS,
            "numbers": [one.run for one in runs],
        },
    )


def show_run(asked: Asked) -> View:
    """Show one run."""
    runs, _ = _runs(asked)
    shown = shown_run(_run(runs, asked.match["run"], asked.name))
    at = [one.run for one in runs].index(shown.kept.run)
    return View(
        "run.html",
        {
            "run": shown,
            "kinds": KINDS,
            "latency": latency(shown.numbers.times),
            "before": runs[at + 1].run if at + 1 < len(runs) else None,
            "after": runs[at - 1].run if at else None,
        },
    )


def _runs(asked: Asked) -> tuple[list[KeptRun], bool]:
    paths = asked.console.paths(asked.name)
    with paths.store.reading() as opened:
        return ([], False) if opened is None else (kept_runs(opened.store, opened.crawlers()), True)


def _run(runs: Iterable[KeptRun], text: str, name: str) -> KeptRun:
    """Return the run with a number. Raises NoSuchThing."""
    for one in runs:
        if str(one.run) == text:
            return one
    raise NoSuchThing(f"run {quoted(text)} of {name} is not kept (CRAWLSPACE_RUNS_KEPT), or was none")


# --- compared ------------------------------------------------------------------------------------------------------


def show_comparison(asked: Asked) -> View:
    """Show what has changed between the ends of two runs."""
    number = asked.page_number()
    with _compared(asked) as (first, second, comparison):
        shown: dict[str, object] = {"first": first, "second": second, "fault": comparison.fault, "is_complete": False}
        changes = comparison.changes
        if changes is None or not comparison.is_complete.is_set():
            return View("run_comparison.html", shown)
        kind, statuses = _kind(asked), _statuses(asked)
        totals: Counter[ChangeKind] = Counter()
        for (of, _, _), count in comparison.numbers.items():
            totals[of] += count
        rows = [] if kind is None else comparison.page(kind, statuses, first=(number - 1) * ROWS, most=ROWS + 1)
        shown.update(
            is_complete=True,
            age_s=asked.console.clock.monotonic() - comparison.began_at,
            missing=changes.missing,
            numbers=[
                (of, before, after, count)
                for (of, before, after), count in sorted(comparison.numbers.items(), key=lambda one: -one[1])
            ],
            totals={of: totals[of] for of in ChangeKind},
            kind=kind,
            statuses=statuses,
            rows=rows[:ROWS],
            number=number,
            has_more=len(rows) > ROWS,
            pending=_PENDING,
        )
        return View("run_comparison.html", shown)


def download_comparison(asked: Asked) -> FileDownload:
    """Send the URLs of a kind, or all that have changed, as CSV."""
    kind, statuses = _kind(asked), _statuses(asked)
    kinds = tuple(ChangeKind) if kind is None else (kind,)
    first, second = asked.query.get("first", ""), asked.query.get("second", "")
    name = f"{asked.name}-{first}-{second}-{'changes' if kind is None else kind.value}.csv"
    if not (first.isdecimal() and second.isdecimal()):
        raise UsageError("name two runs by their numbers")
    return FileDownload("text/csv; charset=utf-8", _csv(asked, kinds, statuses), name)


def _csv(asked: Asked, kinds: Iterable[ChangeKind], statuses: Statuses | None) -> Iterator[str]:
    with _compared(asked) as (_, _, comparison):
        if not comparison.is_complete.is_set():
            raise NotNow("The runs are being compared: try again when the page shows the result.")
        if comparison.fault:
            raise StoreError(comparison.fault)
        buffer = io.StringIO()
        table = csv.writer(buffer, lineterminator="\n")
        table.writerow(CSV_COLUMNS)
        for kind in kinds:
            for one in comparison.all(kind, statuses):
                table.writerow(csv_row(one))
                yield buffer.getvalue()
                buffer.seek(0)
                buffer.truncate()
        yield buffer.getvalue()


@contextmanager
def _compared(asked: Asked) -> Iterator[tuple[KeptRun, KeptRun, Comparison]]:
    """Yield the two runs that a query names, the older one first, and their comparison. Raises UsageError, NoSuchThing."""
    runs, _ = _runs(asked)
    one, other = (_run(runs, asked.query.get(name, ""), asked.name) for name in ("first", "second"))
    if one.run == other.run:
        raise UsageError("name two different runs")
    first, second = sorted((one, other), key=lambda of: of.run)
    with asked.console.comparisons.of(asked.console.paths(asked.name), first, second) as comparison:
        yield first, second, comparison


def _kind(asked: Asked) -> ChangeKind | None:
    text = asked.query.get("kind", "")
    if text not in ("", *ChangeKind):
        raise UsageError(f"kind is one of {', '.join(ChangeKind)}")
    return ChangeKind(text) if text else None


def _statuses(asked: Asked) -> Statuses | None:
    before, after = (asked.query.get(name, "") for name in ("before", "after"))
    if not (before or after):
        return None
    return _status(before), _status(after)


def _status(text: str) -> int | None:
    if text == _PENDING:
        return None
    if not (text.isdecimal() and len(text) <= 6):
        raise UsageError(f"{quoted(text)} is no status: before and after are codes, or {_PENDING}")
    return int(text)


ROUTES: Routes = (
    page("/c/{name}/runs", show),
    page("/c/{name}/runs/compared", show_comparison),
    page("/c/{name}/runs/compared.csv", download_comparison),
    page("/c/{name}/runs/{run}", show_run),
)
