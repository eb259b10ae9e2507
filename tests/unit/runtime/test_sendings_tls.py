"""When a request is sent on a connection with TLS: after the handshake, and not where that took too long."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.ssl import CertificateOptions
from twisted.protocols.tls import TLSMemoryBIOFactory

from crawlspace.runtime.http.errors import NotAsked
from crawlspace.runtime.http.kept_connections import TLS_END_S
from tests.certificates import certificate
from tests.unit.runtime.connections import ANSWER, Network


class Secure(Network):
    """As Network, with TLS. What is at the other end gets and says what `exchange` hands over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        super().__init__(monkeypatch)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate(folder / "certificate.pem"))
        self._received, self._tells = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._end = context.wrap_bio(self._received, self._tells, server_side=True)
        self.heard = b""

    def protocol(self, factory: Any) -> Any:
        client: Any = CertificateOptions()
        clock: Any = self.time
        return TLSMemoryBIOFactory(client, isClient=True, wrappedFactory=factory, clock=clock).buildProtocol(None)

    def say(self, data: bytes) -> None:
        self._end.write(data)

    def exchange(self) -> None:
        """Hand over what this end has written, and then what the other end says to that."""
        self.time.advance(0)  # small writes are gathered until the next turn
        self.write()
        self._received.write(self.wires[-1].written)
        self.wires[-1].written = b""
        with suppress(ssl.SSLWantReadError):
            self._end.do_handshake()
            self.heard += self._end.read()
        reported = self._tells.read()
        if reported:
            self.wires[-1].protocol.dataReceived(reported)


def test_a_delay_does_not_count_from_before_the_handshake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With TLS a request waits for the handshake, which a site may answer late."""
    network = Secure(monkeypatch, tmp_path)
    network.ask()
    network.exchange()
    network.time.advance(0.8)
    assert not network.heard
    for _ in range(3):
        network.exchange()
    assert network.heard.startswith(b"GET / ")
    network.time.advance(3)
    assert network.ago_s == 3.0
    network.say(ANSWER)
    network.exchange()
    network.pool.closeCachedConnections()
    network.write()
    assert network.wires[0].written, "that it closes is told to the site"
    assert network.ago_s == 3.0, "but is no request"


def test_a_request_is_not_sent_after_a_handshake_that_took_too_long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    network = Secure(monkeypatch, tmp_path)
    network.ask()
    network.exchange()
    network.owned_for_s = 0.0
    for _ in range(3):
        network.exchange()
    assert not network.heard
    assert [failure.type for failure in network.errors] == [NotAsked]
    assert not network.is_open


def test_a_kept_connection_with_tls_is_closed_where_its_site_must_get_no_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Even if the other end never answers that it has heard of that."""
    network = Secure(monkeypatch, tmp_path)
    network.ask()
    for _ in range(4):
        network.exchange()
    network.say(ANSWER)
    network.exchange()
    assert network.is_open
    network.owned_for_s = 0.0
    network.ask()
    network.write()
    assert [failure.type for failure in network.errors] == [NotAsked]
    assert not network.is_open


@pytest.mark.parametrize("agrees", [True, False])
def test_a_connection_with_tls_is_gone_some_seconds_after_its_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, agrees: bool
) -> None:
    """Even if the other end never answers that it has heard of that, and goes on sending."""
    network = Secure(monkeypatch, tmp_path)
    network.ask()
    for _ in range(4):
        network.exchange()
    network.say(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    network.exchange()
    if agrees:
        network.exchange()
        network.close()
    else:
        assert network.is_open
    network.time.advance(TLS_END_S)
    assert not network.is_open
    assert not network.time.getDelayedCalls()
