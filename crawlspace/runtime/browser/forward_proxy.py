"""The only way out of a tab: a proxy on the loopback that has each request judged and made by the crawl, and gives the answer as it came.

The browser itself does what belongs to browsers: it applies the same-origin policy, makes preflights, follows redirects, and keeps and sends
cookies. So it sees every answer with the server's own headers. (Answers given by Playwright's `route.fulfill` get CORS headers that their
server never sent, preflights are answered by Playwright, and redirects are not seen.) Connections by TLS end here, with a certificate that
the browser knows. One proxy is for one tab, so that the requesting page is known.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import socket
import ssl
import sys
import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from crawlspace.runtime.browser.loopback_proxy import MOST_HEAD, LoopbackProxy, Streams, answer, pass_on, relay
from crawlspace.runtime.browser.resources import BrowserRequest, Initiator, Loads, Resource

MOST_BODY = 16 << 20
"""Bytes of the body of a request."""
_TLS = b"\x16"
"""The first byte of a TLS connection (RFC 8446, 5.1: a handshake)."""
_SOCKETS = Path("/proc/net/tcp")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_NO_ANSWER = b"HTTP/1.1 502 -\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n"
"""Response that every browser treats as a network error without a retry (RFC 9112, 6.3); after a closed connection it would retry."""


class Answers(Protocol):
    """Answers the requests of a page."""

    async def answer(self, request: BrowserRequest, page: str, loads: Loads) -> Resource | None:
        """Return the answer to a request; None where it is refused, or there is none."""

    async def connect(self, request: BrowserRequest, page: str, loads: Loads) -> Streams | None:
        """Return a connection to the server of a WebSocket; None where it is refused, or there is none."""


class TabPage(NamedTuple):
    """The page of a tab."""

    url: str
    loads: Loads


class ForwardProxy(LoopbackProxy):
    """Serves one tab; a browser that has none gets nothing."""

    def __init__(self, answers: Answers, tls: ssl.SSLContext, page: TabPage | None = None) -> None:
        super().__init__()
        self._answers = answers
        self._tls = tls
        self._page = page

    async def serve(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection, of a tunnel too."""
        page = self._page
        if page is None or not is_of_this_user(writer):
            await answer(writer, "403 Forbidden")
            return
        method, target, _ = head.partition(b"\r\n")[0].decode("latin-1").split(" ", 2)
        if method != "CONNECT":
            await self._serve_requests(page, reader, writer, origin="", head=head)
            return
        page.loads.touch()
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        first = await reader.readexactly(1)
        if first == _TLS:
            await self._serve_tls(page, target, first, reader, writer)
        else:
            await self._serve_requests(
                page, reader, writer, origin=_origin("http", target), head=first + await _read_head(reader)
            )

    async def _serve_tls(
        self, page: TabPage, target: str, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the requests of a connection by TLS, of which one byte was read."""
        outer, inner = socket.socketpair()
        there = await asyncio.open_connection(sock=outer)
        serving = asyncio.ensure_future(self._decrypted(page, inner, _origin("https", target)))
        try:
            there[1].write(first)
            await relay(pass_on(reader, there[1]), pass_on(there[0], writer))
        finally:
            there[1].close()
            serving.cancel()
            await asyncio.wait({serving})

    async def _decrypted(self, page: TabPage, encrypted: socket.socket, origin: str) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MOST_HEAD)
        protocol = asyncio.StreamReaderProtocol(reader)
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, encrypted, ssl=self._tls)
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            try:
                await self._serve_requests(page, reader, writer, origin=origin)
            finally:
                writer.close()

    async def _serve_requests(
        self, page: TabPage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, origin: str, head: bytes = b""
    ) -> None:
        """Answer requests one after the other; `origin` is for those without."""
        while True:
            line, *fields = (head or await _read_head(reader)).decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
            head = b""
            method, target, _ = line.split(" ", 2)
            headers = {name.strip().lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
            if not origin and not target.startswith("http://"):
                raise ValueError("a request that is for no proxy, as of a page that has found this port")
            length = int(headers.get("content-length", "0"))
            if "transfer-encoding" in headers or not 0 <= length <= MOST_BODY:
                raise ValueError("a request that is too long, or whose length is unknown")
            request = BrowserRequest(method, origin + target, headers, await reader.readexactly(length))
            if headers.get("upgrade", "").lower() == "websocket":
                await self._serve_web_socket(page, request, line, fields, reader, writer)
                return
            found = await self._answers.answer(request, page.url, page.loads)
            writer.write(_NO_ANSWER if found is None else _encoded(found, method))
            await writer.drain()

    async def _serve_web_socket(
        self,
        page: TabPage,
        request: BrowserRequest,
        line: str,
        fields: list[str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if request.initiator is Initiator.OTHER:
            fields = [field for field in fields if not field.lower().startswith("cookie:")]
        there = await self._answers.connect(request, page.url, page.loads)
        if there is None:
            writer.write(_NO_ANSWER)
            await writer.drain()
            return
        try:
            there[1].write("\r\n".join([line, *fields, "", ""]).encode("latin-1"))
            await relay(pass_on(reader, there[1]), pass_on(there[0], writer))
        finally:
            there[1].close()


def is_of_this_user(writer: asyncio.StreamWriter) -> bool:
    """Return whether the other end of a connection on the loopback belongs to a process of this user, where the system tells.

    Requests of a page carry the log-in of its site, which no other user of this machine must use.
    """
    (host, port), (own_host, own_port) = (writer.get_extra_info(name)[:2] for name in ("peername", "sockname"))
    try:
        listed = _SOCKETS.read_text("ascii")
    except OSError:
        return True
    ends = f" {_as_listed(host, port)} {_as_listed(own_host, own_port)} "
    line = next((line for line in listed.splitlines() if ends in line), "").split()
    return len(line) > 7 and int(line[7]) == os.geteuid()


def _as_listed(host: str, port: int) -> str:
    """Return an IPv4 address and a port as Linux lists them."""
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"


def _origin(scheme: str, target: str) -> str:
    """Return scheme and host of what a tunnel leads to. Raises ValueError."""
    parts = urlsplit(f"//{target}")
    if not parts.hostname or not parts.port:
        raise ValueError("a tunnel without a host or a port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{scheme}://{host}" if parts.port == _DEFAULT_PORTS[scheme] else f"{scheme}://{host}:{parts.port}"


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


def _encoded(found: Resource, method: str) -> bytes:
    """Return an answer as HTTP/1.1."""
    lines = [f"HTTP/1.1 {found.status} {_phrase(found.status)}"]
    for name, values in found.headers.items():
        lines += [f"{name}: {value}" for value in values.split("\n")]
    has_body = found.status not in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}
    lines += [f"Content-Length: {len(found.body)}"] if has_body else []
    head = "\r\n".join([*(line.replace("\r", " ") for line in lines), "", ""]).encode("latin-1", "replace")
    return head + found.body if has_body and method != "HEAD" else head


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "-"


# --- proxy certificate ---------------------------------------------------------------------------------------------


_LASTS = timedelta(days=365)
_EARLIER = timedelta(days=1)


class ProxyCertificate(NamedTuple):
    """Certificate with which a proxy answers TLS connections."""

    context: ssl.SSLContext
    key_hash: str
    """SHA-256 of the public key (SPKI), in Base64."""


def make_certificate() -> ProxyCertificate:
    """Return a certificate with a key of its own, and no name: the browser compares the key only."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "crawlspace")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _LASTS)
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:  # readable by this user only; ssl takes certificates from files
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate.public_bytes(Encoding.PEM))
        file.flush()
        context.load_cert_chain(file.name)
    context.set_alpn_protocols(["http/1.1"])
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return ProxyCertificate(context, base64.b64encode(hashlib.sha256(public).digest()).decode())
