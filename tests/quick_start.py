"""Scrapy's command line without the second that it takes to start: each process is forked off one that has imported all there is.

So are the processes that a command starts with `python -m` to make documents again.

What differs from `python -m scrapy`: modules are there already, and what Python reads from its environment as it starts was read before,
but for the places of modules. A project elsewhere finds none of this folder's spiders, middlewares and pipelines imported.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import SimpleNamespace

import scrapy.core.downloader.contextfactory  # noqa: F401 - early, as in crawlspace/commands/crawl.py
from scrapy import cmdline

from crawlspace.runtime.session import replay
from tests.notifications import Running

IS_POSSIBLE = "forkserver" in multiprocessing.get_all_start_methods()
_READS_THE_ENVIRONMENT = "crawlspace.settings"
_LARGEST_MESSAGE = 1 << 20
_ROOT = Path(__file__).resolve().parent.parent
_OF_PROJECT = ("spiders", "middlewares", "pipelines")

_reaping = threading.Lock()
"""A start reads the exit status of each process that has ended, and that can be read once: no other thread reads one meanwhile."""

entry_points = cache(cmdline.entry_points)  # type: ignore[attr-defined]
"""The commands of installed packages: the search for them took a tenth of a command's time."""

Output = Path | Connection
"""A file that is appended to, or the writing end of a pipe."""


class _Forked:
    """A process that is Scrapy, forked off the server."""

    def __init__(
        self,
        args: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        stdout: Output,
        stderr: Output,
        first: Callable[[], None] | None = None,
    ) -> None:
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["tests.preloaded"])
        self._process = server.Process(target=_be_scrapy, args=(list(args), cwd, dict(env), stdout, stderr, first))
        with _reaping:
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def wait(self, timeout: float | None = None) -> int:
        if not wait([self._process.sentinel], timeout):
            raise subprocess.TimeoutExpired("scrapy", timeout or 0.0)
        with _reaping:
            self._process.join()
            status = self._process.exitcode
        assert status is not None
        return status

    def kill(self) -> None:
        self._process.kill()


def start_quickly(
    args: Sequence[str], cwd: Path, env: Mapping[str, str], output: Path, first: Callable[[], None] | None = None
) -> Running:
    """Start `scrapy args…` and return at once; what it prints goes to a file. `first` is called in the new process before."""
    reading, writing = multiprocessing.Pipe(duplex=False)
    with reading, writing:
        process = _Forked(args, cwd, env, writing, writing, first)
        return Running(process, os.dup(reading.fileno()), output)


def quick_scrapy(
    args: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: Path, stderr: Path, timeout: float
) -> int | None:
    """Run `scrapy args…` to its end and return its exit status, negative for a signal; None where it took too long and was killed.

    What it prints is appended to files that are there.
    """
    process = _Forked(args, cwd, env, stdout, stderr)
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _be_scrapy(
    args: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: Output, stderr: Output, first: Callable[[], None] | None
) -> None:
    for output, number in ((stdout, 1), (stderr, 2)):
        if isinstance(output, Path):
            with output.open("ab") as file:
                os.dup2(file.fileno(), number)
        else:
            os.dup2(output.fileno(), number)
    for output in {stdout, stderr}:
        if not isinstance(output, Path):
            output.close()  # the pipe ends with this process
    _be_started(cwd, env)
    if "--extract" in args:
        spare = _Spare()
        names = {"DEVNULL": subprocess.DEVNULL, "TimeoutExpired": subprocess.TimeoutExpired}
        replay.subprocess = SimpleNamespace(Popen=spare.start, **names)  # type: ignore[attr-defined, assignment]
    if first is not None:
        first()
    cmdline.execute(["scrapy", *args])


class _Spare:
    """A process that is forked before Scrapy does anything, to be what `subprocess.Popen` starts first."""

    def __init__(self) -> None:
        self.returncode: int | None = None
        self._ending = threading.Thread(target=self._read_status, daemon=True)
        self._channel, waiting = socket.socketpair()
        with waiting:
            self.pid = os.fork()
            if self.pid == 0:
                self._channel.close()
                _be_module(waiting)

    def start(self, command: Sequence[str], *, pass_fds: Sequence[int], env: Mapping[str, str], **how: object) -> object:
        """Start `python -m MODULE DESCRIPTOR` in a session of its own; the second one in a new interpreter."""
        if self._channel.fileno() < 0:
            return subprocess.Popen(command, pass_fds=pass_fds, env=env, **how)  # type: ignore[call-overload]
        with self._channel as channel:
            socket.send_fds(channel, [json.dumps([command[2], str(Path.cwd()), dict(env)]).encode()], list(pass_fds))
            channel.recv(1)  # it leads its session
        self._ending.start()
        return self

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._ending.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("python", timeout or 0.0)
        return self.returncode

    def _read_status(self) -> None:
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _be_module(waiting: socket.socket) -> None:
    """Wait for a module and its descriptor, and be it; end where none comes."""
    message, descriptors, *_ = socket.recv_fds(waiting, _LARGEST_MESSAGE, 1)
    if not message:
        sys.exit()
    module, cwd, env = json.loads(message)
    os.setsid()
    waiting.close()
    _be_started(Path(cwd), env)
    sys.exit(importlib.import_module(module).main(descriptors[0]))


def _be_started(cwd: Path, env: Mapping[str, str]) -> None:
    """Have streams, environment and modules as in an interpreter that has just started there."""
    # The streams of the process that this one is forked from may be of another kind, and stay as they were.
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that a shell runs in the background have it ignored
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    if cwd != _ROOT or env.get("PYTHONPATH"):
        _be_elsewhere(cwd, env)
    else:
        cmdline.entry_points = entry_points  # type: ignore[attr-defined, assignment]
    importlib.reload(importlib.import_module(_READS_THE_ENVIRONMENT))


def _be_elsewhere(cwd: Path, env: Mapping[str, str]) -> None:
    """Have modules found where an interpreter that starts there finds them, and forget those of the project in this folder."""
    own = [] if env.get("PYTHONSAFEPATH") else [str(cwd)]
    named = [place for place in env.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[:] = [*own, *named, *(place for place in sys.path if place not in ("", str(_ROOT), *own, *named))]
    for name in [name for name in sys.modules if name.partition(".")[0] in _OF_PROJECT]:
        del sys.modules[name]
