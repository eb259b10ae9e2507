"""Shows the progress of a crawl: a few live lines on a terminal, a log line now and then elsewhere."""

from __future__ import annotations

import logging
import sys
from collections import deque
from datetime import UTC, datetime
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TextIO

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call

from crawlspace.admin.run_numbers import lines_of_fetches
from crawlspace.clock import Clock, SystemClock
from crawlspace.frontier.site_queue import Wait
from crawlspace.runtime.components.scrapy_internals import is_busy
from crawlspace.text import counted

if TYPE_CHECKING:
    import rich.console
    import rich.progress

    from crawlspace.runtime.session.session import Session

logger = logging.getLogger(__name__)

LOG_PERIOD_S = 10.0
LINES_PERIOD_S = 0.5
LONG_WAIT_S = 30.0
SHOWN_WAIT_S = 3.0
RATE_S = 30.0
"""The rate is that of the last half minute."""
SHORTEST_S = 0.1
"""Between two marks: the event loop wakes up to a millisecond early, and a looping call is then made several times in a row."""


class Progress:
    """Extension that shows pages fetched, rate, pending URLs and errors."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._loops: list[Any] = []
        self._display = ProgressDisplay(sys.stderr, SystemClock())
        self._logged = ""
        self._waits_until = 0.0
        """The end of the wait that was logged last. Unix time, in seconds."""
        self._pending_base = 0
        self._marks: deque[tuple[float, int]] = deque([(monotonic(), 0)])
        self._started = datetime.now(tz=UTC)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Progress:
        if getattr(crawler.spider, "session", None) is None:
            raise NotConfigured
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        counts = self._session.store.counts()
        self._pending_base = counts.by_state.get("pending", 0) - self._session.progress.discovered
        self._session.at_close(self._display.close)
        shows = (self._show, LINES_PERIOD_S) if self._display.is_terminal else (self._log, LOG_PERIOD_S)
        for call, period_s in (shows, (self._log_wait, LOG_PERIOD_S)):
            loop: Any = create_looping_call(call)
            loop.start(period_s, now=False)
            self._loops.append(loop)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        for loop in self._loops:
            if loop.running:
                loop.stop()
        self._display.close()
        self._collect_stats(reason)

    @property
    def _session(self) -> Session:
        session: Session = self._crawler.spider.session  # type: ignore[union-attr]
        return session

    def line(self) -> str:
        """`1,234 pages · 87/s · 5,678 pending · 3 errors · 2 index orders waiting`"""
        progress, given_up = self._session.progress, self._session.engine.given_up_sites
        pending = max(0, self._pending_base + progress.discovered - progress.first_fetches)
        parts = [
            counted(progress.fetched, "page"),
            f"{self._rate():,.0f}/s",
            f"{pending:,} pending",
            counted(progress.errors, "error"),
        ]
        if waiting := self._session.deliveries.max_backlog:
            parts.append(f"{waiting:,} for the index")
        if given_up:
            parts.append(f"{counted(len(given_up), 'site')} given up")
        if pauses := self._session.frontier.pauses:
            parts.append(f"{next(iter(pauses)) if len(pauses) == 1 else f'{len(pauses):,} hosts'} paused")
        return " · ".join(parts)

    def lines(self) -> list[str]:
        """The same line, and what became of the fetches, how long they took, and what is waited for."""
        progress = self._session.progress
        rows = lines_of_fetches(progress.by_kind, progress.by_status, progress.times.all, progress.times.slowest(1))
        wait = None if is_busy(self._crawler) else self._session.engine.paused()
        if wait is not None and wait.seconds > SHOWN_WAIT_S:
            rows.append(("waits", _sentence(wait)))
        name = self._crawler.spider.name  # type: ignore[union-attr]
        return [f"{name}: {self.line()}", *(f"  {label:<9} {text}" for label, text in rows)]

    def _rate(self) -> float:
        now = monotonic()
        fetched = self._session.progress.fetched
        if now - self._marks[-1][0] >= SHORTEST_S:
            self._marks.append((now, fetched))
        while len(self._marks) > 1 and self._marks[1][0] <= now - RATE_S:
            self._marks.popleft()
        since, before = self._marks[0]
        return (fetched - before) / (now - since) if now > since else 0.0

    def _show(self) -> None:
        self._display.show("\n".join(self.lines()))

    def _log(self) -> None:
        """Log the progress, unless nothing happens: a continuous crawl would fill the disk with the same line."""
        line = self.line()
        if line != self._logged:
            self._logged = line
            logger.info("%s: %s", self._crawler.spider.name, line)  # type: ignore[union-attr]

    def _log_wait(self) -> None:
        """Log what a crawl without anything to fetch waits for, once for each long wait."""
        wait = self._session.engine.paused()
        if wait is None or wait.seconds <= LONG_WAIT_S or is_busy(self._crawler):
            return
        until = time() + wait.seconds
        if until <= self._waits_until + 1:
            return
        self._waits_until = until
        logger.info("%s: nothing to fetch %s", self._crawler.spider.name, _sentence(wait))  # type: ignore[union-attr]

    def _collect_stats(self, reason: str) -> None:
        """Scrapy's stats, for their readers (scrapyd, monitors): those of its CoreStats, and ours (docs/stats.md)."""
        stats = self._crawler.stats
        progress = self._session.progress
        finished = datetime.now(tz=UTC)
        stats.set_value("start_time", self._started)
        stats.set_value("finish_time", finished)
        stats.set_value("elapsed_time_seconds", (finished - self._started).total_seconds())
        stats.set_value("finish_reason", reason)
        stats.set_value("item_scraped_count", progress.documents)
        stats.set_value("response_received_count", sum(n for code, n in progress.by_status.items() if 100 <= code < 600))
        stats.set_value("crawlspace/fetched", progress.fetched)
        stats.set_value("crawlspace/documents", progress.documents)
        stats.set_value("crawlspace/errors", progress.errors)
        stats.set_value("crawlspace/discovered", progress.discovered)
        stats.set_value("crawlspace/sitemaps/due", progress.called)
        stats.set_value("crawlspace/sitemaps/spared", progress.spared)
        stats.set_value("crawlspace/index/push", progress.pushes)
        stats.set_value("crawlspace/index/delete", progress.deletes)
        stats.set_value("crawlspace/index/held", self._session.engine.withheld)
        for status, count in progress.by_status.items():
            stats.set_value(f"crawlspace/status/{status}", count)
        for refusal, count in progress.refused.items():
            stats.set_value(f"crawlspace/refused/{refusal}", count)


def _sentence(wait: Wait) -> str:
    """`until 12:31:05: www.example.com:443 asks for it (2 more sites wait)`"""
    others = f" ({counted(wait.sites - 1, 'more site waits', 'more sites wait')})" if wait.sites > 1 else ""
    return f"until {datetime.fromtimestamp(time() + wait.seconds).astimezone():%H:%M:%S}: {wait.site} {wait.why}{others}"


# --- progress display ----------------------------------------------------------------------------------------------


DELAY_S = 2.0
"""Seconds before anything is shown."""
TERMINAL_PERIOD_S = 0.25
LINE_PERIOD_S = 10.0


class ProgressDisplay:
    """The progress shown on one stream. The first call opens it; `close` erases it, and the next call opens it again."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self.is_terminal = stream.isatty()
        self._stream = stream
        self._clock = clock
        self._next = clock.monotonic() + DELAY_S
        self._live: rich.progress.Progress | None = None
        self._tasks: dict[str, rich.progress.TaskID] = {}
        self._handlers: list[logging.Handler] = []
        """Those that log to the stream."""

    def __call__(self, doing: str, done: int = 0, total: int | None = None) -> None:
        """Show the progress, after DELAY_S and not more often than can be read. `total` is a number of URLs."""
        now = self._clock.monotonic()
        if now < self._next:
            return
        self._next = now + (TERMINAL_PERIOD_S if self.is_terminal else LINE_PERIOD_S)
        if self.is_terminal:
            self.show(doing, done, total)
        else:
            self._stream.write(f"{doing}\n" if total is None else f"{doing}: {done:,} of {counted(total, 'URL')}\n")
            self._stream.flush()

    def show(self, doing: str, done: int = 0, total: int | None = None) -> None:
        """Show it at once, on a terminal: lines whose text changes, or a bar for each thing that has a total. The log appears above."""
        if self._live is None:
            self._live = _live(self._stream, has_bars=total is not None)
            self._live.start()
            self._handlers = [one for one in logging.root.handlers if getattr(one, "stream", None) is self._stream]
            for handler in self._handlers:
                handler.setStream(_AboveDisplay(self._live.console))  # type: ignore[attr-defined]
        bar = "" if total is None else doing
        if bar not in self._tasks:
            self._tasks[bar] = self._live.add_task(doing, total=total)
        self._live.update(self._tasks[bar], description=doing, completed=done, refresh=True)

    def close(self) -> None:
        if self._live is not None:
            for handler in self._handlers:
                handler.setStream(self._stream)  # type: ignore[attr-defined]
            self._live.stop()
            self._live = None
            self._tasks.clear()


class _AboveDisplay:
    """A stream for the log: what is written appears above the lines of the display."""

    def __init__(self, console: rich.console.Console) -> None:
        self._console = console

    def write(self, text: str) -> int:
        from rich.text import Text  # noqa: PLC0415

        self._console.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=True)
        return len(text)

    def flush(self) -> None:
        pass


def _live(stream: TextIO, *, has_bars: bool) -> rich.progress.Progress:
    from rich.console import Console  # noqa: PLC0415 - a tenth of a second that only a terminal has to pay
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns: list[ProgressColumn] = [TextColumn("{task.description}", style="none", markup=False)]
    if has_bars:
        columns += BarColumn(), TextColumn("{task.completed:,} of {task.total:,} URLs"), TimeRemainingColumn()
    # What code of the user's prints belongs to standard output, also while that is a file.
    return Progress(
        *columns, console=Console(file=stream), auto_refresh=False, transient=True, redirect_stdout=sys.stdout.isatty()
    )
