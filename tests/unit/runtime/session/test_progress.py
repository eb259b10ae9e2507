"""The line that shows the progress of a crawl or command, and the report at its end."""

from __future__ import annotations

import io
import json
import logging
from types import SimpleNamespace

import pytest

from crawlspace.admin.site_report import SiteReport
from crawlspace.clock import FakeClock
from crawlspace.crawl.run import RunCounters
from crawlspace.frontier.site_queue import Wait
from crawlspace.outcome import OutcomeKind
from crawlspace.runtime.session import progress
from crawlspace.runtime.session.crawl_sequence import FinishedCrawl, table_of, worst_status
from crawlspace.runtime.session.progress import Progress, ProgressDisplay
from crawlspace.runtime.session.summary import RunReport
from crawlspace.state.unreachable import UnreachableSite
from tests.unit.test_docs import json_in, shape


def test_the_rate_is_right_where_the_line_is_read_many_times_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop with a clock of milliseconds wakes a moment early, and again until it is time."""
    now, done = 1000.0, SimpleNamespace(fetched=0, discovered=0, first_fetches=0, errors=0)
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    frontier, engine = SimpleNamespace(pauses={}), SimpleNamespace(given_up_sites=())
    session = SimpleNamespace(progress=done, deliveries=SimpleNamespace(max_backlog=0), engine=engine, frontier=frontier)
    shown = Progress(SimpleNamespace(spider=SimpleNamespace(session=session)))  # type: ignore[arg-type]
    lines = set()
    for _ in range(6):
        now, done.fetched = now + 10, done.fetched + 200
        lines = {shown.line() for _ in range(50)}
    assert lines == {"1,200 pages · 20/s · 0 pending · 0 errors"}
    now, done.fetched = now + 30, done.fetched + 30
    assert shown.line() == "1,230 pages · 1/s · 0 pending · 0 errors", "what was before the last half minute does not count"
    frontier.pauses = {"a.example": None}
    assert shown.line().endswith(" · 0 errors · a.example paused")
    frontier.pauses = {"a.example": None, "*.b.example": None}
    assert shown.line().endswith(" · 0 errors · 2 hosts paused")


def test_the_lines_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: Wait | None = Wait("a.example:80", 2.0, "is paused", 1)
    counters = RunCounters(fetched=3, discovered=7, first_fetches=2, errors=1)
    counters.by_kind.update({OutcomeKind.DOCUMENT: 2, OutcomeKind.GONE: 1})
    counters.by_status.update({200: 2, 404: 1})
    monkeypatch.setattr(progress, "is_busy", lambda crawler: False)
    monkeypatch.setattr(progress, "monotonic", lambda: 1000.0)
    session = SimpleNamespace(
        progress=counters,
        deliveries=SimpleNamespace(max_backlog=0),
        engine=SimpleNamespace(given_up_sites=(), paused=lambda: waits),
        frontier=SimpleNamespace(pauses={}),
    )
    shown = Progress(SimpleNamespace(spider=SimpleNamespace(session=session, name="demo")))  # type: ignore[arg-type]
    expected = [
        "demo: 3 pages · 0/s · 5 pending · 1 error",
        "  outcomes  2 with a document · 1 error",
        "  status    2 × 200 · 1 × 404",
    ]
    assert shown.lines() == expected
    waits = Wait("a.example:80", 4.0, "is paused", 3)
    assert shown.lines()[-1].startswith("  waits     until ")
    assert shown.lines()[-1].endswith(": a.example:80 is paused (2 more sites wait)")


def test_a_long_wait_is_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    passed, waits = 0.0, Wait("a.example:80", 29.0, "is paused", 1)
    monkeypatch.setattr(progress, "time", lambda: 1_000.0 + passed)
    monkeypatch.setattr(progress, "is_busy", lambda crawler: crawler.busy)
    engine = SimpleNamespace(paused=lambda: waits)
    spider = SimpleNamespace(name="demo", session=SimpleNamespace(engine=engine))
    crawler = SimpleNamespace(spider=spider, busy=False)
    shown = Progress(crawler)  # type: ignore[arg-type]

    def logged() -> int:
        caplog.clear()
        with caplog.at_level(logging.INFO):
            shown._log_wait()
        return len(caplog.messages)

    assert logged() == 0, "so short a wait is nothing to speak of"
    waits = waits._replace(seconds=120.0)
    crawler.busy = True
    assert logged() == 0
    crawler.busy = False
    assert logged() == 1
    assert caplog.messages[0].startswith("demo: nothing to fetch until ")
    assert caplog.messages[0].endswith(": a.example:80 is paused")
    passed, waits = 10.0, waits._replace(seconds=110.0)
    assert logged() == 0, "it is the same wait"
    passed, waits = 120.0, waits._replace(seconds=240.0, sites=3)
    assert logged() == 1
    assert caplog.messages[0].endswith(": a.example:80 is paused (2 more sites wait)")
    waits = None  # type: ignore[assignment]
    assert logged() == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, *calls: tuple[str, int, int | None]) -> str:
    """What is written when a second passes after each call, and then it is closed."""
    clock = FakeClock(0)
    display = ProgressDisplay(stream, clock)
    for doing, done, total in calls:
        display(doing, done, total)
        clock.advance(1)
    display.close()
    return stream.getvalue()


COUNTS = [(f"{number},000 URLs so far", 0, None) for number in range(1, 5)]
COPIES = [("copying", number, 20_000) for number in range(1_000, 15_000, 1_000)]


@pytest.mark.parametrize(
    ("calls", "written"),
    [
        (COUNTS[:2], ""),
        (COUNTS, "3,000 URLs so far\n"),
        (COPIES, "copying: 3,000 of 20,000 URLs\ncopying: 13,000 of 20,000 URLs\n"),
    ],
)
def test_a_file_has_lines_now_and_then(calls: list[tuple[str, int, int | None]], written: str) -> None:
    assert shown(io.StringIO(), *calls) == written


def test_a_terminal_has_a_line_that_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    written = shown(Terminal(), *COUNTS)
    assert [number in written for number in ("2,000", "3,000", "4,000 URLs so far")] == [False, True, True]
    assert written.endswith("\x1b[2K"), "erased"
    assert "━" in shown(Terminal(), *COPIES), "a bar where the end is known"
    assert not shown(Terminal(), *COUNTS[:2])


def test_the_log_appears_above_the_lines_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    handler = logging.StreamHandler(stream)
    logging.root.addHandler(handler)
    try:
        display = ProgressDisplay(stream, FakeClock(0))
        display.show("demo: 1 page\n  status    1 × 200")
        before = stream.tell()
        logging.getLogger("a.log").warning("%s", "a record that is longer than the terminal is wide " * 4)
        written = stream.getvalue()[before:]
        display.close()
        logging.getLogger("a.log").warning("after the end")
    finally:
        logging.root.removeHandler(handler)
    place = written.index("a record")
    assert "\x1b[2K" in written[:place], "the lines are erased first"
    assert "1 × 200" in written[place:], "and drawn again below"
    assert written.count("wide ") == 4, "a record is one line, however wide the terminal is"
    assert stream.getvalue().endswith("after the end\n")


NOT_BEGUN = RunReport("demo", 1, ["crawl.rules:3:1: a mistake\n    alow\n    ^"], 0, None)


def test_the_report_is_as_documented() -> None:
    site = SiteReport(UnreachableSite("dead.test:80", 612, since=1, runs=1, counted_at=1), documents=1, held=False)
    value = {**NOT_BEGUN.as_json(), "unreachable": [site.as_json()]}
    (documented,) = json_in("docs/commands.md", "The summary for programs")
    assert shape(documented) == shape(json.loads(json.dumps(value)))


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [([], 0), ([0, 0], 0), ([0, 1, 0], 1), ([0, 130], 130), ([130, 1], 1), ([0, 2], 1), ([0, -9], 1)],
)
def test_the_worst_status(statuses: list[int], worst: int) -> None:
    assert worst_status(statuses) == worst


def test_the_table_of_several() -> None:
    done = {
        **NOT_BEGUN.as_json(),
        "outcome": "done",
        "faults": [],
        "fetched": 12_345,
        "outcomes": {"failed": 2, "gone": 1},
        "duration_s": 61.4,
        "held": {"host": 1, "many": 0, "rules": 2},
    }
    failed = {**NOT_BEGUN.as_json(), "duration_s": 0.2}
    crawls = [
        FinishedCrawl("a", 0, done),
        FinishedCrawl("a-long-name", 1, failed),
        FinishedCrawl("killed", -9, None),
        FinishedCrawl("not-yet", None, None),
    ]
    assert table_of(crawls).splitlines() == [
        "collection   outcome       fetched   errors  documents   held      time",
        "a            done           12,345        3          0      3      61 s",
        "a-long-name  failed              0        0          0      0       0 s   crawl.rules:3:1: a mistake",
        "killed       failed        it ended with exit status -9",
        "not-yet      not started",
    ]
