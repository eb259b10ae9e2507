"""Has pages read in other processes before the callback of their response is called. Pages that are read meanwhile are fetched and recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.spider import iterate_spider_output

from crawlspace.content.charset import charset_parameter
from crawlspace.content.documents.jobs import HtmlJob
from crawlspace.content.mime import HTML_TYPES
from crawlspace.content.page import Page
from crawlspace.document import essence
from crawlspace.model import UrlState
from crawlspace.runtime.components.requests import PAGE, ReadPage
from crawlspace.runtime.components.responses import PageReaders
from crawlspace.runtime.components.scrapy_internals import STOPPED
from crawlspace.runtime.processes.page_processes import PageProcesses

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session


class PageReading:
    """Reads the pages of one crawl in `number` processes."""

    def __init__(self, session: Session, crawler: Crawler, number: int) -> None:
        files = session.collection.files
        assert crawler.stats is not None
        self._stats = crawler.stats
        self._readers = PageReaders(session.collection)
        self._timeout_s = files.timeout_s
        self._processes = PageProcesses(number, memory_bytes=files.memory_bytes)

    def read_first(
        self, parse: Callable[..., Any], response: Response, state: UrlState, declared: str | None
    ) -> Callable[..., Any]:
        """Have a process read the page of a response; return a callback that waits for it before `parse` gets the response.

        Returns `parse` itself for a response without a page, and where the crawl has to read it.
        """
        mime = essence(declared)
        if mime not in HTML_TYPES or not response.body or not 200 <= response.status < 300 or STOPPED in response.flags:
            return parse
        reading = self._processes.read(
            HtmlJob(
                response.body,
                url=response.request.url,  # type: ignore[union-attr]
                mime=mime,
                charset=None if declared is None else charset_parameter(declared),
                reader=self._readers.at(state.site),
                timeout_s=self._timeout_s,
            )
        )
        return parse if reading is None else partial(self._read_and_parsed, parse, reading, mime)

    async def _read_and_parsed(
        self,
        parse: Callable[..., Any],
        reading: asyncio.Future[Page | None],
        mime: str,
        response: Response,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Wait until a page is read, then yield what `parse` yields."""
        page = await reading
        if page is not None:
            response.meta[PAGE] = ReadPage(mime, page)
            self._stats.inc_value("crawlspace/pages/read_by_processes")
        async for one in as_async_generator(iterate_spider_output(parse(response, **kwargs))):
            yield one

    def close(self) -> None:
        """End the processes."""
        self._processes.close()
