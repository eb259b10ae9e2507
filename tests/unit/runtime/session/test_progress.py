"""The line that shows how a crawl goes."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from crawlspace.frontier.site_queue import Wait
from crawlspace.runtime.session import progress
from crawlspace.runtime.session.progress import Progress


def test_the_rate_is_right_where_the_line_is_read_many_times_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop with a clock of milliseconds wakes a moment early, and again until it is time."""
    now, done = 1000.0, SimpleNamespace(fetched=0, discovered=0, first_fetches=0, errors=0)
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    session = SimpleNamespace(progress=done, deliveries=SimpleNamespace(max_backlog=0), engine=SimpleNamespace(given_up_sites=()))
    shown = Progress(SimpleNamespace(spider=SimpleNamespace(session=session)))  # type: ignore[arg-type]
    lines = set()
    for _ in range(6):
        now, done.fetched = now + 10, done.fetched + 200
        lines = {shown.line() for _ in range(50)}
    assert lines == {"1,200 pages · 20/s · 0 pending · 0 errors"}
    now, done.fetched = now + 30, done.fetched + 30
    assert shown.line() == "1,230 pages · 1/s · 0 pending · 0 errors", "what was before the last half minute does not count"


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
