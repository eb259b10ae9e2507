"""Reads files and sitemaps, applies extraction rules to pages, and may read pages, in other processes before the callback of their response is called.

Pages are fetched at full rate meanwhile.

The response of a file waits in its callback. Scrapy counts it there as being parsed, up to SCRAPER_SLOT_MAX_ACTIVE_SIZE bytes of bodies;
that of a large file is on disk, and does not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.spider import iterate_spider_output

from crawlspace.config.extraction import ExtractionScope
from crawlspace.content.charset import charset_parameter
from crawlspace.content.documents.contents import FileContents, TextStatus
from crawlspace.content.documents.converters import converter_for
from crawlspace.content.documents.jobs import (
    ExtractionJob,
    FileJob,
    SitemapJob,
)
from crawlspace.content.documents.kinds import FILE_TYPES, FIRST_BYTES
from crawlspace.content.mime import HTML_TYPES
from crawlspace.content.sitemaps import is_sitemap
from crawlspace.document import essence, is_generic
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.runtime.components.requests import CONTENTS, EXTRACTED, FILE, SITEMAP, STATE, site_text
from crawlspace.runtime.components.rule_middleware import document_type
from crawlspace.runtime.components.scrapy_internals import STOPPED, is_closing, wake
from crawlspace.runtime.http.file_body import FileBody, files_folder, remove_left
from crawlspace.runtime.http.headers import declared_type, header_values
from crawlspace.runtime.processes.file_processes import MOST_PAGES, FileProcesses
from crawlspace.runtime.processes.page_reading import PageReading

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

T = TypeVar("T")

LOOK_EVERY_S = 0.5
"""Whether the crawl is ending: no file is waited for then."""


class FileReading:
    """Reads the files of one crawl."""

    def __init__(self, session: Session, crawler: Crawler, *, page_processes: int = 0) -> None:
        """`page_processes`: those that read pages; without any, pages are read by the crawl."""
        self._session = session
        self._crawler = crawler
        self._boilerplate = {site: tuple(learned.blocks) for site, learned in session.boilerplate.items()}
        self._settings = session.collection.files
        folder = files_folder(session.collection)
        remove_left(folder)
        processes = partial(FileProcesses, self._settings.processes, memory_bytes=self._settings.memory_bytes, folder=folder)
        self._processes, self._page_processes = processes(), processes(most=MOST_PAGES, niceness=0)
        """Pages do not wait for files."""
        self._pages = PageReading(session, crawler, page_processes) if page_processes else None
        rules = session.collection.extraction_rules
        self._scope = ExtractionScope(rules)
        content = session.collection.content
        self._reads_all = content.is_main or content.markdown or content.part_chars > 0
        """Whether something of every page is taken by a process."""
        self._extracts = bool(rules or self._boilerplate) or self._reads_all

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
                parse_page = parse if self._pages is None else self._pages.read_first(parse, response, state, declared)
                job = self._page_job(response, state, declared) if self._extracts else None
                if job is None:
                    return parse_page(response, **kwargs)
                return self._done_and_parsed(
                    parse_page, response, kwargs, EXTRACTED, partial(self._page_processes.extract, job), None
                )
            self._arrived(response, state, body)
            work = partial(self._read, response, body, kind=kind, declared=declared)
            return self._done_and_parsed(parse, response, kwargs, CONTENTS, work, body)

        return read_and_parse

    def close(self) -> None:
        """End the processes. The leases of files that still wait are given back, and they are fetched again."""
        if self._pages is not None:
            self._pages.close()
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
        try:
            while not (await asyncio.wait({task}, timeout=LOOK_EVERY_S))[0]:
                if is_closing(self._crawler):
                    return False
            request.meta[name] = task.result()
        finally:
            task.cancel()
        return True

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
