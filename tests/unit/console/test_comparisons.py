"""Comparisons that a console keeps: how many, for how long, and what becomes of one that failed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from msgspec import structs
from scrapy.settings import Settings

from crawlspace.admin.run_changes import ChangeKind
from crawlspace.admin.runs import KeptRun
from crawlspace.clock import FakeClock
from crawlspace.config.sinks import SinkSettings
from crawlspace.console.comparisons import AFTER_FAULT_S, LONGEST_S, MOST, Comparison, Comparisons
from crawlspace.crawl.run import RunCounters
from crawlspace.crawl.run_events import EVENTS_FOLDER, RunEvents
from crawlspace.crawl.run_log import RunLog, RunRecord, file_of
from crawlspace.errors import StoreError
from crawlspace.model import State, UrlState
from crawlspace.runtime.session.paths import CollectionPaths, OpenFile, StateFile
from crawlspace.state.changes import Change, Fetch
from crawlspace.state.sqlite.store import SqliteStore
from tests.notifications import LONGEST_WAIT_S

NOW = 1_750_000_000
NEW = UrlState(1, 1, "http://a.example/", "a.example:80")
PAGE = structs.replace(NEW, state=State.DONE, status=200, checksum=b"one", indexed=True)
SINKS = SinkSettings((), Path("index.db"))


class HeldFile(StateFile):
    """A store that is opened only when that is allowed."""

    def __init__(self, path: Path) -> None:
        super().__init__("demo", path, SINKS)
        self.may_open = threading.Event()
        self.may_open.set()

    @contextmanager
    def reading(self) -> Iterator[OpenFile | None]:
        assert self.may_open.wait(LONGEST_WAIT_S)
        with super().reading() as opened:
            yield opened


class World:
    """A collection with some runs, each with the fetch of one page."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock(NOW)
        self.file = HeldFile(folder / "state.db")
        self.paths = CollectionPaths("demo", folder, Settings(), self.file, folder / "state.db", SINKS)
        self.kept = Comparisons(self.clock)
        self.folder = folder / EVENTS_FOLDER

    def run(self) -> RunRecord:
        with closing(SqliteStore(self.file.path)) as store:
            log = RunLog(store, self.clock, most=100)
            events = RunEvents(self.folder, file_of(log.record), run=log.run, store=store, clock=self.clock)
            events.note([Change(PAGE, before=NEW, fetch=Fetch(True, 0.1, 1))])
            events.close()
            log.end(RunCounters(), {"outcome": "done"})
            return log.record

    @contextmanager
    def compared(self, *, is_running: bool = False, second: int = 2, is_made: bool = True) -> Iterator[Comparison]:
        records = [RunRecord(run, 1, "host", NOW, NOW, ended=NOW) for run in (1, second)]
        first, other = (KeptRun(one.run, [one], is_running and one.run == second) for one in records)
        with self.kept.of(self.paths, first, other) as found:
            assert not is_made or found.is_complete.wait(LONGEST_WAIT_S)
            yield found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_one_is_kept_and_made_again_after_a_while(world: World) -> None:
    for _ in range(2):
        world.run()
    with world.compared() as first:
        assert len(list(first.all(ChangeKind.MOVED, None))) == 1
        assert first.fault == ""
    for later_s, is_same in ((LONGEST_S, True), (1, False)):
        world.clock.advance(later_s)
        with world.compared() as again:
            assert (again is first) is is_same


def test_what_was_compared_while_a_run_crawled_is_not_shown_of_its_end(world: World) -> None:
    for _ in range(2):
        world.run()
    with world.compared(is_running=True) as running, world.compared(is_running=True) as same:
        assert same is running
    with world.compared() as ended:
        assert ended is not running


def test_a_comparison_that_failed_is_soon_made_again(world: World) -> None:
    world.run()
    with world.compared() as failed:
        assert "run 2 is not kept any more" in failed.fault
    world.run()
    world.clock.advance(AFTER_FAULT_S + 1)
    with world.compared() as made:
        assert made.fault == ""


def test_so_many_are_made_at_a_time(world: World) -> None:
    for _ in range(MOST + 2):
        world.run()
    world.file.may_open.clear()
    with ExitStack() as stack:
        for number in range(MOST):
            stack.enter_context(world.compared(second=2 + number, is_made=False))
        with (
            pytest.raises(StoreError, match="many runs are being compared already"),
            world.compared(second=2 + MOST, is_made=False),
        ):
            pass
        stack.enter_context(world.compared(second=2, is_made=False))
        world.file.may_open.set()
        for number in range(MOST):
            stack.enter_context(world.compared(second=2 + number))
    with world.compared(second=2 + MOST) as made:
        assert made.fault == ""
