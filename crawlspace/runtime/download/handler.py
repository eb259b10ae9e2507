"""Scrapy's HTTP handler, which also notes when a request was really sent, and for which crawl a connection is made.

The delay of a site counts from the sending. In a busy process tenths of a second can pass between leasing a URL, getting a connection
for it and writing the request.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from math import ceil, inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from twisted.internet.defer import fail
from twisted.internet.main import CONNECTION_LOST
from twisted.python.failure import Failure
from twisted.web.client import URI

from crawlspace.cache import Recent
from crawlspace.runtime.download.archived import exchange_of
from crawlspace.runtime.download.cookies import use_bundled_suffixes
from crawlspace.runtime.download.errors import ClosedInHandshake, KeptConnectionClosed, NotAsked, ProxyFailed
from crawlspace.runtime.download.header_limits import LimitedFactory, limit_connect_answer
from crawlspace.runtime.download.http_internals import (
    bound_idle_connections,
    pool_of,
    remember_host_names,
    use_agent,
    use_factory,
    wrap_new_connection,
    wrap_timers,
)
from crawlspace.runtime.download.kept_connections import (
    LoopTimers,
    end_in_time,
    ended_before_answer,
    ended_in_handshake,
    no_second_sending,
)
from crawlspace.runtime.download.proxy_failures import answered_by_proxy, failed_through_proxy, not_connected
from crawlspace.runtime.download.site_certificates import use_site_certificates
from crawlspace.runtime.download.tunnels import is_to_proxy
from crawlspace.runtime.files.download import FileAgent
from crawlspace.runtime.logformat import make_libraries_printable
from crawlspace.runtime.requests import EXCHANGE, STATE, request_id

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.web.client import HTTPConnectionPool

logger = logging.getLogger(__name__)

MOST_REPORTED = 50
"""Failures of proxies, mostly at different sites, that are logged."""
SITES = 50_000
HOST_NAMES = 5_000
USUAL_LENGTH = 300
"""Scheme, host and port of a request; longer ones are not kept."""
TRIES_FOR: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)
"""The option that bounds for how many milliseconds the system sends again what is not acknowledged; Linux has it."""
LONGEST_MS = 2**31 - 1
MOST_IDLE = 2_000
"""Connections kept for a site's next request, where the process may have as many files open; one with TLS takes some 50 KB."""


class SendingTimes:
    """When the last request to each site was written to its connection."""

    def __init__(self) -> None:
        self._sent: Recent[str, float] = Recent(SITES)

    def sent(self, site: str) -> None:
        """A request to the site, or the last part of it so far, has just been written."""
        self._sent.put(site, monotonic())

    def ago_s(self, site: str) -> float:
        """Seconds since the last request to the site was written; 0 where that is not known."""
        sent = self._sent.get(site)
        return 0.0 if sent is None else monotonic() - sent


class TimingHandler(HTTP11DownloadHandler):
    """Notes the sending of each request in the session's `sending`, and has connections checked by the session's rules."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._reported: set[str] = set()
        use_bundled_suffixes()
        make_libraries_printable()
        pool = pool_of(self)
        use_factory(pool, LimitedFactory)
        session = self._session = getattr(crawler.spider, "session", None)
        self._archives = session is not None and session.collection.archive.is_on
        if session is None:
            return
        use_agent(FileAgent)
        use_site_certificates(self, crawler, session.collection.sites)
        wrap_timers(pool, LoopTimers)
        self._take_new_connection = no_second_sending(pool)
        remember_host_names(HOST_NAMES)
        bound_idle_connections(pool, min(MOST_IDLE, _most_files() // 2))
        watch_connections(
            pool,
            session.sending,
            connecting=session.connecting,
            connecting_to_proxy=partial(session.connecting, to_proxy=True),
            owned_for_s=session.owned_for_s,
            incarnation=session.incarnation,
        )

    async def download_request(self, request: Request) -> Response:
        """Download what is asked for; on a new connection, where a kept one was closed before."""
        if self._session is not None and self._session.second_turns.begins(request_id(request)):
            self._take_new_connection()  # the connection is taken before anything is awaited
        response = await self._through_proxy(request) if request.meta.get("proxy") else await super().download_request(request)
        if self._archives and STATE in request.meta and not response.flags:  # a flag: it is not complete
            request.meta[EXCHANGE] = exchange_of(request, response)
        return response

    async def _through_proxy(self, request: Request) -> Response:
        """Raise ProxyFailed where the proxy has kept the answer away, or has answered for the site."""
        try:
            response = await super().download_request(request)
        except Exception as error:
            failed = failed_through_proxy(request, error)
            if failed is None:
                raise
            self._report(failed)
            raise failed from error
        failed = answered_by_proxy(request, response)
        if failed is not None:
            self._report(failed)
            raise failed
        return response

    def _report(self, failed: Exception) -> None:
        """Log what a proxy has done, once, and for some sites: it is mostly the same for all of them."""
        sentence = str(failed)
        if isinstance(failed, ProxyFailed) and sentence not in self._reported and len(self._reported) < MOST_REPORTED:
            self._reported.add(sentence)
            logger.warning("%s; the pages wait (618), and none is deleted for it", sentence)


def watch_connections(
    pool: HTTPConnectionPool,
    sending: SendingTimes,
    *,
    connecting: Callable[[], AbstractContextManager[None]],
    connecting_to_proxy: Callable[[], AbstractContextManager[None]] = nullcontext,
    owned_for_s: Callable[[str], float] = lambda _: inf,
    incarnation: Callable[[], int] = lambda: 0,
) -> None:
    """Have each connection of the pool made within `connecting`, and the sending of each request on it noted.

    A request on a kept connection that is closed before an answer fails with KeptConnectionClosed. One to a proxy is made within
    `connecting_to_proxy`, and fails with NotConnected.

    `owned_for_s` returns for how long a site is still this worker's. A request to a site that is not is not sent, and fails with NotAsked;
    neither is one of an earlier `incarnation` of the worker.
    """

    def watched(connect: Callable[..., Any], clock: Any) -> Callable[..., Any]:
        def connect_and_watch(key: Any, endpoint: Any) -> Any:
            began = incarnation()

            def watch(connection: Any) -> Any:
                Watch(connection, owned_for_s, sending.sent, incarnation, began)
                if hasattr(connection.transport, "transport"):  # TLS
                    end_in_time(connection.transport, clock)
                return connection

            limit_connect_answer(endpoint)
            to_proxy = is_to_proxy(key, endpoint)
            with connecting_to_proxy() if to_proxy else connecting():  # the endpoint asks for the addresses before it returns
                connected = connect(key, endpoint)
            return (connected.addErrback(not_connected) if to_proxy else connected).addCallback(watch)

        return connect_and_watch

    wrap_new_connection(pool, watched)


class Watch:
    """Checks `owned_for_s` right before data is given to the operating system, and calls `sent` right after each part of a request.

    Between a request and its writing lie the rest of the loop's iteration and, with TLS, the handshake. A process can be suspended for
    hours in between. The system must not send the data after the time of `owned_for_s` either: in a network failure it repeats the
    sending, and the site would get the request when the network is back (Linux: TCP_USER_TIMEOUT in tcp(7), RFC 5482).
    """

    def __init__(
        self,
        connection: Any,
        owned_for_s: Callable[[str], float],
        sent: Callable[[str], None],
        incarnation: Callable[[], int],
        began: int,
    ) -> None:
        """`began`: the incarnation in which the connection was begun, for its first request."""
        self._connection, self._owned_for_s, self._sent, self._incarnation = connection, owned_for_s, sent, incarnation
        self._began: int | None = began
        self._incarnation_asked = began
        wire = connection.transport
        while (below := getattr(wire, "transport", None)) is not None:  # TLS is a transport over that of the socket
            wire = below
        self._wire, self._write, self._send = wire, wire.writeSomeData, connection.request
        connection.request, connection.watch, wire.writeSomeData = self.request, self, self.write
        self._site: str | None = None
        """The site of the last request on this connection; with a proxy that is not the host it is connected to."""
        self._awaits_answer = self._is_unwritten = self._refused = self._is_kept = False
        self._writes_at_once = wire is connection.transport
        """What is written need not wait for the loop: no TLS, and nothing else waits to be written."""

    def request(self, request: Any) -> Any:
        """Send a request, as HTTP11ClientProtocol does."""
        return self.read(request) if self.begins(request.absoluteURI) else fail(NotAsked())

    def begins(self, url: bytes) -> bool:
        """Note that a request is to be sent; return whether it may be. The connection is closed if not."""
        self._site = site_of(url)
        self._is_kept = self._began is None
        self._incarnation_asked, self._began = self._incarnation() if self._began is None else self._began, None
        if not self._may_ask_for_s(self._site):
            self._connection.transport.abortConnection()  # nothing else would close it
            return False
        self._awaits_answer = self._is_unwritten = True
        return True

    def read(self, request: Any) -> Any:
        """Send a request that may be sent; return its answer to be."""
        return self._send(request).addBoth(self._over)

    def write_now(self, data: bytes) -> None:
        """Write a request, at once as far as the system takes it."""
        transport = self._connection.transport
        if self._writes_at_once and transport.connected and not transport.disconnecting:
            written = self.write(data)
            if written == len(data):
                return
            self._writes_at_once = False
            data = data[max(written, 0) :] if isinstance(written, int) else data  # an exception: the transport meets it too
        transport.write(data)

    def answered(self) -> None:
        """The answer to a request is there: what is written from now on belongs to no request."""
        self._awaits_answer = False

    def write(self, data: bytes) -> Any:
        """Write to the socket, as FileDescriptor.writeSomeData does: an exception means that the connection is lost."""
        site = self._site
        if site is None:
            return self._write(data)
        owned_for_s = self._may_ask_for_s(site)
        if not owned_for_s:
            self._refused = True
            return CONNECTION_LOST
        if owned_for_s < inf and TRIES_FOR is not None:  # not by getHandle: inside a tunnel that is TLS's
            self._wire.socket.setsockopt(socket.IPPROTO_TCP, TRIES_FOR, min(ceil(owned_for_s * 1000), LONGEST_MS))
        written = self._write(data)
        if self._awaits_answer or self._is_unwritten:  # not the closing messages of TLS
            self._is_unwritten = False
            self._sent(site)
        return written

    def _may_ask_for_s(self, site: str) -> float:
        return self._owned_for_s(site) if self._incarnation() == self._incarnation_asked else 0.0

    def _over(self, answer: Any) -> Any:
        self._awaits_answer = False
        if self._refused:
            return Failure(NotAsked())
        if self._is_kept and isinstance(answer, Failure) and ended_before_answer(answer):
            return Failure(KeptConnectionClosed())
        if isinstance(answer, Failure) and ended_in_handshake(answer, self._connection.transport):
            error = ClosedInHandshake()
            error.__cause__ = answer.value
            return Failure(error)
        return answer


def site_of(url: bytes) -> str:
    """Return the site of a request, as the frontier calls it: host and port."""
    origin = url[: url.find(b"/", len(b"https://"))]
    return _site_of_usual(origin) if len(origin) <= USUAL_LENGTH else _site_of(url)


def _site_of(url: bytes) -> str:
    parts = URI.fromBytes(url)
    host = parts.host.decode("ascii", "replace")
    return f"[{host}]:{parts.port}" if ":" in host else f"{host}:{parts.port}"


_site_of_usual = lru_cache(HOST_NAMES)(_site_of)


def _most_files() -> int:
    """How many files this process may have open."""
    if sys.platform == "win32":
        return 2 * MOST_IDLE
    import resource  # noqa: PLC0415 - there is none on Windows

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft != resource.RLIM_INFINITY else 2 * MOST_IDLE
