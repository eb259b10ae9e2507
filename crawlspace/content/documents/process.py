"""A process that reads pages and files, or applies extraction rules to pages, one after the other: `python -m crawlspace.content.documents.process`.

Its crawl may kill it at any time. It communicates by a socket that it inherits (its number is the first argument), and limits itself: memory and processor time by the system,
and an alarm in case the crawl has ended. The processes of a converter inherit the limits.
"""

from __future__ import annotations

import io
import os
import re
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import BinaryIO

from crawlspace.content.charset import decode
from crawlspace.content.documents.contents import FileContents, TextStatus, UnreadableFile
from crawlspace.content.documents.converters import complete, convert_by_server, is_server, run_command
from crawlspace.content.documents.jobs import HELLO, ExtractionJob, FileJob, HtmlAnswer, HtmlJob, Job, SitemapJob, job_of
from crawlspace.content.documents.kinds import file_kind
from crawlspace.content.documents.readers import finish, read_file
from crawlspace.content.extraction_rules import Extracted
from crawlspace.content.html import extract
from crawlspace.content.sitemaps import SitemapContents, read_sitemap
from crawlspace.framing import framed, received

_BASE = re.compile("<base[^a-z]", re.IGNORECASE)
GRACE_S = 5
"""Seconds after the timeout at which a process ends that the crawl has not killed."""


def main(descriptor: int, memory_bytes: int, niceness: int) -> None:
    """Read files until the other side closes the socket."""
    limit_memory(memory_bytes)
    os.nice(niceness)
    with socket.socket(fileno=descriptor) as channel:
        channel.sendall(HELLO)
        while body := received(channel):
            job = job_of(body)
            limit_time(job.timeout_s)
            channel.sendall(framed(answer(job)))
            signal.alarm(0)


def answer(job: Job) -> FileContents | Extracted | SitemapContents | HtmlAnswer:
    """Return the contents of the file or sitemap of a job, or what its rules take from its page."""
    if isinstance(job, ExtractionJob):
        return _extracted(job)
    if isinstance(job, SitemapJob):
        return _entries(job)
    if isinstance(job, HtmlJob):
        return _page(job)
    if job.converter:
        return _converted(job)
    with _opened(job) as file:
        return read_file(file, job.declared, job.limits)


def _page(job: HtmlJob) -> HtmlAnswer:
    try:
        return HtmlAnswer(job.reader.read(job.body, url=job.url, mime=job.mime, charset=job.charset))
    except MemoryError:
        return HtmlAnswer(None)


def _entries(job: SitemapJob) -> SitemapContents:
    try:
        with _opened(job) as file:
            return read_sitemap(file, job.limits, may_be_text=job.may_be_text)
    except MemoryError:
        return SitemapContents(None, fault=TextStatus.OVER_LIMITS.sentence)


def _extracted(job: ExtractionJob) -> Extracted:
    # lxml and parsel take a tenth of a second, which no file needs
    from crawlspace.content.extraction import RuledPage, extracted  # noqa: PLC0415

    html, _ = decode(job.body, job.charset, markup=True)
    base = job.url
    if job.rules and _BASE.search(html):
        base = extract(job.body, url=job.url, charset=job.charset, xhtml=job.is_xhtml, max_links=0).base
    marks = job.exclusion_marks
    page = RuledPage(
        html, url=job.url, base=base, headers=job.headers, exclusion_marks=marks, xhtml=job.is_xhtml, boilerplate=job.boilerplate
    )
    try:
        return extracted(job.rules, page, is_main=job.is_main, markdown=job.markdown, part_chars=job.part_chars)
    except MemoryError:
        return Extracted(fault=TextStatus.OVER_LIMITS.sentence)


def limit_memory(memory_bytes: int) -> None:
    """Limit the memory that this process may allocate from now on, and disable core dumps."""
    used = 0
    if sys.platform == "linux":
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_time(timeout_s: float) -> None:
    """End this process some seconds after a timeout."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = ceil(used.ru_utime + used.ru_stime + timeout_s) + GRACE_S
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
    signal.alarm(ceil(timeout_s) + GRACE_S)


def _opened(job: FileJob | SitemapJob) -> BinaryIO:
    return Path(job.path).open("rb") if job.path else io.BytesIO(job.data)


def _converted(job: FileJob) -> FileContents:
    with _opened(job) as file:
        contents = FileContents(file_kind(job.declared, file))
    try:
        if is_server(job.converter):
            with _opened(job) as file:
                output = convert_by_server(file, contents.kind, job.converter, limits=job.limits, timeout_s=job.timeout_s)
        else:
            with _ending_all_at_the_alarm():
                output = run_command(_path_of(job), job.converter, limits=job.limits, folder=job.folder)
        complete(contents, output, job.limits)
    except UnreadableFile as error:
        contents.status, contents.detail = error.status, error.detail
    finish(contents)
    return contents


def _path_of(job: FileJob) -> str:
    """Return the path of a file; if it is in memory, write it to the folder of its converter."""
    if job.path:
        return job.path
    path = Path(job.folder) / "file"
    try:
        path.write_bytes(job.data)
    except OSError as error:
        raise UnreadableFile(TextStatus.CRASHED, f"it cannot be written for its converter: {error.strerror}") from error
    return str(path)


@contextmanager
def _ending_all_at_the_alarm() -> Iterator[None]:
    """End the process group at the alarm, not this process alone, because the crawl, which ends the group otherwise, may have ended."""
    before = signal.signal(signal.SIGALRM, lambda *_: os.killpg(0, signal.SIGKILL))
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
