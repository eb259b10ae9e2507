"""Processes that read pages while the crawl does the rest.

Jobs go to a process one after the other, without waiting for the answers of those before: it always has the next page. What a process does
not answer (it is still starting, has enough to do, has ended, or hangs) the crawl reads itself, as it does without such processes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import cast

from msgspec import MsgspecError

from crawlspace.content.documents.jobs import HELLO, MAX_ANSWER, HtmlJob, answered_page
from crawlspace.content.page import Page
from crawlspace.framing import LENGTH_BYTES, framed
from crawlspace.runtime.processes.child import ChildProcess
from crawlspace.runtime.processes.file_processes import COMMAND, END_S, START_S

logger = logging.getLogger(__name__)

MOST_WAITING = 32
"""Pages that wait for one process. When all have so many, the crawl reads the next one itself."""
MOST_BUFFERED_BYTES = 4_000_000
"""The same for bytes that it has not taken yet."""
MOST_LOST = 5
"""Processes that may end without having read a page in between; then no further one is started."""


class PageProcesses:
    """Reads pages in `number` processes, which are started with the first page. On the thread of the crawl's loop."""

    def __init__(self, number: int, *, memory_bytes: int, command: Sequence[str] = COMMAND) -> None:
        self._number = number
        self._memory_bytes = memory_bytes
        self._command = command
        self._processes: list[_PageProcess] = []
        self._ended: list[_PageProcess] = []
        """Processes that were killed and may not have ended yet; waiting for them would block the crawl."""
        self._lost = 0
        """Processes that have ended since a page was read."""
        self._tasks: set[asyncio.Task[None]] = set()

    def read(self, job: HtmlJob) -> asyncio.Future[Page | None] | None:
        """Send a page to the process with the fewest of them. Its result is None where the crawl has to read the page itself, and so
        is what this returns where no process can read it now."""
        while len(self._processes) < self._number and self._lost < MOST_LOST:
            if not self._start():
                break
        process = min((one for one in self._processes if one.has_room), key=_PageProcess.waiting, default=None)
        return None if process is None else process.read(job)

    def close(self) -> None:
        """Kill all processes, and wait until they are gone."""
        self._lost = MOST_LOST  # so that no further one is started
        for process in self._processes:
            process.kill()
        for process in (*self._processes, *self._ended):
            process.is_gone(within_s=END_S)
        self._processes.clear()

    def _start(self) -> bool:
        self._ended = [one for one in self._ended if not one.is_gone()]
        try:
            process = _PageProcess(self._command, self._memory_bytes, self)
        except OSError as error:
            self._lost = MOST_LOST
            self._warn(str(error))
            return False
        self._processes.append(process)
        task = asyncio.get_running_loop().create_task(process.begin())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    def has_read(self) -> None:
        """Note that a page was read."""
        self._lost = 0

    def lost(self, process: _PageProcess) -> None:
        """Replace a process that has ended or hangs by the next one that is started."""
        if process not in self._processes:
            return
        self._processes.remove(process)
        self._ended.append(process)
        process.kill()
        self._lost += 1
        if self._lost == MOST_LOST:
            self._warn(f"it ended {process.how_it_ended()}".rstrip())

    def _warn(self, why: str) -> None:
        logger.warning(
            "no process that reads pages can be started (%s): the crawl reads its pages itself, as with CRAWLSPACE_PROCESSES = 1",
            why,
        )


class _PageProcess(ChildProcess, asyncio.Protocol):
    """One process, with the pages that it has not read yet, the first sent first."""

    def __init__(self, command: Sequence[str], memory_bytes: int, owner: PageProcesses) -> None:
        super().__init__(command, str(memory_bytes), "0")
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiting: deque[tuple[asyncio.Future[Page | None], float]] = deque()
        """Pages, each with the seconds that reading it may take."""
        self._since = 0.0
        """Time since which the first of them is being read."""
        self._alarm: asyncio.TimerHandle | None = None
        self._is_connecting = self._is_killed = False
        self.begun = asyncio.Event()
        """Set once it is ready, or has ended."""

    def waiting(self) -> int:
        """Return the number of pages that were sent and not answered."""
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether it may be sent another page."""
        return (
            self._transport is not None
            and self.begun.is_set()
            and not self._is_killed
            and len(self._waiting) < MOST_WAITING
            and self._transport.get_write_buffer_size() < MOST_BUFFERED_BYTES
        )

    async def begin(self) -> None:
        """Connect to the process."""
        if self._is_killed:
            return
        self._is_connecting = True
        self.socket.settimeout(0)
        self._alarm = self._loop.call_later(START_S, self._owner.lost, self)
        await self._loop.create_unix_connection(lambda: self, sock=self.socket)

    def read(self, job: HtmlJob) -> asyncio.Future[Page | None]:
        """Send a page; the result is None where it is not read."""
        assert self._transport is not None
        message = framed(job)
        future: asyncio.Future[Page | None] = self._loop.create_future()
        if not self._waiting:
            self._since = self._loop.time()
        self._waiting.append((future, job.timeout_s))
        self._transport.write(message)
        if self._alarm is None:
            self._alarm = self._loop.call_later(job.timeout_s, self._check_time)
        return future

    def kill(self) -> None:
        """End the process; the crawl reads what it has not read."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._is_killed = True
        self.begun.set()
        if self._transport is not None:
            self._transport.close()
        elif not self._is_connecting:  # else the loop has the socket, and closes it
            self.socket.close()
        super().kill()
        while self._waiting:
            self._result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class
        if self._is_killed:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Give each page that has come to the one who waits for it."""
        self._received += data
        if not self.begun.is_set():
            self._greet()
        begin = 0
        with memoryview(self._received) as view:
            while (end := begin + LENGTH_BYTES) <= len(view):
                length = int.from_bytes(view[begin:end], "big")
                if length > MAX_ANSWER or not self._waiting:
                    self._owner.lost(self)
                    return
                if end + length > len(view):
                    break
                begin = end + length
                try:
                    page = answered_page(view[end:begin])
                except MsgspecError:
                    self._owner.lost(self)
                    return
                self._owner.has_read()
                self._since = self._loop.time()
                self._result(page)
        del self._received[:begin]

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.lost(self)

    def _greet(self) -> None:
        if not self._received.startswith(HELLO):
            self._owner.lost(self)
            return
        del self._received[: len(HELLO)]
        self.begun.set()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _result(self, page: Page | None) -> None:
        future, _ = self._waiting.popleft()
        if not future.done():
            future.set_result(page)

    def _check_time(self) -> None:
        """End the process if the first page takes too long."""
        self._alarm = None
        if not self._waiting:
            return
        left_s = self._since + self._waiting[0][1] - self._loop.time()
        if left_s <= 0:
            self._owner.lost(self)
        else:
            self._alarm = self._loop.call_later(left_s, self._check_time)
