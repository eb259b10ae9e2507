"""Run programs in turn and measure their cost.

Machines are shared and drift; so two programs run A B A B …, and are compared pair by pair.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Self

PROJECT = Path(__file__).resolve().parents[1]
SCRAPY = (sys.executable, "-m", "scrapy")


class BenchmarkFailed(Exception):
    """A precondition of a benchmark does not hold, so its numbers would be meaningless."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result table. `met` is None without a target."""

    benchmark: str
    measure: str
    value: str
    target: str = ""
    met: bool | None = None

    def __str__(self) -> str:
        verdict = {None: "", True: "  ok", False: "  NOT MET"}[self.met]
        target = f"  (target {self.target})" if self.target else ""
        return f"{self.benchmark:<12} {self.measure:<58} {self.value}{target}{verdict}"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run of a program, its children included."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    status: int

    def pages_per_s(self, pages: int) -> float:
        return pages / self.wall_s


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
    limit_s: float = 1800,
    folder: Path = PROJECT,
) -> Cost:
    """Run a program to its end in a folder and return its cost.

    CPU is user and system time of the process and the children it waited for; the peak is the largest resident set of any one of them. The
    system counts the peak from before the exec, so a small process starts the program. Its output goes to `log`.
    """
    reading, writing = os.pipe()
    with log.open("wb") if log else tempfile.TemporaryFile() as output, os.fdopen(reading, "rb") as measured:
        starter = [sys.executable, "-I", "-S", "-c", _MEASURE, str(writing)]
        process = start([*starter, *command], environment=environment, output=output.fileno(), pass_fds=[writing], folder=folder)
        os.close(writing)
        killer = threading.Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
        killer.start()
        try:
            found = measured.read().split()
            process.wait()
        finally:
            killer.cancel()
    if process.returncode == -signal.SIGKILL:
        raise BenchmarkFailed(f"{command[0]} had not ended after {limit_s:g} s")
    if not found:
        raise BenchmarkFailed(f"{command[0]} could not be started")
    wall_s, cpu_s, peak, status = map(float, found)
    return Cost(wall_s, cpu_s, peak / (1024 * 1024 if sys.platform == "darwin" else 1024), int(status))


_MEASURE = """
import os, sys, time
writing = int(sys.argv[1])
os.set_inheritable(writing, False)
began = time.perf_counter()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
cost = time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status)
os.write(writing, " ".join(map(str, cost)).encode())
"""


def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    output: int,
    pass_fds: Sequence[int] = (),
    folder: Path = PROJECT,
) -> subprocess.Popen[bytes]:
    """Start a program in a folder, in a process group of its own."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        pass_fds=pass_fds,
    )


def stop(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM) -> None:
    """End a process started by `start`, and wait for it."""
    if process.poll() is None:
        process.send_signal(how)
    process.wait(timeout=30)


def in_turn(programs: Mapping[str, Callable[[], Cost]], rounds: int) -> dict[str, list[Cost]]:
    """Run the programs in turn, `rounds` times."""
    costs: dict[str, list[Cost]] = {name: [] for name in programs}
    for number in range(rounds):
        for name, program in programs.items():
            cost = program()
            say(f"round {number + 1} {name}: {cost.wall_s:.1f} s, CPU {cost.cpu_s:.1f} s, {cost.peak_mb:.0f} MB")
            costs[name].append(cost)
    return costs


def taken_away_s() -> float | None:
    """Return the time that the host took our processors for other machines (steal in proc(5)), summed over processors; None if
    unknown.

    In steps of 10 ms.
    """
    try:
        first, _, _ = Path("/proc/stat").read_bytes().partition(b"\n")
        return int(first.split()[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, LookupError, ValueError):
        return None


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Return the median of the ratios, pair by pair."""
    return median(a / b for a, b in zip(above, below, strict=True))


def tail(log: Path, lines: int = 15) -> str:
    """Return the end of a log, for the message of a failure."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def say(text: str) -> None:
    """Print progress to stderr, separate from the results."""
    print(text, file=sys.stderr, flush=True)


def finish(benchmark: Callable[[], Sequence[Row]]) -> int:
    """Run one benchmark and print its rows; return exit status 1 if a target was missed or nothing could be measured."""
    try:
        rows = benchmark()
    except BenchmarkFailed as failure:
        say(f"failed: {failure}")
        return 1
    for row in rows:
        print(row)
    return int(any(row.met is False for row in rows))


# --- processor -----------------------------------------------------------------------------------------------------


_PERIOD_S = 0.5


class ProcessorWaits:
    """Watches the programs that this process starts while the block runs. `waited_s` is for how long they were ready to run and did not."""

    def __init__(self) -> None:
        self._waits: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def waited_s(self) -> float | None:
        """Seconds; None if the system does not report it. Counts the main thread of each program, which runs a crawl's loop."""
        return sum(self._waits.values()) if self._waits else None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def __str__(self) -> str:
        return "unknown" if self.waited_s is None else f"{self.waited_s:.1f} s"

    def _watch(self) -> None:
        while not self._over.wait(_PERIOD_S):
            for process in _children():
                with contextlib.suppress(OSError, ValueError, IndexError):  # it may have ended meanwhile
                    waited = Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split()[1]
                    self._waits[process] = int(waited) / 1e9


def _children() -> list[int]:
    """The processes that any thread of this one has started."""
    found: list[int] = []
    for children in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, children.read_text(encoding="ascii").split())
    return found
