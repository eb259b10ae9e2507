"""Shows how far a command or a crawl has come: on a terminal a live line, with a bar where the end is known; elsewhere lines now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from crawlspace.plural import counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from crawlspace.clock import Clock

DELAY_S = 2.0
"""What is done by then is not shown."""
TERMINAL_PERIOD_S = 0.25
LINE_PERIOD_S = 10.0


class ProgressDisplay:
    """What is shown on one stream. It opens by itself; `close` erases it, and the next call opens it again."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self.is_terminal = stream.isatty()
        self._stream = stream
        self._clock = clock
        self._next = clock.monotonic() + DELAY_S
        self._live: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, doing: str, done: int = 0, total: int | None = None) -> None:
        """Show what is done, from the third second on and not more often than can be read. `total` is a number of URLs."""
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
        """Show it at once, on a terminal: one line whose text changes, or a bar for each thing that has a total."""
        if self._live is None:
            self._live = _live(self._stream, has_bars=total is not None)
            self._live.start()
        bar = "" if total is None else doing
        if bar not in self._tasks:
            self._tasks[bar] = self._live.add_task(doing, total=total)
        self._live.update(self._tasks[bar], description=doing, completed=done, refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
            self._tasks.clear()


def _live(stream: TextIO, *, has_bars: bool) -> Progress:
    from rich.console import Console  # noqa: PLC0415 - a tenth of a second that only a terminal has to pay
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns: list[ProgressColumn] = [TextColumn("{task.description}", style="none", markup=False)]
    if has_bars:
        columns += BarColumn(), TextColumn("{task.completed:,} of {task.total:,} URLs"), TimeRemainingColumn()
    return Progress(*columns, console=Console(file=stream), auto_refresh=False, transient=True)
