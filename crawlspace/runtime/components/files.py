"""Reads files and sitemaps, and applies extraction rules to pages, in other processes before the callback of their response is called.

Pages are fetched at full rate meanwhile.

The response of a file waits in its callback. Scrapy counts it there as being parsed, up to SCRAPER_SLOT_MAX_ACTIVE_SIZE bytes of bodies;
that of a large file is on disk, and does not count.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import MsgspecError
from msgspec.structs import replace
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.spider import iterate_spider_output

from crawlspace import private_files
from crawlspace.config.extraction import ExtractionScope
from crawlspace.content.charset import charset_parameter
from crawlspace.content.documents.contents import FileContents, TextStatus, UnreadableFile
from crawlspace.content.documents.converters import converter_for, is_server
from crawlspace.content.documents.framing import LENGTH_BYTES, framed
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
from crawlspace.content.documents.kinds import FILE_TYPES, FIRST_BYTES
from crawlspace.content.extraction_rules import Extracted
from crawlspace.content.mime import HTML_TYPES
from crawlspace.content.sitemaps import SitemapContents, is_sitemap
from crawlspace.document import essence, is_generic
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.runtime.components.requests import CONTENTS, EXTRACTED, FILE, SITEMAP, STATE, site_text
from crawlspace.runtime.components.rule_middleware import document_type
from crawlspace.runtime.components.scrapy_internals import STOPPED, is_closing, wake
from crawlspace.runtime.http.file_body import SUFFIX, FileBody, files_folder, prefix, remove_left
from crawlspace.runtime.http.headers import declared_type, header_values

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

T = TypeVar("T")

LOOK_EVERY_S = 0.5
"""Whether the crawl is ending: no file is waited for then."""
MOST_WAITING = 200
"""Pages that wait to be read by a process: then nothing more is requested. They are in memory, and fetched again after a kill."""


class FileReading:
    """Reads the files of one crawl."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        self._session = session
        self._crawler = crawler
        self._boilerplate = {site: tuple(learned.blocks) for site, learned in session.boilerplate.items()}
        self._settings = session.collection.files
        folder = files_folder(session.collection)
        remove_left(folder)
        processes = partial(FileProcesses, self._settings.processes, memory_bytes=self._settings.memory_bytes, folder=folder)
        self._processes, self._page_processes = processes(), processes(most=MOST_PAGES, niceness=0)
        """Pages do not wait for files."""
        rules = session.collection.extraction_rules
        self._scope = ExtractionScope(rules)
        content = session.collection.content
        self._reads_all = content.is_main or content.markdown or content.part_chars > 0
        """Whether something of every page is taken by a process."""
        self._extracts = bool(rules or self._boilerplate) or self._reads_all
        self._running: set[asyncio.Task[Any]] = set()
        """All that waits for a process: one look whether the crawl is ending is for all of them."""
        self._looking: asyncio.TimerHandle | None = None
        self._waiting = 0

    @property
    def is_behind(self) -> bool:
        """Whether so many pages wait that none is to be requested. Scrapy is woken when fewer do."""
        return self._waiting >= MOST_WAITING

    def read_first(self, parse: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callback that reads the file of a response, or applies the extraction rules of a page, before `parse` gets it."""

        def read_and_parse(response: Response, **kwargs: Any) -> Any:
            request = response.request
            state: UrlState | None = None if request is None else request.meta.get(STATE)
            if request is None or state is None or not request.meta.keys().isdisjoint((CONTENTS, EXTRACTED, SITEMAP)):
                return parse(response, **kwargs)
            body: FileBody | None = request.meta.get(FILE)
            declared = declared_type(response.headers)
            sitemap = self._sitemap_job(response, state, body, declared)
            if sitemap is not None:
                self._arrived(response, state, body)
                return self._done_and_parsed(
                    parse, response, kwargs, SITEMAP, partial(self._page_processes.read_sitemap, sitemap), body
                )
            kind = self._kind(response, request, declared) if 200 <= response.status < 300 else None
            if kind is None or b"Location" in response.headers:
                if body is not None and body.path is not None:
                    return self._parsed(parse, response, kwargs, body)
                job = self._page_job(response, state, declared) if self._extracts else None
                if job is None:
                    return parse(response, **kwargs)
                return self._done_and_parsed(parse, response, kwargs, EXTRACTED, partial(self._page_processes.extract, job), None)
            self._arrived(response, state, body)
            work = partial(self._read, response, body, kind=kind, declared=declared)
            return self._done_and_parsed(parse, response, kwargs, CONTENTS, work, body)

        return read_and_parse

    def close(self) -> None:
        """End the processes. The leases of files that still wait are given back, and they are fetched again."""
        if self._looking is not None:
            self._looking.cancel()
        self._processes.close()
        self._page_processes.close()

    def _page_job(self, response: Response, state: UrlState, declared: str | None) -> ExtractionJob | None:
        """Return the job of a page that extraction rules apply to, or of which more than its text is wanted; None for any other response."""
        content = self._session.collection.content
        rules = self._scope.of(state.url)
        boilerplate = self._boilerplate.get(state.site, ())
        if not (rules or self._reads_all or boilerplate) or not 200 <= response.status < 300 or STOPPED in response.flags:
            return None
        mime, decision = document_type(self._session.space, declared, response.body, site=state.site)
        if mime not in HTML_TYPES or not decision.admitted:
            return None
        names = {rule.expression.lower() for rule in rules.fields if rule.by == "header"}
        return ExtractionJob(
            response.body,
            None if declared is None else charset_parameter(declared),
            url=state.url,
            rules=rules,
            exclusion_marks=tuple(content.exclusion_marks),
            headers=tuple((name, value) for name in sorted(names) for value in header_values(response.headers, name)),
            is_main=content.is_main,
            is_xhtml=mime != "text/html",
            boilerplate=boilerplate,
            markdown=content.markdown,
            part_chars=content.part_chars,
            timeout_s=self._settings.timeout_s,
        )

    def _sitemap_job(self, response: Response, state: UrlState, body: FileBody | None, declared: str | None) -> SitemapJob | None:
        """Return the job of a response that is a sitemap, or may be one; None for any other, and where none are read."""
        sitemaps = self._session.sitemaps
        is_complete = 200 <= response.status < 300 and STOPPED not in response.flags and b"Location" not in response.headers
        if not is_complete or not sitemaps.are_read(state.url):
            return None
        may_be_text = sitemaps.may_be_text(state) and essence(declared) == "text/plain"
        if not may_be_text and not is_sitemap(start_of(response, body)):
            return None
        on_disk = body is not None and body.path is not None
        return SitemapJob(
            path=str(body.path) if on_disk and body is not None else "",
            data=b"" if on_disk else response.body,
            may_be_text=may_be_text,
            limits=self._session.collection.sitemaps.limits,
            timeout_s=self._settings.timeout_s,
        )

    async def _until_done(self, request: Request, name: str, work: Coroutine[Any, Any, Any]) -> bool:
        """Put the result of some work into the meta of a request; return False if the crawl ends before."""
        task = asyncio.ensure_future(work)
        is_page = name != CONTENTS  # pages are not held up by files
        self._waiting += is_page
        self._running.add(task)
        if self._looking is None:
            self._look_later()
        try:
            request.meta[name] = await task
        except asyncio.CancelledError:
            if not is_closing(self._crawler):
                raise
            return False
        finally:
            self._running.discard(task)
            task.cancel()
            was_behind = self.is_behind
            self._waiting -= is_page
            if was_behind and not self.is_behind:
                wake(self._crawler)
        return True

    def _look_later(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        """End the work that nobody waits for any more, where the crawl is ending."""
        self._looking = None
        if is_closing(self._crawler):
            for task in self._running:
                task.cancel()
        elif self._running:
            self._look_later()

    async def _done_and_parsed(
        self,
        parse: Callable[..., Any],
        response: Response,
        kwargs: dict[str, Any],
        name: str,
        work: Callable[[], Coroutine[Any, Any, Any]],
        body: FileBody | None,
    ) -> AsyncIterator[Any]:
        """Put the result of some work into the meta of the request, then yield what `parse` yields; nothing if the crawl ends before."""
        assert response.request is not None
        if not await self._until_done(response.request, name, work()):
            return
        async for one in self._parsed(parse, response, kwargs, body):
            yield one

    async def _parsed(
        self, parse: Callable[..., Any], response: Response, kwargs: dict[str, Any], body: FileBody | None
    ) -> AsyncIterator[Any]:
        """Yield what `parse` yields, then remove the body from disk."""
        try:
            async for one in as_async_generator(iterate_spider_output(parse(response, **kwargs))):
                yield one
        finally:
            if body is not None:
                body.drop()

    def _arrived(self, response: Response, state: UrlState, body: FileBody | None) -> None:
        """Allow the next request to the site, which need not wait until the file is read."""
        answer = Outcome(state.id, state.url, OutcomeKind.DOCUMENT, response.status)
        answer.sent_ago_s = self._session.sending.ago_s(state.site)
        if not response.meta.get("autothrottle_dont_adjust_delay"):
            answer.latency_s = response.meta.get("download_latency")
        self._session.file_slots.file_arrived(answer, size=len(response.body) if body is None else body.size)
        wake(self._crawler)

    def _kind(self, response: Response, request: Request, declared: str | None) -> str | None:
        """Return the type of a response that is a file and admitted; None for any other."""
        body: FileBody | None = request.meta.get(FILE)
        start = start_of(response, body)
        is_too_large = body is not None and body.is_too_large
        if STOPPED in response.flags and not is_too_large:
            return None
        if not (
            body is not None or essence(declared) in FILE_TYPES or start.startswith(FIRST_BYTES) or self._is_converted(declared)
        ):
            return None
        path = None if body is None else body.path
        kind, decision = document_type(
            self._session.space, declared, None if is_too_large else start, site=site_text(request), on_disk=path
        )
        return kind if decision.admitted and (kind in FILE_TYPES or converter_for(kind, self._settings.converters)) else None

    def _is_converted(self, declared: str | None) -> bool:
        """Whether a header names a type that has a converter, or none, so that the first bytes may be of such a type."""
        converters = self._settings.converters
        return bool(converters) and (is_generic(declared) or bool(converter_for(essence(declared), converters)))

    async def _read(self, response: Response, body: FileBody | None, *, kind: str, declared: str | None) -> FileContents:
        """Return the contents of a file."""
        if body is not None and body.is_too_large:
            return FileContents(kind, status=TextStatus.TOO_LARGE)
        on_disk = body is not None and body.path is not None
        job = FileJob(
            declared if kind == essence(declared) else kind,
            path=str(body.path) if on_disk and body is not None else "",
            data=b"" if on_disk else response.body,
            converter=converter_for(kind, self._settings.converters),
            timeout_s=self._settings.timeout_s,
        )
        return await self._processes.read(job)


def start_of(response: Response, body: FileBody | None) -> bytes:
    """Return the first bytes of a response, or all of it."""
    return body.start if body is not None and body.path is not None else response.body


# --- processes -----------------------------------------------------------------------------------------------------


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
LAST_WORDS_S = 0.05
"""A process that closed its socket has ended, or is about to."""
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""Environment variables that are passed on; none that may hold secrets, because a file may take over the process that reads it."""


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


class _Process:
    """One process and its socket."""

    def __init__(self, command: Sequence[str], memory_bytes: int, niceness: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as unless_started:
            unless_started.callback(ours.close)
            self._process = subprocess.Popen(  # noqa: S603 - this Python
                [*command, str(theirs.fileno()), str(memory_bytes), str(niceness)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=_environment(),
                start_new_session=True,  # so that what a converter starts can be killed with it
            )
            unless_started.pop_all()
        ours.settimeout(0)
        self._socket = ours
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.files = 0
        self.is_usable = False
        """It has answered all requests."""

    async def begin(self) -> None:
        """Wait until the process is ready; at once, if it has read a file before."""
        if self._streams is None:
            self._streams = await asyncio.open_unix_connection(sock=self._socket)
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

    def how_it_ended(self) -> str:
        """Return by which signal or with which status the process has ended, if that is known already."""
        self.is_gone(within_s=LAST_WORDS_S)
        status = self._process.returncode
        if status is None:
            return ""
        return f"by signal {-status}" if status < 0 else f"with exit status {status}"

    def kill(self) -> None:
        """End the process and all that it has started."""
        self.is_usable = False
        if self._streams is not None:
            self._streams[1].close()
        else:
            self._socket.close()
        with suppress(ProcessLookupError, PermissionError):  # what it has started may outlive it
            os.killpg(self._process.pid, signal.SIGKILL)

    def is_gone(self, *, within_s: float = 0.0) -> bool:
        """Return whether the process has ended, after waiting for that."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)
        return self._process.returncode is not None


def _unread(job: FileJob, status: TextStatus, detail: str) -> FileContents:
    return FileContents(job.declared or "", status=status, detail=detail)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"}
