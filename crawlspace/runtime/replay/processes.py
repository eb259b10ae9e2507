"""The processes that make documents anew, each with a part of the pages: parsing them is what takes the time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress

from crawlspace.crawl.replay import Remade
from crawlspace.errors import CrawlspaceError
from crawlspace.framing import LENGTH_BYTES, framed
from crawlspace.model import UrlState
from crawlspace.runtime.replay.messages import Fault, Pages, ReplayStart, answer_of

_COMMAND = (sys.executable, "-m", "crawlspace.runtime.replay.process")
END_S = 60.0


class ReplayProcesses:
    """So many processes, which run until `close`."""

    def __init__(self, number: int, start: ReplayStart) -> None:
        with ExitStack() as unless_started:
            self._processes = []
            for _ in range(number):
                process = _ReplayProcess(start)
                self._processes.append(process)
                unless_started.callback(process.kill)
            unless_started.pop_all()

    def begin(self, states: Sequence[UrlState]) -> list[Future[list[Remade]]]:
        """Have documents of pages be made anew, behind those of earlier calls. What comes of them raises CrawlspaceError."""
        number = len(self._processes)
        return [process.begin(list(states[at::number])) for at, process in enumerate(self._processes) if states[at::number]]

    def close(self) -> None:
        """Wait until all have ended, with the pipelines of the project closed. Raises CrawlspaceError."""
        for process in self._processes:
            process.end()

    def kill(self) -> None:
        """End all at once."""
        for process in self._processes:
            process.kill()


class _ReplayProcess:
    def __init__(self, start: ReplayStart) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this Python
                [*_COMMAND, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # Ctrl-C is for the command, which ends this process
            )
        self._socket = ours
        self._stream = ours.makefile("rb")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="replay")
        ours.sendall(framed(start))

    def begin(self, states: list[UrlState]) -> Future[list[Remade]]:
        return self._thread.submit(self._ask, states)

    def end(self) -> None:
        self._thread.shutdown()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise CrawlspaceError(
                f"a process that makes documents anew did not end within {END_S:g} s: see the pipelines and extensions of the project"
            ) from None
        self._close()

    def kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._thread.shutdown(cancel_futures=True)
        self._close()

    def _close(self) -> None:
        self._stream.close()
        self._socket.close()

    def _ask(self, states: list[UrlState]) -> list[Remade]:
        with suppress(OSError):  # it has ended, and perhaps said why
            self._socket.sendall(framed(Pages(states)))
        return [self._answer() for _ in states]

    def _answer(self) -> Remade:
        try:
            length = self._stream.read(LENGTH_BYTES)
            body = self._stream.read(int.from_bytes(length, "big"))
        except OSError:
            body = b""
        if not body:
            raise self._ended()
        answer = answer_of(body)
        if isinstance(answer, Fault):
            raise CrawlspaceError(answer.sentence)
        return answer.remade

    def _ended(self) -> CrawlspaceError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        status = self._process.returncode
        how = "" if status is None else f" (signal {-status})" if status < 0 else f" (exit status {status})"
        return CrawlspaceError(
            f"a process that makes documents anew has ended{how}: the log says why, if the code of the project ended it"
        )
