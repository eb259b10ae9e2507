"""Bodies while they arrive: Scrapy's signals, files on disk beyond a size, and what is too large."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from scrapy import signals
from scrapy.exceptions import DownloadCancelledError, ResponseDataLossError, StopDownload
from scrapy.http import Response

from crawlspace.content.fingerprint import checksum_of_bytes
from crawlspace.outcome import BodyFile
from crawlspace.runtime.components.requests import EXCHANGE, FILE
from crawlspace.runtime.http.file_body import IN_MEMORY, FileBody, remove_left
from tests.unit.runtime.http.fetching import END, OK, PAGE, WAIT, Answer, loopback

PDF = b"%PDF-1.7\n"


async def test_signals_tell_of_an_answer() -> None:
    heard: list[Any] = []

    def headers_received(headers: Any, body_length: Any, request: Any, spider: Any) -> None:
        heard.append((headers["X"], body_length, request.url, spider))

    def bytes_received(data: bytes, request: Any, spider: Any) -> None:
        heard.append((data, request.url, spider))

    async with loopback([PAGE.replace(b"\r\n\r\n", b"\r\nX: a\r\n\r\n")]) as (server, crawl):
        crawl.signals.connect(headers_received, signals.headers_received)
        crawl.signals.connect(bytes_received, signals.bytes_received)
        await crawl.fetch(server.url())
        url, spider = server.url(), crawl.handler.crawler.spider
        assert heard == [(b"a", 3, url, spider), (b"abc", url, spider)]


STOPS = [
    # signal, whether the request fails, body of the response
    (signals.headers_received, False, b""),
    (signals.headers_received, True,  b""),
    (signals.bytes_received,   False, b"abc"),
    (signals.bytes_received,   True,  b"abc"),
]  # fmt: skip


@pytest.mark.parametrize(("signal", "fails", "body"), STOPS)
async def test_a_receiver_may_stop_a_download(signal: Any, body: bytes, *, fails: bool) -> None:
    def stop(**_: Any) -> None:
        raise StopDownload(fail=fails)

    async with loopback([PAGE.replace(b"3", b"300"), WAIT]) as (server, crawl):
        crawl.signals.connect(stop, signal)
        try:
            response: Response | None = await crawl.fetch(server.url())
            assert not fails
        except StopDownload as stopped:
            assert fails
            response = stopped.response
        assert response is not None
        assert (response.status, response.body, response.flags) == (200, body, ["download_stopped"])
        await server.until_closed(1)


async def test_what_a_receiver_raises_besides_is_logged_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    def fail(**_: Any) -> None:
        raise ValueError

    async with loopback([PAGE]) as (server, crawl):
        crawl.signals.connect(fail, signals.headers_received)
        assert (await crawl.fetch(server.url())).body == b"abc"

    assert "Error caught on signal handler" in caplog.text


def sent(kind: bytes, body: bytes, *, with_length: bool = True, more: bytes = b"") -> Answer:
    length = b"Content-Length: %d\r\n" % len(body) if with_length else b"Connection: close\r\n"
    return [OK + b"Content-Type: " + kind + b"\r\n" + more + length + b"\r\n", body, *([] if with_length else [END])]


LARGE = PDF + b"x" * IN_MEMORY
FILES = [
    # what is sent                                                   is it kept apart, on disk, too large; may Scrapy's cache keep it
    (sent(b"text/html", b"<p>page" * 100),                           False, False, False, True),
    (sent(b"application/pdf", PDF),                                  True,  False, False, True),
    (sent(b"application/pdf", LARGE),                                True,  True,  False, False),
    (sent(b"application/octet-stream", LARGE),                       True,  True,  False, False),
    (sent(b"application/pdf", LARGE, with_length=False),             True,  True,  False, False),
    (sent(b"application/pdf", PDF, more=b"Content-Encoding: x\r\n"), False, False, False, True),
    (sent(b"application/pdf", LARGE * 3),                            True,  False, True,  False),
    (sent(b"application/pdf", LARGE * 3, with_length=False),         True,  True,  True,  False),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "apart", "on_disk", "too_large", "cached"), FILES)
async def test_files(tmp_path: Path, answer: Answer, *, apart: bool, on_disk: bool, too_large: bool, cached: bool) -> None:
    async with loopback(answer, with_session=True, folder=tmp_path, file_bytes=2 * IN_MEMORY, DOWNLOAD_MAXSIZE=IN_MEMORY) as (
        server,
        crawl,
    ):
        response = await crawl.fetch_page(server.url())
        meta = crawl.last.meta
        file: FileBody | None = meta.get(FILE)
        assert (file is not None) is apart
        assert ("dont_cache" in meta) is not cached
        assert response.flags == (["download_stopped"] if too_large else [])
        assert (EXCHANGE in meta) is not too_large, "what is complete is archived"
        if file is None or file.path is None:
            assert not on_disk
            assert file is None or too_large or response.body == PDF
            return
        assert (on_disk, file.is_too_large, response.body) == (True, too_large, b"")
        assert file.path.exists() is not too_large
        if not too_large:
            kept = meta[EXCHANGE].body
            assert isinstance(kept, BodyFile)
            assert file.path.read_bytes() == LARGE
            file.drop()
            assert b"".join(kept.parts()) == LARGE


def unfinished(folder: Path) -> list[Path]:
    return list(folder.rglob("*.part"))


CUT: list[tuple[Answer, type[Exception]]] = [
    ([*sent(b"application/pdf", LARGE)[:1], LARGE[:-1], END], ResponseDataLossError),
    (sent(b"application/octet-stream", b"<html>" + b"x" * 2 * IN_MEMORY), DownloadCancelledError),
]


@pytest.mark.parametrize(("answer", "error"), CUT)
async def test_what_is_not_complete_is_not_left_on_disk(tmp_path: Path, answer: Answer, error: type[Exception]) -> None:
    """A page has the limit of pages, whatever its header says."""

    limits = {"file_bytes": 9 * IN_MEMORY, "DOWNLOAD_MAXSIZE": IN_MEMORY}
    async with loopback(answer, with_session=True, folder=tmp_path, **limits) as (server, crawl):
        with pytest.raises(error):
            await crawl.fetch_page(server.url())
        assert EXCHANGE not in crawl.last.meta

    assert not unfinished(tmp_path)


async def test_a_full_disk_fails_the_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: FileBody, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FileBody, "write", full)
    async with loopback(sent(b"application/pdf", LARGE), with_session=True, folder=tmp_path, file_bytes=9 * IN_MEMORY) as (
        server,
        crawl,
    ):
        with pytest.raises(OSError, match="No space left"):
            await crawl.fetch_page(server.url())


async def test_a_request_that_is_sent_once_more_has_nothing_of_its_first_answer(tmp_path: Path) -> None:
    async with loopback(sent(b"application/pdf", PDF), [PAGE], with_session=True, folder=tmp_path) as (server, crawl):
        await crawl.fetch_page(server.url())
        assert FILE in crawl.last.meta
        await crawl.fetch(crawl.last)
        assert FILE not in crawl.last.meta


HTML = b"<!doctype html>" + b"x" * 100
PDF_FILE = b"%PDF-1.4" + b"x" * 100


@pytest.mark.parametrize(
    ("body", "is_declared", "on_disk", "is_over", "is_too_large"),
    [
        # what, its headers say a file: it is on disk, over its limit, too large as a file
        (PDF_FILE[:10], True, False, False, False),
        (PDF_FILE, True, True, False, False),
        (PDF_FILE, False, True, False, False),
        (PDF_FILE * 10, False, True, True, True),
        (b"\0" * 100, True, True, False, False),
        (b"\0" * 100, False, False, False, False),
        (b"\0" * 201, False, False, True, False),
        (HTML, True, False, False, False),
        (HTML * 2, True, False, True, False),
    ],
)
def test_body(tmp_path: Path, body: bytes, is_declared: bool, on_disk: bool, is_over: bool, is_too_large: bool) -> None:
    kept = FileBody(tmp_path / "files", is_declared=is_declared, limit=500, page_limit=200, in_memory=50)
    for at in range(0, len(body), 60):
        kept.write(body[at : at + 60])
    assert (kept.path is not None, kept.is_over, kept.is_too_large) == (on_disk, is_over, is_too_large)
    assert kept.getvalue() == (b"" if on_disk else body)
    if kept.path is not None:
        assert kept.path.read_bytes() == body
        assert kept.path.stat().st_mode & 0o77 == 0
        assert kept.checksum == checksum_of_bytes(body)
        kept.drop()
        assert not kept.path.exists()


def test_a_body_that_nobody_has_any_more_is_removed(tmp_path: Path) -> None:
    kept = FileBody(tmp_path, is_declared=True, limit=500, page_limit=200, in_memory=50)
    kept.write(PDF_FILE)
    kept.drop()
    assert not list(tmp_path.iterdir())


def test_only_what_was_left_by_a_process_that_has_ended_is_removed(tmp_path: Path) -> None:
    """One that had the number of this process has ended, too: in a container each crawl may have the same."""
    for name in ("999999999-a.part", f"{os.getpid()}-b.part", f"{os.getppid()}-c.part", "x-d.part", "other"):
        (tmp_path / name).touch()
    for process in (999_999_999, os.getppid()):
        (tmp_path / f"{process}-folder.part").mkdir()
        (tmp_path / f"{process}-folder.part" / "file").touch()
    remove_left(tmp_path)
    assert sorted(path.name.partition("-")[2] or path.name for path in tmp_path.iterdir()) == [
        "c.part",
        "d.part",
        "folder.part",
        "other",
    ]
