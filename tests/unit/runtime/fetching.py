"""Scrapy's download handler as we set it up, over connections that a test makes, writes and answers."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from crawlspace.runtime.http.handler import TimingHandler
from crawlspace.runtime.http.http_internals import pool_of
from crawlspace.runtime.http.kept_connections import SecondTurns
from crawlspace.runtime.requests import EXCHANGE, STATE
from tests.unit.runtime.connections import Network

URL = "http://a.example/"
OK = b"HTTP/1.1 200 OK\r\n"
HTML = b"Content-Type: text/html; charset=utf-8\r\n"
PAGE = OK + HTML + b"Content-Length: 3\r\n\r\nabc"


class Fetching:
    """Scrapy's handler as we set it up, with one connection that is kept already."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, network: Network | None = None, *, is_short: bool = True, **settings: Any
    ) -> None:
        self.network = network = network or Network(monkeypatch)
        network.key = (*network.key, None)
        monkeypatch.setattr("twisted.internet.reactor", network.time, raising=False)
        monkeypatch.setitem(sys.modules, "twisted.internet.reactor", network.time)
        self.signals = SignalManager(self)
        files = SimpleNamespace(converters=(), max_bytes=1_000)
        archive, sites = SimpleNamespace(is_on=True), SimpleNamespace(settings=[])
        collection = SimpleNamespace(archive=archive, files=files, sites=sites, data_folder=Path("nowhere"))
        session = SimpleNamespace(
            sending=network.sending,
            connecting=nullcontext,
            owned_for_s=lambda _: network.owned_for_s,
            incarnation=lambda: network.incarnation,
            collection=collection,
            second_turns=SecondTurns(),
        )
        self.session: Any = session
        crawler: Any = SimpleNamespace(spider=SimpleNamespace(session=session), settings=Settings(settings), signals=self.signals)
        self.handler = TimingHandler(crawler)
        pool: Any = pool_of(self.handler)
        network.pool = pool
        if not is_short:
            pool.take_kept = lambda _: None
        self.results: list[Any] = []
        self.keep_connection()
        assert self.is_kept
        self.wire = network.wires[0]
        self.wire.written = b""

    def keep_connection(self) -> None:
        self.network.ask()
        self.network.write()
        self.network.answer()

    def fetch(self, request: Request | None = None, **meta: Any) -> Deferred[Any]:
        self.request = request or Request(URL, meta={STATE: SimpleNamespace(id=1), **meta})
        fetched: Deferred[Any] = Deferred.fromCoroutine(self.handler.download_request(self.request))
        fetched.addBoth(self.results.append)
        return fetched

    def send(self, *parts: bytes) -> None:
        for part in parts:
            if not self.wire.disconnected:
                self.wire.protocol.dataReceived(part)

    @property
    def is_kept(self) -> bool:
        return bool(self.network.pool._connections.get(self.network.key))

    @property
    def outcome(self) -> dict[str, Any]:
        """What can be noticed of a request."""
        [result] = self.results
        seen: dict[str, Any] = {
            "sent": self.wire.written,
            "kept": self.is_kept,
            "closed": self.wire.disconnecting or self.wire.disconnected,
        }
        seen["meta"] = sorted(key for key in self.request.meta if key != EXCHANGE)
        if isinstance(result, Failure):
            assert result.value is not None
            causes = getattr(result.value.__cause__, "reasons", ())
            return {**seen, "error": (type(result.value), str(result.value)), "causes": [cause.type for cause in causes]}
        if EXCHANGE in self.request.meta:
            seen["archived"] = replace(self.request.meta[EXCHANGE], sent_at=0)
        return seen | {
            "class": type(result),
            "url": result.url,
            "status": result.status,
            "headers": [*dict.items(result.headers)],
            "body": result.body,
            "flags": result.flags,
            "protocol": result.protocol,
            "address": str(result.ip_address),
            "certificate": result.certificate,
        }


def answer(fetching: Fetching, *parts: bytes, ends: bool = False, **meta: Any) -> dict[str, Any]:
    fetching.fetch(**meta)
    fetching.network.write()
    fetching.send(*parts)
    if ends:
        fetching.network.close()
    fetching.network.write()
    return fetching.outcome
