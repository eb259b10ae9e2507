"""`scrapy status --watch`: on a terminal, and for a program."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from crawlspace.state.sqlite.store import SqliteStore
from tests.command_line import ROOT, environment
from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.notifications import LONGEST_WAIT_S

WATCH = ("status", "demo", "--watch", "0.1")
INTERRUPTIBLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""A program that heeds Ctrl-C, also where the tests run in the background of a shell, which has it ignored."""


@pytest.fixture
def demo(project: MakeProject) -> Project:
    made = project({"demo/start_urls.txt": "http://www.example.com/\n"})
    state = made.data / "demo" / "state.db"
    state.parent.mkdir(parents=True)
    with closing(SqliteStore(state)):
        pass
    return made


def command(demo: Project, *more: str) -> list[str]:
    folders = ("-s", f"CRAWLSPACE_COLLECTIONS_DIR={demo.collections}", "-s", f"CRAWLSPACE_DATA_DIR={demo.data}")
    return [sys.executable, "-c", INTERRUPTIBLE, "-m", "scrapy", *WATCH, *more, *folders]


def read(terminal: int) -> Iterator[str]:
    """What is written to a terminal, as it comes, until its program ends. Fails the test where nothing comes any more."""
    try:
        while select.select([terminal], [], [], LONGEST_WAIT_S)[0]:
            if not (part := os.read(terminal, 65_536)):
                return
            yield part.decode(errors="replace")
    except OSError:  # the program has ended
        return
    raise AssertionError("nothing is written, and the program has not ended")


def test_the_state_is_drawn_again_until_ctrl_c(demo: Project) -> None:
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(ROOT)
        os.execvpe(sys.executable, command(demo), environment({"TERM": "xterm"}))
    written, seen_before_the_end = "", 0
    try:
        for part in read(terminal):
            written += part
            draws = written.count("again every 0.1 s; Ctrl-C ends")
            if draws >= 3 and not seen_before_the_end:
                seen_before_the_end = draws
                os.write(terminal, b"\x03")
            assert draws < seen_before_the_end + 600, "it goes on after Ctrl-C"
    except BaseException:
        os.kill(process, signal.SIGKILL)
        raise
    finally:
        os.close(terminal)
        _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0, written
    _, _, left = written.rpartition("\x1b[?1049l")  # the screen before it is shown again
    assert "demo is not being crawled at present" in left, "the last state stays there"
    assert "Traceback" not in written


def test_a_program_reads_a_line_each_time(demo: Project) -> None:
    started = subprocess.Popen(command(demo, "--json"), cwd=ROOT, env=environment(None), stdout=subprocess.PIPE, text=True)
    with started as watching:
        assert watching.stdout is not None
        try:
            seen = [json.loads(watching.stdout.readline()) for _ in range(3)]
            watching.send_signal(signal.SIGINT)
            watching.stdout.read()
            assert watching.wait(LONGEST_WAIT_S) == 0
        finally:
            watching.kill()
    assert [(one["collection"], one["run"]) for one in seen] == [("demo", None)] * 3


@pytest.mark.parametrize("seconds", ["0", "-1", "abc", "nan", "1e9", ""])
def test_wrong_seconds(run: Run, seconds: str) -> None:
    ended = run("status", "demo", f"--watch={seconds}")
    assert ended.returncode == 2
    assert re.search(r"^--watch takes a number of seconds from 0.1 to 86,400, not ", ended.stderr)


def test_neither_a_terminal_nor_json(run: Run) -> None:
    ended = run("status", "demo", "--watch")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "add --json" in ended.stderr
