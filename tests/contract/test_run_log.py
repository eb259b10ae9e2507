"""The records of runs in a store: while a process crawls, when it has ended, and when it was killed."""

from __future__ import annotations

import pytest

from crawlspace.admin.runs import kept_runs, live
from crawlspace.clock import FakeClock
from crawlspace.crawl.run import RunCounters
from crawlspace.crawl.run_log import MOST_PROCESSES, POINTS, RUNS, RunLog, Series, file_of, run_records
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.store import Store
from crawlspace.state.views import Crawler, Share
from tests.contract.conftest import NOW

SUMMARY: dict[str, object] = {"outcome": "done", "exit_status": 0, "faults": []}


def fetch(counters: RunCounters, kind: OutcomeKind, status: int, *, site: str = "a.example:80", took_s: float = 0.2) -> None:
    url = f"http://{site}/"
    outcome = Outcome(1, url, kind, status, took_s=took_s, body_bytes=100)
    counters.add(outcome)
    counters.count(UrlState(1, 1, url, site), outcome)


def here(log: RunLog, *, host: str = "") -> Crawler:
    """The process of a record as one that crawls."""
    share = Share(host, 0.0, 0, 0, 0, 0, 0, 0.0) if host else None
    return Crawler(log.record.process, NOW, share)


def test_a_run_is_seen_while_it_crawls_and_when_it_has_ended(store: Store) -> None:
    clock, counters = FakeClock(NOW), RunCounters()
    log = RunLog(store, clock, most=30)
    run = live(store, [here(log)])
    assert run is not None
    assert (run.run, run.outcome, run.numbers.fetched) == (1, "running", 0)
    assert live(store, []) is None, "the process does not crawl any more"
    fetch(counters, OutcomeKind.DOCUMENT, 200)
    assert log.is_outdated(counters)
    clock.advance(7)
    log.update(counters)()
    assert not log.is_outdated(counters)
    fetch(counters, OutcomeKind.FAILED, 503, took_s=40.0)
    clock.advance(60)
    log.update(counters)()
    found = live(store, [here(log)])
    assert found is not None
    numbers = found.numbers
    assert (numbers.fetched, numbers.documents, numbers.errors, numbers.body_bytes) == (2, 1, 1, 200)
    assert (numbers.outcomes, numbers.status) == ({"document": 1, "failed": 1}, {200: 1, 503: 1})
    assert [numbers.times.count, numbers.times.sum_s] == pytest.approx([2, 40.2])
    assert numbers.series == Series(5, {"document": [0, 1], "failed": [0] * 13 + [1]})
    assert [(one.site, one.count) for one in numbers.slowest] == [("a.example:80", 2)]
    log.end(counters, SUMMARY)
    (ended,) = kept_runs(store, [here(log)])
    assert (ended.outcome, ended.began, ended.ended) == ("done", NOW, NOW + 67)
    assert ended.numbers == numbers
    assert ended.records[0].summary == SUMMARY


def test_what_a_killed_process_wrote_last_stays(store: Store) -> None:
    clock, counters = FakeClock(NOW), RunCounters()
    log = RunLog(store, clock, most=30)
    fetch(counters, OutcomeKind.DOCUMENT, 200)
    clock.advance(5)
    log.update(counters)()
    (killed,) = kept_runs(store, [])
    assert (killed.outcome, killed.ended, killed.numbers.fetched) == ("killed", NOW + 5, 1)
    clock.advance(1_000)
    RunLog(store, clock, most=30).end(RunCounters(), SUMMARY)
    assert [(one.run, one.outcome, one.ended, one.numbers.fetched) for one in kept_runs(store, [])] == [
        (2, "done", NOW + 1_005, 0),
        (1, "killed", NOW + 5, 1),
    ]
    assert run_records(store)[1].is_killed


@pytest.mark.parametrize(("most", "runs"), [(0, [7]), (1, [7]), (3, [7, 6, 5]), (30, [7, 6, 5, 4, 3, 2, 1])])
def test_so_many_runs_are_kept(store: Store, most: int, runs: list[int]) -> None:
    for _ in range(7):
        RunLog(store, FakeClock(NOW), most=most).end(RunCounters(), SUMMARY)
    assert [one.run for one in kept_runs(store, [])] == runs
    values = store.get_metas([f"run {slot}" for slot in range(20)])
    assert sum(bool(value) for value in values) == len(runs)
    assert sum(value is not None for value in values) <= most + 1, "the space of dropped runs is used again"


def test_fewer_are_kept_after_a_change_of_the_setting(store: Store) -> None:
    for most in (30, 30, 30, 30, 2):
        RunLog(store, FakeClock(NOW), most=most).end(RunCounters(), SUMMARY)
    assert [one.run for one in kept_runs(store, [])] == [5, 4]


def test_a_run_that_could_not_begin_leaves_nothing(store: Store) -> None:
    RunLog(store, FakeClock(NOW), most=30).end(RunCounters(), SUMMARY)
    RunLog(store, FakeClock(NOW), most=30).discard()
    assert [one.run for one in kept_runs(store, [])] == [1]
    assert RunLog(store, FakeClock(NOW), most=30).run == 2


def test_workers_that_crawl_together_are_one_run(store: Store) -> None:
    clock = FakeClock(NOW)
    alive = {"one", "two", "three"}
    counters = {name: RunCounters() for name in ("one", "two", "three")}
    logs = {}
    for name in ("one", "two"):
        logs[name] = RunLog(store, clock, most=30, worker=name, running=lambda: alive)
        clock.advance(10)
    for name, site, seconds in (("one", "a.example:80", 0.3), ("two", "b.example:80", 3.0)):
        fetch(counters[name], OutcomeKind.DOCUMENT, 200, site=site, took_s=seconds)
        logs[name].update(counters[name])()
    clock.advance(10)
    alive.discard("two")
    logs["three"] = RunLog(store, clock, most=30, worker="three", running=lambda: alive)
    assert {log.run for log in logs.values()} == {1}
    host = logs["one"].record.host
    run = live(store, [here(logs["one"], host=host)])
    assert run is not None
    assert [one.worker for one in run.records] == ["one", "three"], "the second was killed"
    assert live(store, [here(logs["one"], host=f"not-{host}")]) is None
    (whole,) = kept_runs(store, [here(logs["one"], host=host)])
    numbers = whole.numbers
    assert (numbers.fetched, numbers.status, numbers.times.count) == (2, {200: 2}, 2)
    assert [one.site for one in numbers.slowest] == ["b.example:80", "a.example:80"]
    assert numbers.series.points == {"document": [0, 0, 0, 0, 2]}, "both 20 s after the beginning of the run"
    for name in ("one", "three"):
        logs[name].end(counters[name], SUMMARY | {"outcome": "stopped"})
    (ended,) = kept_runs(store, [])
    assert ended.outcome == "killed"
    alive.clear()
    assert RunLog(store, clock, most=30, worker="four", running=lambda: alive).run == 2


def test_workers_that_start_at_the_same_time_are_in_one_run(store: Store) -> None:
    """The second one starts after the first has read the list, and then who is running."""
    clock, running = FakeClock(NOW), {"one"}
    logs: list[RunLog] = []

    def running_of_two() -> set[str]:
        if not logs:
            logs.append(RunLog(store, clock, most=30, worker="one", running=lambda: {"two"}))
        return running

    logs.append(RunLog(store, clock, most=30, worker="two", running=running_of_two))
    assert [log.run for log in logs] == [1, 1]
    assert sorted(one.worker for one in run_records(store)) == ["one", "two"]


def test_a_worker_whose_record_is_not_written_yet_is_running(store: Store) -> None:
    store.set_meta(RUNS, '{"last": 7, "kept": [[0, 7, "one"]]}')
    assert RunLog(store, FakeClock(NOW), most=30, worker="two", running=lambda: {"one"}).run == 7
    assert RunLog(store, FakeClock(NOW), most=30, worker="three", running=set).run == 8


def test_workers_that_are_started_again_and_again_have_a_bounded_number_of_records(store: Store) -> None:
    clock, counters = FakeClock(NOW), RunCounters()
    fetch(counters, OutcomeKind.DOCUMENT, 200)
    first = RunLog(store, clock, most=30, worker="first")
    many = 2 * MOST_PROCESSES
    for number in range(many):
        clock.advance(10)
        log = RunLog(store, clock, most=30, worker=str(number), running=lambda: {"first"})
        assert log.run == 1
        log.update(counters)()
    (run,) = kept_runs(store, [here(first, host=first.record.host)])
    assert len(run.records) == MOST_PROCESSES + 1
    assert (run.numbers.fetched, run.began) == (many, NOW)
    assert sum(one.earlier for one in run.records) == many - len(run.records) + 1
    values = store.get_metas([f"run {slot}" for slot in range(many)])
    assert sum(value is not None for value in values) <= MOST_PROCESSES + 2


def test_each_start_has_a_file_of_its_own(store: Store) -> None:
    """In a container the host and the number of the process may be the same for each."""
    names = []
    for _ in range(3):
        names.append(file_of(RunLog(store, FakeClock(NOW), most=30).record))
        RunLog(store, FakeClock(NOW), most=30).discard()
    assert len(set(names)) == 3


@pytest.mark.parametrize("value", ["", "{", "[]", '{"last": "x"}', '{"kept": [[0, 1]]}', '{"kept": [[0, 1, ""]]}'])
def test_an_unreadable_list_is_begun_again(store: Store, value: str) -> None:
    store.set_meta(RUNS, value)
    store.set_meta("run 0", "no record")
    assert kept_runs(store, []) == []
    log = RunLog(store, FakeClock(NOW), most=30)
    assert [one.run for one in kept_runs(store, [here(log)])] == [log.run]


def test_a_series_has_a_bounded_number_of_points() -> None:
    series = Series()
    for second in range(0, 100_000, 5):
        series.add({"document": 2, "failed": 1} if second % 10 else {"document": 2}, at_s=second + 0.5)
    assert series.step_s == 640
    assert POINTS / 2 <= len(series.points["document"]) <= POINTS
    assert {kind: sum(points) for kind, points in series.points.items()} == {"document": 40_000, "failed": 10_000}
    assert set(series.points["document"][:-1]) == {2 * 128}
    series.add({"document": 1}, at_s=10_000_000)
    assert len(series.points["document"]) <= POINTS
    assert sum(series.points["document"]) == 40_001
