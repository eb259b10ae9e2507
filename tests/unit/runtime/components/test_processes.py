"""A file that hangs, crashes its process or needs too much memory costs itself; the next one is read by another process."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from crawlspace.content.documents.contents import FileContents, TextStatus
from crawlspace.content.documents.jobs import FileJob
from crawlspace.runtime.components import files as module
from crawlspace.runtime.components.files import COMMAND, FileProcesses
from tests.memory import folder_in_memory
from tests.notifications import LONGEST_WAIT_S
from tests.quick import some
from tests.unit.content.documents.made_files import docx, para, xlsx

READABLE = FileJob(None, data=docx(para("Hello")))
MEMORY = 512 * 1024 * 1024


def read(*jobs: FileJob, command: Sequence[str] = COMMAND, number: int = 1, memory: int = MEMORY) -> list[FileContents]:
    async def all_of_them(folder: Path) -> list[FileContents]:
        processes = FileProcesses(number, memory_bytes=memory, folder=folder, command=command)
        try:
            return await asyncio.gather(*(processes.read(job) for job in jobs))
        finally:
            processes.close()

    with TemporaryDirectory(dir=folder_in_memory()) as folder:
        read = asyncio.run(all_of_them(Path(folder) / "files"))
        assert not list(Path(folder).glob("*/*"))
    return read


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


PAUSES = "sleep 1000 & wait"
SCRIPT = "exec 9>{fifo}; cp {{file}} $TMPDIR/copy; echo $PPID $TMPDIR >&9; {then}"


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def converted(files: Path, fifo: Path, *, then: str, ends: str, timeout_s: float) -> tuple[str, TextStatus | None, str]:
    """Have a command read a file. Return the folder that it had for its files, the status of the file, and how it ended.

    What it has started has ended too, when this returns. `ends`: what happens once it runs.
    """
    command = f"sh -c {shlex.quote(SCRIPT.format(fifo=fifo, then=then))}"
    processes = FileProcesses(1, memory_bytes=MEMORY, folder=files)
    reading, loop = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), asyncio.get_running_loop()
    pipe = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(pipe), os.fdopen(reading, "rb", 0))
    task = asyncio.create_task(processes.read(FileJob("application/x", data=b"x", converter=command, timeout_s=timeout_s)))
    written = asyncio.create_task(pipe.readline())
    await asyncio.wait((task, written), return_when=asyncio.FIRST_COMPLETED)
    if not written.done():
        written.cancel()
        processes.close()
        return "", task.result().status, ""
    parent, folder = written.result().decode().split()
    if ends == "the alarm":
        os.kill(int(parent), signal.SIGALRM)
    elif ends == "the crawl ends":
        task.cancel()
        processes.close()
        assert names(files) == []  # before anything that waits for it goes on
    with suppress(asyncio.CancelledError):
        await task
    assert await pipe.read() == b""
    assert (names(files), folder.startswith(f"{files}/")) == ([], True)
    processes.close()
    return folder, None if task.cancelled() else task.result().status, "" if task.cancelled() else task.result().detail


@pytest.mark.parametrize(
    ("then", "ends", "status", "detail"),
    some(
        [
            ("echo words", "", None, ""),
            ("exit 3", "", TextStatus.DAMAGED, "sh ended with exit status 3"),
            (f"echo words; exec 1>&-; {PAUSES}", "the time-out", TextStatus.TIMED_OUT, ""),
            (PAUSES, "the time-out", TextStatus.TIMED_OUT, ""),
            (f"kill -9 $PPID; {PAUSES}", "", TextStatus.CRASHED, "by signal 9"),
            (PAUSES, "the alarm", TextStatus.CRASHED, "by signal 9"),
            (PAUSES, "the crawl ends", None, ""),
        ],
        3,
    ),
)
def test_nothing_is_left_of_a_converter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, then: str, ends: str, status: TextStatus | None, detail: str
) -> None:
    monkeypatch.setattr(module, "LAST_WORDS_S", LONGEST_WAIT_S)
    files, fifo = tmp_path / "files", tmp_path / "fifo"
    os.mkfifo(fifo)
    for timeout_s in (0.5, 2, 10, 100) if ends == "the time-out" else (LONGEST_WAIT_S,):
        folder, found, how = asyncio.run(converted(files, fifo, then=then, ends=ends, timeout_s=timeout_s))
        if folder:  # else it was given up before it had begun
            break
    else:
        pytest.fail("the converter has not begun")
    assert (found, how) == (status, detail or how)


def test_several_processes_and_their_end_which_this_waits_for() -> None:
    program = as_program("import os; print(os.getppid())")
    jobs = [FileJob("application/x", data=b"x", converter=program)] * 4
    processes = {int(one.text) for one in read(*jobs, number=2)}
    assert len(processes) == 2
    for process in processes:
        with suppress(ChildProcessError):  # it has been waited for
            os.waitpid(process, 0)
