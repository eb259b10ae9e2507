"""A file that hangs, crashes its process or needs too much memory costs itself; the next one is read by another process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from crawlspace.content.documents.contents import FileContents, TextStatus
from crawlspace.content.documents.jobs import FileJob
from crawlspace.runtime.files import processes as module
from crawlspace.runtime.files.processes import COMMAND, FileProcesses
from tests.notifications import LONGEST_WAIT_S
from tests.unit.content.documents.made_files import docx, para, xlsx

READABLE = FileJob(None, data=docx(para("Hello")))
MEMORY = 512 * 1024 * 1024


def read(*jobs: FileJob, command: Sequence[str] = COMMAND, number: int = 1, memory: int = MEMORY) -> list[FileContents]:
    async def all_of_them() -> list[FileContents]:
        processes = FileProcesses(number, memory_bytes=memory, command=command)
        try:
            return await asyncio.gather(*(processes.read(job) for job in jobs))
        finally:
            processes.close()

    return asyncio.run(all_of_them())


def test_a_file_by_its_bytes_and_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(READABLE.data)
    assert [one.text for one in read(READABLE, FileJob(None, path=str(path)))] == ["Hello", "Hello"]


def as_program(code: str) -> str:
    return f"{sys.executable} -c '{code}' {{file}}"


HANGS = FileJob("application/x", data=b"x", converter=as_program("import signal; signal.pause()"), timeout_s=0.2)
CRASHES = FileJob("application/x", data=b"x", converter=as_program("import os, signal; os.kill(os.getppid(), signal.SIGSEGV)"))
EXPLODES = FileJob(None, data=xlsx([["a" * 1000] * 20_000]))


@pytest.mark.parametrize(
    ("job", "memory", "status", "detail"),
    [
        (HANGS, MEMORY, TextStatus.TIMED_OUT, "after 0.2 s"),
        (CRASHES, MEMORY, TextStatus.CRASHED, "by signal 11"),
        (EXPLODES, 16 * 1024 * 1024, None, ""),
    ],
    ids=["hangs", "crashes", "explodes"],
)
def test_a_bad_file_costs_only_itself(
    monkeypatch: pytest.MonkeyPatch, job: FileJob, memory: int, status: TextStatus | None, detail: str
) -> None:
    monkeypatch.setattr(module, "LAST_WORDS_S", LONGEST_WAIT_S)  # how it ended is waited for, and told as soon as it is known
    bad, good = read(job, READABLE, memory=memory)
    assert (bad.text, good.text) == ("", "Hello")
    if status is None:  # Python reports it, or the library ends the process
        assert bad.status in (TextStatus.OVER_LIMITS, TextStatus.CRASHED, TextStatus.DAMAGED)
    else:
        assert (bad.status, bad.detail) == (status, detail)


@pytest.mark.parametrize(
    "command",
    [
        (sys.executable, "-c", "raise SystemExit(1)"),
        (sys.executable, "-c", "import socket, sys; socket.socket(fileno=int(sys.argv[1])).send(bytes([2]))"),
        ("/no/such/program",),
    ],
    ids=["ends", "says something else", "is not there"],
)
def test_a_process_that_does_not_start(command: Sequence[str], caplog: pytest.LogCaptureFixture) -> None:
    assert [one.status for one in read(READABLE, READABLE, command=command)] == [TextStatus.CRASHED] * 2
    assert len([one for one in caplog.messages if "no process that reads files can be started" in one]) == 1


ANSWERS = (
    "import socket, sys; s = socket.socket(fileno=int(sys.argv[1])); s.send(bytes([1])); s.recv(9); s.send({}); s.recv(9999999)"
)


@pytest.mark.parametrize("answer", ["bytes([0, 0, 0, 2, 1, 1])", "bytes([255] * 4)"], ids=["no contents", "too long"])
def test_an_answer_that_is_none(answer: str) -> None:
    (contents,) = read(READABLE, command=(sys.executable, "-c", ANSWERS.format(answer)))
    assert contents.status is TextStatus.CRASHED


def test_a_process_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "12345")
    (contents,) = read(FileJob("application/x", data=b"x", converter=as_program("import os; print(*os.environ)")))
    assert "PATH" in contents.text
    assert "SECRET" not in contents.text


def test_several_processes_and_their_end_which_this_waits_for() -> None:
    program = as_program("import os; print(os.getppid())")
    jobs = [FileJob("application/x", data=b"x", converter=program)] * 4
    processes = {int(one.text) for one in read(*jobs, number=2)}
    assert len(processes) == 2
    for process in processes:
        with suppress(ChildProcessError):  # it has been waited for
            os.waitpid(process, 0)
