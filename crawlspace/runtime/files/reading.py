"""Has files read before the callback of their response gets it. Pages go on at full rate meanwhile: other processes read.

The response of a file waits in its callback. Scrapy counts it there as being parsed, up to SCRAPER_SLOT_MAX_ACTIVE_SIZE bytes of bodies;
that of a large file is on disk, and does not count.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.spider import iterate_spider_output

from crawlspace.content.documents.contents import FileContents, TextStatus
from crawlspace.content.documents.converters import converter_for
from crawlspace.content.documents.jobs import FileJob
from crawlspace.content.documents.kinds import FILE_TYPES, FIRST_BYTES
from crawlspace.content_type import essence, is_generic
from crawlspace.model import Outcome, OutcomeKind, UrlState
from crawlspace.runtime.files.processes import FileProcesses
from crawlspace.runtime.http.file_body import FileBody, files_folder, remove_left
from crawlspace.runtime.http.headers import declared_type
from crawlspace.runtime.requests import CONTENTS, FILE, STATE
from crawlspace.runtime.rule_middleware import document_type
from crawlspace.runtime.scrapy_internals import STOPPED, is_closing, wake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlspace.runtime.session import Session

LOOK_EVERY_S = 0.5
"""Whether the crawl ends: nobody waits for a file then."""


class FileReading:
    """Reads the files of one crawl."""

    def __init__(self, session: Session, crawler: Crawler) -> None:
        self._session = session
        self._crawler = crawler
        self._settings = session.collection.files
        folder = files_folder(session.collection)
        remove_left(folder)
        self._processes = FileProcesses(self._settings.processes, memory_bytes=self._settings.memory_bytes, folder=folder)

    def read_first(self, parse: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callback that reads the file of a response, if it is one, before `parse` gets it."""

        def read_and_parse(response: Response, **kwargs: Any) -> Any:
            request = response.request
            state: UrlState | None = None if request is None else request.meta.get(STATE)
            if request is None or state is None or CONTENTS in request.meta:
                return parse(response, **kwargs)
            body: FileBody | None = request.meta.get(FILE)
            declared = declared_type(response.headers)
            kind = self._kind(response, request, declared) if 200 <= response.status < 300 else None
            if kind is None or b"Location" in response.headers:
                on_disk = body is not None and body.path is not None
                return self._parsed(parse, response, kwargs, body) if on_disk else parse(response, **kwargs)
            self._arrived(response, state, body)
            return self._read_and_parsed(parse, response, kwargs, kind, declared)

        return read_and_parse

    def close(self) -> None:
        """End the processes. The leases of files that still wait are given back, and they are fetched again."""
        self._processes.close()

    async def _read_and_parsed(
        self, parse: Callable[..., Any], response: Response, kwargs: dict[str, Any], kind: str, declared: str | None
    ) -> AsyncIterator[Any]:
        request = response.request
        assert request is not None
        body: FileBody | None = request.meta.get(FILE)
        reading = asyncio.ensure_future(self._read(response, body, kind=kind, declared=declared))
        try:
            while not (await asyncio.wait({reading}, timeout=LOOK_EVERY_S))[0]:
                if is_closing(self._crawler):
                    return
            request.meta[CONTENTS] = reading.result()
        finally:
            reading.cancel()
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
        """Let the next request to the site be sent: it need not wait until the file is read."""
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
        kind, decision = document_type(
            self._session.space, declared, None if is_too_large else start, on_disk=None if body is None else body.path
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
