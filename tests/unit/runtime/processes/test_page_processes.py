"""Pages are read by other processes as the crawl reads them; one that is not read there, the crawl is told to read."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from crawlspace.content.documents.jobs import HtmlJob
from crawlspace.content.page import Page
from crawlspace.content.page_reader import PageReader
from crawlspace.runtime.processes.file_processes import COMMAND
from crawlspace.runtime.processes.page_processes import MOST_LOST, MOST_WAITING, PageProcesses
from tests.notifications import LONGEST_WAIT_S

URL = "http://a.example/folder/page"
MEMORY = 512 * 1024 * 1024
USUAL = PageReader()
OWN = PageReader(
    frozenset({"a"}),
    link_pairs=frozenset({("img", "data-large")}),
    max_links=2,
    agent_names=("crawlspace",),
    exclusion_marks=frozenset(),
    meta_fields={"team": ["department"]},
)
RICH = (
    b"<title>Home &amp; away</title><base href=/other/><meta name=department content=Sales><meta name=crawlspace content=noindex>"
    b"<meta name=description content=About><link rel=canonical href=/c><meta http-equiv=refresh content='0; url=/next'>"
    b"<html lang=en><h1>First</h1><p>Text<img data-large=big.png><a href=1>1</a><a rel=nofollow href=2>2</a><a href=3>3</a>"
    b"<!--googleoff: index-->menu<!--googleon: index--><script>x</script>"
)


def job(body: bytes = RICH, reader: PageReader = USUAL, **values: object) -> HtmlJob:
    fields = {"url": URL, "mime": "text/html", "charset": None, "timeout_s": LONGEST_WAIT_S, **values}
    return HtmlJob(body, reader=reader, **fields)  # type: ignore[arg-type]


@asynccontextmanager
async def started(number: int = 1, command: Sequence[str] = COMMAND) -> AsyncIterator[PageProcesses]:
    """Processes that are ready, or have ended by now."""
    processes = PageProcesses(number, memory_bytes=MEMORY, command=command)
    try:
        assert processes.read(job()) is None, "nothing waits for a process that is still starting"
        for one in list(processes._processes):
            await one.begun.wait()
        yield processes
    finally:
        processes.close()


async def read(processes: PageProcesses, *jobs: HtmlJob) -> list[Page | None]:
    readings = [processes.read(one) for one in jobs]
    return [None if reading is None else await reading for reading in readings]


PAGES = [
    job(),
    job(reader=OWN),
    job("<title>Grüße</title>".encode("iso-8859-1"), charset="iso-8859-1"),
    job(b"<html xmlns='http://www.w3.org/1999/xhtml'><title>x</title><p/>y</html>", mime="application/xhtml+xml"),
    job(b"\xff\xfe\x00" * 50),
    job(b"<p>" * 20_000),
    job(b"<a href=x>x</a>" + b"<p>word " * 100_000),
]


@pytest.mark.parametrize("number", [1, 3])
async def test_a_page_is_the_same_as_where_the_crawl_reads_it(number: int) -> None:
    here = [one.reader.read(one.body, url=one.url, mime=one.mime, charset=one.charset) for one in PAGES]
    async with started(number) as processes:
        assert [replace(one, parts=()) for one in await read(processes, *PAGES) if one is not None] == here


async def test_only_so_many_pages_wait_for_a_process() -> None:
    async with started() as processes:
        readings = [processes.read(job()) for _ in range(MOST_WAITING + 1)]
        assert readings[-1] is None
        assert None not in await asyncio.gather(*(one for one in readings[:-1] if one is not None))
        assert processes.read(job()) is not None


async def test_what_a_killed_process_had_is_left_to_the_crawl() -> None:
    async with started() as processes:
        process = processes._processes[0]
        os.kill(process._process.pid, signal.SIGSTOP)  # so that nothing is answered before
        readings = [processes.read(job()) for _ in range(3)]
        os.kill(process._process.pid, signal.SIGKILL)
        assert [await one for one in readings if one is not None] == [None] * 3
        assert processes.read(job()) is None, "the next process is starting"
        await processes._processes[0].begun.wait()
        assert await read(processes, job(b"<title>x")) != [None]


async def test_a_process_that_hangs_is_ended() -> None:
    async with started() as processes:
        process = processes._processes[0]
        os.kill(process._process.pid, signal.SIGSTOP)
        assert await read(processes, job(timeout_s=0.01), job()) == [None, None]
        assert process.is_gone(within_s=LONGEST_WAIT_S)


SAYS = "import socket, sys; s = socket.socket(fileno=int(sys.argv[1])); "


@pytest.mark.parametrize(
    "code",
    ["raise SystemExit(3)", f"{SAYS}s.send(bytes([2]))", f"{SAYS}s.close()"],
    ids=["ends", "says something else", "says nothing"],
)
async def test_processes_that_do_not_start_are_given_up(code: str, caplog: pytest.LogCaptureFixture) -> None:
    async with started(command=(sys.executable, "-c", code)) as processes:
        for _ in range(MOST_LOST):
            assert processes.read(job()) is None
            for one in list(processes._processes):
                await one.begun.wait()
        assert (processes.read(job()), processes._processes) == (None, [])
    assert [one for one in caplog.messages if "the crawl reads its pages itself" in one] == caplog.messages[-1:]


async def test_a_program_that_does_not_exist(caplog: pytest.LogCaptureFixture) -> None:
    async with started(command=("/no/such/program",)) as processes:
        assert (processes.read(job()), processes._processes) == (None, [])
    assert len([one for one in caplog.messages if "/no/such/program" in one]) == 1


@pytest.mark.parametrize("answer", ["bytes([0, 0, 0, 2, 1, 1])", "bytes([255] * 4)"], ids=["no page", "too long"])
async def test_an_answer_that_is_none(answer: str) -> None:
    code = f"{SAYS}s.send(bytes([1])); s.recv(9); s.send({answer}); s.recv(9999999)"
    async with started(command=(sys.executable, "-c", code)) as processes:
        process = processes._processes[0]
        assert await read(processes, job()) == [None]
        assert process.is_gone(within_s=LONGEST_WAIT_S)


async def test_no_process_is_left() -> None:
    async with started(2) as processes:
        found = list(processes._processes)
    assert all(one.is_gone() for one in found)
    assert processes.read(job()) is None
