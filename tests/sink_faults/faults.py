"""What stands between the process that sends and the server: it fails on purpose, and keeps account of what was sent and written."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from random import Random
from threading import RLock, Thread
from typing import Any

from tests.fault_proxy import Fault, error
from tests.search_server import INDEX, SearchServer
from tests.sink_faults.worker import BATCH, POISON

KINDS = (
    "cut",
    "answer lost",
    "written late",
    "answered out of turn",
    "slow",
    "429",
    "503",
    "500",
    "413",
    "400",
    "item 429",
    "item 500",
    "item read-only",
    "fewer answers",
    "no JSON",
    "index full",
    "restarted",
    "killed before",
    "killed after",
)
"""What may become of a bulk request."""
SERVER_KILLED = "server killed"
"""What becomes of one more, where the server can be killed."""
_DIES_BY = 15
"""Bulk request of a history at which it is at the latest."""
_BUSY = error("es_rejected_execution_exception")
_ITEM_ERRORS = {
    "item 429": (429, _BUSY),
    "item 500": (500, error("fail_processor_exception")),
    "item read-only": (403, error("cluster_block_exception")),
}
_WHOLE = {"429": (429, _BUSY), "503": (503, "not ready"), "500": (500, "Internal Server Error")}
_DIVIDED = {"413": (413, "too large"), "400": (400, error("parse_exception"))}
_LONGEST_S = 60


class ConnectionCutError(Exception):
    """The connection is closed without an answer."""


@dataclass(frozen=True)
class Line:
    """An item of a bulk request."""

    op: str
    id: str
    version: int
    text: bytes

    @property
    def is_marker(self) -> bool:
        return self.id.startswith("mark:")

    @property
    def order(self) -> tuple[str, int, str]:
        return self.id, self.version, self.op


@dataclass
class Faults:
    """Use `bulk` and `beside` as faults of a proxy before the server."""

    server: SearchServer
    seed: int
    kill: Callable[[], None]
    """Ends the process that sends, at once."""
    slow: Callable[[], None]
    rate: float = 0.5
    """Share of the requests that something becomes of."""
    restart_server: Callable[[], None] | None = None
    """Kills the server, and returns when it answers again; where there is one, that happens once."""
    incarnation: int = 0
    happened: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    sent: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    _acknowledged: dict[tuple[str, int, str], int] = field(default_factory=dict)
    """Orders of which the process was told that they are done, with its incarnation then."""
    _with_their_marker: dict[tuple[str, int, str], int] = field(default_factory=dict)
    """Orders that are done and whose batch is not yet: it is sent again as a whole until its marker is there."""
    _since_marker: set[tuple[str, int, str]] = field(default_factory=set)
    """Orders that were sent since a marker was: those of the batch under way."""
    _to_look_up: list[tuple[str, int, str]] = field(default_factory=list)
    """Orders of which the server has the version or a later one: whether they are done is known once that is looked up."""
    _again: Counter[int] = field(default_factory=Counter)
    """By incarnation: its orders that were done, and that a later one has sent again."""
    _written: dict[str, tuple[int, str]] = field(default_factory=dict)
    _late: list[list[Line]] = field(default_factory=list)
    _down: int = 0
    _full: int = 0
    _lock: RLock = field(default_factory=RLock)

    def bulk(self) -> Fault:
        return Fault(self._bulk)

    def beside(self) -> Fault:
        return Fault(self._beside)

    def end(self) -> None:
        """Have nothing fail any more; what was held on its way arrives."""
        with self._lock:
            self.rate, self._down = 0.0, 0
            while self._late:
                self._pass_on(self._late.pop(0))
            self._be_full(0)

    def _beside(self, _: bytes) -> tuple[int, object] | None:
        with self._lock:
            if self._down:
                for order in self._to_look_up:
                    self._acknowledged.pop(order, None)
                    self._with_their_marker.pop(order, None)
            self._to_look_up.clear()
            self._refuse_if_down()
        return None

    def _bulk(self, body: bytes) -> tuple[int, object]:
        lines = _lines_of(body)
        with self._lock:
            incarnation = self.incarnation
            for line in lines:
                self._count(line)
            self._refuse_if_down()
            if self._full:
                self._be_full(self._full - 1)
            chance = Random(f"{self.seed} {lines[0].order} {self.sent[lines[0].order]}")
            kind = chance.choice(KINDS) if chance.random() < self.rate else ""
            if kind in _DIVIDED and len(lines) == 1:
                kind = ""
            if self.restart_server is not None and self.happened.total() == Random(self.seed).randrange(1, _DIES_BY):
                kind = SERVER_KILLED
            self.happened[kind] += 1
            if kind == SERVER_KILLED:
                self._kill_server(lines)
        if kind == "slow":
            self.slow()
        with self._lock:
            try:
                status, answer = self._answered(kind, lines, chance)
                if status == 200:
                    self._note_done(lines, answer, incarnation)
                if kind == "answered out of turn" and self._late:
                    self._pass_on(self._late.pop())
                return status, answer
            finally:
                if any(line.is_marker for line in lines):
                    self._since_marker.clear()

    def _answered(self, kind: str, lines: Sequence[Line], chance: Random) -> tuple[int, Any]:
        """Do what is to be done with a request, and return the answer to it."""
        if kind == "killed before":
            self._kill()
        if kind == "written late":
            self._late.append(list(lines))
            raise ConnectionCutError
        if kind in _WHOLE:
            return _WHOLE[kind]
        if kind in _DIVIDED:
            return _DIVIDED[kind]
        if kind == "index full":
            self._be_full(chance.randrange(1, 5))
        if kind == "restarted":
            self._late.clear()  # its connections are gone
            self._down = chance.randrange(1, 8)
        if kind in ("cut", "restarted"):
            raise ConnectionCutError
        refused = {lines[chance.randrange(len(lines))].id: _ITEM_ERRORS[kind]} if kind in _ITEM_ERRORS else {}
        refused |= {line.id: (400, error("mapper_parsing_exception")) for line in lines if POISON.encode() in line.text}
        lost = (
            set(lines[chance.randrange(len(lines)) :])
            if kind in ("fewer answers", "no JSON") and chance.random() < 0.5
            else set()
        )
        answer = self._pass_on([line for line in lines if line.id not in refused and line not in lost])
        if self._late and chance.random() < 0.5:
            self._pass_on(self._late.pop(0))
        if kind == "killed after":
            self._kill()
        if kind == "answer lost":
            raise ConnectionCutError
        if kind == "no JSON":
            return 200, "<html>"
        by_id = {next(iter(item.values()))["_id"]: item for item in answer}
        for line in lines:
            if line.id in refused:
                status, why = refused[line.id]
                by_id[line.id] = {line.op: {"_id": line.id, "status": status, **why}}
        given = [by_id[line.id] for line in lines if line not in lost]
        return 200, {"errors": True, "items": given[: len(given) // 2] if kind == "fewer answers" and not lost else given}

    def _count(self, line: Line) -> None:
        """Count a request's item; an order that the process knows to be done is not sent again, but for the last batch before a kill."""
        self.sent[line.order] += 1
        self._since_marker.add(line.order)
        self._with_their_marker.pop(line.order, None)
        done_in = self._acknowledged.pop(line.order, None)
        if done_in is None:
            return
        if done_in == self.incarnation:
            self.wrong.append(f"{line.order} was sent again, although it was acknowledged")
            return
        self._again[done_in] += 1
        if self._again[done_in] > BATCH:
            self.wrong.append(f"{line.order}: more than a batch was sent again after one kill")

    def _note_done(self, lines: Sequence[Line], answer: Any, incarnation: int) -> None:
        for item in answer["items"] if isinstance(answer, dict) else []:
            (result,) = item.values()
            if result["status"] < 300 or result["status"] == 409 or result.get("result") == "not_found":
                line = next(line for line in lines if line.id == result["_id"])
                if line.is_marker:
                    for order in self._with_their_marker.keys() & self._since_marker:
                        self._acknowledged[order] = self._with_their_marker.pop(order)
                    continue
                self._with_their_marker[line.order] = incarnation
                if result["status"] == 409:
                    self._to_look_up.append(line.order)

    def _pass_on(self, lines: Sequence[Line]) -> list[dict[str, Any]]:
        """Have the server write what was sent; nothing older than what it has may have an effect."""
        if not lines:
            return []
        body = b"".join(line.text for line in lines)
        url = f"{self.server.url}/{INDEX}/_bulk?require_alias=true"
        request = urllib.request.Request(url, body, {"Content-Type": "application/x-ndjson"})
        try:
            with urllib.request.urlopen(request, timeout=_LONGEST_S) as reply:
                items: list[dict[str, Any]] = json.loads(reply.read())["items"]
        except urllib.error.HTTPError as failed:
            raise AssertionError(f"the server answers {failed.code}: {failed.read()[:500]!r}") from failed
        for line, item in zip(lines, items, strict=True):
            if next(iter(item.values()))["status"] >= 300:
                continue
            version, op = self._written.get(line.id, (0, ""))
            if line.version < version:
                self.wrong.append(f"{line.op} {line.id} {line.version} had an effect after {op} {version}")
            self._written[line.id] = line.version, line.op
        return items

    def _kill_server(self, lines: Sequence[Line]) -> None:
        """Kill the server while it writes, and wait until it answers again; what it has written of that is not known."""
        assert self.restart_server is not None
        self._late.clear()  # its connections are gone

        def pass_on() -> None:
            with contextlib.suppress(OSError, ValueError, HTTPException, AssertionError):
                self._pass_on(lines)

        writes = Thread(target=pass_on)
        writes.start()
        self.restart_server()
        writes.join()
        raise ConnectionCutError

    def _kill(self) -> None:
        self.kill()
        raise ConnectionCutError

    def _refuse_if_down(self) -> None:
        if self._down:
            self._down -= 1
            raise ConnectionCutError

    def _be_full(self, requests: int) -> None:
        """Have the index take nothing for so many requests, as when the disk is full; 0: take it again."""
        if bool(requests) != bool(self._full):
            self.server.ask("PUT", f"/{INDEX}/_settings", {"index.blocks.read_only_allow_delete": True if requests else None})
        self._full = requests


def _lines_of(body: bytes) -> list[Line]:
    found: list[Line] = []
    rest = iter(body.splitlines(keepends=True))
    for action in rest:
        ((op, about),) = json.loads(action).items()
        text = action if op == "delete" else action + next(rest)
        found.append(Line(op, about["_id"], about["version"], text))
    return found
