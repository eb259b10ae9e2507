"""Files are read before their callback is called, in processes whose end costs only the file that is read."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from crawlspace.content.documents.contents import FileContents, TextStatus
from crawlspace.content.documents.jobs import ExtractionJob, FileJob
from crawlspace.content.extraction_rules import NO_RULES
from crawlspace.decision import Decision, Reason
from crawlspace.runtime.components import files as module
from crawlspace.runtime.components.files import COMMAND, FileProcesses, FileReading, NoProcess
from crawlspace.runtime.components.requests import CONTENTS, FILE, STATE
from crawlspace.runtime.http.file_body import FileBody
from tests.memory import folder_in_memory
from tests.notifications import LONGEST_WAIT_S
from tests.quick import some
from tests.unit.content.documents.made_files import docx, para, xlsx

PDF = b"%PDF-1.7\n" + b"x" * 200
URL = "http://a.example/a"


class Crawl:
    """A crawl whose files are read when the test says so."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, is_main: bool = False) -> None:
        """`is_main`: pages are read by a process, too."""
        self.folder = folder
        self.arrived: list[int] = []
        """Sizes of the files whose sites may be requested again."""
        self.jobs: list[FileJob] = []
        self.begun, self.may_read = asyncio.Event(), asyncio.Event()
        turns = SimpleNamespace(file_arrived=lambda answer, size: self.arrived.append(size))
        files = SimpleNamespace(processes=1, memory_bytes=1, timeout_s=1.0, converters={})
        session: Any = SimpleNamespace(
            collection=SimpleNamespace(
                files=files,
                data_folder=folder,
                content=SimpleNamespace(is_main=is_main, markdown=False, part_chars=0, exclusion_marks=()),
                extraction_rules=NO_RULES,
            ),
            space=SimpleNamespace(at_headers=lambda kind, site, conclusive=False: Decision(Reason.ADMITTED, None, ())),
            sending=SimpleNamespace(ago_s=lambda site: 0.0),
            file_slots=turns,
            boilerplate={},
            sitemaps=SimpleNamespace(are_read=lambda url: False),
        )
        self.slot = SimpleNamespace(closing=None, nextcall=SimpleNamespace(schedule=lambda: None))
        crawler: Any = SimpleNamespace(engine=SimpleNamespace(_slot=self.slot))
        monkeypatch.setattr(FileProcesses, "read", self._read)
        monkeypatch.setattr(module, "LOOK_EVERY_S", 0.001)
        self.files = FileReading(session, crawler)

    async def _read(self, job: FileJob) -> FileContents:
        self.jobs.append(job)
        self.begun.set()
        await self.may_read.wait()
        return FileContents("application/pdf")

    def kept(self) -> list[Path]:
        """What is on disk."""
        return list(self.folder.rglob("*.part"))

    def response(self, kind: str, body: bytes, *, on_disk: bool = False, status: int = 200, **headers: str) -> Response:
        state = SimpleNamespace(id=1, url=URL, site="a.example:80")
        request = Request(URL, meta={STATE: state})
        if on_disk:
            kept = request.meta[FILE] = FileBody(self.folder, is_declared=True, limit=999, page_limit=999, in_memory=50)
            kept.write(body)
        made = HtmlResponse if kind == "text/html" else Response
        return made(URL, status=status, headers={"Content-Type": kind, **headers}, body=b"" if on_disk else body, request=request)


def parse(response: Response) -> Iterator[Any]:
    yield (response.request or Request(URL)).meta.get(CONTENTS)


def test_a_page_is_parsed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = Crawl(tmp_path, monkeypatch)
    page = crawl.response("text/html", b"<p>page")
    assert list(crawl.files.read_first(parse)(page)) == [None]
    assert list(crawl.files.read_first(parse)(Response(URL, request=Request(URL)))) == [None]
    assert (crawl.arrived, crawl.jobs) == ([], [])


async def test_nothing_is_requested_while_many_pages_wait_to_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in memory. Files may wait: those are on disk, where they are large."""
    crawl = Crawl(tmp_path, monkeypatch, is_main=True)
    woken: list[int] = []
    crawl.slot.nextcall.schedule = lambda: woken.append(1)
    monkeypatch.setattr(module, "MOST_WAITING", 2)

    async def extract(_processes: FileProcesses, _job: object) -> None:
        await crawl.may_read.wait()

    monkeypatch.setattr(FileProcesses, "extract", extract)
    file = crawl.files.read_first(parse)(crawl.response("application/pdf", PDF))
    reading = [asyncio.ensure_future(anext(file))]
    for is_behind in (False, False, True, True):
        await asyncio.sleep(0)
        assert crawl.files.is_behind is is_behind
        page = crawl.files.read_first(parse)(crawl.response("text/html", b"<p>page"))
        reading.append(asyncio.ensure_future(anext(page)))
    woken.clear()
    crawl.may_read.set()
    await asyncio.gather(*reading)
    assert (crawl.files.is_behind, len(woken)) == (False, 1)


@pytest.mark.parametrize("on_disk", [False, True])
async def test_a_file_is_read_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, on_disk: bool) -> None:
    crawl = Crawl(tmp_path, monkeypatch)
    response = crawl.response("application/pdf", PDF, on_disk=on_disk)
    found = crawl.files.read_first(parse)(response)
    assert crawl.arrived == [len(PDF)], "its site need not wait"
    reading = asyncio.ensure_future(anext(found))
    await crawl.begun.wait()
    assert (bool(crawl.jobs[0].path), crawl.jobs[0].data) == (on_disk, b"" if on_disk else PDF)
    assert bool(crawl.kept()) is on_disk
    crawl.may_read.set()
    assert (await reading).kind == "application/pdf"
    assert [one async for one in found] == []
    assert not crawl.kept(), "what was on disk is removed"


async def test_what_is_no_file_after_all_is_removed_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = Crawl(tmp_path, monkeypatch)
    response = crawl.response("application/pdf", PDF, on_disk=True, status=404)
    assert [one async for one in crawl.files.read_first(parse)(response)] == [None]
    assert (crawl.arrived, crawl.jobs, crawl.kept()) == ([], [], [])


async def test_one_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = Crawl(tmp_path, monkeypatch)
    response = crawl.response("application/pdf", PDF, on_disk=True)
    assert response.request is not None
    response.request.meta[FILE].is_too_large = True
    [contents] = [one async for one in crawl.files.read_first(parse)(response)]
    assert (contents.status, crawl.jobs) == (TextStatus.TOO_LARGE, [])


async def test_nobody_waits_for_a_file_when_the_crawl_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = Crawl(tmp_path, monkeypatch)
    found = crawl.files.read_first(parse)(crawl.response("application/pdf", PDF))
    crawl.slot.closing = object()
    assert [one async for one in found] == []


# --- processes that read --------------------------------------------------------------------------------------------


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


async def test_pages_fail_where_no_process_starts_and_keep_what_they_have(tmp_path: Path) -> None:
    processes = FileProcesses(1, memory_bytes=MEMORY, folder=tmp_path, command=("/no/such/program",))
    with pytest.raises(NoProcess):
        await processes.extract(ExtractionJob(b"x", None, url="http://a.example/", rules=NO_RULES, exclusion_marks=()))


ANSWERS = (
    "import socket, sys; s = socket.socket(fileno=int(sys.argv[1])); s.send(bytes([1])); s.recv(9); s.send({}); s.recv(9999999)"
)


@pytest.mark.parametrize("answer", ["bytes([0, 0, 0, 2, 1, 1])", "bytes([255] * 4)"], ids=["no contents", "too long"])
def test_an_answer_that_is_none(answer: str) -> None:
    (contents,) = read(READABLE, command=(sys.executable, "-c", ANSWERS.format(answer)))
    assert contents.status is TextStatus.CRASHED


async def test_a_process_that_answers_nonsense_is_asked_nothing_else(tmp_path: Path) -> None:
    command = (sys.executable, "-c", ANSWERS.format("bytes([0, 0, 0, 2, 1, 1])"))
    processes = FileProcesses(1, memory_bytes=MEMORY, folder=tmp_path, command=command)
    try:
        job = ExtractionJob(b"x", None, url="http://a.example/", rules=NO_RULES, exclusion_marks=())
        assert (await processes.extract(job)).fault.startswith("crashed")
        assert not processes._idle
    finally:
        processes.close()


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
