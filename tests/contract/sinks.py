"""The simplest sink there is, and what a test asks of any sink beyond its contract: to show what it holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Protocol
from urllib.parse import unquote

from crawlspace.document import Document, IndexOrder, Op, Part, packed
from crawlspace.index.http_push import HttpPush
from crawlspace.index.marks import BatchMark
from crawlspace.index.order_log import OrderLog
from crawlspace.index.sink import Refusal, Sent, Sink


class ReadableSink(Sink, Protocol):
    def get(self, url: str) -> Document | None:
        """The document of a URL."""


class MemorySink:
    """An index in a dictionary. `failures` are raised by the next calls, one each; documents titled `bad` are refused."""

    def __init__(self, name: str = "memory") -> None:
        self.name = name
        self.documents: dict[str, Document] = {}
        self.log: list[str] = []
        self.failures: list[Exception] = []
        self.marked: BatchMark | None = None
        self.poison: set[str] = set()
        """URLs on which a whole batch fails, without saying which."""

    def mark(self) -> BatchMark | None:
        return self.marked

    def set_mark(self, mark: BatchMark) -> None:
        self.marked = mark

    def urls_of(self, owner: str, *, after: str, limit: int) -> list[str]:
        """All are one owner's."""
        return [url for url in sorted(self.documents) if url > after][:limit]

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        if self.failures:
            raise self.failures.pop(0)
        for order in orders:
            if order.url in self.poison:
                raise ValueError("something in this batch")
        refusals = []
        for order in orders:
            if order.op is Op.DELETE:
                self.documents.pop(order.url, None)
            elif order.document is None:
                refusals.append(Refusal(order, "a push without a document"))
                continue
            elif order.document.title == "bad":
                refusals.append(Refusal(order, "it is bad"))
                continue
            else:
                self.documents[order.url] = order.document
            self.log.append(f"{order.op} {order.url}")
        if mark is not None and mark.may_follow(self.marked):
            self.marked = mark
        return Sent(refusals)

    def get(self, url: str) -> Document | None:
        return self.documents.get(url)

    def close(self) -> None:
        """Nothing to close."""


def written_as(given: dict[str, Any]) -> Document:
    """Return the document that a sink has written as JSON: parts as dataclasses are, or as `sent_parts` returns them."""
    return Document(**{**given, "parts": [part_as(part) for part in given.get("parts", [])]})


def part_as(part: dict[str, Any]) -> Part:
    fields = {name: value if isinstance(value, str) else packed(value) for name, value in part.get("fields", {}).items()}
    anchor = part["anchor"] if "anchor" in part else unquote(part["url"].partition("#")[2])
    title, headings, text = (_in_any_language(part.get(name)) for name in ("title", "headings", "text"))
    return Part(part["key"], title or "", headings or [], text or "", anchor, fields)


def _in_any_language(value: Any) -> Any:
    return next(iter(value.values())) if isinstance(value, dict) else value


class ReadOrders:
    """What a program makes of lines of orders: a smaller version than before changes nothing."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, Any]] = {}

    def read(self, lines: bytes) -> None:
        for line in lines.splitlines():
            order = json.loads(line)
            if order["version"] >= self._lines.get(order["url"], {"version": 0})["version"]:
                self._lines[order["url"]] = order

    def get(self, url: str) -> Document | None:
        line = self._lines.get(url)
        return written_as(line["document"]) if line is not None and line["op"] == "push" else None


class ReadableLog(OrderLog):
    def get(self, url: str) -> Document | None:
        orders = ReadOrders()
        for path in sorted(self.path.parent.glob("*.jsonl"), key=lambda path: (path == self.path, path.name)):
            orders.read(path.read_bytes())
        return orders.get(url)


class OrderReceiver:
    """A server that orders are POSTed to. `answers` are status and body of the next ones, else 200; what it has answered 200 to is `orders`."""

    def __init__(self) -> None:
        self.orders = ReadOrders()
        self.answers: list[tuple[int, str]] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((dict(self.headers), body))
                status, answer = receiver.answers.pop(0) if receiver.answers else (200, "")
                if status == 200:
                    receiver.orders.read(body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_message(self, *_: object) -> None:
                """It says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/orders"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class ReadablePush:
    """The sink, with what its receiver has."""

    def __init__(self, sink: HttpPush, receiver: OrderReceiver) -> None:
        self.name = sink.name
        self.mark, self.send, self.close = sink.mark, sink.send, sink.close
        self.get = receiver.orders.get
