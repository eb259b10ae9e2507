"""Waiting for what happens in other threads and processes: whoever causes a change reports it, and nothing looks again and again."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Protocol

LONGEST_WAIT_S = 600.0
"""A condition that does not hold by then fails the test, and so does a command that has not ended: far more than a busy machine needs.

What is to happen sooner than something else is told by events, not by a shorter limit. `faulthandler_timeout` of pyproject.toml is longer.
"""
PIECE_BYTES = 1 << 16

_happened = threading.Event()
"""Set by every report of this process: a condition is looked at once more than needed, at worst."""


def notify() -> None:
    """Have the test that waits look at its condition again. May be called from any thread."""
    _happened.set()


def wait_until(holds: Callable[[], bool], *, timeout_s: float = LONGEST_WAIT_S) -> None:
    """Return when the condition holds. It is evaluated now and after each report."""
    give_up_at = monotonic() + timeout_s
    while True:
        _happened.clear()
        if holds():
            return
        assert _happened.wait(max(0.0, give_up_at - monotonic())), f"what is waited for has not happened within {timeout_s} s"


class Process(Protocol):
    """What starts and ends a process, as `subprocess.Popen` shows it."""

    @property
    def pid(self) -> int: ...
    def wait(self) -> int: ...


class Running:
    """A process whose output is copied to a file as it comes; each piece of it is reported, and so is the end."""

    def __init__(self, process: Process, output: int, file: Path) -> None:
        """`output`: the reading end of the pipe that is the standard output of this process and of no other; closed at its end."""
        self.pid = process.pid
        self._file = file
        self._status: int | None = None
        self._copying = threading.Thread(target=self._copy, args=(process, output), name=f"output of {self.pid}", daemon=True)
        file.write_bytes(b"")
        self._copying.start()

    def output(self) -> str:
        """Return what it has printed so far."""
        return self._file.read_text(encoding="utf-8", errors="replace")

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal, once the process has ended and all its output is in the file."""
        return self._status

    def wait(self, timeout: float = LONGEST_WAIT_S) -> int:
        """Return the exit status once it has ended; raise TimeoutExpired where that takes too long."""
        self._copying.join(timeout)
        if self._status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return self._status

    def send_signal(self, number: int) -> None:
        if self._status is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _copy(self, process: Process, output: int) -> None:
        with self._file.open("ab", buffering=0) as copy:
            while piece := os.read(output, PIECE_BYTES):
                copy.write(piece)
                notify()
        os.close(output)
        self._status = process.wait()
        notify()


def start_program(command: list[str], *, output: Path, cwd: Path, env: dict[str, str] | None = None) -> Running:
    """Start a program and return at once; what it prints goes to a file."""
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.STDOUT)
    finally:
        os.close(writing)
    return Running(process, reading, output)
