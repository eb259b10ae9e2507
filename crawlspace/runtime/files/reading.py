"""Has files read before Scrapy gets their responses: so no callback waits for them, and pages go on at full rate.

A response that is a file is held back and read in another process. Then it goes on as any other, with what was read.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future

from crawlspace.content.documents.contents import FileContents, TextStatus
from crawlspace.content.documents.converters import converter_for
from crawlspace.content.documents.jobs import FileJob
from crawlspace.content.documents.kinds import FILE_TYPES, FIRST_BYTES
from crawlspace.content_type import essence, is_generic
from crawlspace.model import Outcome, OutcomeKind, UrlState
from crawlspace.runtime.download.headers import declared_type
from crawlspace.runtime.files.body import FileBody, remove_left
from crawlspace.runtime.files.download import files_folder
from crawlspace.runtime.files.processes import FileProcesses
from crawlspace.runtime.requests import CONTENTS, FILE, LATER, STATE
from crawlspace.runtime.rule_middleware import document_type
from crawlspace.runtime.scrapy_internals import STOPPED, divert_responses, wake

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawlspace.runtime.session import Session


class FileReading:
    """The files of one crawl that wait to be read."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        self._session = session
        self._crawler = crawler
        self._settings = session.collection.files
        folder = files_folder(session.collection)
        remove_left(folder)
        self._processes = FileProcesses(self._settings.processes, memory_bytes=self._settings.memory_bytes, folder=folder)
        self._tasks: dict[asyncio.Task[None], Request] = {}
        self._continue = divert_responses(crawler, self.takes)

    @property
    def are_waiting(self) -> bool:
        """Whether files wait."""
        return bool(self._tasks)

    def reading(self, request: Request) -> asyncio.Task[None] | None:
        """Return what reads the file that came for a request, and goes on with its response; None where it is no file, or read already."""
        return next((task for task, of in self._tasks.items() if of is request), None)

    def takes(self, response: Any, request: Request) -> bool:
        """Take a response if it is a file that has yet to be read. Return whether."""
        state: UrlState | None = request.meta.get(STATE)
        if state is None or CONTENTS in request.meta:
            return False
        body: FileBody | None = request.meta.get(FILE)
        if not isinstance(response, Response):  # its download has failed
            if body is not None:
                body.drop()
            return False
        declared = declared_type(response.headers)
        kind = self._kind(response, request, declared) if 200 <= response.status < 300 else None
        if kind is None or b"Location" in response.headers:
            if body is None or body.path is None:
                return False
            self._begin(self._go_on(response, request), request)
            return True
        answer = Outcome(state.id, state.url, OutcomeKind.DOCUMENT, response.status)
        answer.sent_ago_s = self._session.sending.ago_s(state.site)
        if not response.meta.get("autothrottle_dont_adjust_delay"):
            answer.latency_s = response.meta.get("download_latency")
        self._session.engine.turns.file_arrived(answer, size=len(response.body) if body is None else body.size)
        self._begin(self._read(response, request, declared=declared, kind=kind), request)
        wake(self._crawler)  # the turn of its site has ended
        return True

    def close(self) -> None:
        """Leave the files that still wait: their leases are given back, and they are fetched again."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self._processes.close()

    def _begin(self, work: Coroutine[Any, Any, None], request: Request) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = request
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))

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
        kind, decision = document_type(
            self._session.space, declared, None if is_too_large else start, on_disk=None if body is None else body.path
        )
        return kind if decision.admitted and (kind in FILE_TYPES or converter_for(kind, self._settings.converters)) else None

    def _is_converted(self, declared: str | None) -> bool:
        """Whether a header names a type that has a converter, or none, so that the first bytes may be of such a type."""
        converters = self._settings.converters
        return bool(converters) and (is_generic(declared) or bool(converter_for(essence(declared), converters)))

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
        await self._go_on(response, request)

    async def _go_on(self, response: Response, request: Request) -> None:
        """Continue with a response, and remove its body from disk when it is recorded."""
        body: FileBody | None = request.meta.get(FILE)
        await maybe_deferred_to_future(self._continue(response, request))
        if body is not None and LATER not in request.meta:  # else it waits for requests of its own
            body.drop()


def start_of(response: Response, body: FileBody | None) -> bytes:
    """Return the first bytes of a response, or all of it."""
    return body.start if body is not None and body.path is not None else response.body
