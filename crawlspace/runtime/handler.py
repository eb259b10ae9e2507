"""Scrapy's HTTP handler, which also notes when a request has really gone out: politeness is counted from there.

In a busy process tenths of a second can lie between handing out a URL, getting a connection for it and writing the request.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler

from crawlspace.discovery import Recent

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

SITES = 50_000


class SendingTimes:
    """When the last request to each site was certainly written; unknown while that is not certain."""

    def __init__(self) -> None:
        self._sent: Recent[str, float] = Recent(SITES)

    def begins(self, site: str) -> None:
        """A request to the site is about to be written. The loop writes in its next turn, so after two turns it is done."""
        self._sent.put(site, -1.0)
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._done, site)

    def ago_s(self, site: str) -> float:
        """Seconds since the last request to the site was written at the latest; 0 where that is not known."""
        sent = self._sent.get(site)
        return 0.0 if sent is None or sent < 0 else monotonic() - sent

    def _done(self, site: str) -> None:
        self._sent.put(site, monotonic())


class TimingHandler(HTTP11DownloadHandler):
    """Notes the sending of each request in the session's `sending`."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        session = getattr(crawler.spider, "session", None)
        if session is None:
            return
        sending: SendingTimes = session.sending
        connect = self._pool.getConnection

        def connect_and_note(key: Any, endpoint: Any) -> Any:
            connected = connect(key, endpoint)
            site = f"{key[1].decode('ascii', 'replace')}:{key[2]}"

            def note(connection: Any) -> Any:
                sending.begins(site)  # the agent writes as soon as it gets the connection
                return connection

            return connected.addCallback(note)

        # The pool is where a request meets its connection, new or kept; Scrapy has no setting for it.
        self._pool.getConnection = connect_and_note  # type: ignore[method-assign]
