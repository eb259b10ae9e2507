"""The processes that read files. One that hangs, crashes or needs too much memory is killed, which costs the file that it read.

Everything waits on sockets: a process that dies closes its own, so that neither a thread nor the signals of children are needed.
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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from msgspec import MsgspecError
from msgspec.structs import replace

from crawlspace import private_files
from crawlspace.content.documents.contents import FileContents, TextStatus
from crawlspace.content.documents.converters import is_server
from crawlspace.content.documents.jobs import HELLO, MAX_ANSWER, FileJob, contents_of
from crawlspace.framing import LENGTH_BYTES, framed
from crawlspace.runtime.http.file_body import SUFFIX, prefix

logger = logging.getLogger(__name__)

COMMAND = (sys.executable, "-m", "crawlspace.content.documents.process")
MOST_FILES = 500
"""Files that one process reads: what a library leaks ends with it."""
START_S = 60.0
END_S = 10.0
LAST_WORDS_S = 0.05
"""A process that closed its socket has ended, or is about to."""
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""Not what may hold secrets, because what reads files is at the mercy of them."""


class FileProcesses:
    """Reads files in up to `number` processes, which are started when they are needed. `folder`: for the files of converters."""

    def __init__(self, number: int, *, memory_bytes: int, folder: Path, command: Sequence[str] = COMMAND) -> None:
        self._folder = folder
        self._turns = asyncio.Semaphore(number)
        self._memory_bytes = memory_bytes
        self._command = command
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._ending: list[_Process] = []
        """Killed, and perhaps not gone yet: to wait for them would hold up the crawl."""
        self._folders: set[str] = set()
        """Those of converters that run."""
        self._has_warned = False

    async def read(self, job: FileJob) -> FileContents:
        """Return the contents of a file; those of a file that cannot be read have a status."""
        async with self._turns:
            try:
                with self._prepared(job) as prepared:
                    return await self._read(prepared)
            except OSError as error:
                return _unread(job, TextStatus.CRASHED, f"there is no folder for its converter: {error.strerror or error}")

    async def _read(self, job: FileJob) -> FileContents:
        try:
            process = self._idle.pop() if self._idle else self._start()
        except OSError as error:
            return self._not_started(job, error)
        try:
            return await self._ask(process, job)
        finally:
            if process.is_usable and process.files < MOST_FILES:
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
        for folder in list(self._folders):  # what waits for them may not be continued any more
            self._remove(folder)

    async def _ask(self, process: _Process, job: FileJob) -> FileContents:
        try:
            await asyncio.wait_for(process.begin(), START_S)
        except (OSError, EOFError, TimeoutError) as error:
            return self._not_started(job, error)
        try:
            return await asyncio.wait_for(process.ask(job), job.timeout_s)
        except TimeoutError:
            return _unread(job, TextStatus.TIMED_OUT, f"after {job.timeout_s:g} s")
        except (OSError, EOFError, MsgspecError):
            return _unread(job, TextStatus.CRASHED, process.how_it_ended())

    def _start(self) -> _Process:
        self._ending = [one for one in self._ending if not one.is_gone()]
        process = _Process(self._command, self._memory_bytes)
        self._all.add(process)
        return process

    def _end(self, process: _Process) -> None:
        if process in self._all:
            self._all.remove(process)
            self._ending.append(process)
            process.kill()

    def _not_started(self, job: FileJob, error: Exception) -> FileContents:
        if not self._has_warned:
            self._has_warned = True
            logger.error("no process that reads files can be started (%s): files are found by their name only", error)
        return _unread(job, TextStatus.CRASHED, "the process that reads files could not be started")


class _Process:
    """One process and its socket."""

    def __init__(self, command: Sequence[str], memory_bytes: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as unless_started:
            unless_started.callback(ours.close)
            self._process = subprocess.Popen(  # noqa: S603 - this Python
                [*command, str(theirs.fileno()), str(memory_bytes)],
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
        """It has answered everything that it was asked."""

    async def begin(self) -> None:
        """Wait until the process is ready; at once, if it has read a file before."""
        if self._streams is None:
            self._streams = await asyncio.open_unix_connection(sock=self._socket)
            if await self._streams[0].readexactly(len(HELLO)) != HELLO:
                raise EOFError

    async def ask(self, job: FileJob) -> FileContents:
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
        contents = contents_of(await reader.readexactly(length))
        self.is_usable = True
        return contents

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
