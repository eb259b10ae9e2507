"""What an integration test is made of: a small web site that it declares itself.

    site = Site({"/": page("Home", links=["/a", "/b"]), "/a": page("A"), "/gone": status(410), "/r": redirect("/a")})
    with serve(site) as server:
        run_scrapy(["crawl", "demo"])
        assert server.paths() == ["/robots.txt", "/", "/a"]

A site may be changed while it is served (`server.site["/a"] = status(404)`), so that a test can show what a second crawl makes of it.
The misbehaviour that a crawler meets is a reply like any other: `hang`, `drop`, `drip`, `cut_short`, `gzip_bomb`, `wrong_charset`.
A path that the site does not hold is answered with 404, robots.txt too.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http import HTTPStatus

from tests.http import Connection, Reply, Request, head_of, names_same_version, read_request
from tests.notifications import LONGEST_WAIT_S, notify


@dataclass(frozen=True, slots=True)
class Answer:
    """An orderly reply. One with an ETag or Last-Modified header answers 304 to a request that names the same."""

    code: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    async def send(self, request: Request, connection: Connection) -> None:
        given = {name.lower(): value for name, value in self.headers.items()}
        if self.code == HTTPStatus.OK and names_same_version(request.headers, given):
            await connection.write(head_of(HTTPStatus.NOT_MODIFIED, self.headers))
            return
        head = head_of(self.code, {"Content-Length": str(len(self.body)), **self.headers})
        await connection.write(head if request.method == "HEAD" else head + self.body)


Route = Reply | Callable[[Request], Reply]


class Site(dict[str, Route]):
    """Replies by path. A request finds the one for its path with query string, else the one without, else `otherwise`."""

    def __init__(self, routes: Mapping[str, Route], *, otherwise: Route | None = None) -> None:
        super().__init__(routes)
        self.otherwise = otherwise or status(404)

    def reply_to(self, request: Request) -> Reply:
        route = self.get(request.path) or self.get(request.path.partition("?")[0]) or self.otherwise
        return route(request) if callable(route) else route


# --- orderly replies ----------------------------------------------------------------------------------------------


def page(
    title: str,
    *,
    text: str = "",
    links: Sequence[str | tuple[str, str]] = (),
    head: str = "",
    lang: str = "en",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An HTML page. A link is an address, or an address and its text; `head` is put into the head as it is."""
    pairs = [(link, link) if isinstance(link, str) else link for link in links]
    listed = "".join(f'<li><a href="{escape(href)}">{escape(name)}</a></li>\n' for href, name in pairs)
    return html(
        f'<!doctype html>\n<html lang="{escape(lang)}">\n<head><meta charset="utf-8"><title>{escape(title)}</title>{head}</head>\n'
        f"<body><h1>{escape(title)}</h1>\n<p>{escape(text)}</p>\n<ul>\n{listed}</ul></body>\n</html>\n",
        headers=headers,
    )


def html(markup: str, *, headers: Mapping[str, str] | None = None) -> Answer:
    """`markup` as it is, in UTF-8."""
    return binary(markup.encode(), "text/html; charset=utf-8", headers=headers)


def text(body: str, *, headers: Mapping[str, str] | None = None) -> Answer:
    return binary(body.encode(), "text/plain; charset=utf-8", headers=headers)


def binary(body: bytes, content_type: str, *, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(200, {"Content-Type": content_type, **(headers or {})}, body)


def status(code: int, *, headers: Mapping[str, str] | None = None, body: str = "") -> Answer:
    shown = body or f"<title>{code}</title>"
    bodiless = code in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}
    return Answer(code, {"Content-Type": "text/html; charset=utf-8", **(headers or {})}, b"" if bodiless else shown.encode())


def redirect(to: str, code: int = 302) -> Answer:
    return status(code, headers={"Location": to})


def wrong_charset(markup: str, *, declared: str = "utf-8", actual: str = "windows-1252") -> Answer:
    """A page whose header declares another character set than its bytes are written in."""
    return binary(markup.encode(actual), f"text/html; charset={declared}")


def gzip_bomb(size: int) -> Answer:
    """A page of `size` spaces that travels as about a thousandth of that. `size` is rounded up to whole megabytes."""
    megabyte = b" " * (1 << 20)
    count = -(-size // len(megabyte))
    deflate = zlib.compressobj(9, wbits=-15)
    # After a full flush the compressor knows nothing of what was before: each megabyte has the same bytes.
    block = deflate.compress(megabyte) + deflate.flush(zlib.Z_FULL_FLUSH)
    crc = 0
    for _ in range(count):
        crc = zlib.crc32(megabyte, crc)
    trailer = struct.pack("<II", crc, (count * len(megabyte)) & 0xFFFFFFFF)
    body = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + block * count + deflate.flush() + trailer
    return binary(body, "text/html; charset=utf-8", headers={"Content-Encoding": "gzip"})


# --- misbehaviour -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class hang:
    """Never answers; the connection stays open until the client or the server ends it."""

    async def send(self, request: Request, connection: Connection) -> None:
        await connection.reader.read()  # returns when the client gives up
        raise ConnectionAbortedError


@dataclass(frozen=True, slots=True)
class drop:
    """Closes without an answer: at once and in order, or with a reset."""

    reset: bool = False

    async def send(self, request: Request, connection: Connection) -> None:
        if self.reset:
            connection.reset()
        raise ConnectionAbortedError


@dataclass(frozen=True, slots=True)
class drip:
    """Sends `chunk` every `every_s` seconds, without end."""

    chunk: bytes = b"<p>drip</p>\n"
    every_s: float = 0.01
    content_type: str = "text/html; charset=utf-8"

    async def send(self, request: Request, connection: Connection) -> None:
        await connection.write(head_of(200, {"Content-Type": self.content_type, "Connection": "close"}))
        while True:
            await connection.write(self.chunk)
            await asyncio.sleep(self.every_s)


@dataclass(frozen=True, slots=True)
class cut_short:
    """Promises `missing` bytes more than it sends, and closes."""

    body: str = "<title>cut</title>"
    missing: int = 1000

    async def send(self, request: Request, connection: Connection) -> None:
        length = len(self.body.encode()) + self.missing
        await connection.write(head_of(200, {"Content-Type": "text/html", "Content-Length": str(length)}) + self.body.encode())
        raise ConnectionAbortedError


@dataclass(frozen=True, slots=True)
class slow:
    """Answers as `then` does, `seconds` later."""

    then: Reply
    seconds: float

    async def send(self, request: Request, connection: Connection) -> None:
        await asyncio.sleep(self.seconds)
        await self.then.send(request, connection)


class held:
    """Answers as `then` does, once `release` was called."""

    def __init__(self, then: Reply) -> None:
        self.then = then
        self._released: Future[None] = Future()

    def release(self) -> None:
        self._released.set_result(None)

    async def send(self, request: Request, connection: Connection) -> None:
        await asyncio.shield(asyncio.wrap_future(self._released))
        await self.then.send(request, connection)


class sequence:
    """Each request gets the next reply; the last one stays."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._left = list(replies)

    async def send(self, request: Request, connection: Connection) -> None:
        reply = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        await reply.send(request, connection)


# --- the server ---------------------------------------------------------------------------------------------------


class Server:
    """A site that is being served, and what was asked of it."""

    def __init__(self, site: Site, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        self.site = site
        self.tls = tls
        self.host = host
        self.port = port
        self.requests: list[Request] = []
        """All requests, in the order in which they came."""
        self.connections = 0
        self.most_at_once = 0
        """The largest number of requests that were waiting for their answer at one time."""
        self.faults: list[BaseException] = []
        """What went wrong in a reply; raised when the `with` block ends."""
        self._waiting = 0

    @property
    def netloc(self) -> str:
        """`host:port`, which is also the site's name in the store."""
        return f"{self.host}:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http{'s' * (self.tls is not None)}://{self.netloc}{path}"

    def paths(self) -> list[str]:
        """The paths asked for, in order, with repetitions."""
        return [request.path for request in self.requests]

    def counts(self) -> Counter[str]:
        """How often each path was asked for."""
        return Counter(self.paths())

    def forget(self) -> None:
        """Empty the record, as between two crawls."""
        self.requests.clear()
        self.connections = self.most_at_once = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until either end has enough."""
        self.connections += 1
        connection = Connection(reader, writer)
        try:
            while request := await read_request(connection):
                self.requests.append(request)
                notify()
                self._waiting += 1
                self.most_at_once = max(self.most_at_once, self._waiting)
                try:
                    await self.site.reply_to(request).send(request, connection)
                finally:
                    self._waiting -= 1
                if request.headers.get("connection", "").lower() == "close":
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone, or the reply wanted the connection closed
        except Exception as fault:  # noqa: BLE001 - a mistake in a test's own reply must fail that test, not be lost in a thread
            self.faults.append(fault)
        finally:
            writer.close()


@contextmanager
def serve(site: Site, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Serve a site on a loopback address until the block ends; port 0 = a free one.

    Servers on 127.0.0.1, 127.0.0.2 … are several hosts to a crawler (Linux answers on all of 127.0.0.0/8).
    """
    listener = socket.create_server((host, port), backlog=512)
    server = Server(site, host, listener.getsockname()[1], tls=tls)
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    thread = threading.Thread(target=_run, args=(loop, server, listener, stop), name=f"site {server.netloc}", daemon=True)
    thread.start()  # the listener accepts from now on: nobody need wait for the thread
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(LONGEST_WAIT_S)
        if server.faults and sys.exc_info()[0] is None:
            raise server.faults[0]


def _run(loop: asyncio.AbstractEventLoop, server: Server, listener: socket.socket, stop: asyncio.Event) -> None:
    try:
        loop.run_until_complete(_serve_until(server, listener, stop))
    finally:
        loop.close()


async def _serve_until(server: Server, listener: socket.socket, stop: asyncio.Event) -> None:
    talks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(server.talk(reader, writer))
        talks.add(task)
        writers.append(writer)
        task.add_done_callback(talks.discard)

    listening = await asyncio.start_server(accepted, sock=listener, limit=1 << 20, ssl=server.tls)
    await stop.wait()
    asyncio.get_running_loop().remove_reader(listener)  # closed at once, it would leave what has just been accepted open for ever
    for _ in range(100):  # which takes a few rounds of the loop until it is known here
        await asyncio.sleep(0)
    listening.close()
    while talks or writers:  # one that is known only now has its talk begun and its transport open, too
        left = list(talks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        while writers:  # also those whose talk is over, and whose last words nobody reads
            writers.pop().transport.abort()
        for _ in range(10):  # the transports close their sockets in the loop's next round
            await asyncio.sleep(0)
