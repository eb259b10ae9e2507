"""A search server for benchmarks that acknowledges all it is sent at once: `python -m benchmarks.sink_server`.

It answers as OpenSearch does, with one index behind one alias, and keeps ids alone, to count them. It prints its address, and runs until
it is killed. A process of its own, so that its time does not count for whoever sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import uvloop

from benchmarks.measure import PROJECT, BenchmarkFailed

if TYPE_CHECKING:
    from tests.real_servers.run import RunningServer

_ACTION = re.compile(rb'^\{"(index|delete)": ?\{.*?"_id": ?"([^"]*)"', re.MULTILINE)
_INDEX = "bench-000001"
_ALIAS: dict[str, object] = {_INDEX: {"aliases": {"bench": {"is_write_index": True}}}}
_MAPPING: dict[str, object] = {_INDEX: {"mappings": {"properties": {"text": {"properties": {"en": {}, "other": {}}}}}}}


@contextlib.contextmanager
def acknowledging_server() -> Iterator[str]:
    """Run the server while the block runs, and yield its URL."""
    command = [sys.executable, "-m", "benchmarks.sink_server"]
    process = subprocess.Popen(command, cwd=PROJECT, env={**os.environ}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().decode().strip()
        if not url:
            raise BenchmarkFailed("the server that acknowledges at once did not start")
        yield url
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def server_of(url: str | None, *, is_real: bool) -> Iterator[str]:
    """Yield the URL of a server: that one, the real one of the tests, or one that acknowledges at once."""
    if url is not None:
        yield url
        return
    if not is_real:
        with acknowledging_server() as address:
            yield address
        return
    with real_server() as server:
        yield server.url


@contextlib.contextmanager
def real_server() -> Iterator[RunningServer]:
    """Run the OpenSearch of the tests while the block runs."""
    from tests.real_servers.run import NoServerError, running

    try:
        with running("opensearch", "SingleNode") as server:
            yield server
    except NoServerError as error:
        raise BenchmarkFailed(str(error)) from error


def is_real(server: str) -> bool:
    """Return whether a server keeps what it is sent."""
    return "tagline" in ask(server, "GET", "/")


def ask(server: str, method: str, path: str, body: object = None) -> Any:
    """Send a request, and return the JSON that is answered, whatever the status."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server}{path}", data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        text = error.read()
    return json.loads(text or b"{}")


def emptied(server: str) -> None:
    """Remove the documents of the index `bench`."""
    ask(server, "DELETE", f"/{_INDEX}")


def number_of_documents(server: str) -> int:
    """Return how many documents the index `bench` has, without the marker."""
    ask(server, "POST", "/bench/_refresh")
    return int(ask(server, "POST", "/bench/_count", {"query": {"exists": {"field": "url"}}})["count"])


class _Connection(asyncio.Protocol):
    def __init__(self, there: set[bytes]) -> None:
        self._there = there
        self._head = b""
        self._parts: list[bytes] = []
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance

    def data_received(self, data: bytes) -> None:
        if not self._missing:
            self._head += data
            head, end, rest = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            self._head, self._parts, self._missing = head, [], int(length[1]) if length else 0
            data = rest
        if data:
            self._parts.append(data)
            self._missing -= len(data)
        if self._missing <= 0:
            self._answer(b"".join(self._parts))
            self._head, self._parts, self._missing = b"", [], 0

    def _answer(self, body: bytes) -> None:
        method, target, _ = self._head.split(b" ", 2)
        if method == b"DELETE":
            self._there.clear()
        text = json.dumps(_answer_to(target.decode(), body, self._there)).encode()
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=UTF-8\r\nContent-Length: %d\r\n\r\n%b"
            % (len(text), b"" if method == b"HEAD" else text)
        )


def _answer_to(target: str, body: bytes, there: set[bytes]) -> object:
    path = target.partition("?")[0]
    if path.endswith("/_bulk"):
        done: list[object] = []
        for name, id in _ACTION.findall(body):
            (there.add if name == b"index" else there.discard)(id)
            item = {"_index": _INDEX, "_id": id.decode(), "_version": 1, "result": "created", "status": 201, "_seq_no": 1}
            done.append({name.decode(): item})
        return {"took": 0, "errors": False, "items": done}
    if path.endswith("/_count"):
        return {"count": sum(not id.startswith(b"mark:") for id in there)}
    if path.endswith("/_mget"):
        return {"docs": [{"_index": _INDEX, "_id": id, "found": False} for id in json.loads(body)["ids"]]}
    if path.startswith("/_alias"):
        return _ALIAS
    if path.endswith("/_mapping"):
        return _MAPPING
    return {"version": {"number": "2.19.1", "distribution": "opensearch"}, "acknowledged": True}


async def _serve() -> None:
    there: set[bytes] = set()
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(there), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
