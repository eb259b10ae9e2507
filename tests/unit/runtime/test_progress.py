"""The line that shows how a crawl goes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from crawlspace.runtime import progress
from crawlspace.runtime.progress import Progress


def test_the_rate_is_right_where_the_line_is_read_many_times_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop with a clock of milliseconds wakes a moment early, and again until it is time."""
    now, done = 1000.0, SimpleNamespace(fetched=0, discovered=0, first_fetches=0, errors=0)
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    engine = SimpleNamespace(
        progress=done, deliveries=SimpleNamespace(most_waiting=0), frontier=SimpleNamespace(given_up_sites=())
    )
    shown = Progress(SimpleNamespace(spider=SimpleNamespace(session=SimpleNamespace(engine=engine))))  # type: ignore[arg-type]
    lines = set()
    for _ in range(6):
        now, done.fetched = now + 10, done.fetched + 200
        lines = {shown.line() for _ in range(50)}
    assert lines == {"1,200 pages · 20/s · 0 pending · 0 errors"}
    now, done.fetched = now + 30, done.fetched + 30
    assert shown.line() == "1,230 pages · 1/s · 0 pending · 0 errors", "what was before the last half minute does not count"
