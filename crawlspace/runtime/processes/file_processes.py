"""Processes that read files and sitemaps, and apply extraction rules to pages, one after the other."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from msgspec import MsgspecError
from msgspec.structs import replace

from crawlspace import private_files
from crawlspace.content.documents.contents import FileContents, TextStatus, UnreadableFile
from crawlspace.content.documents.converters import is_server
from crawlspace.content.documents.jobs import (
    HELLO,
    MAX_ANSWER,
    ExtractionJob,
    FileJob,
    Job,
    SitemapJob,
    contents_of,
    extracted_of,
    sitemap_of,
)
from crawlspace.content.extraction_rules import Extracted
from crawlspace.content.sitemaps import SitemapContents
from crawlspace.framing import LENGTH_BYTES, framed
from crawlspace.runtime.http.file_body import SUFFIX, prefix
from crawlspace.runtime.processes.child import ChildProcess

T = TypeVar("T")
logger = logging.getLogger(__name__)

COMMAND = (sys.executable, "-m", "crawlspace.content.documents.process")
MOST_FILES = 500
"""Files that one process reads: what a library leaks ends with it."""
MOST_PAGES = 20_000
"""The same for pages, which are read in a thousandth of the time that a process takes to start."""
NICENESS = 5
"""Pages have priority over files."""
START_S = 60.0
END_S = 10.0


class NoProcess(UnreadableFile):
    """No process can be started."""


class FileProcesses:
    """Reads files in up to `number` processes, which are started when they are needed. `folder`: for the files of converters."""

    def __init__(
        self,
        number: int,
        *,
        memory_bytes: int,
        folder: Path,
        command: Sequence[str] = COMMAND,
        most: int = MOST_FILES,
        niceness: int = NICENESS,
    ) -> None:
        """`most`: jobs of one process."""
        self._folder = folder
        self._most = most
        self._niceness = niceness
        self._semaphore = asyncio.Semaphore(number)
        self._memory_bytes = memory_bytes
        self._command = command
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._ending: list[_Process] = []
        """Processes that were killed and may not have ended yet; waiting for them would block the crawl."""
        self._folders: set[str] = set()
        """Those of converters that run."""
        self._has_warned = False

    async def read(self, job: FileJob) -> FileContents:
        """Return the contents of a file; those of a file that cannot be read have a status."""
        async with self._semaphore:
            try:
                with self._prepared(job) as prepared:
                    return await self._answer(prepared, contents_of)
            except OSError as error:
                return _unread(job, TextStatus.CRASHED, f"there is no folder for its converter: {error.strerror or error}")
            except UnreadableFile as error:
                return _unread(job, error.status, error.detail)

    async def extract(self, job: ExtractionJob) -> Extracted:
        """Return what extraction rules take from a page; nothing, and why, if that is not possible with this page.

        Raises NoProcess, for then no page could have what the rules take.
        """
        async with self._semaphore:
            try:
                return await self._answer(job, extracted_of)
            except NoProcess:
                raise
            except UnreadableFile as error:
                return Extracted(fault=f"{error.status.value} {error.detail}".strip())

    async def read_sitemap(self, job: SitemapJob) -> SitemapContents:
        """Return what is in a sitemap; nothing, and why, if it cannot be read."""
        async with self._semaphore:
            try:
                return await self._answer(job, sitemap_of)
            except UnreadableFile as error:
                return SitemapContents(None, fault=error.status.sentence)

    async def _answer(self, job: Job, decode: Callable[[bytes], T]) -> T:
        """Return the answer of a process. Raises UnreadableFile if there is none."""
        try:
            process = self._idle.pop() if self._idle else self._start()
        except OSError as error:
            raise self._not_started(error) from error
        try:
            return await self._ask(process, job, decode)
        finally:
            if process.is_usable and process.files < self._most:
                self._idle.append(process)
            else:
                self._end(process)

    @contextmanager
    def _prepared(self, job: FileJob) -> Iterator[FileJob]:
        """Give a command a folder for its files, and remove it at the end, when the command has been killed too. Raises OSError."""
        if not job.converter or is_server(job.converter):
            yield job
            return
        private_files.make_folder(self._folder)
        folder = tempfile.mkdtemp(prefix=prefix(), suffix=SUFFIX, dir=self._folder)
        self._folders.add(folder)
        try:
            yield replace(job, folder=folder)
        finally:
            self._remove(folder)

    def _remove(self, folder: str) -> None:
        self._folders.discard(folder)
        shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Kill all processes, and wait until they are gone."""
        for process in list(self._all):
            self._end(process)
        self._idle.clear()
        for process in self._ending:
            process.is_gone(within_s=END_S)
        for folder in list(self._folders):  # tasks that wait for them may not be continued any more
            self._remove(folder)

    async def _ask(self, process: _Process, job: Job, decode: Callable[[bytes], T]) -> T:
        try:
            await asyncio.wait_for(process.begin(), START_S)
        except (OSError, EOFError, TimeoutError) as error:
            raise self._not_started(error) from error
        try:
            return await asyncio.wait_for(process.run(job, decode), job.timeout_s)
        except TimeoutError:
            raise UnreadableFile(TextStatus.TIMED_OUT, f"after {job.timeout_s:g} s") from None
        except (OSError, EOFError, MsgspecError):
            raise UnreadableFile(TextStatus.CRASHED, process.how_it_ended()) from None

    def _start(self) -> _Process:
        self._ending = [one for one in self._ending if not one.is_gone()]
        process = _Process(self._command, self._memory_bytes, self._niceness)
        self._all.add(process)
        return process

    def _end(self, process: _Process) -> None:
        if process in self._all:
            self._all.remove(process)
            self._ending.append(process)
            process.kill()

    def _not_started(self, error: Exception) -> NoProcess:
        if not self._has_warned:
            self._has_warned = True
            logger.error(
                "no process that reads files can be started (%s): files are found by their name only, and pages that extraction rules or"
                " main content are for fail (699), and keep the documents that they have",
                error,
            )
        return NoProcess(TextStatus.CRASHED, "the process that reads files could not be started")


class _Process(ChildProcess):
    """One process, which is given one job at a time."""

    def __init__(self, command: Sequence[str], memory_bytes: int, niceness: int) -> None:
        super().__init__(command, str(memory_bytes), str(niceness))
        self.socket.settimeout(0)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.files = 0
        self.is_usable = False
        """It has answered all requests."""

    async def begin(self) -> None:
        """Wait until the process is ready; at once, if it has read a file before."""
        if self._streams is None:
            self._streams = await asyncio.open_unix_connection(sock=self.socket)
            if await self._streams[0].readexactly(len(HELLO)) != HELLO:
                raise EOFError

    async def run(self, job: Job, decode: Callable[[bytes], T]) -> T:
        """Return the answer. Raises OSError, EOFError or MsgspecError if there is none."""
        assert self._streams is not None
        reader, writer = self._streams
        self.is_usable = False
        self.files += 1
        writer.write(framed(job))
        await writer.drain()
        length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
        if length > MAX_ANSWER:
            raise EOFError
        answer = decode(await reader.readexactly(length))
        self.is_usable = True
        return answer

    def kill(self) -> None:
        """End the process and all that it has started."""
        self.is_usable = False
        if self._streams is not None:
            self._streams[1].close()
        else:
            self.socket.close()
        super().kill()


def _unread(job: FileJob, status: TextStatus, detail: str) -> FileContents:
    return FileContents(job.declared or "", status=status, detail=detail)
