"""What changed between the ends of two runs, from the files of events."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.admin.run_changes import ChangeKind, RunChanges
from crawlspace.clock import FakeClock
from crawlspace.crawl.run import RunCounters
from crawlspace.crawl.run_events import RunEvents
from crawlspace.crawl.run_log import RunLog, file_of
from crawlspace.document import Document
from crawlspace.errors import RunFileError, UsageError
from crawlspace.model import State, UrlState
from crawlspace.state.changes import Change, Fetch
from tests.contract.conftest import Known, key
from tests.contract.memory.store import MemoryStore

NOW = 1_750_000_000
NEW, GONE, CHANGED, MOVED = ChangeKind


class Runs:
    """Runs in which a URL gets another text, status, or is forgotten: each step is `a=text`, `a=404` or `a!`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store, self.clock = folder, MemoryStore(), FakeClock(NOW)
        self.known = Known(self.store)

    def run(self, *steps: str, worker: str = "", log: RunLog | None = None) -> RunLog:
        log = log or RunLog(self.store, self.clock, most=30, worker=worker)
        events = RunEvents(self.folder, file_of(log.record), run=log.run, store=self.store, clock=self.clock)
        for step in steps:
            self.clock.advance(1)
            change = self._step(step)
            events.note([change])
            self.known.record(change)
        events.close()
        log.end(RunCounters(), {"outcome": "done"})
        return log

    def _step(self, step: str) -> Change:
        name, to = step[0], step[1:].removeprefix("=")
        url = f"a.example/{name}"
        if self.store.get(f"http://{url}") is None:
            self.known.discover(url)
        before = self.known.get(url)
        fetch = Fetch(not to.isdigit() and to != "!", 0.5, 0)
        if to == "!":
            return Change(before, forget=True, before=before, fetch=fetch)
        if to.isdigit():
            after = structs.replace(before, state=State.GONE, status=int(to), checksum=None)
            return Change(after, before=before, fetch=fetch)
        after = structs.replace(before, state=State.DONE, status=200, checksum=to.encode())
        is_new = before.checksum != after.checksum
        return Change(after, Document(before.url, text=to) if is_new else None, before=before, fetch=fetch)

    def compared(self, first: int, second: int) -> dict[str, list[str]]:
        """The changed URLs by kind, as `a None>200`."""
        with RunChanges(self.folder, self.store, first=first, second=second) as changes:
            found = {
                kind.value: sorted(
                    f"{one.url.removeprefix('http://a.example/')} {one.status_before}>{one.status_after}"
                    for one in changes.urls(kind)
                )
                for kind in ChangeKind
            }
            assert {kind: len(urls) for kind, urls in found.items() if urls} == changes.totals()
            return {kind: urls for kind, urls in found.items() if urls}


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


# the steps of the second run, after `a=one b=two c=404`; what has changed since the first
ROWS: list[tuple[list[str], dict[str, list[str]]]] = [
    ([], {}),
    (["a=one", "b=two", "c=404"], {}),
    (["d=four"], {"new": ["d None>200"]}),
    (["d=404"], {"moved": ["d None>404"]}),
    (["a=other"], {"changed": ["a 200>200"]}),
    (["a=other", "a=one"], {"changed": ["a 200>200"]}),
    (["a=404"], {"gone": ["a 200>404"]}),
    (["a!"], {"gone": ["a 200>200"]}),
    (["a=404", "a=one"], {}),
    (["c=five"], {"new": ["c 404>200"]}),
    (["c=410"], {"moved": ["c 404>410"]}),
    (["d=four", "d=404", "d!"], {"moved": ["d None>404"]}),
    (
        ["a=404", "b=other", "c=five", "d=six"],
        {"gone": ["a 200>404"], "changed": ["b 200>200"], "new": ["c 404>200", "d None>200"]},
    ),
]


@pytest.mark.parametrize(("steps", "changed"), ROWS)
def test_two_runs(runs: Runs, steps: list[str], changed: Mapping[str, list[str]]) -> None:
    runs.run("a=one", "b=two", "c=404")
    runs.run(*steps)
    assert runs.compared(1, 2) == changed


def test_an_event_that_is_there_twice_changes_nothing(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a kill between the file and the store."""
    runs.run("a=one")
    record = runs.known.record
    monkeypatch.setattr(runs.known, "record", lambda *_: None)
    runs.run("a=404")
    monkeypatch.setattr(runs.known, "record", record)
    runs.run("a=404")
    assert runs.compared(1, 3) == {"gone": ["a 200>404"]}


def test_several_runs_at_once(runs: Runs) -> None:
    runs.run("a=one")
    runs.run("a=404", "b=two")
    runs.run("a=other", "b=404")
    runs.run("c=three", "b!")
    assert runs.compared(1, 2) == {"gone": ["a 200>404"], "new": ["b None>200"]}
    assert runs.compared(1, 3) == {"moved": ["b None>404"]}
    assert runs.compared(2, 4) == {"gone": ["b 200>404"], "new": ["a 404>200", "c None>200"]}


def test_numbers_by_status(runs: Runs) -> None:
    runs.run("a=one", "b=two", "c=three", "d=404")
    runs.run("a=404", "b=404", "c=410", "d=403", "e=403")
    with RunChanges(runs.folder, runs.store, first=1, second=2) as changes:
        assert changes.numbers() == {
            (GONE, 200, 404): 2,
            (GONE, 200, 410): 1,
            (MOVED, None, 403): 1,
            (MOVED, 404, 403): 1,
        }


def test_workers_of_one_run(runs: Runs) -> None:
    runs.run("a=one", "b=one")
    one = RunLog(runs.store, runs.clock, most=30, worker="one")
    two = RunLog(runs.store, runs.clock, most=30, worker="two", running=lambda: {"one"})
    assert one.run == two.run == 2
    runs.run("a=404", "b=404", log=one)
    runs.run("a=other", log=two)
    assert runs.compared(1, 2) == {"gone": ["b 200>404"]}


def test_files_that_are_not_here_are_named(runs: Runs) -> None:
    runs.run("a=one")
    log = runs.run("a=404")
    runs.run("b=one")
    (runs.folder / file_of(log.record)).unlink()
    with RunChanges(runs.folder, runs.store, first=1, second=3) as changes:
        assert [(one.run, one.host) for one in changes.missing] == [(2, log.record.host)]
        assert changes.totals() == {NEW: 1}


def test_processes_whose_events_are_not_kept_are_named(runs: Runs) -> None:
    runs.run("a=one")
    runs.run("a=404", log=(log := RunLog(runs.store, runs.clock, most=30)))
    log.record.earlier = 3
    log.end(RunCounters(), {})
    with RunChanges(runs.folder, runs.store, first=1, second=2) as changes:
        assert [one.run for one in changes.missing] == [2]


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (1, 4, r"run 4 is not kept any more: runs 1 to 2 are \(CRAWLSPACE_RUNS_KEPT\)"),
        (0, 1, "run 0 is not kept any more"),
        (2, 1, "run 2 is not before run 1: name the older one first"),
        (1, 1, "run 1 is not before run 1"),
    ],
)
def test_runs_that_cannot_be_compared(runs: Runs, first: int, second: int, sentence: str) -> None:
    runs.run("a=one")
    runs.run("a=404")
    with pytest.raises(UsageError, match=sentence):
        RunChanges(runs.folder, runs.store, first=first, second=second)


def test_many_urls(runs: Runs) -> None:
    runs.run("a=one")
    log = RunLog(runs.store, runs.clock, most=30)
    events = RunEvents(runs.folder, file_of(log.record), run=log.run, store=runs.store, clock=runs.clock)
    for number in range(1_300):
        url = f"http://b.example/{number}"
        state = UrlState(number, key(url), url, "b.example:80", State.DONE, 200, checksum=b"x", indexed=True)
        events.note([Change(state, forget=True)])
    log.end(RunCounters(), {})
    with RunChanges(runs.folder, runs.store, first=1, second=2) as changes:
        assert changes.totals() == {GONE: 1_300}
        assert {one.url for one in changes.urls(GONE)} == {f"http://b.example/{number}" for number in range(1_300)}


def test_events_that_cannot_be_read_are_an_error(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.run("a=one")
    log = runs.run("a=404")
    file = runs.folder / file_of(log.record)
    file.unlink()
    file.mkdir()
    with pytest.raises(RunFileError, match=r"cannot be read from .* \(Is a directory\): correct the permissions there"):
        RunChanges(runs.folder, runs.store, first=1, second=2)
    file.rmdir()
    monkeypatch.setattr("crawlspace.admin.run_changes.parts_of", lambda path: [path])  # it is removed right after that
    with pytest.raises(RunFileError, match="a crawl has just removed those of its oldest runs"):
        RunChanges(runs.folder, runs.store, first=1, second=2)
