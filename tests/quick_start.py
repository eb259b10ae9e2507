"""Scrapy's command line without the second that it takes to start: each process is forked off one that has imported all there is.

What differs from `python -m scrapy`: modules are there already, and what Python reads from its environment as it starts was read before.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The repository: what `scrapy` must be run in."""
_PACKAGES = ("scrapy.commands", "crawlspace", "middlewares", "pipelines", "spiders")
_READ_ANEW = "crawlspace.settings"
"""It reads the environment."""
_NO_REACTOR_YET = "twisted.internet.reactor"


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run: `scrapy args…`, in which folder and environment, and the files for what it prints."""

    args: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    stdout: str
    stderr: str


class QuickStart:
    """A process that has imported what a crawl needs, and one after the other runs what it is asked to."""

    def __init__(self) -> None:
        self._socket, there = socket.socketpair()
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.quick_start", str(there.fileno())],
                cwd=ROOT,
                env={**os.environ, "PYTHONIOENCODING": "utf-8"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
            )

    def run(self, order: Order, timeout: float) -> int | None:
        """Return the exit status, negative for a signal; None where it took longer than `timeout` seconds and was killed."""
        self._socket.sendall(json.dumps(asdict(order)).encode() + b"\n")
        process = self._answer()
        self._socket.settimeout(timeout)
        try:
            return self._answer()
        except TimeoutError:
            self._socket.settimeout(None)
            os.kill(process, signal.SIGKILL)
            self._answer()
            return None
        finally:
            self._socket.settimeout(None)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()

    def _answer(self) -> int:
        line = b""
        while not line.endswith(b"\n"):
            more = self._socket.recv(1)
            if not more:
                raise RuntimeError("the process that starts others has ended: see what it has printed to stderr")
            line += more
        return int(line)


# --- in the process that starts others ------------------------------------------------------------------------------


def _serve(connection: socket.socket) -> Order | None:
    """Fork a process for each order; in such a one return the order, and in this one None, when nobody asks any more."""
    with connection, connection.makefile("rb") as orders:
        for line in orders:
            process = os.fork()
            if not process:
                return Order(**json.loads(line))
            connection.sendall(b"%d\n" % process)
            _, status = os.waitpid(process, 0)
            connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    return None


def _become(order: Order) -> None:
    """Be what `python -m scrapy args…` is at its beginning."""
    for path, stream in ((order.stdout, 1), (order.stderr, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream)
        os.close(file)
    os.environ.clear()
    os.environ.update(order.env)
    time.tzset()
    os.chdir(order.cwd)
    sys.path[0] = order.cwd
    sys.argv = ["scrapy", *order.args]
    importlib.reload(sys.modules[_READ_ANEW])


def _import_all() -> None:
    for package in _PACKAGES:
        for name in (package, *_modules_in(package)):
            importlib.import_module(name)
    if _NO_REACTOR_YET in sys.modules:
        raise RuntimeError(f"{_NO_REACTOR_YET} was imported: each process chooses its own")
    gc.freeze()


def _modules_in(package: str) -> Iterator[str]:
    path = importlib.import_module(package).__path__
    return (module.name for module in pkgutil.walk_packages(path, f"{package}."))


if __name__ == "__main__":
    _import_all()
    order = _serve(socket.socket(fileno=int(sys.argv[1])))
    if order is not None:
        _become(order)
        from scrapy.cmdline import execute

        execute()
