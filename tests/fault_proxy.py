"""A proxy before a search server that fails on purpose: cut connections, lost answers, and answers of its own."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

from tests.notifications import LONGEST_WAIT_S


@dataclass(frozen=True)
class Fault:
    """What becomes of one request. `answer` takes the body of the request, and returns status and body of an answer of the proxy's own,
    or None: then it is passed on. `change` changes the answer of the server."""

    answer: Callable[[bytes], tuple[int, object] | None] = lambda _: None
    change: Callable[[dict[str, object]], object] | None = None
    cut: bool = False
    """The connection is closed, and nothing passed on."""
    lose: bool = False
    """The request is passed on, and the connection closed before the answer."""


def answers(status: int, body: object) -> Fault:
    return Fault(lambda _: (status, body))


def error(kind: str, reason: str = "for a test") -> dict[str, object]:
    return {"error": {"type": kind, "reason": reason}}


def _header(login: str) -> str | None:
    return f"Basic {base64.b64encode(login.encode()).decode()}" if login else None


class FaultProxy:
    """`faults` happen to the next bulk requests, or to others by `path`, one each; then `rest` to all others. `beside` happens to what is none
    of them."""

    def __init__(self, url: str, *, path: str = "/_bulk", certificate: Path | None = None, login: str = "") -> None:
        """`certificate`: it is spoken to by https; `login`: user and password that it asks for, as in "crawler:secret"."""
        self.faults: list[Fault] = []
        self.rest: Fault | None = None
        self.beside: Fault | None = None
        self.bulks = 0
        self.paths: list[str] = []
        """Those requests, with what they ask."""
        proxy, lock = self, Lock()
        expected = _header(login)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _pass_on(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length) if length else b""
                fault = proxy.beside
                if path in self.path:
                    with lock:
                        proxy.bulks += 1
                        proxy.paths.append(self.path)
                        fault = proxy.faults.pop(0) if proxy.faults else proxy.rest
                own = None if fault is None else fault.answer(body)
                if self.headers.get("Authorization") != expected:
                    own = 401, None
                if own is not None:
                    self._answer(own[0], json.dumps(own[1]).encode())
                    return
                if fault is not None and fault.cut:
                    self._hang_up()
                    return
                kind = {"Content-Type": self.headers.get("Content-Type", "application/json")}
                request = urllib.request.Request(f"{url}{self.path}", body or None, kind, method=self.command)
                try:
                    with urllib.request.urlopen(request, timeout=LONGEST_WAIT_S) as reply:
                        status, answer = reply.status, reply.read()
                except urllib.error.HTTPError as failed:
                    status, answer = failed.code, failed.read()
                if fault is not None and fault.lose:
                    self._hang_up()
                    return
                if fault is not None and fault.change is not None:
                    answer = json.dumps(fault.change(json.loads(answer))).encode()
                self._answer(status, answer)

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _pass_on  # noqa: N815 - the names that http.server calls

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def _hang_up(self) -> None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

            def log_message(self, *_: object) -> None:
                """It says nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A connection that was closed is what a test wants."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._speak_tls(certificate)
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def _speak_tls(self, certificate: Path | None) -> None:
        if certificate is None:
            return
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = self.url.replace("http:", "https:")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
