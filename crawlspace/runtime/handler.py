"""Scrapy's HTTP handler, which also notes when a request has really gone out, and says for which crawl a connection is made.

Politeness is counted from the sending. In a busy process tenths of a second can lie between handing out a URL, getting a connection
for it and writing the request.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from twisted.internet.defer import fail
from twisted.internet.endpoints import HostnameEndpoint

from crawlspace.recent import Recent
from crawlspace.runtime.failures import NotAsked

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from twisted.web.client import HTTPConnectionPool

SITES = 50_000
HOST_NAMES = 5_000
MOST_IDLE = 2_000
"""Connections kept for a site's next request, where the process may have as many files open; one with TLS takes some 50 KB."""


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
    """Notes the sending of each request in the session's `sending`, and has connections checked by the session's rules."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        session = getattr(crawler.spider, "session", None)
        if session is None:
            return
        remember_host_names()
        bound_idle_connections(self._pool, min(MOST_IDLE, _most_files() // 2))
        watch_connections(self._pool, session.sending, connecting=session.connecting, may_send=session.may_send)


def watch_connections(
    pool: HTTPConnectionPool,
    sending: SendingTimes,
    *,
    connecting: Callable[[], AbstractContextManager[None]],
    may_send: Callable[[str], bool] = lambda _: True,
) -> None:
    """Have each connection of the pool made within `connecting`, and the sending of each request on it noted.

    Also of one that Twisted sends a second time: what gets no answer on a connection that was kept goes out again on a new one,
    which the pool makes by itself (`retryAutomatically`). The site was then last asked by that.

    A request to a site that `may_send` says no to is not sent, and fails with NotAsked.
    """
    connect = pool._newConnection

    def connect_and_watch(key: Any, endpoint: Any) -> Any:
        host = key[1].decode("ascii", "replace")
        site = f"[{host}]:{key[2]}" if ":" in host else f"{host}:{key[2]}"

        def watch(connection: Any) -> Any:
            send = connection.request

            def note_and_send(request: Any) -> Any:
                if not may_send(site):
                    connection.abort()  # nobody else would close it
                    return fail(NotAsked("others may have the site"))
                sending.begins(site)
                return send(request)

            connection.request = note_and_send
            return connection

        with connecting():  # the endpoint asks for the addresses before it returns
            connected = connect(key, endpoint)
        return connected.addCallback(watch)

    # The pool is where connections are made, for a request and for its second sending; Scrapy has no setting for it.
    pool._newConnection = connect_and_watch  # type: ignore[method-assign]


def remember_host_names() -> None:
    """Have Twisted remember the two forms of a host, which it makes for each request anew, even on a connection that was kept."""
    forms_of = HostnameEndpoint._hostAsBytesAndText
    if not hasattr(forms_of, "cache_info"):
        HostnameEndpoint._hostAsBytesAndText = staticmethod(lru_cache(HOST_NAMES)(forms_of))  # type: ignore[method-assign]


def bound_idle_connections(pool: HTTPConnectionPool, most: int) -> None:
    """Have the pool close the connection that has been idle longest, once there are more.

    Twisted bounds them by site, and by four minutes. In four minutes a crawl can ask more sites than a process may have files open:
    then nothing could be opened any more, and every further page would be an error.
    """
    put = pool._putConnection

    def put_and_bound(key: Any, connection: Any) -> None:
        put(key, connection)
        while len(pool._timeouts) > most:
            ending = next(iter(pool._timeouts.values()))  # they stand in the order in which they became idle
            site, idle = ending.args
            ending.cancel()
            pool._removeConnection(site, idle)
            if not pool._connections[site]:
                del pool._connections[site]

    pool._putConnection = put_and_bound  # type: ignore[method-assign]


def _most_files() -> int:
    """How many files this process may have open."""
    if sys.platform == "win32":
        return 2 * MOST_IDLE
    import resource  # noqa: PLC0415 - there is none on Windows

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft != resource.RLIM_INFINITY else 2 * MOST_IDLE
