"""Files are read before the callback of their response gets it; pages go on at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from crawlspace.content.documents.contents import FileContents, TextStatus
from crawlspace.content.documents.jobs import FileJob
from crawlspace.decision import Decision, Reason
from crawlspace.runtime.components import files as module
from crawlspace.runtime.components.files import FileProcesses, FileReading
from crawlspace.runtime.components.requests import CONTENTS, FILE, STATE
from crawlspace.runtime.http.file_body import FileBody

PDF = b"%PDF-1.7\n" + b"x" * 200
URL = "http://a.example/a"


class Crawl:
    """A crawl whose files are read when the test says so."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.arrived: list[int] = []
        """Sizes of the files whose sites may be requested again."""
        self.jobs: list[FileJob] = []
        self.begun, self.may_read = asyncio.Event(), asyncio.Event()
        turns = SimpleNamespace(file_arrived=lambda answer, size: self.arrived.append(size))
        files = SimpleNamespace(processes=1, memory_bytes=1, timeout_s=1.0, converters={})
        session: Any = SimpleNamespace(
            collection=SimpleNamespace(files=files, data_folder=folder),
            space=SimpleNamespace(at_headers=lambda kind, conclusive=False: Decision(Reason.ADMITTED, None, ())),
            sending=SimpleNamespace(ago_s=lambda site: 0.0),
            file_slots=turns,
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


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_file_is_read_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, on_disk: bool) -> None:
    async def run() -> None:
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

    asyncio.run(run())


def test_what_is_no_file_after_all_is_removed_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        crawl = Crawl(tmp_path, monkeypatch)
        response = crawl.response("application/pdf", PDF, on_disk=True, status=404)
        assert [one async for one in crawl.files.read_first(parse)(response)] == [None]
        assert (crawl.arrived, crawl.jobs, crawl.kept()) == ([], [], [])

    asyncio.run(run())


def test_one_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        crawl = Crawl(tmp_path, monkeypatch)
        response = crawl.response("application/pdf", PDF, on_disk=True)
        assert response.request is not None
        response.request.meta[FILE].is_too_large = True
        [contents] = [one async for one in crawl.files.read_first(parse)(response)]
        assert (contents.status, crawl.jobs) == (TextStatus.TOO_LARGE, [])

    asyncio.run(run())


def test_nobody_waits_for_a_file_when_the_crawl_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        crawl = Crawl(tmp_path, monkeypatch)
        found = crawl.files.read_first(parse)(crawl.response("application/pdf", PDF))
        crawl.slot.closing = object()
        assert [one async for one in found] == []

    asyncio.run(run())
