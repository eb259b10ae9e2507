"""Runs of the command line: to the end, or beside a test that kills them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.notifications import LONGEST_WAIT_S, Running, start_program
from tests.quick_start import IS_POSSIBLE, quick_scrapy, start_quickly

ROOT = Path(__file__).resolve().parent.parent
"""The repository: what `scrapy` must be run in."""


@dataclass(frozen=True, slots=True)
class CompletedRun:
    """What is no UTF-8 of its output is in surrogates, as `os.fsencode` takes it."""

    returncode: int
    stdout: str
    stderr: str

    def succeeded(self) -> CompletedRun:
        """Itself, when the exit status is 0; else fails the test with all that was printed."""
        assert self.returncode == 0, f"exit status {self.returncode}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"
        return self


def run_scrapy(
    args: Sequence[str],
    cwd: Path = ROOT,
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = LONGEST_WAIT_S,
    python: str = sys.executable,
) -> CompletedRun:
    """Run `scrapy args…` to its end. One that takes longer than `timeout` seconds is killed and fails the test."""
    everything = environment(env)
    with tempfile.TemporaryDirectory() as folder:
        printed, errors = Path(folder, "stdout"), Path(folder, "stderr")
        for path in (printed, errors):
            path.touch()
        if IS_POSSIBLE and python == sys.executable:
            status = quick_scrapy(args, cwd, everything, printed, errors, timeout)
        else:
            status = _scrapy([python, "-m", "scrapy", *args], cwd, everything, printed, errors, timeout)
        stdout, stderr = (path.read_bytes().decode(errors="surrogateescape") for path in (printed, errors))
    if status is None:
        output_text = f"--- stdout\n{stdout}\n--- stderr\n{stderr}"
        raise AssertionError(f"scrapy {' '.join(args)} took longer than {timeout} s\n{output_text}")
    return CompletedRun(status, stdout, stderr)


def _scrapy(command: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: Path, stderr: Path, timeout: float) -> int | None:
    """As `quick_scrapy`, in an interpreter of its own."""
    with stdout.open("wb") as out, stderr.open("wb") as err:
        try:
            done = subprocess.run(
                command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return None
    return done.returncode


def start_scrapy(
    args: Sequence[str],
    *,
    output: Path,
    env: Mapping[str, str] | None = None,
    first: Callable[[], None] | None = None,
) -> Running:
    """Start `scrapy args…` and return at once, so that a test can kill it; the caller ends it.

    What it prints goes to a file, piece by piece; each piece and the end are reported (`tests.notifications`). `first`: what is called
    in its process before.
    """
    if IS_POSSIBLE:
        return start_quickly(args, ROOT, environment(env), output, first)
    assert first is None
    return start_program([sys.executable, "-m", "scrapy", *args], output=output, cwd=ROOT, env=environment(env))


def environment(more: Mapping[str, str] | None) -> dict[str, str]:
    """The environment of the test without what would configure the crawler, and with `more`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CRAWLSPACE_", "SCRAPY_"))}
    return {**kept, "PYTHONIOENCODING": "utf-8", **(more or {})}
