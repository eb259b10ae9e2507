"""Runs the command of CRAWLSPACE_ON_FINISH when a crawl has ended."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from contextlib import suppress

from crawlspace.config.on_finish import ON_FINISH, TIMEOUT, FinishCommand
from crawlspace.printable import printable

logger = logging.getLogger(__name__)

_STDERR = 2
_GRACE_S = 5
"""Until what does not end when it is asked to is killed."""


def run_finish_command(command: FinishCommand, summary: str, *, collection: str) -> None:
    """Run the command with the summary on its standard input, and log in one sentence why it failed, if it did.

    What it prints goes to standard error. It runs in a session of its own, so that all it has started ends with it.
    """
    failure = _failure_of(command, summary)
    if failure:
        logger.error("%s of %s: %s %s", ON_FINISH, collection, printable(command.program), failure)


def _failure_of(command: FinishCommand, summary: str) -> str:
    try:
        process = subprocess.Popen(  # noqa: S603 - a command of the user's, without a shell
            command.words, stdin=subprocess.PIPE, stdout=_STDERR, text=True, encoding="utf-8", start_new_session=True
        )
    except OSError as error:
        return f"could not be run: {error.strerror}"
    with process:
        try:
            process.communicate(summary, timeout=command.timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return f"was ended, because it took longer than {command.timeout_s:g} s ({TIMEOUT})"
        except KeyboardInterrupt:
            _end(process)
            return "was ended by Ctrl-C"
    if process.returncode < 0:
        return f"was ended by the signal {-process.returncode}"
    return f"ended with exit status {process.returncode}" if process.returncode else ""


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
