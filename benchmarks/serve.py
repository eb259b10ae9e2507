"""Web servers for benchmarks, all on loopback.

`folder_server` serves files as fast as the machine can: with nginx where there is one, else with a small server on asyncio.
`PageServer` generates pages, under as many addresses as a benchmark wants sites, and records every request.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, cast
from urllib.parse import unquote

import uvloop

from benchmarks.measure import BenchmarkFailed

_NGINX = """\
daemon off;
master_process on;
worker_processes 1;
{user}
pid {temp}/nginx.pid;
error_log {temp}/error.log;
events {{ worker_connections 1024; }}
http {{
    types {{ {types} }}
    default_type application/octet-stream;
    charset utf-8;
    access_log {access};
    sendfile on;
    open_file_cache max=2000;
    keepalive_requests 1000000;
    client_body_temp_path {temp}/body; proxy_temp_path {temp}/proxy; fastcgi_temp_path {temp}/fastcgi;
    uwsgi_temp_path {temp}/uwsgi; scgi_temp_path {temp}/scgi;
    server {{ listen 127.0.0.1:{port}; root "{root}"; }}
}}
"""

_TYPES = {
    "text/html": "html htm",
    "text/plain": "txt",
    "text/css": "css",
    "text/xml": "xml",
    "application/javascript": "js",
    "image/png": "png",
    "image/svg+xml": "svg",
    "application/pdf": "pdf",
}
"""Content type to extensions; every other file is sent as application/octet-stream."""

Reply = tuple[int, bytes, bytes]
"""Status, content type, body; for a redirect (3xx), its target instead of the body."""

_BEAT_S = 0.002
_SOCKETS = 250
"""Hosts that get a listening socket each; more of them share one."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def folder_server(folder: Path, *, access_log: Path | None = None) -> Iterator[str]:
    """Serve a folder while the block runs, and yield its address, as `http://127.0.0.1:port`."""
    nginx = shutil.which("nginx") or next(filter(os.path.exists, ("/usr/sbin/nginx", "/usr/local/sbin/nginx")), None)
    if nginx is None:
        with PageServer(_files_of(folder)) as server:
            yield server.origins[0]
        return
    with tempfile.TemporaryDirectory(prefix="bench-nginx-") as temp:
        port = free_port()
        config = Path(temp, "nginx.conf")
        config.write_text(
            _NGINX.format(
                user="user root;" if os.geteuid() == 0 else "",
                temp=temp,
                types=" ".join(f"{kind} {extensions};" for kind, extensions in _TYPES.items()),
                access=access_log or "off",
                root=folder.resolve(),
                port=port,
            )
        )
        process = subprocess.Popen([nginx, "-e", f"{temp}/error.log", "-c", str(config)], stdin=subprocess.DEVNULL)
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=10)


class Request(NamedTuple):
    """A request as the server saw it: read at `at` (monotonic clock), and arrived at most `slack_s` before."""

    at: float
    site: str
    path: str
    slack_s: float


class _Pulse:
    """Measures how late the server's loop may read something: on a busy machine a process may not run for a while."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._last = self._before = time.monotonic()

    def heartbeat(self) -> None:
        self._before, self._last = self._last, time.monotonic()
        self._loop.call_later(_BEAT_S, self.heartbeat)

    def slack_s(self, now: float) -> float:
        """Return the longest time that something read now can have waited: since the last beat but one."""
        return now - self._before


class PageServer:
    """A fast server in a thread: `answer(site, path)` returns each reply; `requests` lists all requests in order.

    Each of `hosts` is an address of 127.0.0.0/8; all listen on one port, and each is a site of its own. Thousands of them share one
    socket, which then answers at every address of the loopback device (Linux only). Each answer is sent after `delay_s`.
    """

    def __init__(
        self, answer: Callable[[str, str], Reply], hosts: Sequence[str] = ("127.0.0.1",), *, delay_s: float = 0.0
    ) -> None:
        self._answer = answer
        self._delay_s = delay_s
        self._hosts = tuple(hosts)
        self.requests: list[Request] = []
        self.port = 0
        self._loop = uvloop.new_event_loop()
        self._pulse = _Pulse(self._loop)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._started = threading.Event()
        self._failure: OSError | None = None

    @property
    def origins(self) -> list[str]:
        return [f"http://{host}:{self.port}" for host in self._hosts]

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise BenchmarkFailed(f"the benchmark's server cannot listen: {self._failure}") from self._failure
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        servers: list[asyncio.AbstractServer] = []
        try:
            self.port = free_port()
            self._pulse.heartbeat()
            for listening in _listening(self._hosts, self.port):
                starting = self._loop.create_server(self._connection, sock=listening, backlog=512)
                servers.append(self._loop.run_until_complete(starting))
        except OSError as failure:
            self._failure = failure
        self._started.set()
        if self._failure is None:
            self._loop.run_forever()
        for server in servers:
            server.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def _connection(self) -> asyncio.Protocol:
        return _Connection(self._answer, self.requests, self._pulse, self._send_later if self._delay_s else None)

    def _send_later(self, send: Callable[[str], None], path: str) -> None:
        self._loop.call_later(self._delay_s, send, path)


class _Connection(asyncio.Protocol):
    """HTTP/1.1 as needed for a crawler's GET; connections stay open."""

    __slots__ = ("_answer", "_buffer", "_host", "_later", "_log", "_pulse", "_transport")

    def __init__(
        self,
        answer: Callable[[str, str], Reply],
        log: list[Request],
        pulse: _Pulse,
        later: Callable[[Callable[[str], None], str], None] | None,
    ) -> None:
        self._pulse = pulse
        self._later = later
        self._host = ""
        self._answer = answer
        self._log = log
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._host = transport.get_extra_info("sockname")[0]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            request, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            path = request.split(b" ", 2)[1].decode("latin-1")
            now = time.monotonic()
            self._log.append(Request(now, self._host, path, self._pulse.slack_s(now)))
            if self._later is None:
                self._send(path)
            else:
                self._later(self._send, path)

    def _send(self, path: str) -> None:
        status, content_type, body = self._answer(self._host, path)
        if self._transport.is_closing():
            return
        if 300 <= status < 400:
            self._transport.write(b"HTTP/1.1 %d .\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (status, body))
            return
        self._transport.write(
            b"HTTP/1.1 %d .\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (status, content_type, len(body), body)
        )


def _listening(hosts: Sequence[str], port: int) -> Iterator[socket.socket]:
    """Yield sockets for all hosts, reachable from this machine only."""
    together = len(hosts) > _SOCKETS
    for host in ("0.0.0.0",) if together else hosts:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if together:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
        listening.bind((host, port))
        yield listening


def _files_of(folder: Path) -> Callable[[str, str], Reply]:
    """Answer with the files below a folder, each read once."""
    root = folder.resolve()
    known: dict[str, Reply] = {}
    types = {f".{extension}": kind for kind, extensions in _TYPES.items() for extension in extensions.split()}

    def answer(_: str, path: str) -> Reply:
        reply = known.get(path)
        if reply is None:
            file = (root / unquote(path.split("?", 1)[0]).lstrip("/")).resolve()
            if file.is_dir():
                file /= "index.html"
            if file.is_relative_to(root) and file.is_file():
                kind = types.get(file.suffix, "application/octet-stream")
                if kind.startswith("text/"):
                    kind += "; charset=utf-8"
                reply = (200, kind.encode(), file.read_bytes())
            else:
                reply = (404, b"text/html", b"<title>404</title>")
            known[path] = reply
        return reply

    return answer


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(100):
        if process.poll() is not None:
            raise BenchmarkFailed(f"nginx ended with exit status {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise BenchmarkFailed("nginx does not answer")
