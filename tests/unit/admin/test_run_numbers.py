"""The numbers of a run as pages show them."""

from __future__ import annotations

import json

from crawlspace.admin.run_numbers import KINDS, lines_of_fetches, lines_of_run, shown_run
from crawlspace.admin.runs import KeptRun
from crawlspace.console.snapshot.ages import LABELS, DocumentAges, read_ages
from crawlspace.crawl.fetch_times import FetchTimes
from crawlspace.crawl.run_log import RunNumbers, RunRecord, Series

BEGAN = 1_750_000_000
DAY = 86_400


def run(points: dict[str, list[int]], *, took: int, step: int = 5, is_running: bool = True) -> KeptRun:
    fetched = sum(map(sum, points.values()))
    numbers = RunNumbers(fetched=fetched, series=Series(step, points))
    ended = None if is_running else BEGAN + took
    summary: dict[str, object] = {"index": {"documents": 7}, "faults": ["no disk", "no disk"]}
    record = RunRecord(1, 1, "here", BEGAN, BEGAN + took, ended=ended, summary=None if is_running else summary, numbers=numbers)
    return KeptRun(1, [record], is_running)


def test_points_over_time() -> None:
    shown = shown_run(run({"document": [10, 20, 6], "gone": [5]}, took=12))
    document, gone = KINDS.index("document"), KINDS.index("gone")
    assert [(one.at - BEGAN, one.counts[document], one.counts[gone], one.rate) for one in shown.points()] == [
        (0, 10, 5, 3.0),
        (5, 20, 0, 4.0),
        (10, 6, 0, 3.0),
    ]
    assert shown_run(run({}, took=0)).points() == []


def test_time_left() -> None:
    fast_then_slow = run({"document": [500] * 12 + [50] * 12}, took=120)
    shown = shown_run(fast_then_slow)
    assert (round(shown.rate), round(shown.recent)) == (55, 10)
    assert shown.left_s(100) == 10
    assert shown_run(run({"document": [500]}, took=120)).left_s(100) is None, "nothing was fetched in the last minute"
    ended = shown_run(run({"document": [500]}, took=5, is_running=False))
    assert (ended.left_s(100), ended.documents_in_index, ended.faults) == (None, 7, ["no disk"])


def test_lines_for_a_terminal() -> None:
    shown = shown_run(run({"document": [100] * 24}, took=120))
    assert lines_of_run(shown, waiting=6_000) == [
        ("fetched", "2,400 pages in 2 min · 20.0/s in the last minute · about 5 min for the 6,000 that wait")
    ]
    assert lines_of_run(shown, waiting=0) == [("fetched", "2,400 pages in 2 min · 20.0/s in the last minute")]
    assert json.loads(json.dumps(shown.as_json()))["per_second"] == 20.0


def test_lines_of_fetches() -> None:
    times = FetchTimes()
    for seconds in (0.08, 0.08, 0.08, 4.0):
        times.add("a.example:443" if seconds < 1 else "slow.example:443", seconds)
    outcomes = {"document": 9, "redirected": 3, "excluded": 2, "gone": 1, "failed": 2}
    statuses = {200: 9, 301: 2, 3021: 1, 2005: 1, 2004: 1, 404: 1, 503: 1, 613: 1, 302: 5, 500: 6}
    assert lines_of_fetches(outcomes, statuses, times.all, times.slowest(1)) == [
        ("outcomes", "9 with a document · 2 redirected · 1 not to be indexed · 2 sitemaps · 3 errors"),
        ("status", "9 × 200 · 2 × 301 · 5 × 302 · 1 × 404 · 6 × 500 · 1 × 2004 · 1 × 2005 · 1 × 3021 · 2 others"),
        ("latency", "p50 83 ms · p95 4.5 s · slowest slow.example:443, 4.0 s on average"),
    ]
    assert lines_of_fetches({}, {}, FetchTimes().all, []) == [], "nothing has been fetched yet"


def test_ages() -> None:
    ages = DocumentAges(BEGAN)
    for age in (-5, 0, 3_599, 3_600, DAY - 1, DAY, 30 * DAY, 364 * DAY, 365 * DAY, BEGAN):
        ages.add(BEGAN - age)
    ages.add(None)
    assert read_ages(ages.written()) == list(zip(LABELS, [3, 2, 1, 0, 1, 1, 2], strict=True))
    assert read_ages("") == []
