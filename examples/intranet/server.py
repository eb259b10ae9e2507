"""The intranet's web servers: one thread a request, quiet, and quick enough for a demonstration.

`python -m examples.intranet.server` serves until Ctrl-C; `Intranet` is the same as a context manager.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from examples.intranet.pages import Answer, error
from examples.intranet.pages.home import HOME
from examples.intranet.pages.products import PRODUCTS
from examples.intranet.pages.support import SUPPORT
from examples.intranet.sites import HOME_HOST, PRODUCTS_HOST, Ports, free_ports

_NOT_FOUND = error(404, "There is no such page.")
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Intranet:
    """The three sites, served from threads of this process while the `with` block runs.

    `requests` counts the requests by host, port and path.
    """

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.requests: Counter[str] = Counter()
        self._servers: list[_Server] = []

    def __enter__(self) -> Self:
        try:
            for address, port, answers in (
                (HOME_HOST, self.ports.home, HOME),
                (PRODUCTS_HOST, self.ports.products, PRODUCTS),
                ("127.0.0.1", self.ports.support, SUPPORT),
            ):
                self._servers.append(_Server((address, port), answers, self.ports, self.requests))
            with contextlib.suppress(OSError):  # "localhost" may be ::1 first; without IPv6 it is not
                self._servers.append(_Server6(("::1", self.ports.support), SUPPORT, self.ports, self.requests))
        except OSError:
            self._close()
            raise
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for server in self._servers:
            server.shutdown()
        self._close()

    def _close(self) -> None:
        for server in self._servers:
            server.server_close()
        self._servers.clear()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], answers: Mapping[str, Answer], ports: Ports, requests: Counter[str]) -> None:
        self.answers = answers
        self.ports = ports
        self.requests = requests
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def answer(self, path: str) -> Answer:
        """Return what is said to a path this time."""
        with self._lock:
            self.requests[f"{self.server_address[0]!s}:{self.server_address[1]}{path}"] += 1
            self._seen[path] += 1
            answer = self.answers.get(path) or self.answers.get(urlsplit(path).path, _NOT_FOUND)
            if answer.times is not None and self._seen[path] > answer.times:
                return answer.afterwards or _NOT_FOUND
            return answer

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is none of our business."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        answer = self.server.answer(self.path)
        if answer.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self.connection.close()
            self.close_connection = True
            return
        rewrite = self.server.ports.rewrite
        body = answer.raw if answer.raw is not None else rewrite(answer.text).encode(answer.charset)
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, rewrite(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: the crawl is what is to be watched."""


@contextlib.contextmanager
def serving() -> Iterator[Intranet]:
    """Serve on the default ports, or on the next free ones."""
    with Intranet(free_ports()) as intranet:
        yield intranet


def main() -> int:
    try:
        with serving() as intranet:
            print(intranet.ports.rewrite("The intranet is at http://127.0.0.1:8941/ — Ctrl-C ends it."), flush=True)
            threading.Event().wait()
    except OSError as trouble:
        print(trouble, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
