"""Our download handler, and servers on loopback that answer each request with what a test has for it, byte by byte."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager

from crawlspace.config.site_tls import SiteTls
from crawlspace.decision import Decision, Reason
from crawlspace.runtime.components.requests import STATE
from crawlspace.runtime.http import handler as module
from crawlspace.runtime.http.handler import CurlDownloadHandler
from crawlspace.runtime.http.resolver import GuardedResolver, LoopNames
from crawlspace.runtime.http.sending import SecondAttempts, SendingTimes

OK = b"HTTP/1.1 200 OK\r\n"
HTML = b"Content-Type: text/html; charset=utf-8\r\n"
PAGE = OK + HTML + b"Content-Length: 3\r\n\r\nabc"
LONGEST_S = 60


class Ends:
    """Ends a connection in the place of a further part of an answer."""


END, RESET = Ends(), Ends()
WAIT = Ends()
"""Once the client has closed the connection."""
Part = bytes | Ends | Callable[[], Awaitable[None]]
"""What is sent; an end of the connection; or something to wait for before the next part."""
Answer = Sequence[Part]


@dataclass
class Loopback:
    """A server whose requests get the answers in turn, on whichever connection they come; the last one again and again."""

    answers: list[Answer]
    requests: list[bytes] = field(default_factory=list)
    """Heads and bodies as they came."""
    connections: int = 0
    """Those that were made."""
    by_connection: list[int] = field(default_factory=list)
    """By request, the number of its connection."""
    closed: int = 0
    port: int = 0
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._writers.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                body = await reader.readexactly(int(lengths[0].partition(b":")[2])) if lengths else b""
                self.requests.append(head + body)
                self.by_connection.append(number)
                if not await self._answer(reader, writer):
                    break
        writer.close()
        self.closed += 1
        self._changed.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        for part in self.answers[min(len(self.requests), len(self.answers)) - 1]:
            if isinstance(part, bytes):
                writer.write(part)
                await writer.drain()
            elif part is RESET:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
                return False
            elif part is END:
                return False
            elif part is WAIT:
                await reader.read()
                return False
            else:
                assert callable(part)
                await part()
        return True

    async def send(self, data: bytes) -> None:
        """Send something on all connections, without a request for it; return when it is in the system."""
        for writer in self._writers:
            writer.write(data)
            await writer.drain()

    async def close_all(self) -> None:
        """Close all connections; return when the client's system knows."""
        for writer in self._writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        self._writers.clear()

    async def until_closed(self, connections: int) -> None:
        """Wait until so many connections were closed."""
        while self.closed < connections:
            self._changed.clear()
            await self._changed.wait()

    def url(self, path: str = "/", *, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


@asynccontextmanager
async def serving(*answers: Answer, tls: ssl.SSLContext | None = None) -> Any:
    """Serve these answers on loopback."""
    made = Loopback(list(answers))
    server = await asyncio.start_server(made.handle, "127.0.0.1", 0, ssl=tls, limit=1 << 20)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await made.close_all()
        with suppress(TimeoutError):
            await asyncio.wait_for(server.wait_closed(), 1)


class Guarded(CurlDownloadHandler):
    """One with address rules and without a session, as that of the add-on."""

    def resolver(self) -> GuardedResolver:
        crawler: Any = self.crawler
        resolver: GuardedResolver = crawler.resolver
        return resolver


class Crawl:
    """A crawl with our download handler. `owned_for_s`, `incarnation` and `guard` may be changed while it runs."""

    def __init__(
        self,
        *,
        with_session: bool = False,
        folder: Path = Path("nowhere"),
        tls: SiteTls | None = None,
        file_bytes: int = 1_000,
        **settings: Any,
    ) -> None:
        self.owned_for_s = inf
        self.incarnation = 0
        self.forbidden: set[str] = set()
        """Addresses that may not be connected to."""
        self.sending, self.second_attempts = SendingTimes(), SecondAttempts()
        self.resolver = GuardedResolver(LoopNames(timeout_s=LONGEST_S)).for_one(self._guard)
        own = SimpleNamespace(tls=tls, max_file_bytes=None)
        sites = SimpleNamespace(settings=[own], of=lambda host, port: own, at=lambda site: own)
        files = SimpleNamespace(converters=(), max_bytes=file_bytes)
        collection = SimpleNamespace(
            archive=SimpleNamespace(is_on=True),
            files=files,
            sites=sites,
            data_folder=folder,
            content=SimpleNamespace(truncates=False),
        )
        self.session: Any = SimpleNamespace(
            collection=collection,
            sending=self.sending,
            second_attempts=self.second_attempts,
            owned_for_s=lambda _: self.owned_for_s,
            incarnation=lambda: self.incarnation,
            resolver=lambda: self.resolver,
        )
        spider = SimpleNamespace(session=self.session if with_session else None)
        crawler: Any = SimpleNamespace(spider=spider, settings=Settings({"DOWNLOAD_TIMEOUT": LONGEST_S, **settings}))
        crawler.signals = SignalManager(crawler)
        self.signals = crawler.signals
        crawler.resolver = self.resolver
        self.handler = (CurlDownloadHandler if with_session else Guarded)(crawler)

    def _guard(self, host: str, port: int, address: str) -> Decision:
        return Decision(Reason.ADDRESS if address in self.forbidden else Reason.ADMITTED, None, ())

    async def fetch(self, url: str | Request, **meta: Any) -> Response:
        request = url if isinstance(url, Request) else Request(url)
        request.meta.update(meta)
        self.last = request
        async with asyncio.timeout(LONGEST_S):
            response: Response = await self.handler.download_request(request)
        return response

    async def fetch_page(self, url: str, **meta: Any) -> Response:
        """Fetch a URL of the frontier."""
        return await self.fetch(url, **{STATE: SimpleNamespace(id=1, site="127.0.0.1:80")}, **meta)


@contextmanager
def asyncio_is_there(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scrapy asks whether there is a reactor of asyncio, and here there is only a loop."""
    monkeypatch.setattr(module, "is_asyncio_available", lambda: True)
    yield


@asynccontextmanager
async def crawling(**options: Any) -> Any:
    crawl = Crawl(**options)
    try:
        yield crawl
    finally:
        await crawl.handler.close()


@asynccontextmanager
async def loopback(*answers: Answer, **options: Any) -> AsyncIterator[tuple[Loopback, Crawl]]:
    """A server that gives these answers, and a crawl."""
    async with serving(*answers) as server, crawling(**options) as crawl:
        yield server, crawl


def fetched(*answers: Answer, method: str = "GET", body: bytes = b"", **settings: Any) -> Response | Exception:
    """Return what comes of one request that gets this answer."""

    async def run() -> Response | Exception:
        async with serving(*answers) as server, crawling(**settings) as crawl:
            try:
                response: Response = await crawl.fetch(Request(server.url(), method=method, body=body))
            except Exception as error:  # noqa: BLE001 - it is what the test is about
                return error
            return response

    return asyncio.run(run())
