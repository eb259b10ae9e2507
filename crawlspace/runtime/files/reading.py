"""Has files read before Scrapy gets their responses: so no callback waits for them, and pages go on at full rate.

A response that is a file is held back and read in another process. Then it goes on as any other, with what was read.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future

from crawlspace.content.documents.contents import FileContents, TextStatus
from crawlspace.content.documents.converters import converter_for
from crawlspace.content.documents.jobs import FileJob
from crawlspace.content.documents.kinds import FILE_TYPES, FIRST_BYTES
from crawlspace.content_type import essence
from crawlspace.model import Outcome, OutcomeKind, UrlState
from crawlspace.runtime.download.headers import declared_type
from crawlspace.runtime.files.body import FileBody, remove_left
from crawlspace.runtime.files.download import files_folder
from crawlspace.runtime.files.processes import FileProcesses
from crawlspace.runtime.requests import CONTENTS, FILE, LATER, STATE
from crawlspace.runtime.rule_middleware import document_type
from crawlspace.runtime.scrapy_internals import STOPPED, divert_responses, wake

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawlspace.runtime.session import Session

logger = logging.getLogger(__name__)


class FileReading:
    """The files of one crawl that wait to be read."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        self._session = session
        self._crawler = crawler
        self._settings = session.collection.files
        self._processes = FileProcesses(self._settings.processes, memory_bytes=self._settings.memory_bytes)
        self._tasks: set[asyncio.Task[None]] = set()
        remove_left(files_folder(session.collection))
        self._continue = divert_responses(crawler, self.takes)

    @property
    def are_waiting(self) -> bool:
        """Whether files wait."""
        return bool(self._tasks)

    def takes(self, response: Any, request: Request) -> bool:
        """Take a response if it is a file that has yet to be read. Return whether."""
        state: UrlState | None = request.meta.get(STATE)
        if state is None or CONTENTS in request.meta or not isinstance(response, Response):
            return False
        if not 200 <= response.status < 300 or b"Location" in response.headers:
            return False
        declared = declared_type(response.headers)
        kind = self._kind(response, request, declared)
        if kind is None:
            return False
        answer = Outcome(state.id, state.url, OutcomeKind.DOCUMENT, response.status)
        answer.sent_ago_s = self._session.sending.ago_s(state.site)
        if not response.meta.get("autothrottle_dont_adjust_delay"):
            answer.latency_s = response.meta.get("download_latency")
        body: FileBody | None = request.meta.get(FILE)
        self._session.engine.turns.file_arrived(answer, size=len(response.body) if body is None else body.size)
        task = asyncio.get_running_loop().create_task(self._read(response, request, declared=declared, kind=kind))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        wake(self._crawler)  # the turn of its site has ended
        return True

    def close(self) -> None:
        """Leave the files that still wait: their leases are given back, and they are fetched again."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self._processes.close()

    def _kind(self, response: Response, request: Request, declared: str | None) -> str | None:
        """Return the type of a response that is a file and admitted; None for any other."""
        body: FileBody | None = request.meta.get(FILE)
        start = start_of(response, body)
        is_too_large = body is not None and body.is_too_large
        if STOPPED in response.flags and not is_too_large:
            return None
        type_may_be = essence(declared) in FILE_TYPES or start.startswith(FIRST_BYTES) or self._settings.converters
        if not (type_may_be or body is not None):
            return None
        kind, decision = document_type(self._session.space, declared, None if is_too_large else start)
        return kind if decision.admitted and (kind in FILE_TYPES or converter_for(kind, self._settings.converters)) else None

    async def _read(self, response: Response, request: Request, *, declared: str | None, kind: str) -> None:
        """Read a file, and continue with its response."""
        body: FileBody | None = request.meta.get(FILE)
        if body is not None and body.is_too_large:
            contents = FileContents(kind, status=TextStatus.TOO_LARGE)
        else:
            on_disk = body is not None and body.path is not None
            job = FileJob(
                declared if kind == essence(declared) else kind,
                path=str(body.path) if on_disk and body is not None else "",
                data=b"" if on_disk else response.body,
                converter=converter_for(kind, self._settings.converters),
                timeout_s=self._settings.timeout_s,
            )
            contents = await self._processes.read(job)
        request.meta[CONTENTS] = contents
        await maybe_deferred_to_future(self._continue(response, request))
        if body is not None and LATER not in request.meta:  # else it waits for requests of its own
            body.drop()


def start_of(response: Response, body: FileBody | None) -> bytes:
    """Return the first bytes of a response, or all of it."""
    return body.start if body is not None and body.path is not None else response.body
