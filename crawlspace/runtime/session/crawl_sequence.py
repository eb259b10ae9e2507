"""Crawls several collections one after the other, each by a `scrapy crawl` in its own process.

So each has its own settings, event loop and memory, and what breaks in one of them cannot stop the next.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crawlspace.runtime.session.summary import STOPPED
from crawlspace.text import printable

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class FinishedCrawl:
    """One crawl of a sequence. `report` is what `RunReport.as_json` returned, None where there is none."""

    name: str
    exit_status: int | None
    """None where it was not started."""
    report: dict[str, Any] | None

    @property
    def outcome(self) -> str:
        if self.exit_status is None:
            return NOT_STARTED
        return "failed" if self.report is None else str(self.report["outcome"])

    @property
    def fault(self) -> str:
        """The first line of its first fault."""
        if self.report is None:
            return "" if self.exit_status in (None, 0) else f"it ended with exit status {self.exit_status}"
        return printable("; ".join(self.report["faults"]).partition("\n")[0])


class CrawlSequence:
    """Crawls of several collections. Ctrl-C, or a signal to end, is passed on to the running crawl, and no other one is started."""

    def __init__(self, names: Sequence[str], options: Sequence[str]) -> None:
        self._names = names
        self._options = options
        self._running: subprocess.Popen[bytes] | None = None
        self._received: int | None = None

    def run(self) -> Iterator[FinishedCrawl]:
        """Crawl all collections; yield the result of each when it has ended."""
        with self._receiving(), tempfile.TemporaryDirectory(prefix="crawlspace-") as folder:
            for number, name in enumerate(self._names):
                if self._received is not None:
                    yield FinishedCrawl(name, None, None)
                    continue
                file = Path(folder, str(number))
                status = self._crawl(name, file)
                yield FinishedCrawl(name, status, _read(file))

    def _crawl(self, name: str, summary: Path) -> int:
        command = [sys.executable, "-m", "scrapy", "crawl", name, "--summary", str(summary), *self._options]
        # In a session of its own: a terminal would send Ctrl-C to it, too, and twice means to end at once.
        self._running = subprocess.Popen(command, start_new_session=True)  # noqa: S603 - what the user has typed, without a shell
        if self._received is not None:
            self._running.send_signal(self._received)
        status = self._running.wait()
        self._running = None
        return status

    @contextmanager
    def _receiving(self) -> Iterator[None]:
        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        before = {number: signal.signal(number, self._receive) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _receive(self, number: int, _: object) -> None:
        self._received = number
        if self._running is not None:
            self._running.send_signal(number)


def worst_status(statuses: Iterable[int]) -> int:
    """Return the exit status for several crawls: 1 if one has failed, 130 if one was stopped before it began, else 0."""
    found = set(statuses)
    if found - {0, STOPPED}:
        return 1
    return STOPPED if STOPPED in found else 0


def table_of(crawls: Sequence[FinishedCrawl]) -> str:
    """Return the summary of a sequence, a line for each crawl."""
    width = max(10, *(len(one.name) for one in crawls))
    lines = [f"{'collection':<{width}}  {'outcome':<11}{'fetched':>10}{'errors':>9}{'documents':>11}{'held':>7}{'time':>10}"]
    for one in crawls:
        head = f"{one.name:<{width}}  {one.outcome:<11}"
        if one.report is not None:
            of = one.report
            errors = of["outcomes"]["failed"] + of["outcomes"]["gone"]
            held = sum(of["held"].values())
            head += f"{of['fetched']:>10,}{errors:>9,}{of['index']['documents']:>11,}{held:>7,}{of['duration_s']:>8,.0f} s"
        lines.append(f"{head}   {one.fault}".rstrip())
    return "\n".join(lines)


def _read(file: Path) -> dict[str, Any] | None:
    """Return the report in a file; None where the crawl has not written it."""
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
