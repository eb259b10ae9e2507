"""A process that a crawl has started, and the crawl's end of its socket.

The process ends when the socket is closed, so none is left of a crawl that was killed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress

LAST_WORDS_S = 0.05
"""A process that closed its socket has ended, or is about to."""
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""Environment variables that are passed on; none that may hold secrets, because a file may take over the process that reads it."""


class ChildProcess:
    """A process of `command`, which is given the number of its socket and `arguments`. Raises OSError."""

    def __init__(self, command: Sequence[str], *arguments: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as unless_started:
            unless_started.callback(ours.close)
            self._process = subprocess.Popen(  # noqa: S603 - this Python
                [*command, str(theirs.fileno()), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=_environment(),
                start_new_session=True,  # so that what a converter starts can be killed with it, and Ctrl-C does not end it
            )
            unless_started.pop_all()
        self.socket = ours

    def how_it_ended(self) -> str:
        """Return by which signal or with which status the process has ended, if that is known already."""
        self.is_gone(within_s=LAST_WORDS_S)
        status = self._process.returncode
        if status is None:
            return ""
        return f"by signal {-status}" if status < 0 else f"with exit status {status}"

    def kill(self) -> None:
        """End the process and all that it has started."""
        with suppress(ProcessLookupError, PermissionError):  # what it has started may outlive it
            os.killpg(self._process.pid, signal.SIGKILL)

    def is_gone(self, *, within_s: float = 0.0) -> bool:
        """Return whether the process has ended, after waiting for that."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)
        return self._process.returncode is not None


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"}
