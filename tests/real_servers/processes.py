"""Servers that a test starts as processes of its own, in the foreground."""

from __future__ import annotations

import signal
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread

import pytest

_LINES_SHOWN = 40


@contextmanager
def running(
    command: Sequence[str],
    *,
    ready: str,
    environment: Mapping[str, str] | None = None,
    ended_by: signal.Signals = signal.SIGKILL,
) -> Iterator[subprocess.Popen[str]]:
    """Run a program until the block ends, which begins once the program has printed a line with `ready`; fail if it ends before."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env=None if environment is None else {**environment},
    )
    printed: deque[str] = deque(maxlen=_LINES_SHOWN)
    known, is_ready = Event(), Event()

    def listen() -> None:
        """Read all that it prints: a pipe that is full would stop it."""
        for line in process.stdout or ():
            printed.append(line)
            if ready in line:
                is_ready.set()
                known.set()
        known.set()

    listening = Thread(target=listen, daemon=True)
    listening.start()
    try:
        known.wait()
        if not is_ready.is_set():
            pytest.fail(f"{command[0]} did not start; the last it printed:\n{''.join(printed)}")
        yield process
    finally:
        process.send_signal(ended_by)
        process.wait()
        listening.join()
        assert process.stdout is not None
        process.stdout.close()
