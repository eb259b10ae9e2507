"""Scrapy's command line without the second that it takes to start: each process is forked off one that has imported all there is.

What differs from `python -m scrapy`: modules are there already, and what Python reads from its environment as it starts was read before.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from scrapy.cmdline import execute

IS_POSSIBLE = "forkserver" in multiprocessing.get_all_start_methods()
_READS_THE_ENVIRONMENT = "crawlspace.settings"


class Running(Protocol):
    """A process that was started, as `subprocess.Popen` shows it."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def kill(self) -> None: ...


class _Forked:
    def __init__(self, args: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: Path, stderr: Path) -> None:
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["tests.preloaded"])
        self._process = server.Process(target=_be_scrapy, args=(list(args), cwd, dict(env), stdout, stderr))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired("scrapy", timeout or 0.0)
        return status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self._process.kill()


def start_quickly(args: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: Path, stderr: Path) -> Running:
    """Start `scrapy args…` and return at once; what it prints goes to files, which may be the same."""
    return _Forked(args, cwd, env, stdout, stderr)


def quick_scrapy(
    args: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: Path, stderr: Path, timeout: float
) -> int | None:
    """Run `scrapy args…` to its end and return its exit status, negative for a signal; None where it took too long and was killed."""
    process = start_quickly(args, cwd, env, stdout, stderr)
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _be_scrapy(args: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: Path, stderr: Path) -> None:
    for path, stream in ((stdout, sys.stdout), (stderr, sys.stderr)):
        with path.open("ab") as file:
            os.dup2(file.fileno(), stream.fileno())
        stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    importlib.reload(importlib.import_module(_READS_THE_ENVIRONMENT))
    execute(["scrapy", *args])
